"""The four ways in which people export a model: what torch.export writes down for sizes differs in each."""

import warnings

import torch
from torch import nn

FORMS = ("static", "bounded", "unbounded", "auto")


def dimension(form: str):
    """What `dynamic_shapes` says of an input's batch dimension."""
    if form == "bounded":
        return torch.export.Dim("batch", min=2, max=4096)
    return torch.export.Dim("batch") if form == "unbounded" else torch.export.Dim.AUTO


def exported(model: nn.Module, example: tuple, form: str) -> torch.export.ExportedProgram:
    shapes = None if form == "static" else tuple({0: dimension(form)} for _ in example)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.export.export(model, example, dynamic_shapes=shapes, strict=False)
