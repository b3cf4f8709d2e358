"""How far rounding alone drives a training run: the measure by which results of other kernels are judged.

Two correct programs that add in another order differ by rounding. How much a model makes of one rounding is its own
matter (batch norm over four numbers multiplies it a thousandfold at every step), and another make of CPU rounds
elsewhere. So no constant is a fair bound. The reference is run again from weights and inputs that are each moved to a
neighbouring number. How far these reruns part from the first run is the noise floor; a result may be off by MULTIPLE
times as much, or by ROUNDINGS of its type where that is more.

A bound above half of the type's digits hides what is computed in a narrower type. Such a case is refused rather than
passed: it needs more samples, larger images, a smaller learning rate or fewer steps.
"""

import math
from dataclasses import dataclass
from itertools import accumulate
from typing import Callable

import torch

RERUNS = 2
MULTIPLE = 32  # a run rounds at every op of every step, a rerun differs only where it begins
ROUNDINGS = 64

Nudge = Callable[[torch.Tensor], torch.Tensor]
Quantity = torch.Tensor | list[float]  # a list: one number per step, each judged by itself


def neighbours(seed: int) -> Nudge:
    """Moves each number to the next one above or below, as coins of `seed` fall. Zeros and integers stay."""
    coins = torch.Generator().manual_seed(seed)

    def nudge(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point():
            return tensor
        far = torch.full_like(tensor, math.inf)
        up = torch.rand(tensor.shape, generator=coins) < 0.5
        return torch.where(tensor == 0, tensor, torch.nextafter(tensor, torch.where(up, far, -far)))

    return nudge


def nudge_module(module: torch.nn.Module, nudge: Nudge) -> None:
    """Replaces the values of every parameter and buffer, in place."""
    with torch.no_grad():
        for tensor in module.state_dict().values():
            tensor.copy_(nudge(tensor))


def apart(found: Quantity, wanted: Quantity) -> list[float]:
    """Relative differences: of each number of a list, of the norm of a tensor."""
    if isinstance(wanted, list):
        return [abs(a - b) / max(abs(b), 1e-30) for a, b in zip(found, wanted, strict=True)]
    norm = wanted.double().norm().item()
    return [(found.double() - wanted.double()).norm().item() / max(norm, 1e-30)]


@dataclass(frozen=True)
class Verdict:
    off: float  # the largest relative difference
    failure: str  # empty where all is within bounds


class NoiseFloor:
    """`follow(nudge)` runs the reference from nudged weights and inputs and returns what it computed, by name."""

    def __init__(self, follow: Callable[[Nudge], dict[str, Quantity]], dtype: torch.dtype):
        self.wanted = follow(lambda tensor: tensor)
        self._rounding = torch.finfo(dtype).eps
        reruns = [follow(neighbours(seed)) for seed in range(RERUNS)]
        self.noise = {}
        for name, wanted in self.wanted.items():
            by_rerun = [apart(rerun[name], wanted) for rerun in reruns]
            # What has parted once stays apart, though two curves may cross again.
            self.noise[name] = list(accumulate((max(step) for step in zip(*by_rerun)), max))

    def judge(self, name: str, found: Quantity) -> Verdict:
        differences = apart(found, self.wanted[name])
        return Verdict(max(differences), next(filter(None, map(self._failure, self.noise[name], differences)), ""))

    def _failure(self, noise: float, off: float) -> str:
        bound = max(MULTIPLE * noise, ROUNDINGS * self._rounding)
        if not bound <= math.sqrt(self._rounding):
            return f"rounding alone moves it by {noise:.1e}, too far to tell anything: the case is badly chosen"
        if not off <= bound:  # so that a NaN fails
            return f"off by {off:.1e}, wanted {bound:.1e} (rounding alone moves it by {noise:.1e})"
        return ""
