"""Functions of one value or two that keep their shape, for nets.py.

Tensors are vectors [N, F], images [N, C, H, W] or sequences [N, T, F]. Every function works on each kind: it knows the
samples' dimension, 0, and the last one.
"""

import torch
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
