"""Whether `plan --measure` chooses a way to run that is as fast as any, time after time, also on a busy machine.

Each run measures anew. What a way really takes is the median of all runs; a run's choice costs as much more as its way's
median is above that of the fastest way. The command fails where a choice costs more than --limit.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from harness import ROOT, WORK, prepared
from peers import Race

CONFIG = """
study: choices
storage: choices.db
seed: 1
method: random
run_cap: {width}
metric: {{name: val_loss, goal: minimize}}
parameters:
  lr: {{distribution: log_uniform_values, min: 1.0e-4, max: 1.0e-2}}
model: {{file: {folder}/model.pt2}}
data: {{train: {folder}/data.npz, validation: 0.1, batch_size: {batch}}}
train:
  epochs: 9
  loss: {loss}
  optimizer: {{name: adam, lr: "${{lr}}"}}
"""
BUSY = "while True: sum(range(10000))"


def choice(binary: Path, config: Path, threads: int, cache: Path) -> dict[str, float]:
    """Milliseconds of a step by way; the chosen way first."""
    line = [str(binary), "plan", str(config), "--measure", "--format", "json", "--set", f"array.threads={threads}"]
    environment = {**os.environ, "HFTA_CACHE": str(cache)}
    found = subprocess.run(line, check=True, capture_output=True, text=True, env=environment).stdout
    ways = json.loads(found)["partitions"][0]["measured"]
    ways.sort(key=lambda way: not way["chosen"])
    return {way["lowering"]: 1e3 * way["slot_step_s"] for way in ways}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", default="W1,W2,W5,mobilenet,lstm,gru,swin_t,hf-bert")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--width", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--busy", type=int, default=1, help="processes that keep the machine busy meanwhile")
    parser.add_argument("--limit", type=float, default=1.05)
    parser.add_argument("--binary", type=Path, default=ROOT / "build/release/bin/hfta-tune")
    arguments = parser.parse_args()
    worst = 1.0
    print("| workload | chosen | a run's choice costs at most | ways |\n|---|---|---|---|")
    with ExitStack() as stack:
        for _ in range(arguments.busy):
            neighbour = stack.enter_context(subprocess.Popen([sys.executable, "-c", BUSY]))
            stack.callback(neighbour.kill)
        for name in arguments.workloads.split(","):
            race = Race(name, WORK / name, arguments.threads, "cpu")
            facts = prepared(race)
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            config = folder / "study.yaml"
            config.write_text(CONFIG.format(width=arguments.width, folder=race.folder, **facts))
            runs = [choice(arguments.binary, config, arguments.threads, folder / "none") for _ in range(arguments.runs)]
            median = {way: statistics.median(run[way] for run in runs if way in run) for way in set().union(*runs)}
            chosen = [next(iter(run)) for run in runs]
            cost = max(median[way] for way in chosen) / min(median.values())
            counts = ", ".join(f"{way} ({chosen.count(way)})" for way in dict.fromkeys(chosen))
            print(f"| {name} | {counts} | {cost:.3f} | {len(median)} |", flush=True)
            worst = max(worst, cost)
    return 0 if worst <= arguments.limit else 1


if __name__ == "__main__":
    sys.exit(main())
