"""Losses that the module computes. Skipped where the program knows only the built-in ones, and says so."""
import re
import unittest

import torch
from support import Case, bert, ht, tune
from torch import nn
from torch.nn import functional as F


class Tagger(nn.Module):
    """Labels every token; -100 is no label. Gives its loss, and what its metrics are made of."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(12, 8)
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(8, 3)

    def forward(self, ids, labels):
        logits = self.head(self.drop(self.words(ids)))
        counted = labels != -100
        loss = F.cross_entropy(logits.transpose(1, 2), labels, ignore_index=-100)
        hits = ((logits.argmax(-1) == labels) & counted).sum(1).float()
        return {"loss": loss, "hits": hits, "tokens": counted.sum(1).float()}


class PerSample(nn.Module):
    """A loss of each sample."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(6, 1)

    def forward(self, x, y):
        return {"loss": (self.head(x).squeeze(-1) - y).square()}


def sentences(count, seed):
    ids = torch.randint(0, 12, (count, 7), generator=torch.Generator().manual_seed(seed))
    labels = ids % 3
    labels[::4, 5:] = -100
    return {"ids": ids, "labels": labels}


class GraphLosses(Case):
    def tune(self, *arguments, **named):
        try:
            return tune(self.folder, *arguments, **named)
        except ht.ConfigError as error:
            if re.search("train.loss.(name: found nothing|weight: found an unknown key)", str(error)):
                self.skipTest(f"this hfta-tune has built-in losses only: {error}")
            raise

    def test_tokens(self):
        torch.manual_seed(0)
        validation = sentences(48, 1)
        study = self.tune(Tagger(), sentences(144, 0), {"lr": ht.log_uniform(1e-3, 1e-1)}, metric="val_accuracy", goal="maximize",
                          loss={"output": "loss", "weight": "tokens"}, metrics={"accuracy": "hits / tokens"},
                          validation=validation, test=sentences(20, 2), batch_size=20)
        with torch.no_grad():
            found = study.best_module()(**validation)
        self.assertEqual(study.direction, "maximize")
        self.assertAlmostEqual(found["loss"].item(), study.best.metrics["val_loss"], delta=1e-5)
        self.assertAlmostEqual((found["hits"].sum() / found["tokens"].sum()).item(), study.best.value, delta=1e-5)

    def test_samples(self):
        torch.manual_seed(0)
        x = torch.randn(160, 6)
        y = x.sum(1)
        study = self.tune(PerSample(), {"x": x[:120], "y": y[:120]}, {"lr": ht.log_uniform(1e-3, 1e-1)},
                          loss={"output": "loss"}, validation={"x": x[120:], "y": y[120:]})
        with torch.no_grad():
            found = study.best_module()(x[120:], y[120:])["loss"].mean().item()
        self.assertAlmostEqual(found, study.best.value, delta=1e-5 * max(1, found))

    def test_hugging_face(self):
        module = bert(self.need("transformers"), layers=1)
        ids = torch.randint(1, 50, (120, 10))
        data = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids[:, 0] % 3}
        train, validation = ({name: value[part] for name, value in data.items()} for part in (slice(0, 90), slice(90, 120)))
        study = self.tune(module, train, {"lr": ht.log_uniform(1e-4, 1e-2)}, optimizer="adamw", loss={"output": "loss"},
                          validation=validation)
        with torch.no_grad():
            found = study.best_module()(**validation).loss.item()
        self.assertAlmostEqual(found, study.best.value, delta=1e-5)


if __name__ == "__main__":
    unittest.main()
