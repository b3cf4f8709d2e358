"""Writes the archives under golden/ that the importer's tests read.

    python make_golden.py FOLDER            torch-VERSION.pt2 of this torch
    python make_golden.py FOLDER --forms    and one archive for each form of export that the tests look at

Run it from a folder whose name may be public: the archives hold the path of this file.
"""

import sys
from pathlib import Path

import torch
from torch import nn


class Golden(nn.Module):
    """Of everything an archive can hold a little: tied, frozen, unused and constant tensors, and running statistics."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3, padding=1)
        self.norm = nn.BatchNorm2d(2)
        self.drop = nn.Dropout(0.25)
        self.first = nn.Linear(8, 8)
        self.second = nn.Linear(8, 8)
        self.second.weight = self.first.weight
        self.head = nn.Linear(8, 3)
        self.head.bias.requires_grad_(False)
        self.unused = nn.Parameter(torch.ones(2))
        self.register_buffer("scale", torch.full((8,), 0.5), persistent=False)

    def forward(self, x):
        x = torch.relu_(self.norm(self.conv(x)))
        x = self.drop(torch.flatten(nn.functional.max_pool2d(x, 2), 1))
        x = self.second(torch.tanh(self.first(x))) * self.scale
        return self.head(x + torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]))


def save(program, file):
    torch.export.save(program, str(file))
    print(file, file.stat().st_size)


def main():
    folder = Path(sys.argv[1])
    torch.manual_seed(1)
    batch = torch.export.Dim("batch", min=2, max=64)
    program = torch.export.export(Golden().train(), (torch.randn(4, 1, 4, 4),), dynamic_shapes=({0: batch},))
    save(program, folder / ("torch-%s.pt2" % ".".join(torch.__version__.split(".")[:2])))
    if "--forms" in sys.argv:
        from golden_forms import forms

        for name, form in forms().items():
            save(form, folder / (name + ".pt2"))


main()
