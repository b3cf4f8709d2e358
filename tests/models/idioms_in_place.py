"""Small models that write tensors in place while others still see them, and that return tensors under no_grad.

As in idioms.py: CASES are trained and compared. Whether a write is seen follows from what is a view and what is a copy,
and that from how images lie in memory: each way to run has a layout of its own."""

import torch
from torch import nn
from torch.nn import functional as F

from idioms import D, VOCABULARY, Idiom, collecting, image, linear, parameter, sequence, tokens

CASES: dict[str, Idiom] = {}
case = collecting(CASES)
conv = lambda: nn.Conv2d(3, 3, 3, padding=1)


def frozen(part):
    return lambda: part().requires_grad_(False)


def halves(*shape):
    return lambda: nn.Parameter(torch.full(shape, 0.5))


# ---- What slots share is written before, or behind, what differs between them ----


@case(sequence, w=halves(D), head=linear(D))
def copy_kept_from_before_a_write(m, x):
    z = x.mean(1) * 2.0
    t = z.clone()
    z.relu_()
    t.mul_(m.w)
    return m.head(t + z)


@case(sequence, w=halves(3), head=linear(D))
def view_read_before_a_write(m, x):
    z = x.mean(1) * 2.0
    u = z[:, :3] + m.w
    z.relu_()
    return m.head(z + u.sum(1, keepdim=True))


@case(sequence, w=halves(D), head=linear(D))
def input_read_before_a_write(m, x):
    x = x.mean(1)
    u = x + m.w
    x.clamp_(-0.1, 0.1)
    return m.head(x + u)


@case(sequence, w=halves(D), head=linear(D))
def input_itself_written(m, x):
    u = (x + m.w).mean(1)
    x.mul_(2.0)
    return m.head(x.mean(1) + u)


@case(sequence, w=halves(D), head=linear(D))
def sums_written_twice(m, x):
    x = x.mean(1)
    t = torch.zeros(D, dtype=x.dtype)
    t.add_(x.mean(0))
    y = x * m.w + t
    t.mul_(2.0)
    return m.head(y + t)


@case(sequence, w=halves(D), head=linear(D))
def copy_into_empty(m, x):
    z = x.mean(1) * 2.0
    e = torch.empty_like(z)
    e.copy_(z)
    z.clamp_(-1, 1)
    e *= m.w
    return m.head(e + z)


@case(sequence, w=halves(D), head=linear(D))
def list_of_states(m, x):
    z = F.normalize(x.mean(1), dim=1)
    out = [z.clone()]
    z.abs_()
    out.append(z * 1.0)
    out[0].add_(m.w)
    return m.head(out[0] + out[1])


# ---- Views of images that are written ----


@case(image, conv=conv, w=halves(), head=linear(3))
def copy_written_by_a_flat_view(m, x):
    y = m.conv(x).clone()
    y.view(y.shape[0], -1)[:, 5:20].mul_(m.w)
    return m.head(y.mean((2, 3)))


@case(image, conv=conv, w=halves(), head=linear(3))
def image_written_by_a_flat_view(m, x):
    y = m.conv(x) * 1.0
    y.view(y.shape[0], -1).mul_(m.w)
    return m.head(y.mean((2, 3)))


@case(image, conv=conv, w=halves(), head=linear(3))
def convolution_written_by_rows(m, x):
    y = m.conv(x)
    y.view(-1, 64)[:, 3:9].mul_(m.w)
    return m.head(y.mean((2, 3)))


@case(image, conv=conv, w=halves(), head=linear(3))
def erfc_written_by_flatten(m, x):
    y = torch.erfc(m.conv(x))
    y.flatten(1).mul_(m.w)
    return m.head(y.mean((2, 3)))


@case(image, conv=conv, w=halves(3), head=linear(6))
def channels_last_copy_written(m, x):
    q = m.conv(x) * 1.0
    y = q.permute(0, 2, 3, 1).contiguous()
    y.mul_(m.w)
    return m.head(torch.cat([y.mean((1, 2)), q.mean((2, 3))], 1))


@case(image, conv=conv, w=halves(3), head=linear(6))
def tokens_of_an_image_written(m, x):
    q = m.conv(x)
    y = q.permute(0, 2, 3, 1).reshape(-1, 3)
    y.add_(1.0)
    y = (y * m.w).view(x.shape[0], 64, 3).mean(1)
    return m.head(torch.cat([y, q.mean((2, 3))], 1))


@case(image, conv=conv, w=halves(), head=linear(6))
def other_memory_format_written(m, x):
    q = m.conv(x)
    y = q.contiguous(memory_format=torch.channels_last)
    y.mul_(m.w)
    z = q.to(memory_format=torch.channels_last)
    z.add_(1.0)
    return m.head(torch.cat([(y + z * m.w).mean((2, 3)), q.mean((2, 3))], 1))


@case(sequence, first=linear(D, D), w=halves(), head=linear(D))
def layer_written_by_a_flat_view(m, x):
    y = m.first(x)
    y.view(-1).mul_(m.w)
    return m.head(y.mean(1))


# ---- Returned under no_grad ----


@case(sequence, first=linear(D, D), w=parameter(D), head=linear(D))
def own_input_under_no_grad(m, x):
    """Nothing is called that could be recorded: the gradient goes through."""
    y = m.first(x.mean(1))
    with torch.no_grad():
        same = [y.to(y.dtype), y.type_as(x), y.flatten(1), F.dropout(y, 0.5, training=False), torch.atleast_2d(y)]
    return m.head(sum(same) * m.w)


@case(sequence, first=linear(D, D), w=parameter(D), head=linear(D))
def views_under_no_grad(m, x):
    y = m.first(x.mean(1))
    with torch.no_grad():
        cut = [y.view(-1, D), y[:, :], y.reshape(-1, D), y.clone()]
    return m.head(sum(cut) * m.w)


# ---- Norms of what needs no gradient ----


@case(image, conv=frozen(conv), norm=lambda: nn.GroupNorm(3, 3), head=linear(3))
def group_norm_behind_frozen_layers(m, x):
    return m.head(m.norm(m.conv(x)).mean((2, 3)))


@case(image, norm=lambda: nn.GroupNorm(3, 3), head=linear(3))
def group_norm_of_the_input(m, x):
    y = m.norm(x).clone()
    y[:, :, 0].zero_()
    return m.head(y.mean((2, 3)))


# ---- Returned by ops whose schemas do not say that they return their input, and written ----


@case(sequence, w=halves(D), head=linear(D))
def input_written_by_type_as(m, x):
    y = x.mean(1).type_as(m.w)
    z = x.type_as(m.w)
    z.add_(1.0)
    return m.head(x.mean(1) * m.w + y)


@case(sequence, w=halves(D), head=linear(D))
def written_behind_dropout_that_is_off(m, x):
    t = F.relu(x.mean(1))
    u = t + m.w
    y = F.dropout(t, 0.0)
    y.add_(1.0)
    return m.head(u + t)


@case(sequence, w=halves(D), head=linear(D))
def written_behind_dropout_in_evaluation(m, x):
    x = x.mean(1) * 1.0
    y = F.dropout(x, 0.0, training=m.training)
    y.add_(1.0)
    return m.head(x * m.w)


@case(sequence, first=linear(D, D), w=halves(D), head=linear(D))
def written_behind_einsum(m, x):
    t = m.first(x.mean(1)) * 1.0
    y = torch.einsum("nf->fn", t)
    y.mul_(2.0)
    return m.head(t * m.w)


# ---- Tensors that do not lie row-major in PyTorch, and are written ----


@case(image, w=halves(8), head=linear(3))
def transposed_layout_is_kept(m, x):
    t = F.relu(x.transpose(2, 3) * m.w)
    t.flatten(1).add_(1.0)  # of a copy
    return m.head((t * m.w).mean((2, 3)))


@case(image, conv=conv, w=halves(), head=linear(3))
def channels_last_in_pytorch(m, x):
    t = m.conv(x.contiguous(memory_format=torch.channels_last))
    t.flatten(1).add_(1.0)  # of a copy
    v = t.clone(memory_format=torch.channels_last)
    v.permute(0, 2, 3, 1).view(-1, 3)[:, 0].zero_()
    return m.head((t * m.w + v).mean((2, 3)))


# ---- Written under no_grad: the gradient goes by ----


@case(sequence, first=linear(D, D), head=linear(D))
def scaled_under_no_grad(m, x):
    t = m.first(x.mean(1))
    with torch.no_grad():
        t.mul_(0.5).clamp_(-1, 1)
    return m.head(t)


@case(sequence, first=linear(D, D), head=linear(D))
def rounded_under_no_grad(m, x):
    t = m.first(x.mean(1)) * 3.0
    with torch.no_grad():
        t.copy_(t.round())
        F.relu(t, inplace=True)
    return m.head(t)


@case(sequence, first=linear(D, D), head=linear(D))
def broadcast_under_no_grad(m, x):
    t = m.first(x.mean(1))
    with torch.no_grad():
        error = F.smooth_l1_loss(t, t.tanh(), reduction="none")
        same, wide = torch.broadcast_tensors(t, m.first.bias)
    return m.head(t + error + same * wide)


@case(sequence, first=linear(D, D), head=linear(D))
def views_and_sums_under_no_grad(m, x):
    t = m.first(x.mean(1))
    with torch.no_grad():
        a, b = torch.einsum("nd->nd", t), torch.einsum("nd->dn", t)
        c, d = torch.atleast_2d(t, m.first.bias)
    return m.head(t + a * b.t() + torch.special.i0(0.2 * c * d))


@case(sequence, w=halves(D), first=linear(D, D), head=linear(D))
def made_under_no_grad_and_written(m, x):
    t = m.first(x.mean(1))
    with torch.no_grad():
        a, b, c = t.frac(), torch.cummax(t, 1)[0], torch.special.i0e(t)
    for made in (a, b, c):
        made.mul_(m.w)
    return m.head(a + b + c + t.sum(1, keepdim=True))


# ---- Copies of what is repeated ----


@case(sequence, first=linear(D, D), head=linear(3 * D))
def repeated_and_copied(m, x):
    t = x.mean(1).unsqueeze(1).expand(-1, 3, -1) * 1.5
    y, u = m.first(t), t.clone()
    u.view(u.shape[0], -1).masked_fill_(u.flatten(1) > 0.5, 0.1)
    return m.head((y + u).flatten(1))


# ---- A table whose rows are shortened as they are looked up, in evaluation, too ----


@case(tokens, table=lambda: nn.Embedding(VOCABULARY, D, max_norm=0.9), head=linear(D))
def table_of_a_norm(m, ids):
    return m.head(m.table(ids).mean(1))


# ---- Amid the writes of one value: others that are made of its shape, or of nothing but constants ----


@case(sequence, first=linear(D, D), head=linear(9 * D))
def states_of_a_loop_written(m, x):
    out, h = torch.zeros_like(x), torch.zeros_like(x[:, 0])
    for t in range(x.shape[1]):
        h = torch.tanh(m.first(x[:, t] + h))
        out[:, t] = h
    return m.head(out.flatten(1))


@case(sequence, first=linear(D, D), head=linear(9 * D))
def mask_written_amid_writes(m, x):
    out, mask = x * 1, torch.zeros(D)
    mask[0] = 1.0
    out[:, 0] = m.first(x[:, 0]) * mask.to(x.dtype)
    return m.head(out.flatten(1))


# ---- Buffers that are written ----


@case(sequence, norm=lambda: nn.BatchNorm1d(D), first=linear(D, D), head=linear(D))
def statistics_of_the_batch_before(m, x):
    before = m.norm.running_mean.clone() + m.norm.running_var.to(x.dtype, copy=True)
    spread = m.norm.running_mean.view(1, D).expand(2, D).contiguous().mean(0)
    return m.head(m.norm(m.first(x.mean(1))) - before - spread)


@case(sequence, seen=lambda: torch.zeros(()), first=linear(D, D), second=linear(3, 3), head=linear(3))
def statistic_of_a_slice(m, x):
    part = m.first(x.mean(1)).tanh()[:, :3]
    y = m.second(part)
    with torch.no_grad():
        m.seen.mul_(0.8).add_(part.mean(), alpha=0.2)
    return m.head(y)


@case(sequence, count=lambda: torch.zeros((), dtype=torch.long), scale=lambda: torch.ones(D), first=linear(D, D), head=linear(D))
def counted_and_divided_by(m, x):
    m.count += 1
    m.scale += 0.5
    return m.head(m.first(x.mean(1)) / m.count * m.scale)
