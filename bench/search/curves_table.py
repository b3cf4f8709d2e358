"""Prints what `replay.py` measured as Markdown tables, and draws regret over trial-epochs.

    bench/search/curves_table.py bench/results/replay.json [--figure docs/figures/search.svg]

Regret is the distance of the best value seen so far from the best of all recorded curves, in units of the distance of
random search (ours, no early stopping) at a tenth of the budget; medians over the seeds.
"""

import argparse
import json
from pathlib import Path

import numpy as np

EVERY = 10  # trial-epochs from one kept value to the next
REFERENCE = "ours/random"


def medians(entry: dict) -> np.ndarray:
    return np.median(np.array(entry["curves"]), axis=0) - entry["best"]


def normalized(results: dict) -> dict[str, dict[str, np.ndarray]]:
    """By task, then strategy: the median regret after 10, 20, ... trial-epochs."""
    tasks: dict[str, dict[str, np.ndarray]] = {}
    for key, entry in results.items():
        task, strategy = key.split("/", 1)
        tasks.setdefault(task, {})[strategy] = medians(entry)
    for curves in tasks.values():
        reference = curves[REFERENCE]
        unit = reference[len(reference) // 10 - 1]
        for strategy in curves:
            curves[strategy] = curves[strategy] / unit
    return tasks


def share_to_reach(curve: np.ndarray, value: float) -> float:
    """The share of the budget after which the regret is at most `value`; infinite if it never is."""
    reached = np.nonzero(curve <= value)[0]
    return (reached[0] + 1) / len(curve) if len(reached) else float("inf")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--figure", type=Path)
    chosen = parser.parse_args()
    results = json.loads(chosen.results.read_text())
    tasks = normalized(results)
    strategies = list(dict.fromkeys(strategy for curves in tasks.values() for strategy in curves))
    print("| strategy | " + " | ".join(tasks) + " |\n|---|" + "---|" * len(tasks))
    for strategy in strategies:
        cells = [f"{curves[strategy][-1]:.3f}" if strategy in curves else "" for curves in tasks.values()]
        print(f"| {strategy.replace('/', ': ')} | " + " | ".join(cells) + " |")
    print("\n| task | best of Optuna | its regret | ours first below it | after this share of the budget |\n|---|---|---|---|---|")
    for task, curves in tasks.items():
        peers = {name: curve for name, curve in curves.items() if name.startswith("optuna/")}
        best = min(peers, key=lambda name: peers[name][-1])
        reached = {name: share_to_reach(curve, peers[best][-1]) for name, curve in curves.items() if name.startswith("ours/")}
        first = min(reached, key=lambda name: reached[name])
        print(f"| {task} | {best[7:]} | {peers[best][-1]:.3f} | {first[5:]} | {reached[first]:.2f} |")
    if chosen.figure:
        draw(tasks, chosen.figure)


def draw(tasks: dict[str, dict[str, np.ndarray]], path: Path) -> None:
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "hfta-tune"
    import matplotlib.pyplot as plt
    figure, axes = plt.subplots(1, len(tasks), figsize=(4 * len(tasks), 3.4), sharey=True, squeeze=False)
    for axis, (task, curves) in zip(axes[0], tasks.items()):
        for strategy, curve in curves.items():
            ours = strategy.startswith("ours/")
            axis.plot(EVERY * np.arange(1, len(curve) + 1), np.maximum(curve, 1e-4), "-" if ours else ":",
                      label=strategy.replace("/", ": "), linewidth=1.4 if ours else 1)
        axis.set(title=task, xlabel="trial-epochs", yscale="log", xscale="log")
    axes[0][0].set_ylabel("regret")
    axes[0][-1].legend(fontsize=6, loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})


if __name__ == "__main__":
    main()
