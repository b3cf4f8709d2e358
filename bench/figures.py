"""Tables and figures from what bench/run measured.

    figures.py RESULTS.json... [--figures docs/figures]

Prints Markdown tables and draws speedup-DEVICE-THREADS.svg and memory-DEVICE-THREADS.svg, with the instruction set in
the name and in titles where everyone was held to one. A peer that did not train
what it was asked to takes no part.
"""

import argparse
import json
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

import isa  # noqa: E402
from harness import OTHERS, isa_of  # noqa: E402

Row = dict[str, Any]
FIGURES = Path(__file__).resolve().parent.parent / "docs" / "figures"


@dataclass(frozen=True)
class Line:
    label: str
    points: list[tuple[float, float]]
    style: dict[str, Any]


@dataclass(frozen=True)
class Panel:
    title: str
    across: str  # what is counted along the axis, which is logarithmic
    lines: list[Line]
    ticks: list[int] = field(default_factory=list)  # none: powers of ten
    up: str = ""
    log_up: bool = False


@dataclass(frozen=True)
class Column:
    """The best of some peers."""

    title: str
    takes: Callable[[Row], bool]
    style: dict[str, Any]


def of_family(family: str) -> Callable[[Row], bool]:
    return lambda row: row["peer"].split(":")[0] == family and not row["serial"]


COLUMNS = [
    Column("PyTorch, one by one", lambda row: row["peer"] == "torch:plain",
           {"color": "0.6", "linestyle": ":", "marker": "."}),
    Column("best one by one", lambda row: row["serial"], {"color": "0.3", "linestyle": "--", "marker": "."}),
    Column("best vmap", of_family("vmap"), {"color": "tab:orange", "marker": "s"}),
    Column("best JAX", of_family("jax"), {"color": "tab:green", "marker": "^"}),
    Column("HFTA", of_family("hfta"), {"color": "tab:purple", "marker": "v"}),
    Column("hfta-tune", lambda row: row["peer"] == "ours", {"color": "tab:blue", "marker": "o", "linewidth": 2}),
]
OURS = COLUMNS[-1]
OURS_SERIAL = Column("hfta-tune, one by one", lambda row: row["peer"] == "ours:serial", {})


class Group:
    """All who were raced at one width."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = [row for row in rows if not row["check"]["wrong"]]
        self.width: int = rows[0]["width"]

    def best(self, column: Column) -> Row | None:
        taken = [row for row in self.rows if column.takes(row)]
        return max(taken, key=rate, default=None)

    def best_peer(self) -> Row | None:
        return max((row for row in self.rows if row["peer"].split(":")[0] != "ours"), key=rate, default=None)

    def ratio(self, column: Column) -> float | None:
        """To one trial after another in plain PyTorch."""
        row, plain = self.best(column), self.best(COLUMNS[0])
        return rate(row) / rate(plain) if row and plain else None

    def memory(self, column: Column) -> float | None:
        """MiB of a slot: what the process has grown by, behind its imports, when it trains."""
        row = self.best(column)
        if row is None:
            return None
        if "device_bytes" in row:
            return row["device_bytes"] / row["trials"] / 2**20
        return (row["rss"] - row["rss_start"]) / row["trials"] / 2**20


def rate(row: Row) -> float:
    return row["samples_per_s"]["median"]


def ratio_by_round(row: Row, other: Row) -> float:
    """The median of what they are in turn, so that a machine that is slow for a while is so for both; rounds in which
    somebody else had it are left out, unless all are such."""
    pairs = list(zip(row["rounds"], other["rounds"]))
    calm = [pair for pair in pairs if all(one["others"] < OTHERS for one in pair)]

    def pace(of: Row, one: dict[str, float]) -> float:
        return of["trials"] * one["steps"] / one[of["clock"]]

    return statistics.median(pace(row, a) / pace(other, b) for a, b in calm or pairs)


def cell(row: Row | None) -> str:
    if row is None:
        return ""
    values = row["samples_per_s"]
    spread = 50 * (values["max"] - values["min"]) / values["median"]
    family, _, variant = row["peer"].partition(":")
    words = [*([family] if row["serial"] else []), *([variant] if variant not in ("", "plain") else [])]
    return f"{values['median']:,.0f} ± {spread:.0f} %" + (f" ({' '.join(words)})" if words else "")


def table(groups: list[Group]) -> Iterable[str]:
    yield "| B | " + " | ".join(c.title for c in COLUMNS) + " | hfta-tune / best peer |"
    yield "|---" * (len(COLUMNS) + 2) + "|"
    for group in groups:
        ours, best = group.best(OURS), group.best_peer()
        ratio = f"**{rate(ours) / rate(best):.2f}** ({best['peer']})" if ours and best else ""
        yield f"| {group.width} | " + " | ".join(cell(group.best(c)) for c in COLUMNS) + f" | {ratio} |"


def at_best(rows: Iterable[Row | None]) -> Row | None:
    return max((row for row in rows if row), key=rate, default=None)


def summary(by_workload: dict[str, list[Group]]) -> Iterable[str]:
    """A line for each workload, everyone at the width that suits them best; memory at hfta-tune's."""
    yield ("| workload | PyTorch, one by one | best peer, at its best B | hfta-tune, at its best B | to PyTorch |"
           " to the best peer | to itself, one by one | MiB a trial: PyTorch | hfta-tune |")
    yield "|---" * 9 + "|"
    for workload, groups in by_workload.items():
        plain, peer = at_best(g.best(COLUMNS[0]) for g in groups), at_best(g.best_peer() for g in groups)
        ours = at_best(g.best(OURS) for g in groups)
        if not (plain and peer and ours):
            continue
        own = [ratio_by_round(mine, alone) for g in groups
               if (mine := g.best(OURS)) and (alone := g.best(OURS_SERIAL))]
        there = next(g for g in groups if g.width == ours["width"])
        memory = " | ".join(f"{there.memory(c):.0f}" for c in (COLUMNS[0], OURS))
        to_itself = f"{min(own):.2f} to {max(own):.2f}" if own else ""
        yield (f"| {workload} | {rate(plain):,.0f} | {rate(peer):,.0f} ({peer['peer']}, B={peer['width']}) |"
               f" {cell(ours)} (B={ours['width']}) | {rate(ours) / rate(plain):.1f} |"
               f" **{rate(ours) / rate(peer):.2f}** | {to_itself} | {memory} |")


def draw(panels: list[Panel], file: Path) -> None:
    """Three panels a row; the first one's legend serves all that have the same lines."""
    plt.rcParams |= {"svg.hashsalt": "bench", "svg.fonttype": "none"}  # the same bytes each time; text as text
    file.parent.mkdir(parents=True, exist_ok=True)
    across = min(3, len(panels))
    down = -(-len(panels) // across)
    figure, axes = plt.subplots(down, across, figsize=(4 * across, 3.2 * down), squeeze=False, layout="constrained")
    for axis in axes.flat[len(panels):]:
        axis.remove()
    told: list[list[str]] = []
    for axis, panel in zip(axes.flat, panels):
        for line in panel.lines:
            axis.plot(*zip(*line.points), label=line.label, **line.style)
        axis.set_xscale("log", base=2 if panel.ticks else 10)
        if panel.ticks:
            axis.set_xticks(panel.ticks, map(str, panel.ticks))
        axis.set_yscale("log" if panel.log_up else "linear")
        axis.set_title(panel.title)
        axis.set_xlabel(panel.across)
        axis.set_ylabel(panel.up)
        axis.grid(alpha=0.3)
        labels = [line.label for line in panel.lines]
        if not any(set(labels) <= set(earlier) for earlier in told):
            axis.legend(fontsize="small")
            told.append(labels)
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)


def panels_of(by_workload: dict[str, list[Group]], value: Callable[[Group, Column], float | None],
              label: str, held: str) -> list[Panel]:
    panels = []
    for workload, groups in by_workload.items():
        lines = [Line(column.title, points, column.style) for column in COLUMNS
                 if (points := [(g.width, v) for g in groups if (v := value(g, column)) is not None])]
        panels.append(Panel(f"{workload}{held}", "trials side by side, B", lines, [g.width for g in groups],
                            label if not panels else "", label.startswith("MiB")))
    return panels


def grouped(rows: list[Row]) -> dict[str, list[Group]]:
    by_width: dict[str, dict[int, list[Row]]] = {}
    for row in rows:
        by_width.setdefault(row["workload"], {}).setdefault(row["width"], []).append(row)
    in_order = sorted(by_width.items(), key=lambda item: (not item[0].startswith("W"), item[0]))
    return {workload: [Group(widths[w]) for w in sorted(widths)] for workload, widths in in_order}


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench/figures.py", description=__doc__)
    parser.add_argument("results", type=Path, nargs="+")
    parser.add_argument("--figures", type=Path, default=FIGURES)
    args = parser.parse_args()
    settings: dict[tuple[str, int, str], list[Row]] = {}
    for file in args.results:
        for row in json.loads(file.read_text())["results"]:
            settings.setdefault((row["device"], row["threads"], isa_of(row)), []).append(row)
    for (device, threads, level), rows in settings.items():
        held = "" if level == isa.NATIVE else f", {level}"
        by_workload = grouped(rows)
        name = f"{device}-{threads}" + held.replace(", ", "-")
        raced = {workload: groups for workload, groups in by_workload.items() if len(groups) > 1}
        draw(panels_of(raced, Group.ratio, "speed-up over one by one", held), args.figures / f"speedup-{name}.svg")
        draw(panels_of(raced, Group.memory, "MiB for each trial", held), args.figures / f"memory-{name}.svg")
        print(f"\n## {device}, {threads} thread{'s' * (threads > 1)}{held}: samples of all trials per second")
        print("\n" + "\n".join(summary(by_workload)))
        for workload, groups in by_workload.items():
            print(f"\n### {workload}\n\n" + "\n".join(table(groups)))


if __name__ == "__main__":
    main()
