"""Small models that count positions, mask them, and attend; and what cannot be trained.

As in idioms.py: CASES are trained and compared, REFUSED must be refused with words."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from idioms import D, T, VOCABULARY, Idiom, collecting, lengths, linear, parameter, sequence, tokens

CASES: dict[str, Idiom] = {}
case = collecting(CASES)


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
