"""Tables and figures from what bench/run measured.

    figures.py RESULTS.json... [--figures docs/figures]

Prints Markdown tables and draws speedup-DEVICE-THREADS.svg and memory-DEVICE-THREADS.svg. A peer that did not train
what it was asked to takes no part.
"""

import argparse
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

Row = dict[str, Any]


@dataclass(frozen=True)
class Column:
    """The best of some peers."""

    title: str
    takes: Callable[[Row], bool]
    style: dict[str, Any]


def of_family(family: str) -> Callable[[Row], bool]:
    return lambda row: row["peer"].split(":")[0] == family and not row["serial"]


COLUMNS = [
    Column("PyTorch, one by one", lambda row: row["peer"] == "torch:plain", {"color": "0.6", "linestyle": ":"}),
    Column("best one by one", lambda row: row["serial"], {"color": "0.3", "linestyle": "--"}),
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
        if row is None or row["serial"]:
            return None
        if "device_bytes" in row:
            return row["device_bytes"] / row["trials"] / 2**20
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
    yield "| B | " + " | ".join(c.title for c in COLUMNS) + " | hfta-tune / best peer |"
    yield "|---" * (len(COLUMNS) + 2) + "|"
    for group in groups:
        ours, best = group.best(OURS), group.best_peer()
        ratio = f"**{rate(ours) / rate(best):.2f}** ({best['peer']})" if ours and best else ""
        yield f"| {group.width} | " + " | ".join(cell(group.best(c)) for c in COLUMNS) + f" | {ratio} |"


def draw(by_workload: dict[str, list[Group]], value: Callable[[Group, Column], float | None], label: str,
         file: Path) -> None:
    across = min(3, len(by_workload))
    down = -(-len(by_workload) // across)
    figure, axes = plt.subplots(down, across, figsize=(4 * across, 3.2 * down), squeeze=False, layout="constrained")
    for axis in axes.flat[len(by_workload):]:
        axis.remove()
    for axis, (workload, groups) in zip(axes.flat, by_workload.items()):
        for column in COLUMNS:
            points = [(g.width, v) for g in groups if (v := value(g, column)) is not None]
            if points:
                axis.plot(*zip(*points), label=column.title, **column.style)
        widths = [g.width for g in groups]
        axis.set_xscale("log", base=2)
        axis.set_xticks(widths, map(str, widths))
        axis.set_yscale("log" if label.startswith("MiB") else "linear")
        axis.set_title(workload)
        axis.set_xlabel("trials side by side, B")
        axis.grid(alpha=0.3)
    axes[0, 0].set_ylabel(label)
    axes[0, 0].legend(fontsize="small")
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)


def grouped(rows: list[Row]) -> dict[str, list[Group]]:
    by_width: dict[str, dict[int, list[Row]]] = {}
    for row in rows:
        by_width.setdefault(row["workload"], {}).setdefault(row["width"], []).append(row)
    return {workload: [Group(widths[w]) for w in sorted(widths)] for workload, widths in by_width.items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench/figures.py", description=__doc__)
    parser.add_argument("results", type=Path, nargs="+")
    parser.add_argument("--figures", type=Path, default=Path(__file__).resolve().parent.parent / "docs" / "figures")
    args = parser.parse_args()
    args.figures.mkdir(parents=True, exist_ok=True)
    plt.rcParams["svg.hashsalt"] = "bench"  # the same bytes from the same numbers
    settings: dict[tuple[str, int], list[Row]] = {}
    for file in args.results:
        for row in json.loads(file.read_text())["results"]:
            settings.setdefault((row["device"], row["threads"]), []).append(row)
    for (device, threads), rows in settings.items():
        by_workload = grouped(rows)
        name = f"{device}-{threads}"
        draw(by_workload, Group.ratio, "speed-up over one by one", args.figures / f"speedup-{name}.svg")
        draw(by_workload, Group.memory, "MiB for each trial", args.figures / f"memory-{name}.svg")
        print(f"\n## {device}, {threads} thread{'s' * (threads > 1)}: samples of all trials per second")
        for workload, groups in by_workload.items():
            print(f"\n### {workload}\n\n" + "\n".join(table(groups)))


if __name__ == "__main__":
    main()
