"""Functions that keep a tensor's shape, for nets.py: views, elements put elsewhere, types, counts, matrices.

Each works on vectors, images and sequences: it knows the samples' dimension, 0, and the last one.
"""

import torch
from torch.nn import functional as F


def added(function, much=0.3):
    return lambda t: t * 0.7 + much * function(t)


def stepped(function):
    """`function` whose values are few, with a slope: equal numbers would let rounding choose the largest of them."""
    return lambda t: function(t).to(t.dtype) * 0.25 + 0.3 * t


def apart(t):
    """With no two numbers alike in the last dimension, where zeros are many."""
    return t.detach() + torch.arange(t.shape[-1]).to(t.dtype) * 0.01


def order(t):
    return apart(t).argsort(-1)


def bucket(t):
    """A number from 0 to 3 for each element."""
    return (t.detach() > -0.5).long() + (t.detach() > 0.1).long() + (t.detach() > 0.7).long()


def turned_order(t):
    return torch.arange(t.shape[-1] - 1, -1, -1)


def mirrored(t):
    return t.unsqueeze(-1) * t.unsqueeze(-2)


def last_halves(t):
    return t.unflatten(-1, (2, -1))


VIEWS = {
    "halves swapped": lambda t: last_halves(t).swapaxes(-1, -2).flatten(-2),
    "halves turned": lambda t: torch.rot90(last_halves(t), 2, (-2, -1)).flatten(-2),
    "moved": lambda t: t.movedim(0, -1).sin().movedim(-1, 0),
    "expanded": lambda t: t.unsqueeze(1).expand(-1, 2, *t.shape[1:]).sum(1) * 0.5,
    "expanded and flat": lambda t: t.unsqueeze(1).expand(-1, 2, *t.shape[1:]).flatten(0, 1)[::2],
    "repeated": lambda t: t.repeat(*[1] * (t.dim() - 1), 2)[..., 1::2],
    "repeated samples": lambda t: t.repeat(2, *[1] * (t.dim() - 1))[t.shape[0]:],
    "each repeated": lambda t: t.repeat_interleave(2, -1)[..., 1::2] + t.repeat_interleave(2, 1)[:, ::2],
    "tiled": lambda t: t.tile(2)[..., t.shape[-1] // 2:-(t.shape[-1] // 2)],
    "rolled twice": lambda t: t.roll((1, -1), (0, -1)), "rolled flat": lambda t: t.roll(2),
    "diagonal of products": lambda t: torch.diagonal(mirrored(t), 0, -2, -1) * 0.3,
    "on a diagonal": lambda t: torch.diag_embed(t, 1).sum(-2)[..., :-1],
    "lower triangle": lambda t: mirrored(t.tanh()).tril(-1).mean(-1) + t * 0.5,
    "upper triangle": lambda t: mirrored(t.tanh()).triu(1).sum(-2) * 0.2 + t,
    "parts by sizes": lambda t: torch.cat(t.tensor_split(3, -1)[::-1], -1),
    "parts at places": lambda t: torch.cat(t.tensor_split((1, 3), -1)[::-1], -1),
    "flipped samples": lambda t: t.flip(0, -1).sin().flip(0),
    "a slice put": lambda t: torch.slice_scatter(t, t[..., :2].sin(), -1, 2, 4),
    "a column put": lambda t: torch.select_scatter(t, t[..., 0].sin(), -1, -1),
    "a sample put": lambda t: torch.select_scatter(t, t[0].cos(), 0, -1),
    "padded and cut": lambda t: F.pad(t, (2, -2), value=0.5) + F.pad(t, (1, 1))[..., :-2],
    "flat pairs": lambda t: t.reshape(-1, 2).flip(-1).view_as(t) + t.flatten().view(t.shape),
    "squeezed": lambda t: t.unsqueeze(0).unsqueeze(-1).squeeze(-1).squeeze(0).sin(),
    "broadcast": lambda t: torch.broadcast_tensors(t, t[..., -1:])[1].sin() + t,
    "beside": lambda t: torch.hstack([t, t * 0.5])[:, 1::2],
    "below": lambda t: torch.vstack([t, t.sin()])[t.shape[0]:],
    "negative steps": lambda t: torch.cat([t[..., -1:], t[..., -3:-1], t[..., :-3]], -1),
    "every second": lambda t: torch.stack([t[..., ::2], t[..., 1::2].sin()], -1).flatten(-2),
    "matrix turned": lambda t: (t.unsqueeze(-1).tanh() @ t.unsqueeze(-2).tanh()).mT.mean(-1) + t,
    "windows": lambda t: F.pad(t, (2, 0)).unfold(-1, 3, 1).amax(-1), "narrow": lambda t: added_ends(t),
}


def added_ends(t):
    return torch.cat([t.narrow(-1, 1, t.shape[-1] - 1), t.narrow(-1, 0, 1) * 0.5], -1)


def zeros_with(name, *arguments, **options):
    """Zeros with t's elements put where bucket() says."""
    return lambda t: getattr(torch.zeros_like(t), name)(-1, bucket(t), t.sin(), *arguments, **options)


def nearest(t):
    x = t.detach().flatten(1)
    return t[(torch.cdist(x, x) + 1000 * torch.eye(x.shape[0]).to(t.dtype)).argmin(1)]


def of_samples(t):
    return (t.detach().flatten(1)[:, 0] > 0).long()


def pooled_by_group(t):
    groups = of_samples(t)
    return torch.zeros_like(t[:1]).repeat(2, *[1] * (t.dim() - 1)).index_add(0, groups, t)[groups] * 0.3


def largest_of_each(t):
    flat = t.flatten(1)
    chosen = flat[torch.arange(flat.shape[0]), flat.argmax(1)]
    return chosen.view(-1, *[1] * (t.dim() - 1)).expand_as(t)


def best_kept(t):
    places = apart(t).topk(2, -1)[1]
    return torch.zeros_like(t).scatter_(-1, places, t.gather(-1, places).softmax(-1)) * t


def counts_of_buckets(t):
    counts = F.one_hot(bucket(t), 4).sum(-2)
    return counts.gather(-1, bucket(t)).to(t.dtype)


def histogram(t):
    return torch.zeros(4).to(t.dtype).index_add(0, bucket(t).flatten(), torch.ones_like(t).flatten())[bucket(t)]


INDEXED = {
    "index_select": added(lambda t: t.index_select(-1, turned_order(t))),
    "take_along_dim": lambda t: torch.take_along_dim(t, order(t), -1),
    "sorted and back": lambda t: torch.zeros_like(t).scatter(-1, order(t), t.gather(-1, order(t)).cumsum(-1) * 0.3),
    "best kept": added(best_kept), "scatter_add": added(zeros_with("scatter_add")),
    "scatter_reduce mean": added(zeros_with("scatter_reduce", "mean", include_self=False)),
    "scatter_reduce amax": added(zeros_with("scatter_reduce", "amax")),
    "scatter_reduce sum": added(zeros_with("scatter_reduce", "sum", include_self=False)),
    "index_add": added(lambda t: torch.zeros_like(t).index_add(-1, torch.arange(t.shape[-1]) // 2, t)),
    "index_add of samples": added(pooled_by_group),
    "index_copy": lambda t: t.index_copy(-1, torch.tensor([2, 0]), t[..., :2].sin()),
    "index_fill": lambda t: t.index_fill(-1, torch.tensor([1]), 0.2),
    "index_put": lambda t: t.index_put((of_samples(t) % t.shape[0],), t[:1].sin().expand_as(t), accumulate=True) * 0.5,
    "chosen of each": added(largest_of_each), "nearest sample": added(nearest),
    "ranks": stepped(lambda t: order(t).argsort(-1)), "counts": stepped(counts_of_buckets),
    "histogram": stepped(histogram),
    "bucketize": stepped(lambda t: torch.bucketize(t.detach(), torch.tensor([-0.6, 0.1, 0.8]).to(t.dtype))),
    "searchsorted": stepped(lambda t: torch.searchsorted(apart(t).sort(-1)[0], t.detach().sin().contiguous())),
    "kthvalue": added(lambda t: t.kthvalue(2, -1, keepdim=True)[0]),
    "sorted falling": added(lambda t: t.sort(-1, descending=True)[0]),
    "where both": lambda t: torch.where(t > t.mean(0), t, t.flip(-1)),
    "samples sorted": lambda t: t[(t.detach().flatten(1).sum(1)).argsort()].sin(),
    "extremes": added(lambda t: t.amax(-1, keepdim=True) - t.amin(-1, keepdim=True)),
    "diff": added(lambda t: torch.diff(t, dim=-1, prepend=t[..., :1] * 0.5)),
    "diff twice": added(lambda t: torch.diff(t, n=2, dim=-1, append=t[..., :2])),
    "cumprod": lambda t: (1 + 0.2 * t.tanh()).cumprod(-1), "cummin": added(lambda t: t.cummin(-1)[0]),
    "cumsum backwards": added(lambda t: t.flip(-1).cumsum(-1).flip(-1)),
    "trapezoid": added(lambda t: torch.cumulative_trapezoid(F.pad(t, (1, 0)), dim=-1)),
    "put": lambda t: t.put(torch.tensor([0, 3]), torch.tensor([0.5, 0.2]).to(t.dtype)),
    "take": added(lambda t: t.take(torch.tensor([0, 2, 3])).mean()),
    "isin": stepped(lambda t: torch.isin(bucket(t), torch.tensor([0, 3]))),
}


def integers(t):
    return (t.detach() * 4).long()


def cast_and_back(dtype):
    return lambda t: t.to(dtype).to(t.dtype) + 0.1 * t


TYPED = {
    "float64": lambda t: t.double().sin().to(t.dtype) * 0.9, "half": cast_and_back(torch.half),
    "bfloat16": cast_and_back(torch.bfloat16), "int32": stepped(lambda t: integers(t).int() * 2),
    "uint8": stepped(lambda t: bucket(t).to(torch.uint8) + 1), "int8": stepped(lambda t: bucket(t).to(torch.int8) - 2),
    "integers": stepped(lambda t: integers(t) % 3 + integers(t) // 2 - integers(t).abs()),
    "bits": stepped(lambda t: (bucket(t) << 1) ^ (bucket(t) | 1) & 6), "shifted": stepped(lambda t: integers(t) >> 1),
    "bits turned": stepped(lambda t: ~bucket(t) & 5),
    "logic": stepped(lambda t: (t > 0) & ~(t > 0.5) | (t < -1)),
    "logic of floats": stepped(lambda t: torch.logical_xor(t > 0.2, t.sin() > 0)),
    "exclusive": stepped(lambda t: (t > 0.1) ^ (t.flip(-1) > 0.3)),
    "any": stepped(lambda t: (t > 0.5).any(-1, keepdim=True)), "all": stepped(lambda t: (t > -1).all(0, keepdim=True)),
    "where one": lambda t: torch.where(t > 0.3, t, 0.25), "where one first": lambda t: torch.where(t > 0.3, 0.5, t),
    "where two": stepped(lambda t: torch.where(t > 0.3, 2, 3)),
    "where two floats": stepped(lambda t: torch.where(t > 0.3, 0.5, -0.25)),
    "signbit": stepped(torch.signbit), "sgn": stepped(torch.sgn), "isfinite": stepped(torch.isfinite),
    "heaviside": stepped(lambda t: torch.heaviside(t.detach(), torch.tensor(0.5).to(t.dtype))),
    "fmod": lambda t: torch.fmod(t, 0.7), "floor_divide": stepped(lambda t: torch.floor_divide(t.detach(), 0.5)),
    "integers divided": stepped(lambda t: torch.div(integers(t), 2, rounding_mode="trunc")),
    "count over": stepped(lambda t: (t > 0).sum(0, keepdim=True)),
    "count_nonzero": stepped(lambda t: torch.count_nonzero(t > 0.4, -1).unsqueeze(-1)),
    "mean of bools": lambda t: t * (t > 0).to(t.dtype).mean(0, keepdim=True),
    "largest integer": stepped(lambda t: integers(t).amax(-1, keepdim=True).clamp(-2, 3)),
    "clamped by tensors": lambda t: torch.clamp(t, t.detach().mean() - 1, t.detach().mean() + 1),
    "clamped from below": lambda t: t.clamp(min=-0.4), "eq": stepped(lambda t: bucket(t) == bucket(t.flip(-1))),
    "positions": lambda t: t + torch.arange(t.shape[-1]) * 0.5,
    "positions of samples": lambda t: t + (torch.arange(t.shape[0]) % 2).view(-1, *[1] * (t.dim() - 1)),
    "linspace": lambda t: t * torch.linspace(0, 1, 3).to(t.dtype)[1],
    "copysign": lambda t: torch.copysign(t.sin(), t.detach().cos()), "ldexp": lambda t: torch.ldexp(t, bucket(t) - 2),
    "type_as": lambda t: (bucket(t) * 2).type_as(t) * 0.125 + t, "new": lambda t: t + t.new_full((1,), 0.3),
}


def near_diagonal(t):
    """Well conditioned matrices, of distinct singular values."""
    a = t.tanh()
    return torch.diag(torch.arange(t.shape[-1]) + 2).to(t.dtype) + 0.3 * mirrored(a)


def definite_solved(t):
    return torch.cholesky_solve(t.unsqueeze(-1), torch.linalg.cholesky(near_diagonal(t))).squeeze(-1)


def product_in_four(t):
    x = t.flatten(1)[:, :4].tanh()
    heads = x.view(-1, 1, 2, 2) @ torch.stack([x, x * 0.5], 1).view(-1, 2, 2, 2)
    return heads.flatten(1).mean(1).view(-1, *[1] * (t.dim() - 1)) * 0.3 + t


def as_matrices(t):
    return t.tanh().reshape(t.shape[0], -1, t.shape[-1])


MATRICES = {
    "inv": added(lambda t: torch.linalg.inv(near_diagonal(t)).sum(-1)),
    "solve": added(lambda t: torch.linalg.solve(near_diagonal(t), t)
                   if t.dim() == 1 else torch.linalg.solve(near_diagonal(t), t.unsqueeze(-1)).squeeze(-1)),
    "det": added(lambda t: torch.linalg.det(near_diagonal(t) * 0.3).unsqueeze(-1), 0.01),
    "slogdet": added(lambda t: torch.linalg.slogdet(near_diagonal(t))[1].unsqueeze(-1), 0.1),
    "logdet": added(lambda t: torch.logdet(near_diagonal(t)).unsqueeze(-1), 0.1),
    "cholesky": added(lambda t: torch.linalg.cholesky(near_diagonal(t)).sum(-1)),
    "cholesky_solve": added(definite_solved),
    "qr": added(lambda t: torch.linalg.qr(near_diagonal(t))[1].sum(-1), 0.1),
    "svdvals": added(lambda t: torch.linalg.svdvals(near_diagonal(t)), 0.1),
    "eigvalsh": added(lambda t: torch.linalg.eigvalsh(near_diagonal(t)), 0.1),
    "solve_triangular": added(lambda t: torch.linalg.solve_triangular(near_diagonal(t), t.unsqueeze(-1),
                                                                      upper=True)[..., 0]),
    "matrix_exp": added(lambda t: torch.linalg.matrix_exp(mirrored(t.tanh()) * 0.1).sum(-1), 0.1),
    "matrix_power": added(lambda t: torch.linalg.matrix_power(near_diagonal(t) * 0.2, 3).sum(-1), 0.1),
    "pinv": added(lambda t: torch.linalg.pinv(near_diagonal(t)).sum(-2)),
    "trace": lambda t: t * torch.trace(near_diagonal(t.flatten(1).mean(0))) * 0.05,
    "einsum outer": added(lambda t: torch.einsum("...i,...j->...ij", t.tanh(), t.sin()).sum(-1), 0.1),
    "einsum of three": added(lambda t: torch.einsum("n...i,n...j,m...j->n...i", t.tanh(), t.sin(), t.cos()), 0.05),
    "einsum of samples": added(lambda t: torch.einsum("n...i,m...i->nm", t.tanh(), t).softmax(1).mean(1).view(
        -1, *[1] * (t.dim() - 1))),
    "einsum of diagonals": added(lambda t: torch.einsum("...ii->...i", mirrored(t.sin()))),
    "tensordot": added(lambda t: torch.tensordot(mirrored(t.tanh()), t.detach().flatten(0, -2).mean(0), 1), 0.1),
    "outer": lambda t: t * torch.outer(t.flatten(1).mean(0).sin(), t.flatten(1).mean(0)).mean().cos(),
    "bmm": added(lambda t: torch.bmm(as_matrices(t), as_matrices(t).mT).mean((1, 2)).view(-1, *[1] * (t.dim() - 1))),
    "baddbmm": added(lambda t: torch.baddbmm(as_matrices(t), as_matrices(t), mirrored(as_matrices(t).mean(1)),
                                             beta=0.5, alpha=0.2).reshape(t.shape)),
    "addmm": added(lambda t: torch.addmm(t.flatten(1), t.flatten(1).tanh(), mirrored(t.flatten(1).mean(0)), beta=0.3,
                                         alpha=0.01).view(t.shape)),
    "addmv": lambda t: t * torch.addmv(t.flatten(1)[:, 0], t.flatten(1).tanh(), t.flatten(1)[0].sin()).cos().view(
        -1, *[1] * (t.dim() - 1)),
    "addr": lambda t: t + torch.addr(t.flatten(1), t.flatten(1)[:, 0].sin(), t.flatten(1)[0].sin()).view(t.shape) * 0.1,
    "matmul of four": product_in_four,
    "matmul with vector": added(lambda t: (mirrored(t.tanh()) @ t.flatten(0, -2).mean(0)), 0.1),
    "vector with matmul": added(lambda t: (t.flatten(0, -2).mean(0) @ mirrored(t.tanh())), 0.1),
    "distances": added(lambda t: torch.cdist(as_matrices(t), as_matrices(t) + 0.5).mean((1, 2)).view(
        -1, *[1] * (t.dim() - 1))),
    "cross": added(lambda t: torch.linalg.cross(t.unsqueeze(0).expand(3, *t.shape).sin() * torch.arange(1, 4).view(
        -1, *[1] * t.dim()), t.expand(3, *t.shape).cos(), dim=0).sum(0), 0.1),
    "vecdot": added(lambda t: torch.linalg.vecdot(t, t.sin()).unsqueeze(-1)),
    "vector norm": added(lambda t: torch.linalg.vector_norm(t + 0.1, 3, -1, keepdim=True)),
    "matrix norm": added(lambda t: torch.linalg.matrix_norm(mirrored(t) + 1).unsqueeze(-1)),
    "renorm": lambda t: t.renorm(2, 0, 1.5),
    "kron": added(lambda t: torch.kron(t.flatten(1)[:1].sin(), t[:1].flatten(1)[:, :2]).mean()),
    "cov": added(lambda t: torch.cov(t.flatten(1).T).mean(), 0.1),
    "kept norm": lambda t: F.normalize(t.flatten(1), p=1).view(t.shape),
}
SHAPED = VIEWS | INDEXED | TYPED | MATRICES
