"""Buffers that training writes, for nets.py: averages, counters, queues, what an earlier step left behind."""

import torch
from torch.nn import functional as F

SLOTS = 4  # of a queue


def mean(t):
    return t.detach().mean(0)


def average(t, b):
    with torch.no_grad():
        b.lerp_(mean(t), 0.2)
    return t - b


def average_before(t, b):
    before = b.clone()
    b.mul_(0.8).add_(mean(t), alpha=0.2)
    return t + before - b.detach()


def read_and_written(t, b):
    out = t - b
    b.copy_(mean(t))
    return out


def of_step_before(t, b):
    before = b.clone()
    b.copy_(mean(t).sin())
    return t * 0.9 + before


def largest(t, b):
    b.copy_(torch.maximum(b, t.detach().abs().amax(0)))
    return t / (b.clone() + 1)


def slice_written(t, b):
    b[..., 1:] = mean(t)[..., 1:]
    b[..., 0] += 0.5
    return t + b.clone()


def rows_written(t, b):
    b.view(-1, 2).t()[0].add_(mean(t).reshape(-1, 2)[:, 1])
    return t - b.clone() * 0.1


def norm_kept(t, b):
    b.copy_(F.normalize(b + mean(t), dim=-1))
    return t + b.clone()


def with_batch(t, b):
    """As batch norm: what the batch is moved by is the batch's own, the average is for later."""
    middle = t.mean(0)
    b.add_(0.1 * (middle.detach() - b))
    return t - middle


# name -> f(value, a buffer as large as a sample) -> the value after it
LARGE = {
    "average": average, "average before": average_before, "read and written": read_and_written,
    "of the step before": of_step_before, "largest": largest, "slice written": slice_written, "norm kept": norm_kept,
    "rows written": rows_written,
    "with batch": with_batch,
}


def queue(t, b, count):
    row = t.detach().flatten(1).mean(0)
    b.index_copy_(0, (count % SLOTS).view(1), row.unsqueeze(0))
    count.add_(1)
    return t + b.mean().detach()


def queue_by_index(t, b, count):
    b[(count % SLOTS).view(1)] = t.detach().flatten(1).mean(0)
    count += 1
    return t - b.clone().amax() * 0.3


def queue_rolled(t, b, count):
    b.copy_(torch.cat([b[1:], t.detach().flatten(1)[:1]]))
    count += 1
    return t + (t.flatten(1) @ b.t().clone()).softmax(1).to(t.dtype).amax(1).view(-1, *[1] * (t.dim() - 1))


def first_batch(t, b, count):
    """Of the first batch alone."""
    b.copy_(torch.where(count == 0, t.detach().flatten(1)[:SLOTS - 1].mean(0).expand_as(b), b))
    count.fill_(1)
    return t - b[0].mean().clone()


def corrected(t, b, count):
    count.add_(1)
    b.mul_(0.9).add_(t.detach().flatten(1).mean(0), alpha=0.1)
    return t + (b / (1 - 0.9 ** count.to(t.dtype))).mean()


def annealed(t, b, count):
    count += 1
    return t * torch.exp(-0.1 * count.to(t.dtype)) + b.mean()


def every_second(t, b, count):
    count += 1
    return torch.where(count % 2 == 0, t, t * 0.5)


def counts_of_classes(t, b, count):
    b[:, 0].index_add_(0, t.detach().flatten(1)[:, :SLOTS].argmax(1), torch.ones_like(t.detach().flatten(1)[:, 0]))
    count += t.shape[0]
    return t * (1 + b[:, 0].clone().softmax(0)[0])


# name -> f(value, a buffer [SLOTS, numbers of a sample], an integer) -> the value after it
QUEUES = {
    "queue": queue, "queue by index": queue_by_index, "queue rolled": queue_rolled, "first batch": first_batch,
    "corrected": corrected, "annealed": annealed, "every second": every_second, "counts": counts_of_classes,
}

PARTLY = {"slice written", "rows written", "counts", "queue by index"}  # those that write a part of a buffer
