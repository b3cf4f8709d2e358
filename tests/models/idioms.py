"""What the small models of idioms_*.py are made of.

Each is a function of a module, which has the parts named beside it, and its inputs. Each file collects its models in
CASES, which are trained and compared, and may have REFUSED, which must be refused with words."""

from dataclasses import dataclass
from typing import Callable

import torch
from torch import nn

T, D, CLASSES, VOCABULARY = 9, 6, 5, 50


class Module(nn.Module):
    def __init__(self, function, **parts):
        super().__init__()
        self.function = function
        for name, part in parts.items():
            if isinstance(part, nn.Module | nn.Parameter):
                setattr(self, name, part)
            else:
                self.register_buffer(name, part)

    def forward(self, x, second=None):
        return self.function(self, x) if second is None else self.function(self, x, second)


@dataclass
class Idiom:
    function: Callable
    inputs: Callable[[int], tuple]
    parts: Callable[[], dict]

    def model(self) -> nn.Module:
        return Module(self.function, **self.parts())


def sequence(n):
    return (torch.randn(n, T, D),)


def image(n):
    return (torch.randn(n, 3, 8, 8),)


def tokens(n):
    return (torch.randint(0, VOCABULARY, (n, T)),)


def lengths(n):
    return torch.randn(n, T, D), torch.randint(1, T + 1, (n,))


def collecting(cases: dict[str, Idiom]):
    def case(inputs, **parts):
        """`parts`: functions that make them, so that each model has its own."""

        def add(function):
            assert function.__name__ not in cases, function.__name__
            cases[function.__name__] = Idiom(function, inputs, lambda: {name: make() for name, make in parts.items()})
            return function

        return add

    return case


def linear(i, o=CLASSES):
    return lambda: nn.Linear(i, o)


def parameter(*shape):
    return lambda: nn.Parameter(torch.randn(shape) * 0.3)
