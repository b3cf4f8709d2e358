"""What a study gives back: curves, tables, weights, trials."""
import math
import unittest
import unittest.mock

import numpy as np
import torch
from support import Case, ht, net, points, table, tune
from torch import nn


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

    def test_numbers_of_no_trial(self):
        for label, number, words in [("text", "a", "number: found 'a', wanted a trial's number"),
                                     ("a truth", True, "number: found True, wanted"),
                                     ("a fraction", 1.5, "number: found 1.5, wanted"),
                                     ("too large", 99, "found .*99, wanted .*0 to 3"),
                                     ("negative", -1, "found .*-1, wanted .*0 to 3")]:
            for call in (self.study.best_module, self.study.weights, self.study.confusion_matrix,
                         lambda number: self.study.save_adapter(self.folder / "adapter", number)):
                with self.subTest(label), self.assertRaisesRegex(ht.HftaError, words) as caught:
                    call(number)
                self.assertNotIn("--", str(caught.exception))

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
