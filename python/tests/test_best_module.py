"""A study's best module computes what the study has measured, also where the trials differ in more than weights."""
import unittest
import warnings

import torch
from torch import nn

from support import Case, ht, points, tune

from hfta_tune import modules


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


class Distances(nn.Module):
    """Powers of distances to learnt points: its `p` is no rate of a dropout."""

    def __init__(self):
        super().__init__()
        self.points, self.p = nn.Parameter(torch.randn(3, 6)), 3.0

    def forward(self, x):
        return -torch.cdist(x, self.points, p=self.p)


class Functional(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        return self.head(nn.functional.dropout(x, 0.1, self.training))


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
        self.assertEqual((best.act.negative_slope, best.blocks[1][1].alpha, best.drop.p), (0.9, 0.3, 0.5))
        self.assertAlmostEqual(loss(best), study.best.value, places=5)

    def test_a_p_that_is_no_rate_is_set(self):
        for label, module, path in [("of a part", lambda: nn.Sequential(Distances()), "0.p"),
                                    ("of the module itself", Distances, "(model).p")]:
            with self.subTest(label), warnings.catch_warnings():
                warnings.simplefilter("error")
                study, loss = self.tuned(module, {path: ht.choice([1.5])})
                self.assertAlmostEqual(loss(study.best_module()), study.best.value, places=5)

    def test_of_other_numbers_there_is_a_warning(self):
        study, loss = self.tuned(Warm, {"(model).other": ht.choice([4.0])})
        with self.assertWarnsRegex(UserWarning, r"no attribute \(model\).other .* trial 0 had 4"):
            best = study.best_module()
        best.temperature = 4.0
        self.assertAlmostEqual(loss(best), study.best.value, places=5)
        study, _ = self.tuned(Functional, {"(model).p": ht.choice([0.3])})
        with self.assertWarnsRegex(UserWarning, r"no attribute \(model\).p .* trial 0 had 0.3"):
            study.best_module()


class Attributes(unittest.TestCase):
    def test_table(self):
        for label, module, path, attribute, found in [
            ("a dropout", nn.Sequential(nn.Dropout(0.1)), "0.p", "0.p", True),
            ("of all parts", nn.Sequential(nn.Dropout(0.1)), "*.p", "0.p", True),
            ("the module itself", nn.Dropout(0.1), "(model).p", "p", True),
            ("of this number", nn.Sequential(nn.Dropout(0.1)), "0.p@0.1", "0.p", True),
            ("of another number", nn.Sequential(nn.Dropout(0.1)), "0.p@0.2", "0.p", False),
            ("a recurrent layer", nn.Sequential(nn.LSTM(2, 2, 2, dropout=0.1)), "0.dropout", "0.dropout", True),
            ("attention", nn.Sequential(nn.MultiheadAttention(2, 1, 0.1)), "0.dropout_p", "0.dropout", True),
            ("attention with weights", nn.Sequential(nn.MultiheadAttention(2, 1, 0.1)), "0.p", "0.dropout", True),
            ("a distance", nn.Sequential(nn.PairwiseDistance(2.0)), "0.p", "0.norm", True),
            ("a part of two names", nn.ModuleList([shared := nn.Dropout(0.1), shared]), "1.p", "1.p", True),
            ("another part", nn.Sequential(nn.Dropout(0.1)), "1.p", "0.p", False),
            ("no number", nn.Sequential(nn.RMSNorm(2)), "0.eps", "0.eps", False),
        ]:
            with self.subTest(label):
                *place, name = attribute.split(".")
                before = getattr(module.get_submodule(".".join(place)), name)
                self.assertEqual(modules.set_number(module, path, 0.7), found)
                self.assertEqual(getattr(module.get_submodule(".".join(place)), name), 0.7 if found else before)


if __name__ == "__main__":
    unittest.main()
