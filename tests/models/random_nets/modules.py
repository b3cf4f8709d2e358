"""What the layers of nets.py have in common: a function as a module."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from ops import FEATURES


class Function(nn.Module):
    def __init__(self, function, *layers):
        super().__init__()
        self.layers, self.function = nn.ModuleList(layers), function

    def forward(self, x):
        return self.function(x, *self.layers)


def with_layer(function, make):
    """`function` of a value and the layer that `make` makes."""
    return lambda r: Function(function, make(r))


def checkpointed(make):
    return with_layer(lambda x, layer: checkpoint(layer, x, use_reentrant=False), make)


def without_gradient(make):
    """The layer's answer, which no gradient goes through, added."""
    def run(x, layer):
        with torch.no_grad():
            y = layer(x)
        return x + y
    return with_layer(run, make)


def tied(x, table):
    """One weight as a table and as a layer."""
    scores = F.linear(x, table.weight)
    return x + table(scores.argmax(-1)) * scores.amax(-1, keepdim=True).tanh()


def a_table(**options):
    return lambda r: nn.Embedding(FEATURES, FEATURES, **options)
