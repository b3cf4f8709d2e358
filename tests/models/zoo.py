"""Models that are exported, trained as arrays and compared with PyTorch: name -> Case."""

from dataclasses import dataclass, field
from typing import Callable

import torch
import torchvision
from torch import nn
from torch.nn import functional as F

import forms


@dataclass
class Case:
    model: Callable[[], nn.Module]
    inputs: Callable[[int], tuple]  # of a number of samples
    classes: int = 5
    loss: str = "cross_entropy"
    target: Callable[[int], torch.Tensor] | None = None
    output: int | None = None  # of several
    freeze: list[str] = field(default_factory=list)
    lr: float = 0.01
    batch: int = 4
    steps: int = 5
    large: bool = False  # needs about 10 GB of memory
    long: bool = False  # takes minutes: not followed by `models_check.py --short`, which CI runs


def images(size, channels=3):
    return lambda n: (torch.randn(n, channels, size, size),)


def tokens(length, vocabulary=50):
    return lambda n: (torch.randint(0, vocabulary, (n, length)),)


class LstmClassifier(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.embedding = nn.Embedding(50, 12, padding_idx=0)
        self.lstm = nn.LSTM(12, 10, num_layers=2, batch_first=True, **options)
        self.head = nn.Linear(20 if options.get("bidirectional") else 10, 5)

    def forward(self, x):
        y, (h, _) = self.lstm(self.embedding(x))
        return self.head(y[:, -1] + 0 * h[-1].sum())


class GruClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(6, 8, num_layers=2, bidirectional=True)
        self.rnn = nn.RNN(16, 7, nonlinearity="relu")
        self.head = nn.Linear(7, 5)

    def forward(self, x):  # [N, T, F]; recurrent layers here take [T, N, F]
        y, _ = self.gru(x.transpose(0, 1))
        y, _ = self.rnn(y)
        return self.head(y.mean(0))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        self.position = nn.Parameter(torch.randn(1, 9, 16) * 0.02)
        layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        return self.head(self.encoder(self.embedding(x) + self.position).mean(1))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        block = lambda i, o: nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(2, o), nn.SiLU(inplace=True))
        self.down1, self.down2, self.middle = block(3, 8), block(8, 12), block(12, 16)
        self.up2, self.up1 = nn.ConvTranspose2d(16, 12, 2, stride=2), nn.ConvTranspose2d(12, 8, 2, stride=2, groups=2)
        self.join2, self.join1 = block(24, 12), block(16, 8)
        self.head = nn.Conv2d(8, 3, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        y = self.middle(F.avg_pool2d(b, 2))
        y = self.join2(torch.cat([self.up2(y), b], 1))
        y = self.join1(torch.cat([self.up1(y), a], 1))
        return self.head(y)


class TwoInputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 8)
        self.points = nn.Sequential(nn.Linear(4, 8), nn.InstanceNorm1d(6, affine=True), nn.GELU())
        self.register_buffer("scale", torch.tensor([1.0, 0.5, 0.25, 2.0]))
        self.head = nn.Bilinear(8, 8, 5)

    def forward(self, tokens, mask, points):
        x = self.embedding(tokens).masked_fill(~mask.unsqueeze(-1), 0.0)
        x = x.sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
        y = self.points(points * self.scale).amax(1)
        return {"features": x, "logits": self.head(x, y)}


def two_inputs(n):
    mask = torch.rand(n, 7) < 0.7
    return torch.randint(0, 50, (n, 7)), mask, torch.randn(n, 6, 4)


class FrozenBackbone(nn.Module):
    """A backbone in training mode without gradients, so that its batch norms go on counting."""

    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.Conv2d(8, 12, 3),
            nn.BatchNorm2d(12), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten())
        self.backbone.requires_grad_(False)
        self.head = nn.Sequential(nn.Linear(48, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Linear(16, 5))

    def forward(self, x):
        return self.head(self.backbone(x))


class Adapters(nn.Module):
    """Trained adapters inside a frozen stack: shared and own layers alternate."""

    def __init__(self):
        super().__init__()
        self.base = nn.ModuleList(nn.Linear(12, 12) for _ in range(3)).requires_grad_(False)
        self.conv = nn.Conv1d(1, 2, 3, padding=1).requires_grad_(False)
        self.low = nn.ModuleList(nn.Linear(12, 2, bias=False) for _ in range(3))
        self.high = nn.ModuleList(nn.Linear(2, 12, bias=False) for _ in range(3))
        self.head = nn.Linear(24, 5)

    def forward(self, x):
        for base, low, high in zip(self.base, self.low, self.high):
            x = torch.tanh(base(x) + high(low(x)))
        return self.head(self.conv(x.unsqueeze(1)).flatten(1))


class NoGradBackbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.LayerNorm(16))
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        with torch.no_grad():
            features = self.backbone(x)
        return self.head(features)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.mix = nn.Linear(8, 8)
        self.out = nn.Linear(8, 20, bias=False)
        self.out.weight = self.embedding.weight

    def forward(self, x):
        return self.out(torch.tanh(self.mix(self.embedding(x)))).transpose(1, 2)


class Oddities(nn.Module):
    """Things people write: in-place on slices, index_put, einsum, where, a scalar parameter, sizes from shapes."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(10, 10), nn.Linear(10, 10)
        self.scale = nn.Parameter(torch.tensor(1.5))
        self.mix = nn.Parameter(torch.randn(4, 3, 3) * 0.3)
        self.prelu = nn.PReLU()
        self.register_buffer("seen", torch.zeros(10))
        self.head = nn.Linear(10, 5)

    def forward(self, x):  # [N, 3, 10]
        n, t, f = x.shape
        y = self.prelu(self.a(x)) * self.scale
        shifted = torch.zeros_like(y)
        shifted[:, 1:] = y[:, :-1]
        shifted[:, 0] = 0.125  # becomes a constant of the file, in float32
        y = torch.einsum("ntf,gts->nsf", y + shifted, self.mix)
        y = torch.where(y > 0, y, 0.1 * y)
        index = torch.arange(t, device=x.device).flip(0)
        y = y[:, index] + self.b(x).roll(1, 1)
        y = y.reshape(n * t, -1).view(n, t, f).permute(0, 2, 1).contiguous()
        y = F.softmax(y, dim=-1).matmul(y.transpose(1, 2)).sum(dim=1)
        with torch.no_grad():
            self.seen.mul_(0.9).add_(x.mean((0, 1)) * 0.1)
        return self.head(y / (1 + y.norm(dim=-1, keepdim=True)) + y.std() + y.amax(dim=1, keepdim=True))


def vit():
    return torchvision.models.VisionTransformer(32, 8, 2, 2, 16, 32, num_classes=5)


def swin():
    return torchvision.models.swin_transformer.SwinTransformer([4, 4], 8, [2, 2], [2, 2], [4, 4], num_classes=5)


# torch.export.save writes only named tuples that it has been told of.
torch.utils._pytree._register_namedtuple(
    torchvision.models.GoogLeNetOutputs, serialized_type_name="torchvision.models.googlenet.GoogLeNetOutputs")


def torchvision_model(name, **options):
    return lambda: getattr(torchvision.models, name)(weights=None, num_classes=5, **options)


# Batch norm over few numbers makes much of every rounding, and large steps make more: with images of 32 pixels and five
# steps of 0.01 rounding decides what these models compute.
TAME = {"lr": 0.001, "steps": 3}

# The longest first, so that no process of several is left alone with one at the end.
CASES = {
    "alexnet": Case(torchvision_model("alexnet"), images(64), large=True, long=True),
    "vgg11_bn": Case(torchvision_model("vgg11_bn"), images(32), large=True, long=True),
    "resnet18": Case(torchvision_model("resnet18"), images(64), **TAME),
    "resnet50": Case(torchvision_model("resnet50"), images(64), lr=0.001, batch=8, steps=2, long=True),
    "mobilenet_v2": Case(torchvision_model("mobilenet_v2"), images(64), **TAME, long=True),
    "mobilenet_v3_small": Case(torchvision_model("mobilenet_v3_small"), images(32)),
    "mobilenet_v3_large": Case(torchvision_model("mobilenet_v3_large"), images(32), lr=0.001, batch=8, steps=2),
    "squeezenet1_1": Case(torchvision_model("squeezenet1_1"), images(48)),
    "shufflenet_v2_x0_5": Case(torchvision_model("shufflenet_v2_x0_5"), images(64), **TAME),
    "efficientnet_b0": Case(torchvision_model("efficientnet_b0"), images(64), **TAME, long=True),
    "densenet121": Case(torchvision_model("densenet121"), images(64), **TAME, long=True),
    "mnasnet0_5": Case(torchvision_model("mnasnet0_5"), images(64), lr=0.001, batch=8, steps=3),
    "regnet_y_400mf": Case(torchvision_model("regnet_y_400mf"), images(64), **TAME),
    "convnext_tiny": Case(torchvision_model("convnext_tiny"), images(32), long=True),
    "vit": Case(vit, images(32)),
    "swin_t": Case(swin, images(32)),
    "googlenet": Case(torchvision_model("googlenet", init_weights=False), images(64), output=0, lr=0.001, batch=8, steps=3),
    "lstm": Case(LstmClassifier, tokens(6)),
    "lstm_bidirectional": Case(lambda: LstmClassifier(bidirectional=True), tokens(6)),
    "gru": Case(GruClassifier, lambda n: (torch.randn(n, 5, 6),)),
    "transformer_encoder": Case(Encoder, tokens(9)),
    "unet": Case(UNet, images(16), loss="mse", target=lambda n: torch.randn(n, 3, 16, 16)),
    "two_inputs": Case(TwoInputs, two_inputs, output=1),
    "frozen_backbone": Case(FrozenBackbone, images(16)),
    "adapters": Case(Adapters, lambda n: (torch.randn(n, 12),)),
    "no_grad_backbone": Case(NoGradBackbone, lambda n: (torch.randn(n, 8),)),
    "tied": Case(Tied, tokens(6, 20), target=lambda n: torch.randint(0, 20, (n, 6))),
    "oddities": Case(Oddities, lambda n: (torch.randn(n, 3, 10),)),
    "weight_norm": Case(forms.WeightNorm, lambda n: (torch.randn(n, 8),)),
    "sound": Case(forms.Sound, lambda n: (torch.randn(n, 3, 20),)),
    "volume": Case(forms.Volume, lambda n: (torch.randn(n, 1, 8, 8, 8),)),
    "point_cloud": Case(forms.PointCloud, lambda n: (torch.randn(n, 10, 3),)),
    "cells": Case(forms.Cells, lambda n: (torch.randn(n, 5, 4),)),
    "experts": Case(forms.Experts, lambda n: (torch.randn(n, 8),)),
    "decoder": Case(forms.Decoder, lambda n: (torch.randn(n, 6, 16),)),
    "upsampled": Case(forms.Upsampled, images(8)),
    "cached": Case(forms.Cached, lambda n: (torch.randn(n, 4, 6),)),
}
