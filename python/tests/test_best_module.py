"""A study's best module computes what the study has measured, also where the trials differ in more than weights."""
import unittest
import warnings

import torch
from torch import nn

from support import Case, ht, points, tune


class Sloped(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.act = nn.Linear(6, 6), nn.LeakyReLU(0.01)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(6, 6), nn.ELU(1.0)) for _ in range(2))
        self.drop, self.head = nn.Dropout(0.1), nn.Linear(6, 3)

    def forward(self, x):
        x = self.act(self.first(x))
        for block in self.blocks:
            x = block(x)
        return self.head(self.drop(x))


class Warm(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.temperature = nn.Linear(6, 3), 1.5

    def forward(self, x):
        return self.body(x) * self.temperature


class BoundNumbers(Case):
    def tuned(self, module, space):
        torch.manual_seed(0)
        validation = points(60, seed=2)
        study = tune(self.folder, module(), space={"lr": ht.choice([0.01]), **space}, trials=1, validation=validation,
                     metric="val_loss", keep=1)
        return study, lambda best: nn.functional.cross_entropy(best(validation[0]), validation[1]).item()

    def test_numbers_that_are_attributes_are_set(self):
        space = {"act.negative_slope": ht.choice([0.9]), "blocks.*.alpha": ht.choice([0.3]), "drop.p": ht.choice([0.5])}
        study, loss = self.tuned(Sloped, space)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            best = study.best_module()
        self.assertEqual((best.act.negative_slope, best.blocks[1][1].alpha), (0.9, 0.3))
        self.assertAlmostEqual(loss(best), study.best.value, places=5)

    def test_of_other_numbers_there_is_a_warning(self):
        study, loss = self.tuned(Warm, {"(model).other": ht.choice([4.0])})
        with self.assertWarnsRegex(UserWarning, r"no attribute \(model\).other .* trial 0 had 4"):
            best = study.best_module()
        best.temperature = 4.0
        self.assertAlmostEqual(loss(best), study.best.value, places=5)


if __name__ == "__main__":
    unittest.main()
