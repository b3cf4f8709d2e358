"""One trial of bench/study.py's study in PyTorch, as somebody would write it who wants it quick: data as tensors on hand,
fused Adam, no DataLoader."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import models  # noqa: E402

BATCH, VALIDATION = 64, 0.2
LR, WEIGHT_DECAY = (1e-4, 1e-1), (1e-6, 1e-2)  # both on a logarithmic scale

Data = tuple[Tensor, Tensor, Tensor, Tensor]


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=("mlp", "cnn"))
    parser.add_argument("data", type=Path)
    parser.add_argument("storage", type=Path)
    parser.add_argument("--trials", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--channels-last", action="store_true")
    return parser


def load(file: Path) -> Data:
    """Training inputs and labels, then those of validation."""
    data = np.load(file)
    order = np.random.default_rng(1).permutation(len(data["y"]))
    cut = round(len(order) * (1 - VALIDATION))
    parts = [torch.from_numpy(data[key][rows]) for rows in (order[:cut], order[cut:]) for key in ("x", "y")]
    return parts[0], parts[1], parts[2], parts[3]


def accuracy(model: nn.Module, x: Tensor, y: Tensor) -> float:
    model.eval()
    with torch.no_grad():
        right = (model(x).argmax(1) == y).float().mean().item()
    model.train()
    return right


def train(args: argparse.Namespace, data: Data, seed: int, lr: float, weight_decay: float,
          report: Callable[[float, int], None] | None = None) -> float:
    """Calls report(validation accuracy, epoch) behind each epoch; returns the last one's."""
    torch.set_flush_denormal(True)
    torch.manual_seed(seed)
    x, y, val_x, val_y = data
    model = models.Cnn() if args.model == "cnn" else nn.Sequential(nn.Flatten(), models.Mlp())
    optimizer = torch.optim.Adam(model.parameters(), lr=lr, weight_decay=weight_decay, fused=True)
    if args.channels_last:
        model, x = model.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    value = 0.0
    for epoch in range(args.epochs):
        for rows in torch.randperm(len(x)).split(BATCH):
            optimizer.zero_grad()
            F.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()
        value = accuracy(model, val_x, val_y)
        if report:
            report(value, epoch)
    return value
