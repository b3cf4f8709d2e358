#!/usr/bin/env python3
"""How busy slots are in studies that end by their budget, on recorded curves whose tasks split trials into partitions.

    bench/search/occupancy.py [--devices 1,4] [--seeds 5] [--budget 3000] [--width 8]

Each strategy is replayed by `hfta-tune simulate`. Printed is the share of slots x seconds in which a slot trained, until
the round in which the last trial began (`occupancy` of `hfta-tune report --format json`): the median over the seeds.
"""

import argparse
import json
import statistics
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from replay import ROOT, TASKS, simulated

STRATEGIES = ("random + asha", "random + median", "gp + asha", "gp", "tpe + asha", "tpe", "hyperband", "bohb", "dehb",
              "freeze_thaw")


def busy(task: str, strategy: str, devices: int, seed: int, chosen: argparse.Namespace) -> float:
    keys = [f"seed={seed}", f"budget.epochs={chosen.budget}"]
    words = ["--width", str(chosen.width), "--devices", str(devices)]
    with simulated(task, strategy, keys, words, chosen.binary) as store:
        report = subprocess.run([chosen.binary, "report", "--storage", store, "--format", "json"], check=True,
                                capture_output=True, text=True)
        return json.loads(report.stdout)["occupancy"]["filling"]["busy"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--strategies", default=",".join(STRATEGIES))
    parser.add_argument("--devices", default="1,4")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--budget", type=int, default=3000)
    parser.add_argument("--width", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--binary", type=Path, default=ROOT / "build" / "release" / "bin" / "hfta-tune")
    chosen = parser.parse_args()
    tasks = chosen.tasks.split(",")
    print(f"| strategy | devices | {' | '.join(tasks)} |\n|---|---|{'---|' * len(tasks)}")
    with ThreadPoolExecutor(chosen.jobs) as pool:
        for strategy in chosen.strategies.split(","):
            for devices in map(int, chosen.devices.split(",")):
                cells = []
                for task in tasks:
                    shares = pool.map(lambda seed: busy(task, strategy, devices, seed, chosen), range(chosen.seeds))
                    cells.append(f"{100 * statistics.median(shares):.0f} %")
                print(f"| {strategy} | {devices} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
