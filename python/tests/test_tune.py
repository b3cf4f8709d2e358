"""Whole studies: models of several kinds, and that the best module gives the value that the study reports."""
import math
import re
import unittest
import unittest.mock

import numpy as np
import torch
from support import SPACE, Case, bert, ht, net, points, table, tune
from torch import nn
from torch.nn import functional as F


class Forecast(nn.Module):
    """The next value of a series from its last ones, as a table has them: one column per lag."""

    def __init__(self, hidden=8):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, lags):
        return self.head(self.lstm(lags.unsqueeze(-1))[0][:, -1])


def windows(count=180, lags=6):
    series = np.sin(np.arange(count + lags) / 5).astype(np.float32)
    rows = np.stack([series[i:i + lags + 1] for i in range(count)])
    return rows[:, :lags], rows[:, lags:]


class Models(Case):
    def check(self, study, loss, inputs, targets):
        """The best module's loss on the validation data is the study's, to 1e-5."""
        module = study.best_module()
        self.assertFalse(any(part.training for part in module.modules()))
        with torch.no_grad():
            value = loss(module(*inputs) if isinstance(inputs, tuple) else module(**inputs), targets).item()
        self.assertAlmostEqual(value, study.best.metrics["val_loss"], delta=1e-5 * max(1, abs(value)))

    def test_a_classifier(self):
        validation = points(60, seed=2)
        module = net()
        before = {name: value.clone() for name, value in module.state_dict().items()}
        study = tune(self.folder, module, space=SPACE, metric="val_accuracy", validation=validation, test=points(30, seed=3))
        self.check(study, F.cross_entropy, validation[:1], validation[1])
        self.assertEqual((study.metric, study.direction, len(study.trials)), ("val_accuracy", "maximize", 4))
        self.assertEqual(set(study.best.params), set(SPACE))
        self.assertIn("test_accuracy", study.best.metrics)
        accuracy = (study.best_module()(validation[0]).argmax(1) == validation[1]).float().mean().item()
        self.assertAlmostEqual(accuracy, study.best.value, delta=1e-6)
        for name, value in module.state_dict().items():
            self.assertTrue(torch.equal(value, before[name]), name)

    def test_a_module_that_changes_after_the_study(self):
        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.into = nn.Linear(6, 6, bias=False)
                self.out = nn.Linear(6, 6, bias=False)
                self.out.weight = self.into.weight
                self.head = nn.Linear(6, 3)
                self.register_buffer("scale", torch.full((6,), 0.5), persistent=False)

            def forward(self, x):
                return self.head(self.out(torch.tanh(self.into(x * self.scale))))

        validation, module = points(60, seed=2), Tied()
        study = tune(self.folder, module, space={"lr": ht.grid([0.01, 0.03])}, trials=None, validation=validation, epochs=1)
        module.head = nn.Identity()  # as libraries do that put adapters around layers
        module.scale.zero_()
        self.check(study, F.cross_entropy, validation[:1], validation[1])
        best = study.best_module()
        self.assertIs(best.into.weight, best.out.weight)
        self.assertIsNot(best.into.weight, study.best_module().into.weight)

    def test_torchvision(self):
        torchvision = self.need("torchvision")
        torch.manual_seed(0)
        module = torchvision.models.resnet18(num_classes=2)
        images = torch.randn(24, 3, 32, 32, generator=torch.Generator().manual_seed(0))
        data = torch.utils.data.TensorDataset(images, (images.mean((1, 2, 3)) > 0).long())
        train, validation = (torch.utils.data.Subset(data, part) for part in (range(16), range(16, 24)))
        study = tune(self.folder, module, train, {"lr": ht.log_uniform(1e-3, 1e-2)}, optimizer="sgd", trials=2, epochs=1,
                     batch_size=8, validation=validation)
        self.check(study, F.cross_entropy, (images[16:],), data.tensors[1][16:])

    def test_lstm_on_arrays(self):
        x, y = windows()
        study = tune(self.folder, Forecast(), (x[:140], y[:140]), {"lr": ht.log_uniform(1e-3, 1e-1)}, loss="mse",
                     validation=(x[140:], y[140:]))
        self.check(study, F.mse_loss, (torch.from_numpy(x[140:]),), torch.from_numpy(y[140:]))

    def test_lstm_on_a_dataframe(self):
        pandas = self.need("pandas")
        x, y = windows()
        frame = pandas.DataFrame(np.concatenate([x, y], 1), columns=[*(f"lag{i}" for i in range(6)), "next"])
        torch.manual_seed(0)
        study = tune(self.folder, Squeezed(Forecast()), frame[:140], {"lr": ht.log_uniform(1e-3, 1e-1)}, loss="mse",
                     validation=frame[140:], target="next")
        self.check(study, F.mse_loss, (torch.from_numpy(x[140:]),), torch.from_numpy(y[140:, 0]))
        data = study.dataframe()
        self.assertEqual(list(data.index), [0, 1, 2, 3])
        self.assertEqual(data["params.lr"][study.best.number], study.best.params["lr"])

    def test_types_of_a_dataframe(self):
        pandas = self.need("pandas")
        numbers = np.arange(80).reshape(40, 2) % 7
        embedding = nn.Sequential(nn.Embedding(7, 4), nn.Flatten(), nn.Linear(8, 2))
        linear = nn.Sequential(nn.Linear(2, 2))
        for label, module, columns, dtype in [
            ("integers as indices", embedding, numbers, "float32"), ("indices in float64", embedding, numbers, "float64"),
            ("integers as numbers", linear, numbers, "float32"), ("float64 as float32", linear, numbers / 7, "float32"),
            ("flags", linear, numbers > 3, "float32"), ("small steps in float64", linear, numbers * 2.0**-24 + 1, "float64"),
        ]:
            with self.subTest(label):
                frame = pandas.DataFrame({"a": columns[:, 0], "b": columns[:, 1], "y": numbers[:, 0] % 2})
                study = tune(self.folder, module, frame[:30], {"lr": ht.uniform(0.01, 0.1)}, target="y", dtype=dtype,
                             validation=frame[30:], trials=1, epochs=1)
                x = torch.from_numpy(columns[30:])
                x = x if module is embedding else x.to(getattr(torch, dtype))
                self.check(study, F.cross_entropy, (x,), torch.from_numpy(numbers[30:, 0] % 2))

    def test_hugging_face(self):
        module = bert(self.need("transformers"), layers=2)
        ids = torch.randint(1, 50, (120, 10), generator=torch.Generator().manual_seed(0))
        mask = torch.ones_like(ids)
        mask[::3, 7:] = 0
        rows = [{"input_ids": ids[i], "attention_mask": mask[i], "labels": int(ids[i, 0] % 3)} for i in range(120)]
        study = tune(self.folder, module, rows_of(rows[:90]), {"lr": ht.log_uniform(1e-4, 1e-2)}, optimizer="adamw", trials=2,
                     loss={"name": "cross_entropy", "output": "logits"}, target="labels", validation=rows_of(rows[90:]))
        self.check(study, lambda out, targets: F.cross_entropy(out.logits, targets),
                   {"input_ids": ids[90:], "attention_mask": mask[90:]}, ids[90:, 0] % 3)

    def test_bytes_and_float64(self):
        images = (np.arange(80 * 16) % 251).astype(np.uint8).reshape(80, 1, 4, 4)
        module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, 2))
        study = tune(self.folder, module, (images[:60], images[:60, 0, 0, 0] % 2), {"lr": ht.log_uniform(1e-5, 1e-3)},
                     validation=(images[60:], images[60:, 0, 0, 0] % 2), dtype="float64", metric="val_loss")
        self.assertEqual({value.dtype for value in study.best_module().state_dict().values()}, {torch.float64})
        self.check(study, F.cross_entropy, (torch.from_numpy(images[60:]).double(),),
                   torch.from_numpy(images[60:, 0, 0, 0] % 2).long())

    def test_complex_buffers(self):
        validation = points(60, seed=2)
        for dtype in ("float32", "float64"):
            with self.subTest(dtype):
                study = tune(self.folder, Turned(), space={"lr": ht.uniform(0.01, 0.1)}, validation=validation, dtype=dtype)
                module = study.best_module()
                self.assertEqual(module.turns.dtype, {"float32": torch.complex64, "float64": torch.complex128}[dtype])
                self.assertGreater(module.turns.imag.abs().min(), 0.1)
                self.check(study, F.cross_entropy, (validation[0].to(module.head.weight.dtype),), validation[1])

    def test_complex_weights_are_read(self):
        validation = points(60, seed=2)
        module = Turned(persistent=True)
        for dtype in ("float32", "float64"):
            with self.subTest(dtype):
                study = tune(self.folder, module, space={"lr": ht.uniform(0.01, 0.1)}, validation=validation, dtype=dtype)
                torch.testing.assert_close(study.weights()["turns"], module.turns)
                x = validation[0].to(study.weights()["head.weight"].dtype)
                self.check(study, F.cross_entropy, (x,), validation[1])

    def test_complex_numbers_are_trained_as_they_are_in_float64(self):
        validation = points(60, seed=2)
        studies = [tune(self.folder, Turned(), space={"lr": ht.uniform(0.01, 0.1)}, trials=1, epochs=1, validation=validation,
                        dtype=dtype) for dtype in ("float32", "float64")]
        self.assertAlmostEqual(studies[0].best.value, studies[1].best.value, delta=1e-4)

    def test_a_frozen_base_in_bfloat16(self):
        validation = points(60, seed=2)
        study = tune(self.folder, OnNarrowBase(), space={"lr": ht.uniform(0.01, 0.1)}, validation=validation)
        module = study.best_module()
        self.assertEqual((module.base.weight.dtype, module.head.weight.dtype), (torch.bfloat16, torch.float32))
        with torch.no_grad():  # the program computes in float32 what this module rounds to bfloat16
            self.assertAlmostEqual(F.cross_entropy(module(validation[0]), validation[1]).item(), study.best.value, delta=1e-2)

    def test_a_module_in_float64_that_is_trained_in_float32(self):
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(6, 6), Mixing(), nn.Linear(6, 3)).double()
        validation = points(60, seed=2)
        study = tune(self.folder, module, space={"lr": ht.uniform(0.01, 0.1)}, validation=validation)
        self.check(study, F.cross_entropy, validation[:1], validation[1])

    def test_a_fixed_batch(self):
        validation = points(40, seed=2)
        with self.assertWarnsRegex(UserWarning, "fixed at 4"):
            study = tune(self.folder, FixedBatch(), space={"lr": ht.uniform(0.01, 0.1)}, validation=validation, batch_size=20)
        self.check(study, F.cross_entropy, validation[:1], validation[1])


class FixedBatch(nn.Module):
    """Works at any batch size, but in a way that makes torch.export fix it."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        return self.head(x) + sum(row.mean() for row in x.detach()) * 0


class Turned(nn.Module):
    """Turns pairs of numbers, as rotary position embeddings do: by complex numbers, which may be in the state dict."""

    def __init__(self, persistent=False):
        super().__init__()
        torch.manual_seed(0)
        self.into = nn.Linear(6, 8)
        self.head = nn.Linear(8, 3)
        self.register_buffer("turns", torch.polar(torch.ones(4), torch.arange(4) * 0.7 + 0.3), persistent=persistent)

    def forward(self, x):
        pairs = torch.view_as_complex(self.into(x).reshape(-1, 4, 2))
        return self.head(torch.view_as_real(pairs * self.turns).flatten(1))


class OnNarrowBase(nn.Module):
    """A head in float32 on a frozen base in bfloat16."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.base = nn.Linear(6, 8).to(torch.bfloat16).requires_grad_(False)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(torch.relu(self.base(x.to(torch.bfloat16))).float())


class Mixing(nn.Module):
    """A product with a matrix that is not in the state dict."""

    def __init__(self):
        super().__init__()
        self.register_buffer("matrix", torch.eye(6) + 0.5, persistent=False)

    def forward(self, x):
        return x @ self.matrix


class Drawn(nn.Module):
    """A head on a random projection that is not in the state dict."""

    def __init__(self, width):
        super().__init__()
        self.register_buffer("projection", torch.randn(6, width), persistent=False)
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        return self.head(x @ self.projection)


class ScaledNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = net()

    def forward(self, x, scale):
        return self.inner(x * scale)


class Squeezed(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, lags):
        return self.inner(lags).squeeze(-1)


def rows_of(rows):
    """A map-style dataset, as the package datasets has them: rows are dicts."""
    class Rows(torch.utils.data.Dataset):
        def __len__(self):
            return len(rows)

        def __getitem__(self, index):
            return rows[index]
    return Rows()


class Calls(Case):
    def test_the_same_call_finds_the_study(self):
        events = []
        first = tune(self.folder, progress=events.append)
        self.assertEqual([events[0]["event"], events[-1]["event"]], ["run_started", "run_ended"])
        self.assertFalse(events[0]["resumed"])
        files = {path: path.stat().st_mtime_ns for path in (self.folder / "study.db.inputs").rglob("*")}
        events.clear()
        again = tune(self.folder, progress=events.append)
        self.assertTrue(events[0]["resumed"])
        self.assertNotIn("epoch_ended", {event["event"] for event in events})
        self.assertEqual((again.name, table(again)), (first.name, table(first)))
        self.assertEqual({path: path.stat().st_mtime_ns for path in (self.folder / "study.db.inputs").rglob("*")}, files)

    def test_more_trials(self):
        first = tune(self.folder, trials=2)
        more = tune(self.folder, trials=5)
        self.assertEqual(more.name, first.name)
        self.assertEqual(table(more)[0][:2], table(first)[0])
        self.assertEqual(len(more.trials), 5)

    def test_another_call_is_another_study(self):
        base = tune(self.folder, trials=1, epochs=1)
        for label, change in [("seed", {"seed": 1}), ("data", {"data": points(seed=9)}), ("weights", {"module": net(5)}),
                              ("space", {"space": {"lr": ht.uniform(0.01, 0.1)}})]:
            with self.subTest(label):
                self.assertNotEqual(tune(self.folder, **{"trials": 1, "epochs": 1, **change}).name, base.name)

    def test_images_of_another_size_are_another_study(self):
        torch.manual_seed(0)
        module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2, 2))
        for size in (8, 16):
            images = torch.randn(20, 1, size, size, generator=torch.Generator().manual_seed(0))
            study = tune(self.folder, module, (images, torch.arange(20) % 2), {"lr": ht.uniform(0.01, 0.1)}, trials=1, epochs=1)
            self.assertEqual(len(study.trials), 1)

    def test_fresh_weights_need_no_seed(self):
        first = tune(self.folder, net(0), init="fresh", name=None)
        self.assertEqual(tune(self.folder, net(1), init="fresh").name, first.name)

    def test_everything_of_a_config(self):
        study = tune(self.folder, name="mine", space={"wd": ht.choice([0, 1e-3])}, method={"name": "tpe", "startup_trials": 2},
                     optimizer={"name": "sgd", "lr": ht.log_uniform(1e-3, 1e-1), "weight_decay": "${wd}", "momentum": 0.9},
                     loss={"name": "cross_entropy", "label_smoothing": ht.uniform(0, 0.2)}, bind={"drop.p": ht.uniform(0, 0.5)},
                     early_stopping={"name": "median", "min_trials": 2}, schedule={"name": "cosine"}, clip_norm=1.0, width=2,
                     device="cpu", config={"train": {"metrics": ["accuracy"]}, "data": {"shuffle": "once"}}, select="best",
                     trials=5)
        self.assertEqual(study.name, "mine")
        self.assertEqual(set(study.best.params), {"wd", "lr", "label_smoothing", "drop.p"})
        text = (self.folder / "study.db.inputs" / "mine.yaml").read_text()
        for words in ["shuffle: once", "metrics: [accuracy]", "startup_trials: 2", "width: 2", "select: best"]:
            self.assertIn(words, text)

    def test_what_could_not_be_read_back_is_refused(self):
        for change, words in [({"config": {"storage": str(self.folder / "other.db")}}, "found storage: .*other.db.*storage="),
                              ({"name": "-x"}, "name: found '-x', wanted"), ({"name": "--help"}, "name: found '--help'"),
                              ({"config": {"study": "-y"}}, "name: found '-y'")]:
            with self.subTest(change), self.assertRaisesRegex(ht.ConfigError, words):
                tune(self.folder, **change)
            self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_class_with_other_letters(self):
        named = type("Ä", (type(net()),), {})
        torch.manual_seed(0)
        self.assertRegex(tune(self.folder, named(), trials=1, epochs=1).name, "^study-[0-9a-f]{8}$")

    def test_a_fraction_of_any_type(self):
        for fraction in (0.25, np.float32(0.25), np.float64(0.25)):
            study = tune(self.folder, trials=1, epochs=1, validation=fraction, name="fraction")  # the first one's, each time
            self.assertIn("val_loss", study.best.metrics)

    def test_the_order_of_names_does_not_count(self):
        (x, y), other = points(), points(60, seed=2)
        names = [tune(self.folder, data={"x": x, "y": y}, validation=validation, trials=1, epochs=1).name
                 for validation in ({"x": other[0], "y": other[1]}, {"y": other[1], "x": other[0]},
                                    ({"x": other[0]}, other[1]))]
        self.assertEqual(len(set(names)), 1)
        with self.assertRaisesRegex(ht.ConfigError, r"validation: found the arrays \['z', 'y'\], wanted .*\['x', 'y'\]"):
            tune(self.folder, data={"x": x, "y": y}, validation={"z": other[0], "y": other[1]})

    def test_the_inputs_in_another_order(self):
        found = {}
        for names in (("x", "scale"), ("scale", "x")):
            parts = {"x": points(60, seed=2)[0], "scale": torch.ones(60, 1)}
            validation = ({name: parts[name] for name in names}, points(60, seed=2)[1])
            data = ({"x": points()[0], "scale": torch.ones(240, 1)}, points()[1])
            study = tune(self.folder, ScaledNet(), data, {"lr": ht.uniform(0.01, 0.1)}, validation=validation, trials=1, epochs=1)
            found[study.name] = study.best.value
        self.assertEqual(len(found), 1)

    def test_one_fold_is_none(self):
        for folds in (1, {"count": 1}):
            with self.subTest(folds):
                self.assertIn("val_loss", tune(self.folder, trials=1, epochs=1, folds=folds).best.metrics)
                self.assertEqual(tune(self.folder, trials=1, epochs=1, folds=folds, validation=None).metric, "train_loss")

    def test_parameter_groups(self):
        groups = [{"params": "*.bias", "weight_decay": 0, "lr": ht.grid([0.0, 0.01])}, {"params": ["head"], "lr_scale": 0}]
        module = net()
        study = tune(self.folder, module, space={}, optimizer={"name": "adamw", "lr": 0.01, "weight_decay": 0.5, "groups": groups},
                     trials=None)
        self.assertEqual({trial.params["groups.0.lr"] for trial in study.trials}, {0.0, 0.01})  # side by side
        for trial in study.trials:
            weights = study.weights(trial.number)
            moved = {name: not torch.equal(value, module.state_dict()[name]) for name, value in weights.items()}
            bias = trial.params["groups.0.lr"] > 0
            self.assertEqual(moved, {"hidden.weight": True, "hidden.bias": bias, "head.weight": False, "head.bias": bias})
        for group, words in [({"params": "tail"}, "groups.0.params: found no parameter 'tail'"),
                             ({"params": "head", "momentum": 0.9}, "groups.0.momentum: found a key of sgd, rmsprop"),
                             ({"lr": 0.1}, "groups.0.params: found nothing")]:
            with self.subTest(words), self.assertRaisesRegex(ht.ConfigError, re.escape(words)):
                tune(self.folder, optimizer={"name": "adamw", "groups": [group]})

    def test_a_grid(self):
        space = {"lr": ht.grid([0.01, 0.1]), "batch_size": ht.grid([16, 32, 48])}
        study = tune(self.folder, space=space, epochs=1, trials=None)
        found = sorted((trial.params["lr"], trial.params["batch_size"]) for trial in study.trials)
        self.assertEqual(found, [(lr, size) for lr in (0.01, 0.1) for size in (16, 32, 48)])

    def test_shapes(self):
        class Wide(nn.Sequential):
            def __init__(self, width, act="relu"):
                super().__init__(nn.Linear(6, width), {"relu": nn.ReLU, "tanh": nn.Tanh}[act](), nn.Linear(width, 3))

        validation = points(60, seed=2)
        space = {"lr": ht.grid([0.01, 0.03]), "width": ht.grid([4, 8]), "act": ht.grid(["relu", "tanh"])}
        study = tune(self.folder, Wide, space=space, trials=None, validation=validation, epochs=1)
        self.assertEqual(len({tuple(trial.params.items()) for trial in study.trials}), 8)
        for trial in study.trials:
            module = study.best_module(trial.number)
            shape = module[0].out_features, type(module[1]).__name__.lower()
            self.assertEqual(shape, (trial.params["width"], trial.params["act"]))
            with torch.no_grad():
                self.assertAlmostEqual(F.cross_entropy(module(validation[0]), validation[1]).item(), trial.value, delta=1e-5)
        again = tune(self.folder, Wide, space=space, trials=None, validation=validation, epochs=1)
        self.assertEqual(again.name, study.name)  # a function's weights follow from the study's seed
        found = ht.load_study(study.storage, study.name, Wide).best_module()
        self.assertEqual(found[0].out_features, study.best.params["width"])
        with self.assertRaisesRegex(ht.ConfigError, "space: width: found .*whole numbers"):
            tune(self.folder, Wide, space={"width": ht.int_(4, 8)})

    def test_a_function_that_draws_buffers(self):
        validation = points(60, seed=2)
        study = tune(self.folder, Drawn, space={"lr": ht.uniform(0.01, 0.1), "width": ht.choice([4])}, seed=5,
                     validation=validation)
        for find in (lambda: study, lambda: ht.load_study(study.storage, study.name, Drawn, seed=5)):
            with torch.no_grad():
                value = F.cross_entropy(find().best_module()(validation[0]), validation[1]).item()
            self.assertAlmostEqual(value, study.best.value, delta=1e-5)

    def test_files_as_data(self):
        x, y = points()
        np.savez(self.folder / "train.npz", x=x.numpy(), y=y.numpy())
        study = tune(self.folder, data=self.folder / "train.npz", example=x[:4], trials=1)
        self.assertEqual(len(study.trials), 1)
        with self.assertRaisesRegex(ht.ConfigError, "example: found none"):
            tune(self.folder, data=self.folder / "train.npz")

    def test_data_files_that_change_are_another_study(self):
        x, y = (part.numpy() for part in points())

        def names(write, data, validation):
            """A study's name before and after a change of the data, and after they are as before."""
            found = []
            for change in (0, 1, 0):
                write(change)
                target = {"target": "y.npy"} if data == "x.npy" else {}
                validation = self.folder / validation if isinstance(validation, str) else validation
                found.append(tune(self.folder, data=self.folder / data, example=torch.from_numpy(x[:4]), validation=validation,
                                  trials=1, epochs=1, **target).name)
            return found

        def folder(change):
            (self.folder / "f").mkdir(exist_ok=True)
            np.save(self.folder / "f" / "x.npy", x + change)
            np.save(self.folder / "f" / "y.npy", y)

        def beside(change):
            np.save(self.folder / "x.npy", x)
            np.save(self.folder / "y.npy", (y + change) % 3)

        for label, write, paths in [
            ("training", lambda change: np.savez(self.folder / "a.npz", x=x + change, y=y), ("a.npz", "a.npz")),
            ("validation", lambda change: np.savez(self.folder / "b.npz", x=x + change, y=y), ("a.npz", "b.npz")),
            ("a folder", folder, ("f", "f")),
            ("targets beside", beside, ("x.npy", 0.2)),
        ]:
            with self.subTest(label):
                before, changed, restored = names(write, *paths)
                self.assertNotEqual(before, changed)
                self.assertEqual(before, restored)

    def test_a_table_with_a_name_in_capitals(self):
        x, y = points(40)
        rows = [",".join(map(str, [*row, label])) for row, label in zip(x.tolist(), y.tolist())]
        (self.folder / "D.CSV").write_text("\n".join(["a,b,c,d,e,f,kind", *rows]) + "\n")
        study = tune(self.folder, data=self.folder / "D.CSV", target="kind", example=x[:4], trials=1, epochs=1)
        self.assertEqual(len(study.trials), 1)

    def test_plan(self):
        found = ht.plan(net(), points(), SPACE, loss="cross_entropy", storage=self.folder / "study.db", trials=3)
        self.assertIsInstance(found, dict)
        self.assertIn("partitions", found)
        self.assertFalse((self.folder / "study.db").exists())


class Results(Case):
    def setUp(self):
        super().setUp()
        self.study = tune(self.folder, name="s", config={"keep": 2})

    def test_curves(self):
        curves = self.study.curves()
        self.assertEqual(list(curves), [0, 1, 2, 3])
        for trial in self.study.trials:
            for metric, values in curves[trial.number].items():
                self.assertEqual(len(values), 3)
                self.assertEqual(values[-1], trial.metrics[metric])

    def test_confusion_matrix(self):
        validation, test = points(60, seed=2), points(30, seed=3)
        study = tune(self.folder, name="confused", metrics=["accuracy", "confusion_matrix"], metric="val_accuracy", select="best",
                     epochs=8, space={"lr": ht.log_uniform(1e-2, 1)}, validation=validation, test=test)

        def counted(module, data):
            matrix = np.zeros((3, 3), np.int64)
            with torch.no_grad():
                np.add.at(matrix, (data[1].numpy(), module(data[0]).argmax(1).numpy()), 1)
            return matrix

        for trial in study.trials:
            found = study.confusion_matrix(trial.number)
            np.testing.assert_array_equal(found, counted(study.best_module(trial.number), validation))
            self.assertAlmostEqual(found.trace() / 60, trial.value, delta=1e-9)
            self.assertFalse([name for name in trial.metrics if "confusion" in name])
        np.testing.assert_array_equal(study.confusion_matrix(), study.confusion_matrix(study.best.number))
        np.testing.assert_array_equal(study.confusion_matrix(of="test"), counted(study.best_module(), test))
        self.assertEqual(study.confusion_matrix(study.best.number, of="test").sum(), 30)
        self.assertEqual(study.confusion_matrix().dtype, np.int64)
        other = next(trial.number for trial in study.trials if trial.number != study.best.number)
        for call, words in [(lambda: study.confusion_matrix(other, of="test"), "no confusion matrix 'test', wanted one of .'val'"),
                            (lambda: study.confusion_matrix(99), "found no trial 99, wanted 0 to 3"),
                            (self.study.confusion_matrix, "found no confusion matrix of trial .*metrics=..confusion_matrix")]:
            with self.subTest(words), self.assertRaisesRegex(ht.HftaError, words):
                call()

    def test_other_trials(self):
        order = sorted(self.study.trials, key=lambda trial: trial.value)
        second = self.study.best_module(order[1].number).state_dict()
        best = self.study.best_module().state_dict()
        self.assertFalse(torch.equal(second["head.bias"], best["head.bias"]))
        with self.assertRaisesRegex(ht.ConfigError, "kept|weights"):
            self.study.best_module(order[3].number)

    def test_load_study(self):
        for storage in (self.folder / "study.db", f"sqlite:///{self.folder}/study.db"):
            found = ht.load_study(storage, module=net())
            self.assertEqual((found.name, table(found)), ("s", table(self.study)))
            self.assertTrue(torch.equal(found.best_module().head.bias, self.study.best_module().head.bias))
        with self.assertRaisesRegex(ht.HftaError, "no module"):
            ht.load_study(self.folder / "study.db").best_module()
        with self.assertRaisesRegex(ht.ConfigError, "other"):
            ht.load_study(self.folder / "study.db", "other")
        with self.assertRaises(ht.HftaError):
            ht.load_study(self.folder / "nowhere.db")

    def test_another_module(self):
        for label, module, words in [("shapes", net(classes=4), "do not fit the module, Net, wanted .*: size mismatch for head"),
                                     ("names", nn.Linear(6, 3), "do not fit the module, Linear, wanted .*: Missing key"),
                                     ("no module", 3, "module: found 3, wanted a torch.nn.Module"),
                                     ("a function", lambda: 3, "found int as what it returns, wanted a torch.nn.Module")]:
            with self.subTest(label), self.assertRaisesRegex(ht.ConfigError, words) as caught:
                ht.load_study(self.folder / "study.db", "s", module).best_module()
            self.assertNotIn("\n", str(caught.exception))

    def test_optuna(self):
        self.need("optuna")
        self.assertEqual(self.study.optuna().best_trial.number, self.study.best.number)
        self.assertEqual(self.study.optuna().best_value, self.study.best.value)
        for name in ("a?b.db", "run%20a.db", "a b.db", "a#b.db", "{a}.db", "ä&c=d.db", "%.db", "a%3Fb.db"):
            with self.subTest(name):
                study = tune(self.folder, name="s", storage=self.folder / name, trials=1, epochs=1)
                files = {path.name for path in self.folder.iterdir()}
                self.assertEqual(study.optuna().best_value, study.best.value)
                self.assertEqual({path.name for path in self.folder.iterdir()}, files)

    def test_without_pandas_and_optuna(self):
        for call, package in [(self.study.dataframe, "pandas"), (self.study.optuna, "optuna")]:
            with self.subTest(package), unittest.mock.patch.dict("sys.modules", {package: None}):
                with self.assertRaisesRegex(ImportError, f"pip install {package}"):
                    call()

    def test_words(self):
        self.assertRegex(repr(self.study), r"Study\('s', 4 trials: 4 COMPLETE, best val_loss [0-9.]+ \(trial \d\)\)")
        self.assertFalse(math.isnan(self.study.best.value))


if __name__ == "__main__":
    unittest.main()
