"""What `tune` is given by mistake: each is refused by an HftaError of one line, which says what to do."""
import collections
import unittest
from typing import NamedTuple

import torch
from support import Case, ht, net, points, tune
from torch import nn


class Gives(nn.Module):
    """Gives what a function makes of its outputs."""

    def __init__(self, function):
        super().__init__()
        torch.manual_seed(0)
        self.head = nn.Linear(6, 3)
        self.function = function

    def forward(self, x):
        return self.function(self.head(x))


class OwnLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(6, 3)

    def forward(self, x, y):
        return {"loss": nn.functional.cross_entropy(self.head(x), y)}


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(6, 3)

    def forward(self, x, scale):
        return self.head(x) * scale


Pair = collections.namedtuple("Pair", "logits twice")


class Typed(NamedTuple):
    logits: torch.Tensor
    inner: Pair


class Refusals(Case):
    def test_modules(self):
        for label, module, words in [
            ("None", lambda: None, "module: found None, wanted a torch.nn.Module, or a class or function that makes one"),
            ("a number", lambda: 3, "module: found 3, wanted a torch.nn.Module"),
            ("a class that is none", lambda: type, "module: found <class 'type'>, whose arguments"),
            ("a function that makes none", lambda: lambda: 3, "module: <lambda>: found int as what it returns, wanted a torch.nn"),
            ("a function that wants more", lambda: lambda width: net(), r"module: <lambda>: missing .*'width': found \[\] among"),
            ("no outputs", lambda: Gives(lambda out: {}), "Gives.forward: found no tensor in what it returns"),
            ("a number as output", lambda: Gives(lambda out: 3), "Gives.forward: found no tensor in what it returns"),
        ]:
            with self.subTest(label), self.assertRaisesRegex(ht.HftaError, words) as caught:
                ht.tune(module(), points(), {"lr": ht.uniform(0.01, 0.1)}, loss="cross_entropy",
                        storage=self.folder / "study.db")
            self.assertNotIn("\n", str(caught.exception))

    def test_an_export_of_no_module(self):
        for found in (None, 3, net):
            with self.assertRaisesRegex(ht.ExportError, "module: found .*, wanted a torch.nn.Module"):
                ht.export(found, points()[0][:4], self.folder / "m.pt2")

    def test_arguments(self):
        x, y = points()
        for label, change, words in [
            ("a space of no names", {"space": [0.1]}, "space: found list, wanted a dict of parameters by name"),
            ("a pair", {"space": {"lr": (1e-3, 1e-1)}}, "parameters.lr: found the pair .*ht.log_uniform"),
            ("a loss of its own", {"module": OwnLoss(), "loss": {"output": "loss"}},
             r"data: found the inputs \['x'\], wanted those of OwnLoss.forward, \['x', 'y'\]: .*computes its loss, so that its "
             r"targets are inputs, too: data=\{'x': ..., 'y': ...\}"),
            ("an input too few", {"module": Two()}, r"found the inputs \['x'\], wanted those of Two.forward, \['x', 'scale'\]: [^;]*$"),
            ("ragged", {"data": ([[1, 2], [1]], [0, 1])}, "rows of lengths"),
            ("one target for all", {"data": (list(x), torch.tensor(3))}, "^data: |^y: |^target"),
            ("a name with NUL", {"name": "a\0b"}, "name: found 'a.x00b', wanted text without NUL"),
        ]:
            with self.subTest(label), self.assertRaisesRegex(ht.ConfigError, words):
                tune(self.folder, **change)

    def test_what_the_words_advise(self):
        x, y = points()
        study = tune(self.folder, OwnLoss(), {"x": x, "y": y}, {"lr": ht.uniform(0.01, 0.1)}, loss={"output": "loss"}, trials=1)
        self.assertEqual(study.trials[0].state, "COMPLETE")


class Accepted(Case):
    def test_named_tuples(self):
        class Local(NamedTuple):
            logits: torch.Tensor

        plain = tune(self.folder, Gives(lambda out: (out, out * 2)), space={"lr": 0.01}, trials=1).best.value
        for label, function in [("collections", lambda out: Pair(out, out * 2)), ("typing", lambda out: Typed(out, Pair(out, out))),
                                ("a class of a function", lambda out: Local(out)), ("inside", lambda out: [Pair(out, out)])]:
            with self.subTest(label):
                self.assertEqual(tune(self.folder, Gives(function), space={"lr": 0.01}, trials=1).best.value, plain)
        second = tune(self.folder, Gives(lambda out: Pair(out * 2, out)), space={"lr": 0.01}, trials=1,
                      loss={"name": "cross_entropy", "output": "twice"})
        self.assertEqual(second.best.value, plain)

    def test_devices(self):
        names = {tune(self.folder, trials=1, epochs=1, device=device).name
                 for device in ("cpu", torch.device("cpu"), [torch.device("cpu")])}
        self.assertEqual(len(names), 1)

    def test_rows_in_a_list(self):
        x, y = points()
        names = {tune(self.folder, data=data, trials=1, epochs=1).name
                 for data in ((x, y), (list(x), y), (list(x.numpy()), list(y)), (x.numpy(), y))}
        self.assertEqual(len(names), 1)

    def test_big_endian(self):
        x, y = (part.numpy() for part in points())
        values = {tune(self.folder, data=(x.astype(order + "f4"), y.astype(order + "i8")), trials=1, epochs=1).best.value
                  for order in "<>"}
        self.assertEqual(len(values), 1)

    def test_frames(self):
        pandas = self.need("pandas")
        x, y = (part.numpy() for part in points())
        frame = pandas.DataFrame(x)
        frame[6] = y
        self.assertEqual(tune(self.folder, data=frame, target=6, trials=1).best.value, tune(self.folder, trials=1).best.value)
        frame.columns = [*"abcdef", "y"]
        torch.manual_seed(0)
        study = tune(self.folder, nn.Linear(1, 3), frame, {"lr": 0.01}, target="y", features="a", trials=1)
        self.assertEqual(study.best_module().in_features, 1)


if __name__ == "__main__":
    unittest.main()
