"""Models that nobody wrote: a seed decides the steps of a net, its layers, its parameters and what of it is trained.

A step reads earlier values and makes one. Errors show where steps meet: writes in place beside views and copies, values
used twice or not at all, layers shared, parameters of every rank, gradients cut by detach() and no_grad(), buffers that
training writes, frozen weights. ops.py has the functions and layers.
"""

import math
import random
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Callable

import torch
from torch import nn

from buffers import LARGE, PARTLY, QUEUES, SLOTS
from layers import BETWEEN, LAYERS
from masks import IDS, LENGTHS, MASKS, TURNED, USED, extra_input
from ops import BINARY, FEATURES, SHAPES, UNARY, WORDS
from shapes import SHAPED
from weights import CONVOLUTIONS, MADE, USES
from writes import IN_PLACE, PLACES

CLASSES = 4
# Of a parameter beside values of a kind.
PARAMETER_SHAPES = {
    "vectors": [(), (FEATURES,), (1, FEATURES), (1,)],
    "images": [(), (3, 1, 1), (3, 4, 4), (1, 3, 1, 1), (4,)],
    "sequences": [(), (FEATURES,), (3, FEATURES), (3, 1), (1, 1, FEATURES)],
}
KEEP = {"ids": IDS, "mask": MASKS, "lengths": LENGTHS}  # integers and masks


@dataclass(frozen=True)
class Step:
    words: str
    reads: tuple[int, ...]
    run: Callable  # (net, the values read ...) -> a value
    kind: str
    no_grad: bool


class RandomNet(nn.Module):
    """`skipped` steps give on what they read: of a net that fails, those that do not matter.

    `evaluated`: whether evaluation may be compared. Where a buffer is written in part, evaluation reads what training
    left there, and hfta-tune says so."""

    evaluated = True

    def __init__(self, seed: int, skipped: frozenset[int] = frozenset()):
        super().__init__()
        self.skipped = skipped
        self.random = r = random.Random(seed)
        self.layers, self.weights = nn.ModuleList(), nn.ParameterList()
        self.steps: list[Step] = []
        self.kinds = self.inputs_drawn()  # of all values; the first are the inputs
        self.given, self.words_read = len(self.kinds), r.random() < 0.25
        if self.words_read:
            self.kinds.append("vectors")
            self.words = nn.Embedding(WORDS, FEATURES)
        self.extra = self.integers_drawn()
        self.kinds += self.extra
        self.dead: set[int] = set()
        rules = self.rules()
        for _ in range(r.choice([r.randint(4, 10), r.randint(8, 24)])):
            r.choices(list(rules), list(rules.values()))[0]()
        self.read = self.ends()
        self.head = nn.Linear(sum(math.prod(SHAPES[self.kinds[i]]) for i in self.read), CLASSES)
        self.freeze()

    def rules(self) -> dict[Callable, float]:
        """How often each is followed."""
        masks = {self.kept_integers: 0.7, self.turned_integers: 1, self.masked: 2.5} if self.extra else {}
        return masks | {
            self.unary: 1.5, self.shaped: 2.5, self.with_parameter: 1.5, self.of_two: 1, self.in_place: 1.2,
            self.cut: 0.4, self.statistic: 0.6, self.large_buffer: 0.4, self.queue: 0.4, self.layer: 3, self.between: 1.2,
            self.shared: 0.5, self.made_weight: 1.8, self.unused: 0.3,
        }

    def inputs_drawn(self) -> list[str]:
        r = self.random
        return [r.choice(["vectors", "vectors", "images", "sequences"]) for _ in range(r.choice([1, 1, 2]))]

    def integers_drawn(self) -> list[str]:
        return self.random.choices(list(KEEP), k=self.random.choice([0, 0, 1, 1, 2]))

    # What steps are made of.

    def add(self, words: str, kind: str, run: Callable, *reads: int, no_grad: bool = False) -> int:
        quiet = no_grad or self.random.random() < 0.05
        self.steps.append(Step(words, reads, run, kind, quiet))
        self.kinds.append(kind)
        return len(self.kinds) - 1

    def value(self, kind: str | None = None) -> int:
        """One of `kind`, the latest more often than others."""
        live = [i for i, of in enumerate(self.kinds)
                if i not in self.dead and (of == kind or not kind and of in SHAPES)]
        return live[-1] if self.random.random() < 0.5 else self.random.choice(live)

    def parameter(self, kind: str) -> int:
        shape = self.random.choice(PARAMETER_SHAPES[kind])
        alike = [i for i, weight in enumerate(self.weights) if weight.shape == shape]
        if alike and self.random.random() < 0.25:
            return self.random.choice(alike)
        return self.weight(shape)

    def weight(self, shape: tuple) -> int:
        numbers = [self.random.gauss(0, 0.6) for _ in range(math.prod(shape))]
        self.weights.append(nn.Parameter(torch.tensor(numbers).reshape(shape)))
        return len(self.weights) - 1

    def module(self, module: nn.Module) -> int:
        self.layers.append(module)
        return len(self.layers) - 1

    # The rules: each adds a step.

    def unary(self):
        x, name = self.value(), self.random.choice(list(UNARY))
        return self.add(name, self.kinds[x], lambda net, t: UNARY[name](t), x)

    def with_parameter(self):
        x, name, first = self.value(), self.random.choice(list(BINARY)), self.random.random() < 0.3
        p = self.parameter(self.kinds[x])

        def run(net, t):
            return BINARY[name](net.weights[p].expand_as(t), t) if first else BINARY[name](t, net.weights[p])

        return self.add(f"{name} of weight {p}{' first' if first else ''}", self.kinds[x], run, x)

    def of_two(self):
        x, name = self.value(), self.random.choice(list(BINARY))
        return self.add(name, self.kinds[x], lambda net, a, b: BINARY[name](a, b), x, self.value(self.kinds[x]))

    def in_place(self):
        x, name, place = self.value(), self.random.choice(list(IN_PLACE)), self.random.choice(list(PLACES))
        p = self.weight(())
        if x < self.given:
            place = "a copy"
        return self.add(f"{name} of {place} by weight {p}", self.kinds[x],
                        lambda net, t: PLACES[place](t, lambda u: IN_PLACE[name](u, net.weights[p])), x)

    def statistic(self):
        """A buffer that training writes; used or not."""
        x, name = self.value(), f"buffer{len(self.kinds)}"
        how = self.random.choice(["counted", "kept", "used", "used detached"])
        self.register_buffer(name, torch.zeros((), dtype=torch.long) if how == "counted" else torch.zeros(()))

        def run(net, t):
            buffer = getattr(net, name)
            if how == "counted":
                buffer.add_(1)
                return t * 1.1
            with torch.no_grad():
                buffer.mul_(0.8).add_(t.mean(), alpha=0.2)
            return t * 0.9 if how == "kept" else t - (buffer.clone() if how == "used" else buffer.detach())

        return self.add(f"{how} {name}", self.kinds[x], run, x)

    def cut(self):
        x = self.value()
        return self.add("detach", self.kinds[x], lambda net, t: t.detach(), x)

    def layer(self):
        x = self.value()
        name = self.random.choice(list(LAYERS[self.kinds[x]]))
        m = self.module(LAYERS[self.kinds[x]][name](self.random))
        return self.add(f"{name} (layer {m})", self.kinds[x], lambda net, t: net.layers[m](t), x)

    def shared(self):
        """A layer that an earlier step has, once more."""
        earlier = [step for step in self.steps if "(layer" in step.words]
        if not earlier:
            return self.layer()
        step = self.random.choice(earlier)
        return self.add(step.words, step.kind, step.run, self.value(self.kinds[step.reads[0]]))

    def between(self):
        x = self.value()
        source, target = self.random.choice([pair for pair in BETWEEN if pair[0] == self.kinds[x]])
        number = self.random.randrange(len(BETWEEN[source, target]))
        m = self.module(BETWEEN[source, target][number](self.random))
        return self.add(f"{source} to {target}, {number} (layer {m})", target, lambda net, t: net.layers[m](t), x)

    def shaped(self):
        x, name = self.value(), self.random.choice(list(SHAPED))
        return self.add(name, self.kinds[x], lambda net, t: SHAPED[name](t), x)

    def made_weight(self):
        """Parameters, a matrix that is made of them, and what it does."""
        x, made = self.value(), self.random.choice(list(MADE))
        uses = CONVOLUTIONS if self.kinds[x] == "images" else USES
        use, (shapes, make) = self.random.choice(list(uses)), MADE[made]
        weights = [self.weight(shape) for shape in shapes]

        def run(net, t):
            return uses[use](t, make(*[net.weights[w] for w in weights]))

        return self.add(f"{use} of {made} weights {weights}", self.kinds[x], run, x)

    def large_buffer(self):
        x, how, name = self.value(), self.random.choice(list(LARGE)), f"buffer{len(self.kinds)}"
        self.evaluated &= how not in PARTLY
        self.register_buffer(name, torch.zeros(SHAPES[self.kinds[x]]) + 0.1)
        return self.add(f"{how} {name}", self.kinds[x], lambda net, t: LARGE[how](t, getattr(net, name)), x)

    def queue(self):
        x, how, name = self.value(), self.random.choice(list(QUEUES)), f"buffer{len(self.kinds)}"
        self.evaluated &= how not in PARTLY
        self.register_buffer(name, torch.zeros(SLOTS, math.prod(SHAPES[self.kinds[x]])))
        self.register_buffer(name + "count", torch.zeros((), dtype=torch.long))

        def run(net, t):
            return QUEUES[how](t, getattr(net, name), getattr(net, name + "count"))

        return self.add(f"{how} {name}", self.kinds[x], run, x)

    # Of integers and masks.

    def integers(self) -> int:
        return self.random.choice([i for i, kind in enumerate(self.kinds) if kind in KEEP])

    def kept_integers(self):
        x = self.integers()
        kind = self.kinds[x]
        name = self.random.choice(list(KEEP[kind]))
        return self.add(f"{kind} {name}", kind, lambda net, t: KEEP[kind][name](t), x)

    def turned_integers(self):
        x = self.integers()
        source, target = self.random.choice([pair for pair in TURNED if pair[0] == self.kinds[x]])
        number = self.random.randrange(len(TURNED[source, target]))
        return self.add(f"{source} to {target}, {number}", target, lambda net, t: TURNED[source, target][number](t), x)

    def masked(self):
        x, other = self.value(), self.integers()
        functions = USED[self.kinds[x]][self.kinds[other]]
        name = self.random.choice(list(functions))
        return self.add(f"{name} by {self.kinds[other]}", self.kinds[x], lambda net, t, m: functions[name](t, m), x,
                        other)

    def unused(self):
        self.dead.add(self.layer())

    # The whole.

    def ends(self) -> list[int]:
        """What the head reads: the last value, often others besides."""
        live = [i for i in range(len(self.kinds)) if i not in self.dead and self.kinds[i] in SHAPES]
        return live[-1:] if self.random.random() < 0.5 else live[-3:]

    def skippable(self) -> list[int]:
        """Steps whose value has the shape of what they read, the last first."""
        return [i for i, step in reversed(list(enumerate(self.steps))) if step.kind == self.kinds[step.reads[0]]]

    def freeze(self) -> None:
        names = sorted(name for name, _ in self.named_parameters() if not name.startswith("head"))
        count = self.random.randint(0, len(names) // 3) if self.random.random() < 0.5 else 0
        frozen = set(self.random.sample(names, count))
        for name, parameter in self.named_parameters():
            parameter.requires_grad_(name not in frozen)

    def forward(self, first, second=None, third=None, fourth=None, fifth=None):
        values = [value for value in (first, second, third, fourth, fifth) if value is not None]
        if self.words_read:
            values[self.given] = self.words(values[self.given])
        for number, step in enumerate(self.steps):
            if number in self.skipped:
                values.append(values[step.reads[0]])
                continue
            with torch.no_grad() if step.no_grad else nullcontext():
                values.append(step.run(self, *[values[i] for i in step.reads]))
        return self.head(torch.cat([values[i].flatten(1) for i in self.read], 1))

    def inputs(self, n: int) -> tuple:
        words = [torch.randint(0, WORDS, (n,))] if self.words_read else []
        floats = [torch.randn(n, *SHAPES[kind]) for kind in self.kinds[:self.given]]
        return (*floats, *words, *[extra_input(kind, n) for kind in self.extra])

    def text(self) -> str:
        first = len(self.kinds) - len(self.steps)

        def line(i: int, step: Step) -> str:
            if i in self.skipped:
                return f"{first + i} = {step.reads[0]}"
            call = f"{step.words}({', '.join(map(str, step.reads))})"
            return f"{first + i} = {call}: {step.kind}{', no_grad' if step.no_grad else ''}"

        lines = [line(i, step) for i, step in enumerate(self.steps)]
        frozen = [name for name, parameter in self.named_parameters() if not parameter.requires_grad]
        return "\n".join([*lines, f"head of {self.read}; frozen: {', '.join(frozen) or 'none'}"])
