"""Costs by size: how fast they grow, as a table and as figures. What bench/growth measures is drawn here."""

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from figures import Line, Panel, draw

LINEAR = 1.1  # the largest exponent that is called so

STYLES = [{"color": "tab:blue", "marker": "o"}, {"color": "tab:orange", "marker": "s"},
          {"color": "tab:green", "marker": "^"}, {"color": "tab:purple", "marker": "v"}]


@dataclass(frozen=True)
class Curve:
    name: str  # of what was run
    along: str  # "trials", "epochs", "slots"
    cost: str  # with its unit
    sizes: list[int]  # ascending
    values: list[float]

    @property
    def exponent(self) -> float:
        """p of the power size^p that fits best: least squares of the logarithms over the upper half."""
        half = min(len(self.sizes) // 2, len(self.sizes) - 2)  # at least two
        x = [math.log(size) for size in self.sizes[half:]]
        y = [math.log(value) for value in self.values[half:]]
        middle = sum(x) / len(x)
        return sum((a - middle) * b for a, b in zip(x, y)) / sum((a - middle) ** 2 for a in x)

    @property
    def at_most_linear(self) -> bool:
        return self.exponent <= LINEAR


def digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def table(curves: list[Curve]) -> Iterable[str]:
    """One for each size that costs grow with."""
    for along in dict.fromkeys(curve.along for curve in curves):
        those = [curve for curve in curves if curve.along == along]
        shown = sorted({size for curve in those for size in (curve.sizes[0], curve.sizes[len(curve.sizes) // 2],
                                                             curve.sizes[-1])})
        yield f"\n| | cost | {' | '.join(f'{size:,} {along}' for size in shown)} | exponent | |"
        yield "|---" * (len(shown) + 4) + "|"
        for curve in those:
            known = dict(zip(curve.sizes, curve.values))
            cells = [digits(known[size]) if size in known else "" for size in shown]
            verdict = "at most linear" if curve.at_most_linear else "**worse than linear**"
            yield f"| {curve.name} | {curve.cost} | {' | '.join(cells)} | {curve.exponent:.2f} | {verdict} |"


def straight(curves: list[Curve]) -> Line:
    """What linear growth would be from the highest of the first points."""
    first = max(curves, key=lambda curve: curve.values[0])
    ends = (first.sizes[0], first.sizes[-1])
    points = [(size, first.values[0] * size / ends[0]) for size in ends]
    return Line("linear", points, {"color": "0.7", "linestyle": ":"})


def draw_curves(curves: list[Curve], folder: Path) -> None:
    """growth-trials.svg and its like, a panel for each cost."""
    for along in dict.fromkeys(curve.along for curve in curves):
        panels = []
        for cost in dict.fromkeys(curve.cost for curve in curves if curve.along == along):
            those = [curve for curve in curves if (curve.along, curve.cost) == (along, cost)]
            lines = [Line(c.name, list(zip(c.sizes, c.values)), style)
                     for c, style in zip(those, itertools.cycle(STYLES))]
            ticks = those[0].sizes if along == "slots" else []
            panels.append(Panel(cost, along, [*lines, straight(those)], ticks, log_up=True))
        draw(panels, folder / f"growth-{along}.svg")
