"""Layers of sequences [N, T, F] for nets.py: name -> what makes one by a random.Random."""

import torch
from torch import nn
from torch.nn import functional as F

from modules import Function, a_table, checkpointed, tied, with_layer
from ops import FEATURES, LENGTH

torch.backends.mha.set_fastpath_enabled(False)  # in evaluation PyTorch would run another attention than it exported


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


def over_time(x, layer):
    return layer(x.transpose(1, 2)).transpose(1, 2)


def cells(kind):
    """A cell over the steps."""
    def run(x, cell):
        state = (x[:, 0] * 0, x[:, 1] * 0.1) if kind is nn.LSTMCell else x[:, 0] * 0
        out = []
        for t in range(x.shape[1]):
            state = cell(x[:, t], state)
            out.append(state[0] if kind is nn.LSTMCell else state)
        return torch.stack(out, 1)
    return lambda r: Function(run, kind(FEATURES, FEATURES))


def cell_written(x, cell):
    """A loop that writes what it makes into one tensor."""
    out, h = torch.zeros_like(x), torch.zeros_like(x[:, 0])
    for t in range(x.shape[1]):
        h = torch.tanh(cell(torch.cat([x[:, t], h], -1)))
        out[:, t] = h
    return out


def recurrent(r, *sizes, **options):
    return r.choice([nn.LSTM, nn.GRU, nn.RNN])(*sizes, **options)


def both_ways(r):
    return recurrent(r, FEATURES, FEATURES // 2, r.choice([1, 2]), bidirectional=True, batch_first=True)


def deep(r):
    return recurrent(r, FEATURES, FEATURES, 2, batch_first=r.random() < 0.5, bias=r.random() < 0.7)


def projected(r):
    if r.random() < 0.5:
        return nn.LSTM(FEATURES, 4, proj_size=FEATURES // 2, bidirectional=True, batch_first=True)
    return nn.LSTM(FEATURES, 8, proj_size=FEATURES, batch_first=True)


def with_last_state(x, layer):
    return layer(x)[0] + layer(x.flip(1))[1][0].mean() * 0.1


def with_state(x, layer):
    h = x.mean(1).unsqueeze(0).tanh().contiguous()
    return layer(x, h)[0]


def heads(r):
    layer = nn.MultiheadAttention(FEATURES, r.choice([1, 2, 3]), bias=r.random() < 0.7, batch_first=True,
                                  add_bias_kv=r.random() < 0.2, add_zero_attn=r.random() < 0.2)
    needed, causal = r.random() < 0.5, r.random() < 0.4

    def run(x, layer):
        mask = torch.ones(LENGTH, LENGTH).triu(1).bool() if causal else None
        out, weights = layer(x, x, x.flip(1), need_weights=needed, attn_mask=mask)
        return out if weights is None else out + weights.mean()
    return Function(run, layer)


def a_block(kind, r):
    return kind(FEATURES, 2, 8, dropout=0.0, activation=r.choice(["relu", "gelu"]), batch_first=True,
                norm_first=r.random() < 0.5)


def encoder(r):
    layer = a_block(nn.TransformerEncoderLayer, r)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False) if r.random() < 0.4 else layer


def decoded(x, layer):
    mask = nn.Transformer.generate_square_subsequent_mask(LENGTH).to(x.dtype)
    return layer(x, x.flip(1), tgt_is_causal=True, tgt_mask=mask)


def with_positions(x, table):
    return x + table(torch.arange(x.shape[1]))


def with_distances(x, table):
    distances = torch.arange(LENGTH)[:, None] - torch.arange(LENGTH) + LENGTH
    return ((x @ x.mT) * 0.3 + table.weight.mean(1)[distances]).softmax(-1) @ x


def pooled(x):
    return F.interpolate(F.max_pool1d(x, 2, ceil_mode=True), size=LENGTH, mode="linear")


def repeated_means(x):
    return x + F.adaptive_avg_pool1d(x, 2).repeat_interleave(2, -1)[..., :LENGTH]


def strided_and_back(r):
    back = nn.ConvTranspose1d(4, FEATURES, 3, stride=2, padding=1)
    return nn.Sequential(nn.Conv1d(FEATURES, 4, 2, stride=2, padding=1), back)


def channels_first(make):
    return with_layer(over_time, make)


def function_over_time(function):
    return channels_first(lambda r: Function(function))


def causal(x, layer):
    return layer(F.pad(x, (2, 0)))


def a_conv(size, **options):
    return lambda r: nn.Conv1d(FEATURES, FEATURES, size, **options)


def dilated(r):
    return nn.Conv1d(FEATURES, FEATURES, 2, padding="same", dilation=2, groups=r.choice([1, 2, 6]))


SEQUENCES = {
    "linear": lambda r: nn.Linear(FEATURES, FEATURES, bias=r.random() < 0.7),
    "layer norm": lambda r: nn.LayerNorm(FEATURES), "rms norm": lambda r: nn.RMSNorm(FEATURES),
    "layer norm of all": lambda r: nn.LayerNorm([LENGTH, FEATURES]),
    "lstm": lambda r: Recurrent(nn.LSTM, r.random() < 0.5), "gru": lambda r: Recurrent(nn.GRU, r.random() < 0.5),
    "both ways": with_layer(lambda x, layer: layer(x)[0], both_ways), "deep": with_layer(with_last_state, deep),
    "projected": with_layer(lambda x, layer: layer(x)[0], projected),
    "with state": with_layer(with_state, lambda r: nn.GRU(FEATURES, FEATURES, batch_first=True)),
    "relu rnn": with_layer(with_state, lambda r: nn.RNN(FEATURES, FEATURES, nonlinearity="relu", batch_first=True)),
    "time first": with_layer(lambda x, layer: layer(x.transpose(0, 1))[0].transpose(0, 1),
                             lambda r: nn.GRU(FEATURES, FEATURES)),
    "gru cells": cells(nn.GRUCell), "lstm cells": cells(nn.LSTMCell), "rnn cells": cells(nn.RNNCell),
    "written cells": with_layer(cell_written, lambda r: nn.Linear(2 * FEATURES, FEATURES)),
    "attention": lambda r: Attention(r.random() < 0.5), "heads": heads, "encoder": encoder,
    "decoder": with_layer(decoded, lambda r: a_block(nn.TransformerDecoderLayer, r)),
    "checkpoint": checkpointed(lambda r: a_block(nn.TransformerEncoderLayer, r)),
    "positions": with_layer(with_positions, lambda r: nn.Embedding(LENGTH + 1, FEATURES, padding_idx=0)),
    "relative": with_layer(with_distances, lambda r: nn.Embedding(2 * LENGTH, 2)), "tied": with_layer(tied, a_table()),
    "bag": with_layer(lambda x, table: x + table(x.mean(-1).argsort(-1)).unsqueeze(1),
                      lambda r: nn.EmbeddingBag(LENGTH, FEATURES, mode="mean")),
    "over time": channels_first(a_conv(3, padding=1)), "dilated": channels_first(dilated),
    "causal": channels_first(with_layer(causal, a_conv(3))), "strided and back": channels_first(strided_and_back),
    "linear of time": channels_first(lambda r: nn.Linear(LENGTH, LENGTH)),
    "group norm": channels_first(lambda r: nn.GroupNorm(r.choice([1, 2]), FEATURES)),
    "batch norm": channels_first(lambda r: nn.BatchNorm1d(FEATURES, affine=r.random() < 0.5)),
    "instance norm": channels_first(lambda r: nn.InstanceNorm1d(FEATURES, affine=r.random() < 0.5)),
    "pooled": function_over_time(pooled), "repeated means": function_over_time(repeated_means),
    "lp_pool": function_over_time(lambda x: F.lp_pool1d(x + 2, 2, 3, stride=1).expand_as(x)),
}
