#!/usr/bin/env python3
"""How much sooner does a bracket of Hyperband end where idle devices lend their threads?

usage: bench/late_rungs.py HFTA_TUNE [--rounds 3] [--simulated] [--json]

Trains one bracket with and without lending (array.lend), from its first trial's start to its last one's end; late rungs are
what comes behind the end of the trial that leaves fewer trials than there are devices. Once in simulated time, 81 trials
on four devices of the CPU; and for real, nine trials of a convolutional net on [cpu:1, cpu:1], of which one trains for 27
epochs: medians of the rounds, in which both are run in turn. The tables of both have to be equal bit for bit. Needs two cores
that nobody else uses.
"""

import argparse
import contextlib
import json
import os
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/engine/fused"))
from kills_check import read_tables, same_tables  # noqa: E402

STUDY = """
study: s
storage: s.db
seed: 3
method: hyperband
hyperband: {{min_epochs: {least}, max_epochs: {most}, eta: {eta}}}
run_cap: {trials}
metric: {{name: val_loss, goal: minimize}}
parameters:
  lr: {{distribution: log_uniform_values, min: 1.0e-3, max: 0.03}}
model:
  layers:
    - {{conv2d: {{in_channels: 1, out_channels: 64, kernel_size: 3, padding: 1}}}}
    - relu
    - {{conv2d: {{in_channels: 64, out_channels: 64, kernel_size: 3, padding: 1}}}}
    - relu
    - {{conv2d: {{in_channels: 64, out_channels: 64, kernel_size: 3, padding: 1}}}}
    - relu
    - {{max_pool2d: 2}}
    - flatten
    - {{linear: [1024, 10]}}
data: {{name: digits, batch_size: 64, validation: 0.2}}
train:
  epochs: {most}
  loss: cross_entropy
  optimizer: {{name: sgd, lr: "${{lr}}", momentum: 0.9}}
array: {{lend: {lend}}}
"""
SIMULATED = {"least": 1, "most": 81, "eta": 3, "trials": 81}
REAL = {"least": 3, "most": 27, "eta": 9, "trials": 9}


def ends(store):
    """When the first trial began, and when each ended, in seconds."""
    with contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as database:
        began = database.execute("SELECT MIN(julianday(datetime_start)) FROM trials").fetchone()[0]
        times = database.execute("SELECT julianday(datetime_complete) FROM trials ORDER BY 1").fetchall()
    return began * 86400, [time * 86400 for time, in times]


def seconds(store, devices):
    """Of the bracket, and of its late rungs."""
    began, times = ends(store)
    return times[-1] - began, times[-1] - times[-devices]


def run(folder, numbers, lend, command):
    folder.mkdir()
    (folder / "study.yaml").write_text(STUDY.format(**numbers, lend=str(lend).lower()))
    environment = dict(os.environ, HFTA_CACHE=str(folder.parent / "cache"))
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    return folder / "s.db"


def both(folder, numbers, devices, command):
    """Seconds without lending and with it: each of the bracket and of its late rungs."""
    stores = [run(folder / str(lend), numbers, lend, command) for lend in (False, True)]
    same_tables(read_tables(stores[1]), read_tables(stores[0]))
    return [seconds(store, devices) for store in stores]


def compared(pairs):
    found = {}
    for place, part in enumerate(("bracket", "late_rungs")):
        apart, lent = (statistics.median(pair[lend][place] for pair in pairs) for lend in (0, 1))
        found[part] = {"apart_s": round(apart, 3), "lent_s": round(lent, 3), "sooner": round(apart / lent, 3)}
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=os.path.abspath)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--simulated", action="store_true", help="nothing for real")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    simulate = [options.binary, "simulate", "study.yaml", "--keep", "s.db", "--devices", "cpu:1,cpu:1,cpu:1,cpu:1"]
    train = [options.binary, "study.yaml", "--device", "cpu:1,cpu:1"]
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)

        def folder(name):
            (scratch / name).mkdir()
            return scratch / name

        result = {"simulated, 4 devices": compared([both(folder("simulated"), SIMULATED, 4, simulate)])}
        if not options.simulated:
            pairs = [both(folder(f"real{r}"), REAL, 2, train) for r in range(options.rounds)]
            result["trained, cpu:1 and cpu:1"] = compared(pairs)
    if options.json:
        return print(json.dumps(result, indent=1))
    for name, parts in result.items():
        for part, numbers in parts.items():
            print(f"{name}: {part} {numbers['apart_s']:.1f} s apart, {numbers['lent_s']:.1f} s lent: "
                  f"{numbers['sooner']:.2f} times as fast")


if __name__ == "__main__":
    main()
