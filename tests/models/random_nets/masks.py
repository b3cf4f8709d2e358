"""Integers and masks for nets.py: token ids [N, T], lengths [N] and masks [N, T] that are inputs, what is made
of them, and what they do to other values."""

import torch
from torch.nn import functional as F

from ops import FEATURES, LENGTH, WORDS


def beside(t, mask):
    """[N, T] as wide as a value's dimensions: T is the length of sequences and the channels of images."""
    return mask[:, :, *[None] * (t.dim() - 2)] if t.dim() > 2 else mask.repeat(1, FEATURES // LENGTH)


def per_sample(t, number):
    return number.view(-1, *[1] * (t.dim() - 1))


# kind -> what makes another of it
IDS = {
    "plus one": lambda i: (i + 1) % WORDS, "turned": lambda i: i.flip(1), "shifted": lambda i: F.pad(i, (1, -1)),
    "shifted and joined": lambda i: torch.cat([torch.zeros_like(i[:, :1]), i[:, :-1]], 1),
    "counted": lambda i: (i != 0).cumsum(1) % WORDS, "where": lambda i: torch.where(i > 2, 1, i),
    "sorted": lambda i: i.sort(1)[0], "clamped": lambda i: i.clamp(1, WORDS - 2), "halved": lambda i: i // 2,
    "masked_fill": lambda i: i.masked_fill(i == 3, 0), "positions": lambda i: torch.arange(LENGTH).expand_as(i),
    "bits": lambda i: (i ^ 1) & 3, "written": lambda i: written(i), "of samples": lambda i: i.roll(1, 0),
    "int32": lambda i: i.int().long(), "products": lambda i: i * i % WORDS, "largest": lambda i: i.cummax(1)[0],
    "remainder": lambda i: torch.remainder(i - 3, WORDS),
}
MASKS = {
    "not": lambda m: ~m, "or next": lambda m: m | m.roll(1, 1), "first only": lambda m: m & (torch.arange(LENGTH) == 0),
    "until": lambda m: m.cumsum(1) > 0, "exclusive": lambda m: m ^ m[:, :1],
    "and all": lambda m: m & m.all(1, keepdim=True),
    "as numbers": lambda m: m.long().flip(1).bool(),
    "more than half": lambda m: (m.sum(1, keepdim=True) > 1).expand_as(m),
    "logical": lambda m: torch.logical_not(torch.logical_and(m, m.roll(1, 0))),
}
LENGTHS = {
    "one more": lambda n: (n + 1).clamp(max=LENGTH), "other": lambda n: LENGTH + 1 - n,
    "of others": lambda n: n.flip(0),
    "largest": lambda n: n.amax().expand_as(n), "even": lambda n: n - n % 2 + 1,
}


def written(ids):
    ids = ids.clone()
    ids[:, 0] = 1
    ids[:, 1:] += 2
    return ids % WORDS


# (from, to) -> functions
TURNED = {
    ("ids", "mask"): [
        lambda i: i != 0, lambda i: i == i[:, :1], lambda i: i.ge(2), lambda i: i % 2 == 0,
        lambda i: (i == 0).cumsum(1) == 0, lambda i: torch.isin(i, torch.tensor([1, 4])), lambda i: i.bool(),
        lambda i: (i[:, :, None] == i[:, None, :]).any(2), lambda i: i > torch.arange(LENGTH),
    ],
    ("lengths", "mask"): [
        lambda n: torch.arange(LENGTH)[None, :] < n[:, None],
        lambda n: torch.arange(LENGTH).expand(n.shape[0], -1).ge(n[:, None]),
        lambda n: F.one_hot(n - 1, LENGTH).bool(), lambda n: F.one_hot(n - 1, LENGTH).cumsum(1) == 0,
    ],
    ("mask", "lengths"): [lambda m: m.sum(1).clamp(min=1), lambda m: m.long().argmax(1) + 1],
    ("ids", "lengths"): [lambda i: (i != 0).sum(-1).clamp(1, LENGTH), lambda i: i.argmax(1) + 1],
    ("mask", "ids"): [lambda m: m.long(), lambda m: torch.where(m, 2, 1), lambda m: m.cumsum(1)],
    ("lengths", "ids"): [lambda n: (n[:, None] + torch.arange(LENGTH)) % WORDS],
}


def masked_mean(t, mask):
    weights = mask[:, :, None].to(t.dtype)
    return t - (t * weights).sum(1, keepdim=True) / weights.sum(1, keepdim=True).clamp(min=1)


def masked_softmax(t, mask):
    return t.masked_fill(~mask[:, :, None], float("-inf")).softmax(1).nan_to_num(0.0) + t * 0.5


def with_first(mask):
    """The first place is kept: no row without a place."""
    return mask | (torch.arange(LENGTH) == 0)


def attended(t, mask):
    heads = t.unflatten(2, (2, 3)).transpose(1, 2)
    return F.scaled_dot_product_attention(heads, heads, heads, attn_mask=mask).transpose(1, 2).flatten(2)


def by_hand(t, mask):
    scores = (t @ t.mT) * 0.3
    bias = (1 - with_first(mask)[:, None, :].to(t.dtype)) * -10000.0
    return (scores + bias).softmax(-1) @ t


def causal(mask):
    return torch.ones(LENGTH, LENGTH).tril().bool() & with_first(mask)[:, None, :]


def last_of(t, n):
    return t + t[torch.arange(t.shape[0]), n - 1].unsqueeze(1)


def gathered_last(t, n):
    return t * 0.5 + t.gather(1, (n - 1).view(-1, 1, 1).expand(-1, 1, FEATURES))


def of_words(t, ids):
    """Each word's mean over the batch."""
    words = torch.zeros(WORDS, FEATURES).to(t.dtype).index_add(0, ids.flatten(), t.flatten(0, 1))
    counts = F.one_hot(ids, WORDS).sum((0, 1)).to(t.dtype)
    return t - (words / (counts + 1)[:, None])[ids]


def by_float_mask(t, mask):
    bias = torch.zeros_like(mask, dtype=t.dtype).masked_fill(~with_first(mask), float("-inf"))
    return attended(t, bias[:, None, None, :])


def causal_pairs(t, mask):
    later = torch.triu(torch.full((LENGTH, LENGTH), float("-inf")), 1)
    return attended(t, later.to(t.dtype)) * mask[:, :, None]


def in_order(t, ids):
    return torch.take_along_dim(t, (ids * LENGTH + torch.arange(LENGTH)).argsort(1)[:, :, None], 1)


def grouped(t, n):
    """Without the sum of all samples of one length."""
    sums = torch.zeros_like(t[:1]).repeat(5, *[1] * (t.dim() - 1)).index_add(0, n, t)
    return t - sums[n] * 0.1


def bincount(t, ids):
    return torch.zeros(WORDS).to(t.dtype).index_add(0, ids.flatten(), torch.ones(ids.numel()).to(t.dtype))


# kind of a value -> kind of what is used with it -> functions of both that keep the value's shape
USED = {
    "any": {
        "mask": {
            "masked_fill": lambda t, m: t.masked_fill(beside(t, m), 0.1), "times": lambda t, m: t * beside(t, m),
            "where": lambda t, m: torch.where(beside(t, m), t, t * 0.3),
            "where one": lambda t, m: torch.where(beside(t, m), t, 0.5),
            "counted": lambda t, m: t * per_sample(t, m.sum(1)).to(t.dtype),
            "minus": lambda t, m: t - beside(t, m).to(t.dtype),
            "any": lambda t, m: torch.where(per_sample(t, m.any(1)), t.sin(), t),
            "masked_fill_": lambda t, m: (t * 1.0).masked_fill_(beside(t, m), -0.3),
            "of all": lambda t, m: t * m.to(t.dtype).mean(),
        },
        "lengths": {
            "times": lambda t, n: t * per_sample(t, n), "divided": lambda t, n: t / per_sample(t, n).to(t.dtype),
            "where": lambda t, n: torch.where(per_sample(t, n) > 1, t, t.cos()),
            "sorted samples": lambda t, n: t[n.argsort(stable=True)],
            "and back": lambda t, n: t.sin()[n.argsort(stable=True).argsort(stable=True)],
            "one_hot": lambda t, n: t + per_sample(t, (F.one_hot(n, 5) * torch.arange(5)).sum(1)) * 0.25,
            "grouped": grouped,
            "scattered": lambda t, n: t + torch.zeros(5).to(t.dtype).scatter_add(0, n, t.flatten(1).mean(1)).mean(),
        },
        "ids": {
            "times": lambda t, i: t * beside(t, i), "equal": lambda t, i: torch.where(beside(t, i) == 2, t * 0.5, t),
            "summed": lambda t, i: t + per_sample(t, i.sum(1)) * 0.125,
            "float": lambda t, i: t + beside(t, i).to(t.dtype) * 0.1,
            "counts": lambda t, i: t * F.one_hot(i, WORDS).sum((0, 1)).to(t.dtype).mean().sqrt() * 0.5,
            "bincount": lambda t, i: t + bincount(t, i)[1] * 0.1,
        },
    },
    "sequences": {
        "mask": {
            "mean": masked_mean, "softmax": masked_softmax, "by hand": by_hand,
            "causal": lambda t, m: attended(t, causal(m)[:, None]),
            "attention": lambda t, m: attended(t, with_first(m)[:, None, None, :]), "float mask": by_float_mask,
            "pairs": lambda t, m: (t @ t.mT).tanh().masked_fill(~(m[:, :, None] & m[:, None, :]), 0.0) @ t,
            "largest": lambda t, m: t + t.masked_fill(~with_first(m)[:, :, None], -1000.0).amax(1, keepdim=True),
            "causal pairs": causal_pairs,
        },
        "lengths": {
            "last": last_of, "gathered last": gathered_last,
            "mean": lambda t, n: t - t.sum(1, keepdim=True) / n[:, None, None],
        },
        "ids": {
            "gather": lambda t, i: t.gather(1, (i % LENGTH)[:, :, None].expand_as(t)), "words": of_words,
            "take_along_dim": lambda t, i: torch.take_along_dim(t, (i % LENGTH)[:, :, None], 1),
            "scatter_add": lambda t, i: torch.zeros_like(t).scatter_add(1, (i % LENGTH)[:, :, None].expand_as(t), t),
            "same": lambda t, i: attended(t, (i[:, :, None] == i[:, None, :])[:, None]),
            "distances": lambda t, i: (t @ t.mT - (i[:, :, None] - i[:, None, :]).abs()).softmax(-1) @ t,
            "order": in_order,
            "one_hot": lambda t, i: t + F.pad(F.one_hot(i, WORDS), (0, 1)).to(t.dtype),
        },
    },
}
USED |= {kind: USED["any"] for kind in ("vectors", "images")}
USED["sequences"] = {other: USED["any"][other] | USED["sequences"][other] for other in USED["any"]}


def extra_input(kind, n):
    if kind == "mask":
        return torch.rand(n, LENGTH) < 0.6
    if kind == "lengths":
        return torch.randint(1, LENGTH + 1, (n,))
    return torch.randint(0, WORDS, (n, LENGTH))
