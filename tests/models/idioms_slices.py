"""Small models that cut tensors, join them and pad them.

As in idioms.py: CASES are trained and compared."""

import torch
from torch import nn
from torch.nn import functional as F

from idioms import D, T, Idiom, collecting, image, linear, sequence

CASES: dict[str, Idiom] = {}
case = collecting(CASES)


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
