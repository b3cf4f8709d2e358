"""Tables and figures from what bench/run measured.

    figures.py RESULTS.json... [--figures docs/figures]

Prints Markdown tables and draws speedup-DEVICE-THREADS.svg and memory-DEVICE-THREADS.svg. A peer that did not train
what it was asked to takes no part.
"""

import argparse
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

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
        """MiB of a slot: all that the process grew by behind its imports."""
        row = self.best(column)
        if row is None:
            return None
        if "device_bytes" in row:
            return row["device_bytes"] / row["trials"] / 2**20
        if "rss_peak" not in row:
            return None
        return (row["rss_peak"] - row["rss_start"]) / row["trials"] / 2**20


def rate(row: Row) -> float:
    return row["samples_per_s"]["median"]


def cell(row: Row | None) -> str:
    if row is None:
        return ""
    values = row["samples_per_s"]
    spread = 50 * (values["max"] - values["min"]) / values["median"]
    family, _, variant = row["peer"].partition(":")
    words = [*([family] if row["serial"] else []), *([variant] if variant not in ("", "plain") else [])]
    return f"{values['median']:,.0f} ± {spread:.0f} %" + (f" ({' '.join(words)})" if words else "")


def table(groups: list[Group]) -> Iterable[str]:
    yield "| B | " + " | ".join(c.title for c in COLUMNS) + " | hfta-tune / best peer | MiB a trial: PyTorch | hfta-tune |"
    yield "|---" * (len(COLUMNS) + 4) + "|"
    for group in groups:
        ours, best = group.best(OURS), group.best_peer()
        ratio = f"**{rate(ours) / rate(best):.2f}** ({best['peer']})" if ours and best else ""
        memory = " | ".join(f"{m:.1f}" if (m := group.memory(c)) else "" for c in (COLUMNS[0], OURS))
        yield f"| {group.width} | " + " | ".join(cell(group.best(c)) for c in COLUMNS) + f" | {ratio} | {memory} |"


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
              label: str) -> list[Panel]:
    panels = []
    for workload, groups in by_workload.items():
        lines = [Line(column.title, points, column.style) for column in COLUMNS
                 if (points := [(g.width, v) for g in groups if (v := value(g, column)) is not None])]
        panels.append(Panel(workload, "trials side by side, B", lines, [g.width for g in groups],
                            label if not panels else "", label.startswith("MiB")))
    return panels


def grouped(rows: list[Row]) -> dict[str, list[Group]]:
    by_width: dict[str, dict[int, list[Row]]] = {}
    for row in rows:
        by_width.setdefault(row["workload"], {}).setdefault(row["width"], []).append(row)
    return {workload: [Group(widths[w]) for w in sorted(widths)] for workload, widths in by_width.items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench/figures.py", description=__doc__)
    parser.add_argument("results", type=Path, nargs="+")
    parser.add_argument("--figures", type=Path, default=FIGURES)
    args = parser.parse_args()
    settings: dict[tuple[str, int], list[Row]] = {}
    for file in args.results:
        for row in json.loads(file.read_text())["results"]:
            settings.setdefault((row["device"], row["threads"]), []).append(row)
    for (device, threads), rows in settings.items():
        by_workload = grouped(rows)
        name = f"{device}-{threads}"
        draw(panels_of(by_workload, Group.ratio, "speed-up over one by one"), args.figures / f"speedup-{name}.svg")
        draw(panels_of(by_workload, Group.memory, "MiB for each trial"), args.figures / f"memory-{name}.svg")
        print(f"\n## {device}, {threads} thread{'s' * (threads > 1)}: samples of all trials per second")
        for workload, groups in by_workload.items():
            print(f"\n### {workload}\n\n" + "\n".join(table(groups)))


if __name__ == "__main__":
    main()
