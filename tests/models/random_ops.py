"""What random_nets.py draws from: functions that keep a tensor's shape, writes in place, and layers between kinds.

Tensors are vectors [N, F], images [N, C, H, W] or sequences [N, T, F]. Every function works on each kind: it knows the
samples' dimension, 0, and the last one.
"""

import torch
from torch import nn
from torch.nn import functional as F

FEATURES, CHANNELS, SIDE, LENGTH, WORDS = 6, 3, 4, 3, 5
SHAPES = {"vectors": (FEATURES,), "images": (CHANNELS, SIDE, SIDE), "sequences": (LENGTH, FEATURES)}


def positive(t):
    return t * t + 0.3


def last(function):
    """`function` of the last dimension, added."""
    return lambda t: t * 0.7 + 0.3 * function(t)


def steps(function):
    """`function` whose values are few, with a slope: equal numbers would let rounding choose the largest of them."""
    return lambda t: function(t) + 0.1 * t


SMOOTH = {
    "tanh": torch.tanh, "sigmoid": torch.sigmoid, "gelu": F.gelu, "silu": F.silu, "mish": F.mish,
    "softplus": F.softplus, "erf": torch.erf, "erfc": torch.erfc, "sin": torch.sin, "cos": torch.cos,
    "atan": torch.atan, "asinh": torch.asinh, "square": torch.square, "sinc": torch.sinc, "softsign": F.softsign,
    "tanhshrink": F.tanhshrink, "elu": F.elu, "logsigmoid": F.logsigmoid, "exp": lambda t: torch.exp(torch.tanh(t)),
    "expm1": lambda t: torch.expm1(0.3 * torch.tanh(t)), "log": lambda t: torch.log(positive(t)),
    "sqrt": lambda t: torch.sqrt(positive(t)), "lgamma": lambda t: torch.lgamma(positive(t)),
    "rsqrt": lambda t: torch.rsqrt(positive(t)), "digamma": lambda t: torch.digamma(positive(t)),
    "i0": lambda t: torch.special.i0(t * 0.5), "times": lambda t: t * 1.3, "plus": lambda t: t + 0.2,
    "rsub": lambda t: 1 - t, "neg": torch.neg, "power": lambda t: positive(t) ** 1.5,
}
KINKED = {
    "relu": F.relu, "abs": torch.abs, "leaky_relu": lambda t: F.leaky_relu(t, 0.1), "hardswish": F.hardswish,
    "relu6": F.relu6, "hardsigmoid": F.hardsigmoid, "hardtanh": F.hardtanh, "softshrink": F.softshrink,
    "clamp": lambda t: t.clamp(-0.8, 0.9), "threshold": lambda t: F.threshold(t, 0.1, 0.0),
    "where": lambda t: torch.where(t > 0, t, t * 0.2), "sign": lambda t: t * t.sign(),
    "masked_fill": lambda t: t.masked_fill(t > 1, 0.5), "frac": torch.frac, "floor": steps(torch.floor),
    "trunc": steps(lambda t: torch.trunc(t * 2)), "straight through": steps(lambda t: t + (t.round() - t).detach()),
    "divided": steps(lambda t: torch.div(t, 0.3, rounding_mode="floor")),
    "remainder": lambda t: torch.remainder(t, 0.4), "as bool": steps(lambda t: (t > 0.2).to(t.dtype)),
    "as long": steps(lambda t: (t * 2).long().to(t.dtype) * 0.5), "nan_to_num": torch.nan_to_num,
    "detached gate": lambda t: t * t.detach(),
}
LAST = {
    "softmax": lambda t: t.softmax(-1), "log_softmax": lambda t: t.log_softmax(-1), "cumsum": lambda t: t.cumsum(-1),
    "flip": lambda t: t.flip(-1), "roll": lambda t: t.roll(1, -1), "sort": lambda t: t.sort(-1)[0],
    "normalize": lambda t: F.normalize(t, dim=-1), "layer_norm": lambda t: F.layer_norm(t, t.shape[-1:]),
    "std": last(lambda t: t.std(-1, keepdim=True)), "var": last(lambda t: t.var(-1, keepdim=True)),
    "mean": last(lambda t: t.mean(-1, keepdim=True)), "amax": last(lambda t: t.amax(-1, keepdim=True)),
    "prod": last(lambda t: t.prod(-1, keepdim=True)), "logsumexp": last(lambda t: t.logsumexp(-1, keepdim=True)),
    "norm": last(lambda t: t.norm(dim=-1, keepdim=True)), "median": last(lambda t: t.median(-1, keepdim=True)[0]),
    "topk": last(lambda t: t.topk(2, -1)[0].sum(-1, keepdim=True)), "cummax": last(lambda t: t.cummax(-1)[0]),
    "logcumsumexp": last(lambda t: torch.logcumsumexp(t, -1)),
    "gather": last(lambda t: t.gather(-1, t.argmax(-1, keepdim=True))),
    "one_hot": lambda t: t * F.one_hot(t.argmax(-1), t.shape[-1]).to(t.dtype),
    "scatter": last(lambda t: torch.zeros_like(t).scatter(-1, t.argsort(-1), t.sin())),
    "glu": lambda t: F.glu(torch.cat([t, t * 0.5], -1), -1),
    "unfold": lambda t: F.pad(t, (1, 1)).unfold(-1, 3, 1).mean(-1),
    "split": lambda t: torch.cat(t.split(2, -1)[::-1], -1),
    "chunk": lambda t: (lambda a, b: torch.cat([a * b, a - b], -1))(*t.chunk(2, -1)),
    "stack": lambda t: torch.stack([t, t.tanh()], 1).mean(1), "unbind": lambda t: torch.stack(t.unbind(-1)[::-1], -1),
    "every other": lambda t: t + torch.cat([t[..., 1::2], t[..., ::2]], -1),
    "turned": lambda t: t.transpose(0, -1).contiguous().transpose(0, -1),
    "index": lambda t: t[..., torch.tensor([1, 0, 2])].mean(-1, keepdim=True) + t,
    "count": last(lambda t: (t > 0).sum(-1, keepdim=True).to(t.dtype)),
    "masked mean": last(lambda t: ((t > 0) * t).sum(-1, keepdim=True) / ((t > 0).sum(-1, keepdim=True) + 1)),
}
ACROSS = {
    "batch mean": lambda t: t - t.mean(0, keepdim=True), "whole mean": lambda t: t - t.mean(),
    "batch cumsum": lambda t: t.cumsum(0) * 0.3, "batch softmax": lambda t: t.softmax(0),
    "neighbour": lambda t: t + t.roll(1, 0),
}
UNARY = SMOOTH | KINKED | LAST | ACROSS

BINARY = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "divided": lambda a, b: a / positive(b),
    "maximum": torch.maximum, "minimum": torch.minimum, "hypot": lambda a, b: torch.hypot(a, b + 0.1),
    "logaddexp": torch.logaddexp, "lerp": lambda a, b: torch.lerp(a, b, 0.3),
    "lerp by tensor": lambda a, b: torch.lerp(a, b, torch.sigmoid(a)),
    "atan2": lambda a, b: torch.atan2(a, positive(b)), "where": lambda a, b: torch.where(a > b, a * 0.9, b),
    "add alpha": lambda a, b: torch.add(a, b, alpha=0.4), "rsub": torch.rsub,
    "addcmul": lambda a, b: torch.addcmul(a, b, b, value=0.3), "addcdiv": lambda a, b: torch.addcdiv(a, b, positive(b)),
    "xlogy": lambda a, b: torch.xlogy(a, positive(b)), "copysign": torch.copysign,
    "power": lambda a, b: positive(a) ** torch.tanh(b), "detached": lambda a, b: a * b.detach(),
    "gate": lambda a, b: a * (b > 0).to(a.dtype),
    "smooth_l1": lambda a, b: F.smooth_l1_loss(a, b.expand_as(a), reduction="none") + a,
    "remainder": lambda a, b: torch.remainder(a, positive(b)),
    "cosine": lambda a, b: a + F.cosine_similarity(a, b.expand_as(a), dim=-1).unsqueeze(-1),
    "joined": lambda a, b: torch.cat([a, b.expand_as(a)], -1)[..., 1::2],
}

# (written, a parameter of rank 0)
IN_PLACE = {
    "relu_": lambda t, w: t.relu_(), "mul_": lambda t, w: t.mul_(w), "add_": lambda t, w: t.add_(w),
    "sub_": lambda t, w: t.sub_(w), "clamp_": lambda t, w: t.clamp_(-1, 1), "tanh_": lambda t, w: t.tanh_(),
    "neg_": lambda t, w: t.neg_(), "sigmoid_": lambda t, w: t.sigmoid_(), "silu_": lambda t, w: F.silu(t, inplace=True),
    "elu_": lambda t, w: F.elu(t, inplace=True), "leaky_relu_": lambda t, w: F.leaky_relu_(t, 0.2),
    "erf_": lambda t, w: t.erf_(), "lerp_": lambda t, w: t.lerp_(w.expand_as(t), 0.3),
    "addcmul_": lambda t, w: t.addcmul_(w, w, value=0.2), "fill_": lambda t, w: t.narrow(-1, 0, 1).fill_(0.3),
    "zero_": lambda t, w: t.select(-1, 0).zero_(), "square_": lambda t, w: t.square_(),
    "copy_": lambda t, w: t.narrow(-1, 1, 2).copy_(w.expand_as(t).narrow(-1, 1, 2)),
    "masked_fill_": lambda t, w: t.masked_fill_(t > 0.8, 0.1),
    "index_put_": lambda t, w: t.__setitem__((slice(None), torch.tensor([0, 2])), w),
}


def written_turned(t, write):
    t = t * 1.0
    write(t.transpose(0, 1))
    return t


def written_through(view, copies):
    def run(t, write):
        t = t.clone() if copies else t
        write(view(t))
        return t
    return run


# What a write goes through: (a value, the write) -> the value after it.
PLACES = {
    "itself": written_through(lambda t: t, False), "a copy": written_through(lambda t: t, True),
    "rows of a copy": written_through(lambda t: t[1:], True),
    "columns": written_through(lambda t: t.narrow(1, 0, 3), False),
    "a view of a copy": written_through(lambda t: t.view(t.shape[0], -1), True), "transposed": written_turned,
    "detached": lambda t, write: written_through(lambda u: u, True)(t.detach(), write),
}


class Recurrent(nn.Module):
    """An LSTM or a GRU of [N, T, F], of its outputs or its last state."""

    def __init__(self, kind: type, state: bool):
        super().__init__()
        self.layer, self.state = kind(FEATURES, FEATURES, batch_first=True), state

    def forward(self, x):
        y, h = self.layer(x)
        h = h[0] if isinstance(h, tuple) else h
        return x * 0.3 + h.squeeze(0).unsqueeze(1) if self.state else y


class Attention(nn.Module):
    """Attention of [N, T, F] with heads by view and transpose."""

    def __init__(self, causal: bool):
        super().__init__()
        self.qkv, self.causal = nn.Linear(FEATURES, 3 * FEATURES), causal

    def forward(self, x):
        q, k, v = self.qkv(x).view(x.shape[0], x.shape[1], 3, 2, FEATURES // 2).permute(2, 0, 3, 1, 4).unbind(0)
        return F.scaled_dot_product_attention(q, k, v, is_causal=self.causal).transpose(1, 2).reshape(x.shape)


class Function(nn.Module):
    def __init__(self, function, *layers):
        super().__init__()
        self.layers, self.function = nn.ModuleList(layers), function

    def forward(self, x):
        return self.function(x, *self.layers)


def batch_norm(kind):
    channels = CHANNELS if kind is nn.BatchNorm2d else FEATURES
    return lambda r: kind(channels, affine=r.random() < 0.75, track_running_stats=r.random() < 0.75,
                          momentum=r.choice([0.1, 0.4]))


def instance_norm(r):
    return nn.InstanceNorm2d(CHANNELS, affine=r.random() < 0.5, track_running_stats=r.random() < 0.3)


def squeezed(x, layer):
    return x * torch.sigmoid(layer(x.mean((2, 3))))[:, :, None, None]


def smaller_and_back(x):
    return F.interpolate(F.adaptive_max_pool2d(x, 2), size=(SIDE, SIDE), mode="bilinear")


def over_time(x, layer):
    return layer(x.transpose(1, 2)).transpose(1, 2)


# kind -> layers that keep it, each made by a random.Random
LAYERS = {
    "vectors": {
        "linear": lambda r: nn.Linear(FEATURES, FEATURES, bias=r.random() < 0.7),
        "batch norm": batch_norm(nn.BatchNorm1d),
        "layer norm": lambda r: nn.LayerNorm(FEATURES, elementwise_affine=r.random() < 0.7),
        "prelu": lambda r: nn.PReLU(),
        "table": lambda r: Function(lambda x, table: x + table(x.argmax(-1)), nn.Embedding(FEATURES, FEATURES)),
    },
    "images": {
        "convolution": lambda r: nn.Conv2d(CHANNELS, CHANNELS, r.choice([1, 3]), padding="same", bias=r.random() < 0.6),
        "depthwise": lambda r: nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, groups=CHANNELS),
        "transposed convolution": lambda r: nn.ConvTranspose2d(CHANNELS, CHANNELS, 3, padding=1),
        "batch norm": batch_norm(nn.BatchNorm2d),
        "batch norm, relu": lambda r: nn.Sequential(batch_norm(nn.BatchNorm2d)(r), nn.ReLU(inplace=r.random() < 0.5)),
        "group norm": lambda r: nn.GroupNorm(r.choice([1, 3]), CHANNELS),
        "instance norm": instance_norm,
        "max pool": lambda r: nn.MaxPool2d(3, 1, 1),
        "average pool": lambda r: nn.AvgPool2d(3, 1, 1, count_include_pad=r.random() < 0.5),
        "volume": lambda r: Function(lambda x, layer: layer(x.unsqueeze(1)).squeeze(1), nn.Conv3d(1, 1, 3, padding=1)),
        "squeeze": lambda r: Function(squeezed, nn.Linear(CHANNELS, CHANNELS)),
        "upsampled": lambda r: Function(lambda x: F.interpolate(F.avg_pool2d(x, 2), scale_factor=2, mode="nearest")),
        "reflected": lambda r: Function(lambda x: F.pad(x[:, :, 1:, 1:], (1, 0, 1, 0), mode="reflect")),
        "bilinear": lambda r: Function(smaller_and_back),
    },
    "sequences": {
        "linear": lambda r: nn.Linear(FEATURES, FEATURES, bias=r.random() < 0.7),
        "layer norm": lambda r: nn.LayerNorm(FEATURES), "rms norm": lambda r: nn.RMSNorm(FEATURES),
        "lstm": lambda r: Recurrent(nn.LSTM, r.random() < 0.5), "gru": lambda r: Recurrent(nn.GRU, r.random() < 0.5),
        "attention": lambda r: Attention(r.random() < 0.5),
        "over time": lambda r: Function(over_time, nn.Conv1d(FEATURES, FEATURES, 3, padding=1)),
    },
}


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
