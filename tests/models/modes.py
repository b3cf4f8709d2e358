"""Modules whose evaluation is another computation than their training, as people write them."""

from dataclasses import dataclass
from typing import Callable

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations


@dataclass
class Mode:
    model: Callable[[], nn.Module]
    alone: bool = False  # the training graph by itself says what evaluation computes
    draws: bool = False  # training draws at random, so that PyTorch's losses are others
    evaluation_draws: bool = False  # evaluation does, too: no metric can be had of it
    unseen: bool = False  # differs in evaluation without a trace in the training graph


MODES: dict[str, Mode] = {}


def mode(**flags):
    def register(cls):
        MODES[cls.__name__] = Mode(cls, **flags)
        return cls

    return register


class Base(nn.Module):
    """A layer of the subclass between two linear ones: [N, 6] -> [N, 3]."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 3)

    def forward(self, x):
        return self.last(self.middle(torch.tanh(self.first(x))))


@mode()
class SpectralNorm(Base):
    def __init__(self):
        super().__init__()
        self.inner = parametrizations.spectral_norm(nn.Linear(8, 8))

    def middle(self, x):
        return self.inner(x)


@mode()
class BatchNormByHand(Base):
    def __init__(self):
        super().__init__()
        self.register_buffer("running_mean", torch.zeros(8))
        self.register_buffer("running_var", torch.ones(8))

    def middle(self, x):
        if self.training:
            mean, var = x.mean(0), x.var(0, unbiased=False)
            with torch.no_grad():
                self.running_mean.mul_(0.9).add_(mean, alpha=0.1)
                self.running_var.copy_(0.9 * self.running_var + 0.1 * var)
        else:
            mean, var = self.running_mean, self.running_var
        return (x - mean) / torch.sqrt(var + 1e-5)


@mode()
class BatchNormByHandUnderItsName(nn.BatchNorm1d):
    """A subclass with the names of torch.nn.BatchNorm1d, buffers replaced."""

    def __init__(self):
        super().__init__(6)
        self.last = nn.Linear(6, 3)

    def forward(self, x):
        if self.training:
            mean, var = x.mean(0), x.var(0)
            with torch.no_grad():
                self.num_batches_tracked.add_(1)
                self.running_mean.lerp_(mean, 0.1)
                self.running_var.lerp_(var, 0.1)
        else:
            mean, var = self.running_mean, self.running_var
        return self.last((x - mean) * torch.rsqrt(var + self.eps) * self.weight + self.bias)


@mode()
class ExponentialAverage(Base):
    """Evaluation by an average of the weights, as mean teachers do."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 8)
        self.register_buffer("average", self.inner.weight.detach().clone())

    def middle(self, x):
        if self.training:
            with torch.no_grad():
                self.average.mul_(0.5).add_(self.inner.weight, alpha=0.5)
            return self.inner(x)
        return F.linear(x, self.average, self.inner.bias)


@mode()
class Observer(Base):
    """Fake quantisation with a range that training observes."""

    def __init__(self):
        super().__init__()
        self.register_buffer("low", torch.tensor(0.0))
        self.register_buffer("high", torch.tensor(0.0))

    def middle(self, x):
        if self.training:
            with torch.no_grad():
                self.low.copy_(torch.minimum(self.low, x.min()))
                self.high.copy_(torch.maximum(self.high, x.max()))
            return x
        scale = (self.high - self.low).clamp_min(1e-8) / 15
        return torch.round((x - self.low) / scale) * scale + self.low


@mode()
class Counter(Base):
    """Training counts its steps and warms up; evaluation is at full strength."""

    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.tensor(0))

    def middle(self, x):
        if self.training:
            self.steps.add_(1)
            return x * (self.steps / 10).clamp(max=1)
        return x


@mode()
class Centre(Base):
    """DINO's centre: taken off in training, kept up, and left alone in evaluation."""

    def __init__(self):
        super().__init__()
        self.register_buffer("centre", torch.zeros(1, 8))

    def middle(self, x):
        if self.training:
            y = x - self.centre
            self.centre = self.centre * 0.9 + x.detach().mean(0, keepdim=True) * 0.1
            return y
        return x


@mode(draws=True)
class AdditiveNoise(Base):
    def middle(self, x):
        return x * 1.5 + 0.3 * torch.randn_like(x) if self.training else x


@mode(draws=True)
class MultiplicativeNoise(Base):
    def middle(self, x):
        return x * torch.empty_like(x).uniform_(0.5, 2) if self.training else x


@mode(draws=True)
class RandomFlip(Base):
    def middle(self, x):
        return torch.where(torch.rand(x.shape[0], 1) < 0.5, x.flip(1), x) if self.training else x


@mode(draws=True)
class Mixup(Base):
    def middle(self, x):
        return 0.7 * x + 0.3 * x[torch.randperm(x.shape[0])] if self.training else x


@mode(draws=True)
class RandomShift(Base):
    def middle(self, x):
        if self.training:
            index = (torch.arange(8) + torch.randint(0, 8, (1,))) % 8
            return x[:, index]
        return x


@mode(draws=True)
class LabelNoise(Base):
    def middle(self, x):
        if self.training:
            return torch.where(torch.rand_like(x) < 0.1, torch.zeros_like(x), x)
        return x


@mode(draws=True)
class UnscaledMask(Base):
    """Dropout that was never divided by what it keeps: at its mean it is x * 0.8, in evaluation x."""

    def middle(self, x):
        return x * torch.bernoulli(torch.full_like(x, 0.8)) if self.training else x


@mode(draws=True)
class ComparedMask(Base):
    """Inverted dropout with a comparison, whose mean is not the comparison of the mean."""

    def middle(self, x):
        return x * (torch.rand_like(x) > 0.2).to(x.dtype) / 0.8 if self.training else x


@mode(draws=True)
class PartialMask(Base):
    """A mask over some of a tensor's elements, divided as if it were over all."""

    def middle(self, x):
        if self.training:
            mask = torch.ones_like(x)
            mask[:, :3].bernoulli_(0.5)
            return x * mask / 0.5
        return x


@mode(draws=True)
class GumbelSoftmax(Base):
    def middle(self, x):
        return F.gumbel_softmax(x, tau=0.5) if self.training else x.softmax(1)


@mode(draws=True)
class VariationalSample(Base):
    def __init__(self):
        super().__init__()
        self.spread = nn.Linear(8, 8)

    def middle(self, x):
        return x + torch.randn_like(x) * torch.exp(0.5 * self.spread(x)) if self.training else x


@mode(draws=True, evaluation_draws=True)
class AlwaysNoisy(Base):
    def middle(self, x):
        return x + 0.3 * torch.randn_like(x)


@mode(draws=True, evaluation_draws=True, unseen=True)
class MonteCarloDropout(Base):
    """Dropout that stays on: the training graph does not tell it from dropout that does not."""

    def middle(self, x):
        return F.dropout(x, 0.5, training=True)


@mode(unseen=True)
class Temperature(Base):
    def middle(self, x):
        return x if self.training else 2 * x


@mode(unseen=True)
class AuxiliaryHead(Base):
    """Two outputs in training, one in evaluation."""

    def __init__(self):
        super().__init__()
        self.aux = nn.Linear(8, 3)

    def forward(self, x):
        x = torch.tanh(self.first(x))
        return (self.last(x), self.aux(x)) if self.training else self.last(x).clone() * 2


@mode(unseen=True)
class EvaluationHead(Base):
    """Parameters and a constant that evaluation alone reads."""

    def __init__(self):
        super().__init__()
        self.extra = nn.Linear(8, 8)
        self.register_buffer("shift", torch.linspace(0, 1, 8), persistent=False)

    def middle(self, x):
        return x if self.training else self.extra(x) + self.shift + torch.tensor([0.25])


@mode(unseen=True)
class OtherConstants(Base):
    """Lifted constants that have one name in both graphs, and other values."""

    def middle(self, x):
        return x * torch.tensor([3.0]) if self.training else x * torch.tensor([0.5])


@mode(alone=True)
class FrozenNorm(Base):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(8)
        self.norm.running_mean.normal_()
        self.norm.requires_grad_(False)

    def train(self, mode=True):
        super().train(mode)
        self.norm.eval()
        return self

    def middle(self, x):
        return self.norm(x)


@mode(alone=True)
class Norms(Base):
    def __init__(self):
        super().__init__()
        self.batch, self.layer = nn.BatchNorm1d(8, momentum=0.3), nn.LayerNorm(8)
        self.instance = nn.InstanceNorm1d(2, affine=True, track_running_stats=True)
        self.without = nn.BatchNorm1d(8, track_running_stats=False)

    def middle(self, x):
        return self.without(self.layer(self.instance(self.batch(x).unflatten(1, (2, 4))).flatten(1)))


@mode(alone=True)
class TiedNorm(Base):
    """One batch norm under two names."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(8)
        self.again = self.norm

    def middle(self, x):
        return self.again(torch.relu(self.norm(x)))


@mode(alone=True, draws=True)
class Dropouts(Base):
    def __init__(self):
        super().__init__()
        self.drop, self.alpha, self.rrelu = nn.Dropout(0.4), nn.AlphaDropout(0.2), nn.RReLU()

    def middle(self, x):
        return F.dropout(self.rrelu(self.alpha(self.drop(x))), 0.3, self.training)


@mode(alone=True, draws=True)
class StochasticDepth(Base):
    """As torchvision has it."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 8)

    def middle(self, x):
        y = self.inner(x)
        if self.training:
            noise = torch.empty([x.shape[0], 1], dtype=x.dtype).bernoulli_(0.8)
            noise.div_(0.8)
            y = y * noise
        return x + y


@mode(alone=True, draws=True)
class DropPath(Base):
    """As timm has it."""

    def middle(self, x):
        if self.training:
            mask = x.new_empty((x.shape[0], 1)).bernoulli_(0.7)
            mask.div_(0.7)
            return x * mask
        return x


@mode(draws=True)
class UnscaledDropPath(Base):
    def middle(self, x):
        return x * x.new_empty((x.shape[0], 1)).bernoulli_(0.7) if self.training else x


@mode(alone=True, draws=True)
class FlooredDropPath(Base):
    """As the first versions of timm had it."""

    def middle(self, x):
        if self.training:
            keep = 0.7
            return x.div(keep) * torch.floor(keep + torch.rand((x.shape[0], 1), dtype=x.dtype))
        return x


@mode(alone=True, draws=True)
class InvertedDropout(Base):
    def middle(self, x):
        return x * torch.bernoulli(torch.full_like(x, 0.6)) / 0.6 if self.training else x


@mode(alone=True)
class WeightStandardisation(Base):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))

    def middle(self, x):
        mean, std = self.weight.mean(1, keepdim=True), self.weight.std(1, keepdim=True)
        return F.linear(x, (self.weight - mean) / (std + 1e-5))


@mode(alone=True)
class WeightNorm(Base):
    def __init__(self):
        super().__init__()
        self.inner = parametrizations.weight_norm(nn.Linear(8, 8))

    def middle(self, x):
        return self.inner(x)


@mode(alone=True)
class SlicesAndSqueezes(Base):
    def middle(self, x):
        a = x[:, None, 4:].squeeze(1)
        return torch.cat([a, x[:, :4].unsqueeze(2).squeeze(-1)], 1)
