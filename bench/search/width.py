#!/usr/bin/env python3
"""How many trial-epochs a study takes to a good configuration, by the width of its arrays, on recorded curves.

    bench/search/width.py [--seeds 20] [--share 0.05] [--widths 4,8,16,32]

A study ends when a trial has shown the value that the best `--share` of all recorded configurations come to
(metric.target). Each strategy is replayed by `hfta-tune simulate`. Printed is the median over the seeds; a study that has
not come so far after `--budget` trial-epochs counts as so many.
"""

import argparse
import math
import sqlite3
import statistics
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from replay import ROOT, TASKS, Task, simulated

STRATEGIES = ("random + asha", "gp + asha", "gp", "tpe", "hyperband")


def target_of(task: Task, share: float) -> float:
    best = sorted(min((task.sign * v for v in curve if math.isfinite(v)), default=math.inf) for curve in task.curves)
    return task.sign * best[int(share * len(best))]


def trial_epochs(task: Task, strategy: str, width: int, seed: int, target: float, budget: int, binary: Path) -> int:
    keys = [f"seed={seed}", f"budget.epochs={budget}", f"metric.target={target!r}"]
    with simulated(task.name, strategy, keys, ["--width", str(width)], binary) as store:
        return sqlite3.connect(store).execute("SELECT count(*) FROM hfta_occupancy").fetchone()[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--strategies", default=",".join(STRATEGIES))
    parser.add_argument("--widths", default="4,8,16,32")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--share", type=float, default=0.05)
    parser.add_argument("--budget", type=int, default=3000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--binary", type=Path, default=ROOT / "build" / "release" / "bin" / "hfta-tune")
    chosen = parser.parse_args()
    tasks = [Task(name) for name in chosen.tasks.split(",")]
    widths = [int(width) for width in chosen.widths.split(",")]
    print(f"| strategy, width | {' | '.join(task.name for task in tasks)} |\n|---|{'---|' * len(tasks)}")
    with ThreadPoolExecutor(chosen.jobs) as pool:
        for strategy in chosen.strategies.split(","):
            for width in widths:
                medians = []
                for task in tasks:
                    target = target_of(task, chosen.share)
                    counts = pool.map(lambda seed: trial_epochs(task, strategy, width, seed, target, chosen.budget,
                                                                chosen.binary), range(chosen.seeds))
                    medians.append(statistics.median(counts))
                print(f"| {strategy}, {width} | {' | '.join(f'{count:.0f}' for count in medians)} |", flush=True)


if __name__ == "__main__":
    main()
