"""What a call of tune() means: the same one finds its study, others are refused, and plan() runs none."""
import re
import unittest

import numpy as np
import torch
from support import SPACE, Case, ht, net, points, table, tune
from torch import nn
from torch.nn import functional as F


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

    def test_folds_that_keep_groups_together(self):
        (x, y), person = points(90), np.arange(90) // 3
        call = dict(trials=2, epochs=1, test=points(30, seed=3))
        by_numbers = tune(self.folder, data=(x, y), folds={"count": 3, "groups": person}, **call)
        by_name = tune(self.folder, data={"x": x, "y": y, "person": person}, folds={"count": 3, "groups": "person"},
                       **{**call, "test": {"x": call["test"][0], "y": call["test"][1]}})
        in_pair = tune(self.folder, data=({"x": x, "person": person}, y), folds={"count": 3, "groups": "person"}, **call)
        apart = tune(self.folder, data=(x, y), folds=3, **call)
        values = [[trial.value for trial in study.trials] for study in (by_numbers, by_name, in_pair, apart)]
        self.assertEqual(len(values[0]), 6)
        self.assertEqual(values[0], values[1])
        self.assertEqual(values[0], values[2])
        self.assertNotEqual(values[0], values[3])
        for groups in ("nobody", person[:10]):
            with self.assertRaisesRegex(ht.ConfigError, "folds.groups: found"):
                tune(self.folder, data={"x": x, "y": y}, folds={"count": 3, "groups": groups}, **call)

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


if __name__ == "__main__":
    unittest.main()
