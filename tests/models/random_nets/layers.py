"""Layers for nets.py: those of vectors, those that keep a kind, and those between kinds."""

import torch
from torch import nn
from torch.nn import functional as F

from image_layers import IMAGES
from modules import Function, a_table, checkpointed, tied, with_layer
from ops import CHANNELS, FEATURES, LENGTH, SIDE
from sequence_layers import SEQUENCES


def batch_norm(r):
    return nn.BatchNorm1d(FEATURES, affine=r.random() < 0.75, track_running_stats=r.random() < 0.75,
                          momentum=r.choice([0.1, 0.4]))


def from_table(x, table):
    return x + table(x.argmax(-1))


def bag(r):
    return nn.EmbeddingBag(FEATURES, FEATURES, mode=r.choice(["sum", "mean", "max"]))


def experts(r):
    def run(x, gate, first, second):
        return (torch.stack([first(x), second(x)], 1) * gate(x).softmax(-1)[..., None]).sum(1)
    return Function(run, nn.Linear(FEATURES, 2), nn.Linear(FEATURES, FEATURES), nn.Linear(FEATURES, FEATURES))


def a_linear(r):
    return nn.Linear(FEATURES, FEATURES, bias=r.random() < 0.7)


def narrow(r):
    return nn.Sequential(nn.Linear(FEATURES, 4), nn.Tanh(), nn.Linear(4, FEATURES))


def twice_as_wide(r):
    return nn.Linear(FEATURES, 2 * FEATURES)


VECTORS = {
    "linear": a_linear, "batch norm": batch_norm, "prelu": lambda r: nn.PReLU(), "dropout": lambda r: nn.Dropout(0.0),
    "layer norm": lambda r: nn.LayerNorm(FEATURES, elementwise_affine=r.random() < 0.7),
    "rms norm": lambda r: nn.RMSNorm(FEATURES), "prelu of each": lambda r: nn.PReLU(FEATURES),
    "group norm": lambda r: nn.GroupNorm(r.choice([1, 2, 3]), FEATURES, affine=r.random() < 0.7),
    "batch norm of pairs": with_layer(lambda x, layer: layer(x.view(-1, 2, 3)).view(-1, 6),
                                      lambda r: nn.BatchNorm1d(2)),
    "bilinear": with_layer(lambda x, layer: layer(x, x.sin()), lambda r: nn.Bilinear(FEATURES, FEATURES, FEATURES)),
    "table": with_layer(from_table, a_table()), "table with padding": with_layer(from_table, a_table(padding_idx=2)),
    "table of a norm": with_layer(from_table, a_table(max_norm=1.0)),
    "table by frequency": with_layer(from_table, a_table(scale_grad_by_freq=True)), "tied": with_layer(tied, a_table()),
    "bag": with_layer(lambda x, table: x + table(x.argsort(-1)[..., :3]), bag),
    "as sequence": with_layer(lambda x, layer: layer(x.unsqueeze(1)).squeeze(1),
                              lambda r: nn.Conv1d(1, 1, 3, padding=1)),
    "checkpoint": checkpointed(narrow), "experts": experts,
    "weight norm": lambda r: nn.utils.parametrizations.weight_norm(a_linear(r)),
    "orthogonal": lambda r: nn.utils.parametrizations.orthogonal(a_linear(r), orthogonal_map="cayley"),
    "glu": lambda r: nn.Sequential(twice_as_wide(r), nn.GLU()),
    "maxout": with_layer(lambda x, layer: layer(x).view(-1, FEATURES, 2).amax(-1), twice_as_wide),
}
# kind -> layers that keep it, each made by a random.Random
LAYERS = {"vectors": VECTORS, "images": IMAGES, "sequences": SEQUENCES}


def in_steps(x, layer):
    return layer(x).view(-1, LENGTH, FEATURES)


def as_images(view):
    return lambda r: Function(lambda x, layer: view(layer(x)), nn.Linear(FEATURES, CHANNELS * SIDE * SIDE))


# (from, to) -> layers between kinds
BETWEEN = {
    ("vectors", "images"): [
        as_images(lambda y: y.view(-1, CHANNELS, SIDE, SIDE)),
        as_images(lambda y: y.unflatten(1, (CHANNELS, SIDE, SIDE))),
        as_images(lambda y: y.view(-1, SIDE, SIDE, CHANNELS).permute(0, 3, 1, 2)),
    ],
    ("images", "vectors"): [
        lambda r: nn.Sequential(nn.Flatten(), nn.Linear(CHANNELS * SIDE * SIDE, FEATURES)),
        lambda r: Function(lambda x: torch.cat([x.mean((2, 3)), x.amax((2, 3))], -1)),
    ],
    ("vectors", "sequences"): [
        lambda r: Function(in_steps, nn.Linear(FEATURES, LENGTH * FEATURES)),
        lambda r: Function(lambda x: torch.stack([x, x.roll(1, -1), x * 0.5], 1)),
        lambda r: Function(lambda x: x.unsqueeze(1).expand(-1, LENGTH, -1)),
    ],
    ("sequences", "vectors"): [
        lambda r: Function(lambda x: x.mean(1)), lambda r: Function(lambda x: x[:, -1]),
        lambda r: Function(lambda x: x.amax(1)),
        lambda r: Function(lambda x: torch.einsum("ntf,ntg->nfg", x, x).mean(-1)),
    ],
}
