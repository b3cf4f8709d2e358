"""Small models that see the same numbers in other shapes: views, folds, windows, patches.

As in idioms.py: CASES are trained and compared."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from idioms import D, T, Idiom, collecting, image, linear, parameter, sequence

CASES: dict[str, Idiom] = {}
case = collecting(CASES)


@case(sequence, head=linear(T * D))
def flat(m, x):
    return m.head(x.reshape(x.shape[0], -1))


@case(sequence, first=linear(D, 8), head=linear(8))
def folded(m, x):
    n, t, d = x.shape
    return m.head(torch.tanh(m.first(x.view(-1, d))).view(n, t, -1).mean(1))


@case(sequence, first=linear(D, 8), head=linear(8))
def folded_by_product(m, x):
    n, t, d = x.shape
    return m.head(torch.tanh(m.first(x.reshape(n * t, d))).reshape(n, t, 8).mean(1))


@case(sequence, norm=lambda: nn.BatchNorm1d(8), first=linear(D, 8), head=linear(8))
def normed_over_folds(m, x):
    h = m.first(x).flatten(0, 1)
    return m.head(m.norm(h).unflatten(0, (x.shape[0], -1)).mean(1))


@case(sequence, head=linear(D))
def divided_time(m, x):
    n, t, d = x.shape
    return m.head(x.view(n, t // 3, 3, d).amax(2).mean(1))


@case(sequence, head=linear(2 * D))
def merged_neighbours(m, x):
    n, t, d = x.shape
    return m.head(x[:, : t - t % 2].reshape(n, -1, 2 * d).mean(1))


@case(sequence, head=linear(D))
def squeezes(m, x):
    return m.head(x[:, 2:3].squeeze(1) + x[:, :1].unsqueeze(1).squeeze() + x[:, None, 4:5].squeeze((1, 2)))


@case(sequence, head=linear(D))
def permutes(m, x):
    y = x.permute(2, 0, 1).movedim(0, -1).swapaxes(1, 2).transpose(-1, -2)
    return m.head(y.contiguous().view(x.size(0), -1, D).mean(-2))


@case(sequence, head=linear(D))
def stacked(m, x):
    y = torch.stack([x, x * x, x.sin()], dim=-1)
    return m.head(y.flatten(-2)[..., ::3].mean(1) + y.select(-1, -1).mean(1) + torch.stack([x, x], 1).mean((1, 2)))


@case(sequence, head=linear(D))
def counted_elements(m, x):
    return m.head(x.sum(1) / x[0].numel() * math.sqrt(x.shape[-1]) + x.sum((0, 1)) / (x.shape[0] * x.size(1)))


@case(sequence, head=linear(D))
def new_tensors(m, x):
    n, t, d = x.shape
    y = x + x.new_zeros(n, t, d) + torch.ones(n, 1, d) + torch.full((n, t, 1), 0.5) + x.new_full((d,), 2)
    return m.head(torch.cat([y, torch.zeros(n, 1, d)], 1).mean(1))


@case(sequence, head=linear(D))
def rolled(m, x):
    return m.head((x.roll(1, 1) * x.roll(-2, 1) + x.roll((1, -1), (1, 2)) + x.flip(1) * x.flip((1, 2))).mean(1))


@case(sequence, head=linear(D))
def diagonals(m, x):
    return m.head(torch.einsum("ntd,nsd->nts", x, x).diagonal(dim1=1, dim2=2)[:, :D] + x.cumsum(1)[:, -1])


@case(sequence, head=linear(4))
def unfolded(m, x):
    return m.head(x.unfold(1, 4, 2).mean((1, 2)))


@case(sequence, head=linear(8))
def interpolated(m, x):
    return m.head(F.interpolate(x.transpose(1, 2), size=8).mean(1) + F.adaptive_avg_pool1d(x.transpose(1, 2), 8).sum(1))


@case(image, mix=linear(48, 8), head=linear(8))
def patches_by_views(m, x):
    n, c, h, w = x.shape
    y = x.view(n, c, h // 4, 4, w // 4, 4).permute(0, 2, 4, 1, 3, 5).reshape(n, (h // 4) * (w // 4), c * 16)
    return m.head(torch.tanh(m.mix(y)).mean(1))


@case(image, mix=linear(48, 8), head=linear(8))
def patches_by_unfold(m, x):
    y = x.unfold(2, 4, 4).unfold(3, 4, 4).permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)
    return m.head(torch.tanh(m.mix(y)).mean(1))


@case(image, conv=lambda: nn.Conv2d(3, 8, 4, 4), cls=parameter(1, 1, 8), pos=parameter(1, 5, 8),
      attention=lambda: nn.MultiheadAttention(8, 2, batch_first=True), norm=lambda: nn.LayerNorm(8), head=linear(8))
def small_vit(m, x):
    y = m.conv(x).flatten(2).transpose(1, 2)
    y = torch.cat([m.cls.expand(x.shape[0], -1, -1), y], 1) + m.pos[:, : y.shape[1] + 1]
    z = m.norm(y)
    y = y + m.attention(z, z, z, need_weights=False)[0]
    return m.head(y[:, 0])


def windows(x, size):
    n, h, w, c = x.shape
    return x.view(n, h // size, size, w // size, size, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, size * size, c)


@case(image, mix=linear(3, 12), out=linear(4, 8), head=linear(8))
def shifted_windows(m, x):
    y = torch.roll(m.mix(x.permute(0, 2, 3, 1)), shifts=(-2, -2), dims=(1, 2))
    q, k, v = windows(y, 4).chunk(3, -1)
    z = m.out(F.softmax(q @ k.transpose(-1, -2) / 2, -1) @ v)
    z = z.view(-1, 2, 2, 4, 4, 8).permute(0, 1, 3, 2, 4, 5).reshape(x.shape[0], 8, 8, 8)
    return m.head(torch.roll(z, (2, 2), (1, 2)).mean((1, 2)))


@case(image, head=linear(3 * 4))
def coordinates(m, x):
    n, c, h, w = x.shape
    down = torch.linspace(-1, 1, h, dtype=x.dtype).view(1, 1, h, 1).expand(n, 1, h, w)
    across = torch.arange(w, dtype=x.dtype)[None, None, None].expand(n, 1, h, w) / w
    y = torch.cat([x * down, x * across, x, x.flip(-1)], 1)
    return m.head(y[:, :, 1:-1, 2:].mean((2, 3)))


@case(image, conv=lambda: nn.Conv2d(3, 8, 3, padding=1), head=linear(2))
def pixel_shuffled(m, x):
    y = F.pixel_shuffle(m.conv(x), 2)
    y = F.pad(y, (1, 2, 0, 1))[..., : y.shape[-2], : y.shape[-1]]
    return m.head(y[:, :, ::2].mean((2, 3)))
