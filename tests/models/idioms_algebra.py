"""Small models that factor and solve matrices, and whose attention shares keys or queries between samples.

As in idioms.py: CASES are trained and compared. Algebra wants matrices of a kind (invertible, positive definite), also
where a part of a model is tried with made-up numbers before any are known."""

import torch
from torch.nn import functional as F

from idioms import D, Idiom, collecting, linear, parameter, sequence

CASES: dict[str, Idiom] = {}
case = collecting(CASES)


def definite(m, x):
    return m.w @ m.w.T + torch.eye(D, dtype=x.dtype)


@case(sequence, w=parameter(D, D), head=linear(D))
def cholesky_of_weights(m, x):
    factor = torch.linalg.cholesky(definite(m, x))
    y = x.mean(1) @ factor
    return m.head(torch.cholesky_solve(y.T, factor).T + y)


@case(sequence, w=parameter(D, D), head=linear(D))
def inverse_of_weights(m, x):
    y = x.mean(1) @ torch.linalg.inv(m.w + 2 * torch.eye(D, dtype=x.dtype))
    return m.head(y + torch.linalg.solve(definite(m, x), y.T).T * torch.logdet(definite(m, x)))


@case(sequence, first=linear(D, D), head=linear(D))
def whitened_batch(m, x):
    y = m.first(x.mean(1))
    factor = torch.linalg.cholesky(y.T @ y / y.shape[0] + torch.eye(D, dtype=x.dtype))
    return m.head(torch.linalg.solve_triangular(factor, y.T, upper=False).T)


@case(sequence, memory=parameter(1, 3, D), head=linear(D))
def keys_for_all_samples(m, x):
    return m.head(F.scaled_dot_product_attention(x, m.memory, m.memory).mean(1))


@case(sequence, latents=parameter(1, 3, D), head=linear(D))
def queries_for_all_samples(m, x):
    return m.head(F.scaled_dot_product_attention(m.latents, x, x).mean(1))


@case(sequence, w=parameter(3, D), head=linear(D))
def attention_without_samples(m, x):
    return m.head(x.mean(1) + F.scaled_dot_product_attention(m.w, m.w.sin(), m.w).sum(0))


@case(sequence, q=parameter(1, 2, 3, D // 2), first=linear(D, D), head=linear(D // 2))
def mask_of_each_sample(m, x):
    k = m.first(x).view(x.shape[0], x.shape[1], 2, D // 2).transpose(1, 2)
    seen = (x.mean(2) > -0.5).unsqueeze(1).unsqueeze(1).expand(-1, 1, 3, -1)
    return m.head(F.scaled_dot_product_attention(m.q, k, k, attn_mask=seen.to(x.dtype)).mean((1, 2)))
