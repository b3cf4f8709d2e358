"""Weights that are made of parameters, for nets.py: low ranks, norms, triangles, stacks, views."""

import torch
from torch.nn import functional as F

from ops import FEATURES

N = FEATURES


def spectral(w):
    """Divided by its largest singular value, as power iteration finds it."""
    u = torch.ones(N).to(w.dtype)
    with torch.no_grad():
        for _ in range(3):
            v = F.normalize(w.t() @ u, dim=0)
            u = F.normalize(w @ v, dim=0)
    return w / (u @ w @ v)


def written(w, row):
    out = w.clone()
    out[0] = row
    out[:, 1] += row
    return out


def cayley(w):
    """A rotation."""
    skew, eye = w - w.t(), torch.eye(N).to(w.dtype)
    return torch.linalg.solve(3 * eye + skew, eye - skew)


def scattered(w):
    return torch.zeros(N, N).to(w.dtype).scatter(1, torch.arange(N)[:, None].flip(0), w[:, None])


# name -> (shapes of parameters, the matrix [F, F] that is made of them)
MADE = {
    "itself": ([(N, N)], lambda w: w), "turned": ([(N, N)], lambda w: w.t()),
    "weight norm": ([(N, N), (N, 1)], lambda v, g: g * v / v.norm(dim=1, keepdim=True)),
    "weight norm by PyTorch": ([(N, N), (N, 1)], lambda v, g: torch._weight_norm(v, g, 0)),
    "spectral": ([(N, N)], spectral), "low rank": ([(N, 2), (2, N)], lambda a, b: a @ b),
    "low rank added": ([(N, N), (N, 1), (1, N)], lambda w, a, b: torch.addmm(w, a, b, alpha=0.5)),
    "kron": ([(2, 3), (3, 2)], torch.kron), "tril": ([(N, N)], torch.tril), "triu": ([(N, N)], lambda w: w.triu(1)),
    "symmetric": ([(N, N)], lambda w: w.tril() + w.tril(-1).t()), "softmax": ([(N, N)], lambda w: w.softmax(-1)),
    "softmax of columns": ([(N, N)], lambda w: w.softmax(0)), "normed": ([(N, N)], lambda w: F.normalize(w, dim=1)),
    "stacked": ([(N,)] * 3, lambda a, b, c: torch.stack([a, b, c, a, b * 2, c.sin()])),
    "joined": ([(2, N), (4, N)], lambda a, b: torch.cat([a, b])),
    "joined in columns": ([(N, 2), (N, 4)], lambda a, b: torch.cat([b, a], 1)),
    "viewed": ([(N * N,)], lambda w: w.view(N, N)), "unflattened": ([(2, 3, N)], lambda w: w.flatten(0, 1)),
    "permuted": ([(N, 2, 3)], lambda w: w.permute(1, 2, 0).reshape(N, N)),
    "expanded": ([(N, 1)], lambda w: w.expand(N, N)), "expanded rows": ([(1, N)], lambda w: w.expand(N, -1)),
    "expanded number": ([()], lambda w: w.expand(N, N)),
    "sliced": ([(8, 9)], lambda w: w[1:7, ::2][:, :N].repeat(1, 2)[:, :N]),
    "row of three": ([(3, N, N)], lambda w: w[1]), "mean of three": ([(3, N, N)], lambda w: w.mean(0)),
    "mixture": ([(3, N, N), (3,)], lambda w, a: torch.einsum("k,kij->ij", a.softmax(0), w)),
    "diagonal": ([(N,)], torch.diag), "diagonal added": ([(N, N), (N,)], lambda w, d: w + torch.diag_embed(d)),
    "outer": ([(N,), (N,)], torch.outer), "written": ([(N, N), (N,)], written),
    "cayley": ([(N, N)], cayley),
    "masked": ([(N, N)], lambda w: w * torch.ones(N, N).tril().to(w.dtype)),
    "masked_fill": ([(N, N)], lambda w: w.masked_fill(torch.ones(N, N).triu(1).bool(), 0.1)),
    "sign straight through": ([(N, N)], lambda w: w + (w.sign() * w.abs().mean() - w).detach()),
    "sparse": ([(N, N)], lambda w: w * (w.abs() > w.abs().mean()).to(w.dtype)),
    "rounded": ([(N, N)], lambda w: w + ((w * 8).round() / 8 - w).detach()),
    "gathered": ([(4, N)], lambda w: w[torch.tensor([0, 3, 1, 2, 0, 1])]),
    "repeated": ([(3, 2)], lambda w: w.repeat(2, 3)),
    "repeat_interleave": ([(N, 2)], lambda w: w.repeat_interleave(3, 1)), "rolled": ([(N, N)], lambda w: w.roll(1, 0)),
    "toeplitz": ([(2 * N - 1,)], lambda w: w[torch.arange(N)[:, None] - torch.arange(N) + N - 1]),
    "toeplitz by unfold": ([(2 * N - 1,)], lambda w: w.unfold(0, N, 1)), "flip": ([(N, N)], lambda w: w.flip(0)),
    "centred": ([(N, N)], lambda w: (w - w.mean(1, keepdim=True)) / (w.var(1, keepdim=True) + 0.1).sqrt()),
    "scattered": ([(N,)], scattered),
    "block": ([(2, 2), (4, 4)], lambda a, b: torch.block_diag(a, b)),
    "detached half": ([(N, N)], lambda w: (w + w.detach()) / 2),
    "unbound": ([(2, N, N)], lambda w: (lambda a, b: a * b.sigmoid())(*w.unbind(0))),
    "chosen": ([(4, N, N), (4,)], lambda w, a: w[a.argmax().view(1)][0] * a.max()),
    "square": ([(N, N)], lambda w: w @ w),
    "inverse": ([(N, N)], lambda w: torch.linalg.inv(w @ w.t() + 2 * torch.eye(N).to(w.dtype))),
}

# name -> what is made of vectors or sequences and a matrix [F, F]
USES = {
    "linear": lambda t, w: F.linear(t, w), "linear with bias": lambda t, w: F.linear(t, w, w[0]),
    "@": lambda t, w: t @ w, "@ turned": lambda t, w: t @ w.mT,
    "einsum": lambda t, w: torch.einsum("...f,gf->...g", t, w),
    "row": lambda t, w: t + w[t.argmax(-1)], "embedding": lambda t, w: t + F.embedding(t.argmin(-1), w),
    "distance": lambda t, w: torch.cdist(t, w), "tied twice": lambda t, w: F.linear(torch.tanh(F.linear(t, w)), w.t()),
    "linear and row": lambda t, w: F.linear(t, w) + w[t.argmax(-1)],
    "addmm": lambda t, w: torch.tensordot(t, w, ([-1], [1])) + w[1],
    "bilinear": lambda t, w: t + 0.1 * F.bilinear(t, t.tanh(), w.unsqueeze(0).expand(N, N, N)),
    "bmm": lambda t, w: torch.matmul(t.unsqueeze(-2), w).squeeze(-2),
    "scores": lambda t, w: (t @ w.t()).softmax(-1) @ w,
    "scaled": lambda t, w: t * w.diagonal() + w.mean(),
    "conv1d": lambda t, w: F.conv1d(t.reshape(-1, FEATURES, 1), w.unsqueeze(-1)).view(t.shape),
    "layer_norm": lambda t, w: F.layer_norm(t, (FEATURES,), w[0], w[1]), "prelu": lambda t, w: F.prelu(t, w[0, :1]),
    "multi": lambda t, w: torch.linalg.multi_dot([t.reshape(-1, FEATURES), w, w]).view(t.shape),
    "per sample": lambda t, w: (w * t.unsqueeze(-2).tanh()).sum(-1),
}


def filters(w, *shape):
    """The first numbers of [F, F] as a filter."""
    count = torch.Size(shape).numel()
    return w.reshape(-1)[:count].view(shape)


def demodulated(x, w):
    """Filters of each sample's own (StyleGAN 2)."""
    scales = x.mean((2, 3)).sigmoid().view(-1, 1, 3, 1, 1)
    own = (filters(w, 3, 3, 1, 1) * scales).flatten(0, 1)
    return F.conv2d(x.reshape(1, -1, 4, 4), own, groups=x.shape[0]).view_as(x)


# name -> what is made of images and a matrix [F, F]
CONVOLUTIONS = {
    "1x1": lambda x, w: F.conv2d(x, w[:3, :3].unflatten(1, (3, 1)).unsqueeze(-1)),
    "depthwise": lambda x, w: F.conv2d(x, filters(w, 3, 1, 3, 3), padding=1, groups=3),
    "one for all": lambda x, w: F.conv2d(x, filters(w, 1, 1, 3, 3).expand(3, 1, 3, 3), w[0, :3], padding=1, groups=3),
    "strided": lambda x, w: F.conv2d(x, filters(w, 3, 3, 2, 2), stride=2).repeat_interleave(2, -1).repeat(1, 1, 2, 1),
    "dilated": lambda x, w: F.conv2d(x, filters(w, 3, 1, 3, 3), padding=2, dilation=2, groups=3),
    "asymmetric": lambda x, w: F.conv2d(F.pad(x, (0, 2, 1, 0)), filters(w, 3, 3, 2, 1)[:, :, :, :1])[..., :4],
    "transposed": lambda x, w: F.conv_transpose2d(x[:, :, ::2, ::2], filters(w, 3, 3, 2, 2), stride=2),
    "output_padding": lambda x, w: F.conv_transpose2d(x[:, :, :2, :2], filters(w, 3, 3, 1, 1), stride=2,
                                                      output_padding=1),
    "unfold": lambda x, w: (filters(w, 3, 12) @ F.unfold(x, 2, stride=2)).view(-1, 3, 2, 2).repeat(1, 1, 2, 2),
    "einsum": lambda x, w: torch.einsum("nchw,dc->ndhw", x, w[:3, :3]),
    "conv1d": lambda x, w: F.conv1d(x.flatten(2), filters(w, 3, 3, 3), padding=1).view_as(x),
    "batch norm": lambda x, w: F.batch_norm(x, None, None, w[0, :3], w[1, :3], training=True),
    "group norm": lambda x, w: F.group_norm(x, 3, w[0, :3], w[1, :3]),
    "instance norm": lambda x, w: F.instance_norm(x, weight=w[0, :3], bias=w[1, :3]),
    "demodulated": demodulated,
}
