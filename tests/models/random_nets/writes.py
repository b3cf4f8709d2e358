"""Writes in place for nets.py: what is done, and what it goes through."""

import torch
from torch.nn import functional as F

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
    "index_add_": lambda t, w: t.index_add_(-1, torch.tensor([1, 0, 1]), w.expand(*t.shape[:-1], 3)),
    "index_add_ of samples": lambda t, w: t.index_add_(0, torch.tensor([0, 0]), w.expand(2, *t.shape[1:]), alpha=0.5),
    "index_copy_": lambda t, w: t.index_copy_(-1, torch.tensor([2, 0]), w.expand(*t.shape[:-1], 2)),
    "index_fill_": lambda t, w: t.index_fill_(-1, torch.tensor([0]), 0.4),
    "scatter_": lambda t, w: t.scatter_(-1, first_place(t), w.expand_as(t)[..., :1]),
    "scatter_ a number": lambda t, w: t.scatter_(-1, first_place(t), 0.3),
    "scatter_add_": lambda t, w: t.scatter_add_(-1, first_place(t), w.expand_as(t)[..., :1]),
    "where_": lambda t, w: t.copy_(torch.where(t > w, t, w)), "swapped": lambda t, w: t.copy_(t.flip(-1) * w),
    "by a mask": lambda t, w: t.__setitem__(t > 0.5, 0.25), "sub_ itself": lambda t, w: t.sub_(t.detach() * 0.3),
    "div_": lambda t, w: t.div_(w * w + 0.5), "pow_": lambda t, w: t.pow_(2), "cumsum_": lambda t, w: t.cumsum_(-1),
    "first column": lambda t, w: t.__setitem__((..., 0), t[..., 1].clone() * 0.5),
    "round": lambda t, w: t.add_(w).clamp_min_(-0.5),
    "column added": lambda t, w: t[..., -1].add_(w), "addcdiv_": lambda t, w: t.addcdiv_(w, w * w + 1, value=0.3),
    "every second": lambda t, w: t[..., ::2].mul_(w), "first sample": lambda t, w: t[0].fill_(0.5),
    "last sample": lambda t, w: t[-1].mul_(w), "exp_": lambda t, w: t.clamp_(-1, 1).exp_(),
    "rounded": lambda t, w: t.floor_().add_(w),
    "tril_": lambda t, w: t.tril_() if t.dim() > 2 else t.mul_(w), "neg twice": lambda t, w: t.neg_().mul_(w).neg_(),
    "middle": lambda t, w: t.narrow(-1, 2, 2).mul_(0.3),
    "second column": lambda t, w: t.select(-1, 1).copy_(t[..., 0] * 0.5),
    "end": lambda t, w: t[..., 2:].add_(w).relu_(), "hardtanh_": lambda t, w: F.hardtanh(t, -1, 1, inplace=True),
    "copy of a row": lambda t, w: t[-1].copy_(t[0] * 0.5), "broadcast row": lambda t, w: t.copy_(t[:1] * 0.5),
    "dropout_": lambda t, w: F.dropout(t, 0.0, True, inplace=True),
    "threshold_": lambda t, w: F.threshold_(t, 0.1, 0.2),
}


def first_place(t):
    """The place of the largest number in the last dimension."""
    return (t.detach() + torch.arange(t.shape[-1]).to(t.dtype) * 0.01).argmax(-1, keepdim=True)


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


def in_a_loop(t, write):
    out = torch.zeros_like(t)
    for i in range(t.shape[1]):
        out[:, i] = t[:, i] * 0.5
        out[:, i] += t[:, i - 1]
    write(out)
    return out


def into_empty(t, write):
    out = torch.empty_like(t)
    out[:, 1:] = t[:, 1:]
    out[:, 0] = 0.25
    write(out[:, :2])
    return out


def joined(t, write):
    out = torch.cat([t, t * 0.5], 1)
    write(out.narrow(1, 1, t.shape[1]))
    return out[:, ::2]


def stacked(t, write):
    out = torch.stack([t, t.sin()], 1)
    write(out[:, 0])
    return out.sum(1)


def piece_of_three(t, write):
    out = torch.stack([t, t * 0.5, t * 2], -1)
    write(out.movedim(-1, 0)[1])
    return out.mean(-1)


def diagonal(t, write):
    out = t.unsqueeze(-1) * t.unsqueeze(-2)
    write(out.diagonal(0, -2, -1))
    return out.mean(-1)


def view_read_later(t, write):
    """A view made before a write sees it."""
    out = t * 1.0
    early = out.narrow(-1, 1, 2)
    write(out)
    return out + early.sum(-1, keepdim=True) * 0.1


def view_written_first(t, write):
    out = t * 1.0
    kept = out.clone()
    write(out.flip(-1))  # a copy: nobody sees it
    write(out[..., :3])
    return out + kept


def of_complex(t, write):
    out = torch.view_as_real(torch.complex(t, t * 0.5))
    out = out * 1.0
    write(out.select(-1, 0))
    return out.sum(-1)


def saved_for_backward(t, write):
    """What a square needs is a copy's."""
    kept = t * 1.0
    square = kept.clone() ** 2
    write(kept)
    return square * 0.5 + kept


def of_reshaped(t, write):
    out = t * 1.0
    write(out.reshape(-1, t.shape[-1]))
    return out


def of_copied_turned(t, write):
    """Whether reshape copies is how the tensor lies."""
    out = (t * 1.0).transpose(0, -1)
    write(out.reshape(t.shape[-1], -1))
    return out.transpose(0, -1) * 1.0


# What a write goes through: (a value, the write) -> the value after it.
PLACES = {
    "itself": written_through(lambda t: t, False), "a copy": written_through(lambda t: t, True),
    "rows of a copy": written_through(lambda t: t[1:], True),
    "columns": written_through(lambda t: t.narrow(1, 0, 3), False),
    "a view of a copy": written_through(lambda t: t.view(t.shape[0], -1), True), "transposed": written_turned,
    "detached": lambda t, write: written_through(lambda u: u, True)(t.detach(), write),
    "slice of transposed": written_through(lambda t: t.transpose(0, -1)[1:].transpose(0, -1), True),
    "chained": written_through(lambda t: t[1:][..., 1:].unsqueeze(0).squeeze(0), True),
    "every second": written_through(lambda t: t[::2], True),
    "halves": written_through(lambda t: t.unflatten(-1, (2, -1)).transpose(-1, -2).flatten(1), True),
    "moved": written_through(lambda t: t.movedim(-1, 1), True),
    "flat": written_through(lambda t: t.flatten().view(t.shape[0], -1), True),
    "piece": written_through(lambda t: t.tensor_split(2, -1)[0] if t.shape[-1] == 6 else t.tensor_split((3,), -1)[0],
                             True),
    "as it is": written_through(lambda t: t.view_as(t), False),
    "swapped": written_through(lambda t: t.swapaxes(0, 1), True),
    "unfolded": written_through(lambda t: t.unfold(-1, 3, 3).select(-2, 0), True),
    "in a loop": in_a_loop, "into empty": into_empty, "joined": joined, "stacked": stacked,
    "one of three": piece_of_three,
    "diagonal": diagonal, "view read later": view_read_later, "view written first": view_written_first,
    "complex": of_complex, "saved for backward": saved_for_backward, "reshaped": of_reshaped,
    "copied turned": of_copied_turned,
}
