"""Forms of data, as tables of cases: what becomes of each, and what is refused."""
import os
import unittest
import unittest.mock

import numpy as np
import torch
from support import Case
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset, random_split

from hfta_tune import data as datas
from hfta_tune import data_files, frames, safetensors
from hfta_tune.errors import ConfigError, HftaError

X = np.arange(12, dtype=np.float32).reshape(6, 2)
Z = np.arange(6, dtype=np.int64)
Y = np.arange(6, dtype=np.int64) % 3


class Items(Dataset):
    """A map-style dataset over a function of the index."""

    def __init__(self, item):
        self._item = item

    def __len__(self):
        return 6

    def __getitem__(self, index):
        return self._item(index)


class Stream(IterableDataset):
    def __iter__(self):
        return iter([(X[0], Y[0])])


def names(*inputs, **more):
    return datas.Names(inputs or ("x",), **more)


TENSORS = TensorDataset(torch.tensor(X), torch.tensor(Y))

FORMS = [
    # data, names, inputs, targets
    ("arrays", (X, Y), names("image"), {"image": X}, {"y": Y}),
    ("tensors", (torch.tensor(X), torch.tensor(Y)), names(), {"x": X}, {"y": Y}),
    ("a list", [X, list(Y)], names(), {"x": X}, {"y": Y}),
    ("bfloat16", (torch.tensor(X).bfloat16(), Y), names(), {"x": X}, {"y": Y}),
    ("an input named y", (X, Y), names("y"), {"y": X}, {"target": Y}),
    ("inputs in order", ((X, Z), Y), names("a", "b"), {"a": X, "b": Z}, {"y": Y}),
    ("inputs by name", ({"b": Z, "a": X}, Y), names("a", "b"), {"b": Z, "a": X}, {"y": Y}),
    ("a dict", {"a": X, "b": Z, "t": Y}, names("a", "b"), {"a": X, "b": Z}, {"t": Y}),
    ("a dict of x and y", {"x": X, "y": Y}, names("images"), {"x": X}, {"y": Y}),
    ("targets among the arguments", {"a": X, "labels": Y}, names("a", "labels"), {"a": X}, {"labels": Y}),
    ("a target that is named", {"a": X, "b": Z, "t": Y}, names("a", "b", "t", target="t"), {"a": X, "b": Z}, {"t": Y}),
    ("a loss in the model", {"a": X, "labels": Y}, names("a", "labels", with_targets=False), {"a": X, "labels": Y}, {}),
    ("inputs alone", X, names(with_targets=False), {"x": X}, {}),
    ("a pair without targets", (X, None), names(with_targets=False), {"x": X}, {}),
    ("TensorDataset", TENSORS, names(), {"x": X}, {"y": Y}),
    ("TensorDataset of three", TensorDataset(*map(torch.tensor, (X, Z, Y))), names("a", "b"), {"a": X, "b": Z}, {"y": Y}),
    ("Subset", Subset(TENSORS, [3, 1]), names(), {"x": X[[3, 1]]}, {"y": Y[[3, 1]]}),
    ("Subset of a Subset", Subset(Subset(TENSORS, [3, 1, 2]), [2]), names(), {"x": X[[2]]}, {"y": Y[[2]]}),
    ("pairs", Items(lambda i: (torch.tensor(X[i]), int(Y[i]))), names(), {"x": X}, {"y": Y}),
    ("Subset of pairs", Subset(Items(lambda i: (X[i], Y[i])), [4, 0]), names(), {"x": X[[4, 0]]}, {"y": Y[[4, 0]]}),
    ("triples", Items(lambda i: (X[i], Z[i], Y[i])), names("a", "b"), {"a": X, "b": Z}, {"y": Y}),
    ("dicts", Items(lambda i: {"a": X[i], "labels": Y[i]}), names("a"), {"a": X}, {"labels": Y}),
    ("a dict and targets", Items(lambda i: ({"a": X[i], "b": Z[i]}, Y[i])), names("a", "b"), {"a": X, "b": Z}, {"y": Y}),
    ("items alone", Items(lambda i: X[i]), names(with_targets=False), {"x": X}, {}),
    ("rows in a list", (list(X), Y), names(), {"x": X}, {"y": Y}),
    ("rows in a list, as many as numbers", (list(X[:2]), Y[:2]), names(), {"x": X[:2]}, {"y": Y[:2]}),
    ("one row in a list", (list(X[:1]), Y[:1]), names(), {"x": X[:1]}, {"y": Y[:1]}),
    ("tensors in a list", (list(torch.tensor(X)), list(torch.tensor(Y))), names(), {"x": X}, {"y": Y}),
    ("tensors of bfloat16 in a list", (list(torch.tensor(X).bfloat16()), Y), names(), {"x": X}, {"y": Y}),
    ("lists in a list", (X.tolist(), Y.tolist()), names(), {"x": X}, {"y": Y}),
    ("numbers in a list", (list(X[:, 0]), Y), names(), {"x": X[:, 0]}, {"y": Y}),
    ("rows without targets", (list(X), None), names(with_targets=False), {"x": X}, {}),
    ("inputs in a list", ([X, Z], Y), names("a", "b"), {"a": X, "b": Z}, {"y": Y}),
    ("inputs in a list, without targets", ([X, Z], None), names("a", "b", with_targets=False), {"a": X, "b": Z}, {}),
    ("a mask of nothing", (np.ma.masked_array(X), np.ma.masked_array(Y, mask=Y > 9)), names(), {"x": X}, {"y": Y}),
    ("big-endian", (X.astype(">f4"), Y.astype(">i8")), names(), {"x": X}, {"y": Y}),
    ("a target that is a number", {"x": X, 3: Y}, names(target=3), {"x": X}, {"3": Y}),
    ("a negative bit", (torch.view_as_real(torch.complex(*[torch.tensor(X)] * 2)).conj()[..., 0], Y), names(), {"x": X}, {"y": Y}),
    ("tuples of inputs", Items(lambda i: (X[i], Y[i])), names("a", "labels", with_targets=False), {"a": X, "labels": Y}, {}),
]

REFUSED = [
    ("three arrays", (X, Z, Y), names(), r"found 3 parts, wanted \(x, y\)"),
    ("lengths", (X, Y[:4]), names(), r"wanted one length above 0: \{'x': 6, 'y': 4\}"),
    ("no samples", (X[:0], Y[:0]), names(), "wanted one length above 0"),
    ("no targets", {"a": X, "b": Z}, names("a", "b"), "found no targets among .*target="),
    ("a target that is not there", {"x": X, "y": Y}, names(target="z"), r"target: found 'z', wanted one of \['x', 'y'\]"),
    ("a path for a name", {"a/b": X, "y": Y}, names(), r"found the names \['a/b'\]"),
    ("a file's name for a name", {"x": X, "t.npy": Y}, names(), r"found the names \['t.npy'\], wanted .* without .npy"),
    ("words", (np.array(["a"] * 6), Y), names(), "x: found .*wanted numbers"),
    ("DataLoader", DataLoader(TENSORS), names(), "found a DataLoader, wanted its dataset"),
    ("IterableDataset", Stream(), names(), "found an IterableDataset, wanted a map-style"),
    ("a number", 3, names(), "found int, wanted"),
    ("ragged samples", Items(lambda i: (X[i][:1 + i % 2], Y[i])), names(), "found samples of shapes .*wanted one shape"),
    ("masked values", (np.ma.masked_array(X, mask=X > 9), Y), names(), "x: found 2 masked values, wanted none$"),
    ("masked targets", (X, np.ma.masked_array(Y, mask=Y > 1)), names(), "y: found 2 masked values, wanted none$"),
    ("masked rows", (list(np.ma.masked_array(X, mask=X > 9)), Y), names(), "x: found 2 masked values, wanted none$"),
    ("masked samples", Items(lambda i: (np.ma.masked_array(X, mask=X > 9)[i], Y[i])), names(), "part 0: found 2 masked values, wanted none$"),
    ("longdouble", (X.astype(np.longdouble), Y), names(), "x: found ndarray of type float128, wanted numbers of 8 bytes or fewer"),
    ("complex numbers", (torch.tensor(X).to(torch.complex64), Y), names(), "x: found Tensor of type complex64, wanted numbers"),
    ("a ragged list", ([[1, 2, 3], [1, 2]], [1, 2]), names(), r"x: found rows of lengths \[2, 3\], wanted rows of one shape"),
    ("a ragged list of tensors", ([torch.zeros(3), torch.zeros(2)], [1, 2]), names(), r"x: found rows of lengths \[2, 3\]"),
    ("None in a list", ([[1.0, None]], [1]), names(), "x: found list of type object, wanted numbers"),
    ("sparse", (torch.tensor(X).to_sparse(), Y), names(), "x: found a sparse tensor, wanted a dense one"),
    ("sparse rows", (torch.tensor(X).to_sparse_csr(), Y), names(), "x: found a sparse tensor, wanted a dense one"),
    ("float8", (torch.tensor(X).to(torch.float8_e4m3fn), Y), names(), "x: found a tensor of type float8_e4m3fn, wanted numbers"),
    ("quantized", (torch.quantize_per_tensor(torch.tensor(X), 0.1, 0, torch.quint8), Y), names(), "x: found a quantized tensor"),
    ("nested", (torch.nested.nested_tensor(list(torch.tensor(X))), Y), names(), "x: found a nested tensor"),
    ("jagged", (torch.nested.nested_tensor(list(torch.tensor(X)), layout=torch.jagged), Y), names(), "x: found a nested tensor"),
    ("meta", (torch.empty(6, 2, device="meta"), Y), names(), "x: found a meta tensor"),
    ("a long name", {"x" * 300: X, "y": Y}, names(), "found the names .*wanted names that files can have"),
    ("objects", Items(lambda i: (object(), Y[i])), names(), "wanted numbers .*ToTensor"),
]


class Forms(Case):
    def test_forms(self):
        for label, data, wanted_names, inputs, targets in FORMS:
            with self.subTest(label):
                found = datas.collect(data, wanted_names)
                self.assertEqual(list(found.inputs), list(inputs))
                self.assertEqual(list(found.targets), list(targets))
                for name, wanted in {**inputs, **targets}.items():
                    np.testing.assert_array_equal(found.all[name], wanted)

    def test_refused(self):
        for label, data, wanted_names, words in REFUSED:
            with self.subTest(label), self.assertRaisesRegex(ConfigError, words):
                datas.collect(data, wanted_names)

    def test_big_endian_numbers_become_tensors(self):
        found = datas.example_of(datas.collect((X.astype(">f4"), Y), names()), 4)
        self.assertTrue(torch.equal(found["x"], torch.tensor(X[:4])))

    def test_random_split(self):
        train, rest = random_split(TENSORS, [4, 2], generator=torch.Generator().manual_seed(0))
        found = [datas.collect(part, names()) for part in (train, rest)]
        self.assertEqual([len(part) for part in found], [4, 2])
        self.assertEqual(sorted(np.concatenate([part.inputs["x"][:, 0] for part in found])), sorted(X[:, 0]))

    def test_frames(self):
        pandas = self.need("pandas")
        frame = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1] > 4, "c": Z, "y": Y})
        found = datas.collect(frame, names(target="y"))
        np.testing.assert_array_equal(found.inputs["x"], np.stack([X[:, 0], X[:, 1] > 4, Z], 1))
        np.testing.assert_array_equal(found.targets["y"], Y)
        found = datas.collect(frame, names(target="y", features=["c", "a"]))
        np.testing.assert_array_equal(found.inputs["x"], np.stack([Z, X[:, 0]], 1))
        for columns, dtype in [({"a": Z, "b": Z.astype(np.int8)}, np.int64), ({"a": X[:, 0], "b": X[:, 1] > 4}, np.float32),
                               ({"a": Z + 2**24 + 1, "b": X[:, 0]}, np.float64), ({"a": Z > 1, "b": Z > 2}, np.uint8),
                               ({"a": pandas.array(Z, dtype="Int64")}, np.int64)]:
            with self.subTest(dtype):
                found = datas.collect(pandas.DataFrame({**columns, "y": Y}), names(target="y")).inputs["x"]
                self.assertEqual(found.dtype, dtype)
                np.testing.assert_array_equal(found, np.stack(list(columns.values()), 1))
        other = frame[["y", "c", "b", "a"]]
        beside = datas.collect(other, datas.with_features_of(names(target="y"), frame))
        np.testing.assert_array_equal(beside.inputs["x"], datas.collect(frame, names(target="y")).inputs["x"])
        with self.assertRaisesRegex(ConfigError, r"features: found \['b'\]"):
            datas.collect(other[["y", "c", "a"]], datas.with_features_of(names(target="y"), frame))
        with self.assertRaisesRegex(ConfigError, r"found the columns \['a'\] more than once"):
            datas.collect(frame[["a", "a", "y"]], names(target="y"))
        numbered = pandas.DataFrame(np.c_[X, Y])
        numbered.columns = [0, 1, ("y", 2)]
        for columns, target, features in [([0, 1, 2], 2, None), ([0, 1, 2], "2", [1, 0]), ([0, 1, 2], 2, np.array([0])),
                                          ([("a", 1), ("b", 1), ("y", 2)], ("y", 2), None), (list("aby"), "y", "a"),
                                          ([0, 1, 2], 2, 1), (list("aby"), "y", ("b", "a"))]:
            with self.subTest(columns=columns, features=features):
                numbered.columns = columns
                found = datas.collect(numbered, names(target=target, features=frames.column_names(features)))
                np.testing.assert_array_equal(found.targets[str(target)], Y)
                wanted = {1: X[:, [1]] if features == 1 else X[:, [0]], 2: X if features is None else X[:, ::-1]}
                np.testing.assert_array_equal(found.inputs["x"], wanted[found.inputs["x"].shape[1]])
                other = datas.collect(numbered, datas.with_features_of(names(target=target), numbered))
                np.testing.assert_array_equal(other.inputs["x"], X)
        for features, words in [(["a", "y"], "found the target 'y' among the features"),
                                (["a", "a"], "found the feature 'a' twice"), ([], "features: found none, wanted a column beside")]:
            with self.subTest(words), self.assertRaisesRegex(ConfigError, words):
                datas.collect(frame, names(target="y", features=features))
        for data, words in [(frame[["y"]], "features: found none, wanted a column beside the target 'y'"),
                            (frame.astype({"a": np.longdouble}), "found ndarray of type float128, wanted numbers of 8 bytes"),
                            (frame.rename(columns={"a": 1, "b": "1"}), r"found the columns \['1'\] more than once")]:
            with self.subTest(words), self.assertRaisesRegex(ConfigError, words):
                datas.collect(data, names(target="y"))
        worse = frame.assign(d=["u"] * 6, e=[None] + [1.0] * 5)
        for arguments, words in [({}, "target: found None, wanted a column"), ({"target": "z"}, "target: found 'z'"),
                                 ({"target": "y"}, "column 'd': found .*encode it"),
                                 ({"target": "y", "features": ["e"]}, "column 'e': found 1 missing values"),
                                 ({"target": "y", "features": ["q"]}, r"features: found \['q'\]")]:
            with self.subTest(words), self.assertRaisesRegex(ConfigError, words):
                datas.collect(worse, names(**arguments))


class Weights(Case):
    def test_a_type_that_is_not_known(self):
        header = b'{"a":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}}'
        (self.folder / "w.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"0")
        with self.assertRaisesRegex(HftaError, "a: found the type F4, wanted one of F64"):
            safetensors.load_file(self.folder / "w.safetensors")


class Files(Case):
    def test_content_names_the_folder(self):
        arrays = datas.collect((X, Y), names())
        name = data_files.write(arrays, self.folder / "in")
        self.assertEqual(sorted(file.name for file in (self.folder / "in" / name).iterdir()), ["x.npy", "y.npy"])
        np.testing.assert_array_equal(np.load(self.folder / "in" / name / "x.npy"), X)
        before = (self.folder / "in" / name / "x.npy").stat()
        self.assertEqual(data_files.write(datas.collect((torch.tensor(X), torch.tensor(Y)), names()), self.folder / "in"), name)
        self.assertEqual((self.folder / "in" / name / "x.npy").stat().st_mtime_ns, before.st_mtime_ns)
        self.assertEqual([path.name for path in (self.folder / "in").iterdir()], [name])

    def test_large_files_count_by_size_and_time(self):
        file = self.folder / "d.bin"
        file.write_bytes(b"ab")
        os.utime(file, ns=(10, 10))
        whole = data_files.files_digest([file])
        with unittest.mock.patch.object(data_files, "_READ_WHOLE", 1):
            large = data_files.files_digest([file])
            file.write_bytes(b"ac")
            os.utime(file, ns=(10, 10))
            self.assertEqual(data_files.files_digest([file]), large)
            os.utime(file, ns=(10, 20))
            self.assertNotEqual(data_files.files_digest([file]), large)
        self.assertNotEqual(data_files.files_digest([file]), whole)
        self.assertEqual(data_files.files_digest([]), "")

    def test_every_change_counts(self):
        digest = lambda *data: data_files.digest(datas.collect(data, names()))  # noqa: E731
        other = X.copy()
        other[5, 1] += 1
        digests = [digest(X, Y), digest(other, Y), digest(X.astype(np.float64), Y), digest(X.reshape(6, 2, 1), Y), digest(X, Z)]
        self.assertEqual(len(set(digests)), len(digests))
        self.assertEqual(digest(np.asfortranarray(X), Y), digest(X, Y))


if __name__ == "__main__":
    unittest.main()
