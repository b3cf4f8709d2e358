"""Adapters that a model brings along, under PEFT's names but not by PEFT: what can be merged, and what is refused."""
import os
import tempfile
import unittest

import torch
from torch import nn

from support import Case, ht, tune

from hfta_tune.program import call  # noqa: E402
from hfta_tune.safetensors import load_file  # noqa: E402

ALPHA, RANK = 8.0, 2
ADDED = {
    "B A x times a number": lambda m, x: m.lora_B(m.lora_A(x)) * (ALPHA / RANK),
    "divided": lambda m, x: m.lora_B(m.lora_A(x)) * ALPHA / RANK,
    "a number in front": lambda m, x: m.lora_B(m.lora_A(x * 3)),
    "dropped and flattened": lambda m, x: m.lora_B(m.lora_A(m.drop(x)).flatten(1)) / RANK,
    "by matrices": lambda m, x: x @ m.lora_A.weight.t() @ m.lora_B.weight.T,
}
NO_CHANGE = {
    "a function between": (lambda m, x: m.lora_B(torch.tanh(m.lora_A(x))), "aten::tanh"),
    "a number that is learnt": (lambda m, x: m.lora_B(m.lora_A(x)) * m.scale, "aten::mul.Tensor"),
    "another input": (lambda m, x: m.lora_B(m.lora_A(x + 1)), "aten::linear"),
    "columns exchanged": (lambda m, x: m.lora_B(m.lora_A(x).flip(-1)), "aten::flip"),
    "a bias of A's": (lambda m, x: m.lora_B(nn.functional.linear(x, m.lora_A.weight, m.bias)), "aten::linear"),
    "what A gives read twice": (lambda m, x: (lambda a: m.lora_B(a) + a.sum())(m.lora_A(x)), "aten::linear"),
}


class Layer(nn.Module):
    """A linear layer with an adapter: W x, and what `added` makes of x."""

    def __init__(self, added):
        super().__init__()
        self.base_layer = nn.Linear(6, 6).requires_grad_(False)
        self.lora_A, self.lora_B = nn.Linear(6, RANK, bias=False), nn.Linear(RANK, 6, bias=False)
        self.drop, self.added = nn.Dropout(0.2), added
        self.scale, self.bias = nn.Parameter(torch.ones(())), nn.Parameter(torch.ones(RANK))

    def forward(self, x):
        return self.base_layer(x) + self.added(self, x)


def adapted(added):
    torch.manual_seed(0)
    return nn.Sequential(Layer(added), nn.ReLU(), nn.Linear(6, 3))


class Merged(Case):
    def study(self, folder, module):
        return tune(folder, module, space={"lr": ht.choice([0.05])}, trials=1)

    def merged(self, study, folder):
        file = os.path.join(folder, "merged.safetensors")
        call(["export", study.name, "--storage", study.storage, "--format", "merged", "--output", file])
        return load_file(file)

    def test_merged_weights_give_what_the_model_gives(self):
        for name, added in ADDED.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                study = self.study(folder, adapted(added))
                plain = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 3))
                plain.load_state_dict(self.merged(study, folder), strict=False)
                x = torch.randn(5, 6)
                with torch.no_grad():
                    torch.testing.assert_close(plain(x), study.best_module()(x))

    def test_what_is_no_change_of_the_weight_is_refused(self):
        for name, (added, place) in NO_CHANGE.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                study = self.study(folder, adapted(added))
                for write in (lambda: self.merged(study, folder), lambda: study.save_adapter(f"{folder}/adapter")):
                    with self.assertRaisesRegex(ht.ConfigError, r"no W x \+ s B A x") as caught:
                        write()
                    self.assertIn(place, str(caught.exception))


if __name__ == "__main__":
    unittest.main()
