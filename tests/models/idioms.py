"""Small models that cut, join, view, mask and count: the ways in which sizes and positions get into a graph.

Each is a function of a module, which has the parts named beside it, and its inputs; the last lines of the file give
names. CASES are trained and compared; REFUSED must be refused with words, in the ways of exporting named."""

import math
from dataclasses import dataclass
from typing import Callable

import torch
from torch import nn
from torch.nn import functional as F

T, D, CLASSES, VOCABULARY = 9, 6, 5, 50


class Module(nn.Module):
    def __init__(self, function, **parts):
        super().__init__()
        self.function = function
        for name, part in parts.items():
            if isinstance(part, nn.Module | nn.Parameter):
                setattr(self, name, part)
            else:
                self.register_buffer(name, part)

    def forward(self, x, second=None):
        return self.function(self, x) if second is None else self.function(self, x, second)


@dataclass
class Idiom:
    function: Callable
    inputs: Callable[[int], tuple]
    parts: Callable[[], dict]

    def model(self) -> nn.Module:
        return Module(self.function, **self.parts())


def sequence(n):
    return (torch.randn(n, T, D),)


def image(n):
    return (torch.randn(n, 3, 8, 8),)


def tokens(n):
    return (torch.randint(0, VOCABULARY, (n, T)),)


def lengths(n):
    return torch.randn(n, T, D), torch.randint(1, T + 1, (n,))


CASES: dict[str, Idiom] = {}


def collecting(cases: dict[str, Idiom]):
    def case(inputs, **parts):
        """`parts`: functions that make them, so that each model has its own."""

        def add(function):
            cases[function.__name__] = Idiom(function, inputs, lambda: {name: make() for name, make in parts.items()})
            return function

        return add

    return case


case = collecting(CASES)


def linear(i, o=CLASSES):
    return lambda: nn.Linear(i, o)


def parameter(*shape):
    return lambda: nn.Parameter(torch.randn(shape) * 0.3)


# ---- Slices ----


@case(sequence, head=linear(D * 5))
def open_end(m, x):
    return m.head(x[:, 4:].flatten(1))


@case(sequence, head=linear(D * 6))
def open_start(m, x):
    return m.head(x[:, :-3].flatten(1))


@case(sequence, head=linear(D * 4))
def negative_start(m, x):
    return m.head(x[:, -4:].flatten(1))


@case(sequence, head=linear(D * 7))
def end_beyond(m, x):
    return m.head(x[:, 2:100].flatten(1))


@case(sequence, head=linear(D * 5))
def start_far_before(m, x):
    return m.head(x[:, -100:5].flatten(1))


@case(sequence, head=linear(T * 3))
def every_second(m, x):
    return m.head(x[..., ::2].flatten(1))


@case(sequence, head=linear(D * 3))
def every_third(m, x):
    return m.head(x[:, 1::3].flatten(1))


@case(sequence, head=linear(D))
def step_beyond(m, x):
    return m.head(x[:, 3::20].flatten(1))


@case(sequence, head=linear(D))
def step_huge(m, x):
    return m.head(x[:, :: 2**40].flatten(1))


@case(sequence, head=linear(D * 4))
def negative_end_and_step(m, x):
    return m.head(x[:, 1:-1:2].flatten(1))


@case(sequence, head=linear(4 * 3))
def two_slices(m, x):
    return m.head(x[:, -4:, 3:].reshape(x.shape[0], -1))


@case(sequence, first=linear(D, 8), head=linear(D * 8))
def slice_of_activations(m, x):
    h = torch.tanh(m.first(x))
    return m.head(h[:, 3:].flatten(1))


@case(sequence, first=linear(D, 8), head=linear(8))
def single_elements(m, x):
    h = torch.tanh(m.first(x))
    return m.head(h[:, -1] + h[:, 0] * h[:, 3] - h[:, -2])


@case(sequence, head=linear(D))
def new_axes(m, x):
    return m.head((x[:, None] * x[:, :, None])[..., None].sum((1, 2)).squeeze(-1))


@case(sequence, head=linear(D))
def empty_slices(m, x):
    return m.head(torch.cat([x[:, :0], x, x[:, 9:], x[:, 5:2]], 1).mean(1))


@case(sequence, first=linear(D), head=linear(D))
def empty_sum(m, x):
    return m.head(x.mean(1)) + m.first(x[:, 9:]).sum(1)


@case(sequence, head=linear(D))
def whole_slices(m, x):
    return m.head(x[:][:, :][:, :, :][..., :].mean(1))


@case(sequence, first=linear(D), head=linear(D))
def batch_slices(m, x):
    h = m.first(x[: x.shape[0]])[0:]
    return h.mean(1) + m.head(x[:1].mean(1)) - m.head(x[-1:].mean(1))


@case(sequence, head=linear(D))
def narrowed(m, x):
    return m.head(x.narrow(1, -4, 3).narrow(0, 0, x.shape[0]).mean(1))


@case(sequence, head=linear(D))
def split_evenly(m, x):
    a, b, c = x.split(4, 1)
    return m.head(a.mean(1) + b.mean(1) * c.mean(1))


@case(sequence, head=linear(D))
def split_by_sizes(m, x):
    a, b, c = x.split([2, 3, 4], dim=-2)
    return m.head(a.mean(1) + b.mean(1) * c.mean(1))


@case(sequence, head=linear(D))
def chunks(m, x):
    parts = x.chunk(4, dim=1)
    return m.head(sum(p.mean(1) * (i + 1) for i, p in enumerate(parts)))


@case(sequence, head=linear(D))
def tensor_split(m, x):
    return m.head(sum(p.mean(1) * (i + 1) for i, p in enumerate(x.tensor_split(4, dim=1))))


@case(sequence, head=linear(D))
def unbound(m, x):
    h = torch.zeros_like(x[:, 0])
    for part in x.unbind(1):
        h = torch.tanh(h + part)
    return m.head(h)


@case(sequence, head=linear(D))
def two_views_of_a_sample(m, x):
    n = x.shape[0]
    both = torch.cat([x, x.flip(1) * 2], 0)
    a, b = both[:n], both[n:]
    return m.head((a * b).mean(1))


@case(sequence, head=linear(D))
def written_slices(m, x):
    y = x.clone()
    y[:, ::2] = 0.5
    y[:, -1] += 1
    y[..., 2:4] = x[..., :2] * 3
    return m.head(y.mean(1))


@case(sequence, head=linear(D))
def shifted_by_padding(m, x):
    return m.head((F.pad(x, (0, 0, 1, 0))[:, :-1] * x).mean(1))


@case(sequence, head=linear(D))
def shifted_by_joining(m, x):
    return m.head((torch.cat([x[:, :1], x[:, :-1]], 1) * x).mean(1))


@case(sequence, head=linear(D))
def differences(m, x):
    return m.head((x[:, 1:] - x[:, :-1]).abs().mean(1))


@case(sequence, conv=lambda: nn.Conv1d(D, 8, 3, padding=4, dilation=2), head=linear(8))
def causal_convolution(m, x):
    return m.head(torch.relu(m.conv(x.transpose(1, 2))[..., :-4]).mean(-1))


@case(sequence, first=linear(D, 16), head=linear(8))
def gated_halves(m, x):
    h = m.first(x)
    return m.head((h[..., :8] * torch.sigmoid(h[..., 8:])).mean(1))


@case(image, conv=lambda: nn.Conv2d(12, 8, 3), head=linear(8))
def space_to_depth(m, x):
    y = torch.cat([x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]], 1)
    return m.head(torch.relu(m.conv(y)).mean((2, 3)))


# ---- Views ----


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


# ---- Positions and masks ----


@case(sequence, pos=parameter(1, 32, D), head=linear(D))
def positions(m, x):
    return m.head(torch.tanh(x + m.pos[:, : x.shape[1]] + m.pos[:, 1 : x.shape[1] + 1]).mean(1))


@case(sequence, table=lambda: nn.Embedding(32, D), head=linear(D))
def counted_positions(m, x):
    return m.head(torch.tanh(x + m.table(torch.arange(x.shape[1], device=x.device))[None]).mean(1))


@case(tokens, words=lambda: nn.Embedding(VOCABULARY, D), places=lambda: nn.Embedding(32, D), head=linear(D))
def expanded_positions(m, x):
    n, t = x.shape
    ids = torch.arange(0, t, dtype=torch.long).unsqueeze(0).expand(n, t)
    return m.head(torch.tanh(m.words(x) + m.places(ids)).mean(1))


@case(tokens, words=lambda: nn.Embedding(VOCABULARY, D), head=linear(D))
def sinusoids(m, x):
    t = x.shape[1]
    place = torch.arange(t, dtype=m.words.weight.dtype)[:, None]
    rate = torch.exp(torch.arange(0, D, 2, dtype=m.words.weight.dtype) * (-math.log(10000.0) / D))
    code = torch.stack([torch.sin(place * rate), torch.cos(place * rate)], -1).flatten(1)
    return m.head(torch.tanh(m.words(x) + code[None, :t]).mean(1))


@case(sequence, head=linear(D))
def counted_indices(m, x):
    return m.head(x[:, torch.arange(0, 9, 2)].mean(1) + x.index_select(1, torch.arange(3)).mean(1))


@case(lengths, head=linear(D))
def last_by_length(m, x, length):
    return m.head(x[torch.arange(x.shape[0]), length - 1])


@case(lengths, head=linear(D))
def mean_by_length(m, x, length):
    mask = torch.arange(x.shape[1])[None, :] < length[:, None]
    return m.head((x * mask[..., None]).sum(1) / length[:, None])


@case(tokens, words=lambda: nn.Embedding(VOCABULARY, D), head=linear(D))
def padding_mask(m, x):
    mask = (x != 0)[:, None, None, :]
    y = m.words(x)
    scores = (y @ y.transpose(-1, -2)).unsqueeze(1) + (1.0 - mask.to(y.dtype)) * -1e4
    return m.head((F.softmax(scores, -1).squeeze(1) @ y).mean(1))


def attended(x, mask):
    scores = (x @ x.transpose(-1, -2) / math.sqrt(x.shape[-1])).masked_fill(~mask, float("-inf"))
    return F.softmax(scores, -1) @ x


@case(sequence, mix=linear(D, D), head=linear(D))
def causal_by_triangle(m, x):
    t = x.shape[1]
    return m.head(attended(m.mix(x), torch.tril(torch.ones(t, t, dtype=torch.bool))).mean(1))


@case(sequence, mix=linear(D, D), head=linear(D))
def causal_by_counting(m, x):
    i = torch.arange(x.shape[1])
    return m.head(attended(m.mix(x), i[:, None] >= i[None]).mean(1))


@case(sequence, mix=linear(D, D), mask=lambda: torch.tril(torch.ones(1, 32, 32)), head=linear(D))
def causal_by_buffer(m, x):
    t = x.size(1)
    h = m.mix(x)
    scores = (h @ h.transpose(-2, -1)).masked_fill(m.mask[:, :t, :t] == 0, float("-inf"))
    return m.head((F.softmax(scores, -1) @ h).mean(1))


@case(sequence, qkv=linear(D, 24), out=linear(8, 8), head=linear(8))
def attention_by_hand(m, x):
    n, t, _ = x.shape
    q, k, v = m.qkv(x).reshape(n, t, 3, 2, 4).permute(2, 0, 3, 1, 4)
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, t, -1)
    return m.head(m.out(y)[:, -1])


@case(sequence, qkv=linear(D, 24), head=linear(8))
def attention_by_chunks(m, x):
    n, t, _ = x.shape
    q, k, v = (part.view(n, t, 2, 4).transpose(1, 2) for part in m.qkv(x).chunk(3, -1))
    return m.head((F.softmax(q @ k.transpose(-2, -1) * 0.5, -1) @ v).transpose(1, 2).contiguous().view(n, t, 8).mean(1))


@case(sequence, q=linear(D, 8), kv=linear(D, 8), head=linear(8))
def grouped_heads(m, x):
    n, t, _ = x.shape
    q = m.q(x).view(n, t, 4, 2).transpose(1, 2)
    k, v = m.kv(x).view(n, t, 2, 2, 2).unbind(2)
    k, v = (part.transpose(1, 2).repeat_interleave(2, dim=1) for part in (k, v))
    return m.head(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2).mean(1))


def angles(t, d):
    rate = 1.0 / 100 ** (torch.arange(0, d, 2) / d)
    return torch.outer(torch.arange(t), rate)


@case(sequence, mix=linear(D, 16), head=linear(8))
def rotary_halves(m, x):
    a = angles(x.shape[1], 8).to(x.dtype)
    cos, sin = torch.cat([a, a], -1).cos()[None], torch.cat([a, a], -1).sin()[None]
    turned = lambda y: y * cos + torch.cat([-y[..., 4:], y[..., :4]], -1) * sin
    q, k = m.mix(x).chunk(2, -1)
    return m.head((F.softmax(turned(q) @ turned(k).transpose(-1, -2), -1) @ k).mean(1))


@case(sequence, mix=linear(D, 8), table=lambda: angles(32, 8), head=linear(8))
def rotary_pairs(m, x):
    y = m.mix(x)
    a = m.table[: x.shape[1]][None]
    even, odd = y[..., ::2], y[..., 1::2]
    turned = torch.stack([even * a.cos() - odd * a.sin(), even * a.sin() + odd * a.cos()], -1).flatten(-2)
    return m.head((turned * torch.tanh(y)).mean(1))


@case(sequence, mix=linear(D, D), head=linear(D))
def distances_as_bias(m, x):
    i = torch.arange(x.shape[1])
    h = m.mix(x)
    return m.head((F.softmax(h @ h.mT - 0.1 * (i[None] - i[:, None]).abs().to(h.dtype), -1) @ h).mean(1))


@case(sequence, table=parameter(17), mix=linear(D, D), head=linear(D))
def relative_positions(m, x):
    i = torch.arange(x.shape[1])
    h = m.mix(x)
    return m.head((F.softmax(h @ h.mT + m.table[i[None] - i[:, None] + x.shape[1] - 1], -1) @ h).mean(1))


@case(sequence, table=lambda: nn.Embedding(8, 1), mix=linear(D, D), head=linear(D))
def bucketed_positions(m, x):
    i = torch.arange(x.shape[1])
    away = (i[:, None] - i[None]).clamp(min=0)
    far = (torch.log(away.float().clamp(min=1) / 2) / math.log(4) * 4).long().clamp(max=3) + 4
    bias = m.table(torch.where(away < 4, away, far)).squeeze(-1)
    h = m.mix(x)
    return m.head((F.softmax(h @ h.mT + bias, -1) @ h).mean(1))


@case(sequence, cls=parameter(1, 1, D), layer=lambda: nn.TransformerEncoderLayer(D, 2, 8, 0.0, batch_first=True), head=linear(D))
def encoder_with_token(m, x):
    return m.head(m.layer(torch.cat([m.cls.repeat(x.shape[0], 1, 1), x], dim=1))[:, 0])


@case(tokens, words=lambda: nn.Embedding(VOCABULARY, D),
      layer=lambda: nn.TransformerEncoderLayer(D, 2, 8, 0.0, batch_first=True, norm_first=True), head=linear(D))
def encoder_with_mask(m, x):
    mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
    return m.head(m.layer(m.words(x), src_mask=mask.to(m.words.weight.dtype), is_causal=True)[:, -1])


@case(tokens, words=lambda: nn.Embedding(VOCABULARY, D), head=linear(D))
def neighbouring_tokens(m, x):
    same = (x[:, 1:] == x[:, :-1]).to(m.words.weight.dtype)
    return m.head(m.words(x[:, 1:]).mean(1) + m.words(x[:, :-1]).mean(1) * same.mean(1, keepdim=True))


@case(tokens, head=linear(VOCABULARY))
def one_hot(m, x):
    return m.head(F.one_hot(x, VOCABULARY).to(m.head.weight.dtype).mean(1))


@case(tokens, words=lambda: nn.Embedding(64, D), head=linear(D))
def large_integers(m, x):
    """Beyond 2^53, where doubles have gaps."""
    mask = (x + 2**60) == (x // 2 * 2 + 2**60)
    hashed = (x * 6364136223846793005 + 1442695040888963407) % 64
    return m.head((m.words(hashed) * mask[..., None]).mean(1))


@case(tokens, words=lambda: nn.Embedding(VOCABULARY, D), limit=lambda: torch.tensor([2**60 + 1]), head=linear(D))
def large_constants(m, x):
    mask = torch.full((1, T), 2**60, dtype=torch.long) == m.limit
    return m.head(m.words(x).masked_fill(mask[..., None], 7.0).mean(1))


@case(sequence, head=linear(D))
def masked_elements(m, x):
    y = torch.where(x > 0, x, x.new_zeros(()))
    i = torch.arange(x.shape[1])
    return m.head(y.masked_fill((i % 3 == 0)[None, :, None], 0.25).mean(1) + x.gather(1, x.argmax(1, keepdim=True)).squeeze(1))


@case(sequence, norm=lambda: nn.BatchNorm1d(8), first=linear(D, 8), head=linear(8))
def residual_written_in_place(m, x):
    y = m.first(x.mean(1))
    y = m.norm(y) + y  # one kernel, but for what follows
    y[:, :2] = 0.5
    return m.head(y)


@case(sequence, head=linear(D))
def sorted_and_best(m, x):
    return m.head(x.topk(3, dim=1).values.mean(1) + x.sort(1).values[:, ::4].mean(1) + x.gather(1, x.argsort(1)[:, :2]).mean(1))


@case(sequence, cell=lambda: nn.GRUCell(D, 8), head=linear(8))
def loop_over_time(m, x):
    h = x.new_zeros(x.size(0), 8)
    for t in range(x.size(1)):
        h = m.cell(x[:, t], h)
    return m.head(h)


@case(sequence, mix=linear(D, 8), head=linear(8))
def similarity_in_batch(m, x):
    z = F.normalize(m.mix(x).mean(1), dim=-1)
    return m.head(F.softmax(z @ z.t(), -1) @ z)


@case(sequence, head=linear(D))
def branch_on_size(m, x):
    y = x.repeat(1, 2, 1) if x.shape[1] < 16 else x[:, ::2]
    return m.head(y[:, : 2 * x.shape[1] - 1].mean(1))


@case(sequence, head=linear(D))
def pairs_of_triangle(m, x):
    i, j = torch.triu_indices(x.shape[1], x.shape[1], 1)
    return m.head((x[:, i] * x[:, j]).mean(1))


@case(sequence, head=linear(D))
def rounded_sizes(m, x):
    t = x.shape[1]
    cut = int(t * 0.5) + math.ceil(t / 4)
    return m.head(x[:, :cut].mean(1) + x[:, -max(1, t // 4) :].mean(1))


# ---- What cannot be trained: name -> (model, inputs, words of the refusal) ----


def refused(function, **parts):
    return Idiom(function, sequence, lambda: {name: make() for name, make in parts.items()})


def chosen_by_mask(m, x):
    return m.head(x[x > 0].mean() + x.mean(1))


def number_of_data(m, x):
    k = x.argmax().item()
    torch._check(k >= 0)
    return m.head(x.mean(1) * k)


REFUSED = {"chosen_by_mask": (refused(chosen_by_mask, head=linear(D)), "depends on the data"),
           "number_of_data": (refused(number_of_data, head=linear(D)), "idioms.py:")}
