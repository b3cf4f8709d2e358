#!/usr/bin/env python3
"""Wall time until a study of configs/digits.yaml has reached a validation accuracy, against Optuna with PyTorch.

    bench/target.py [--seeds 10] [--accuracy 0.99] [--methods hyperband asha auto] [--patience 120]

Everyone trains the network of configs/digits.yaml over its search space, on the same images, with a validation set of
the same size, for at most 27 epochs a trial, and ends when a trial has reached the accuracy after an epoch. Optuna has
TPESampler and HyperbandPruner, and trains with PyTorch as somebody would who wants it quick (bench/peers/digits_study.py).
Times are those of whole processes, start-up included. Seed by seed everyone has a turn. Optuna is ended after `--patience`
seconds; a seed with which it has not reached the accuracy by then counts as so many, so that what it takes is a lower bound.
"""

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

from peers import TUNABLES

ROOT = pathlib.Path(__file__).resolve().parent.parent
METHODS = {
    "hyperband": "method: hyperband\nhyperband: {min_epochs: 1, max_epochs: 27, eta: 3}\n",
    "asha": "method: random\nearly_stopping: {name: asha, min_epochs: 1, eta: 3}\n",
    "bohb": "method: bohb\nbohb: {min_epochs: 1, max_epochs: 27, eta: 3}\n",
    "freeze_thaw": "method: freeze_thaw\n",
    "auto": "method: auto\n",
}
OURS = ("study", "storage", "seed", "method", "hyperband", "run_cap", "metric")  # keys that are written anew


def config(method: str, seed: int, accuracy: float, folder: pathlib.Path) -> str:
    digits = (ROOT / "configs" / "digits.yaml").read_text()
    rest = re.sub(rf"^({'|'.join(OURS)}):.*\n", "", digits, flags=re.MULTILINE)
    return (f"study: target\nstorage: {folder}/study.db\nseed: {seed}\n{METHODS[method]}budget: {{epochs: 20000}}\n"
            f"metric: {{name: val_accuracy, goal: maximize, target: {accuracy}}}\n{rest}")


def run(command: list[str], folder: pathlib.Path, patience: float | None = None, **variables: str) -> tuple[float, str]:
    """Seconds, and what it printed. Raises subprocess.TimeoutExpired after `patience` seconds."""
    begin = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=patience,
                          env={**os.environ, **variables})
    seconds = time.perf_counter() - begin
    if done.returncode != 0:
        raise SystemExit(f"bench/target.py: {' '.join(command)} failed:\n{(done.stdout + done.stderr)[-2000:]}")
    return seconds, done.stdout


def found(text: str, pattern: str) -> float:
    match = re.search(pattern, text)
    if match is None:
        raise SystemExit(f"bench/target.py: found no '{pattern}' in:\n{text[-2000:]}")
    return float(match[1])


def ours(binary: pathlib.Path, method: str, seed: int, accuracy: float) -> float:
    with tempfile.TemporaryDirectory(prefix="hfta-target-") as name:
        folder = pathlib.Path(name)
        (folder / "study.yaml").write_text(config(method, seed, accuracy, folder))
        seconds, printed = run([str(binary), str(folder / "study.yaml")], folder, HFTA_CACHE=str(folder / "cache"))
        if found(printed, r"best: val_accuracy ([\d.]+)") < accuracy:
            raise SystemExit(f"bench/target.py: {method} with seed {seed} did not reach {accuracy}")
        return seconds


def optuna(seed: int, accuracy: float, patience: float) -> float:
    """Seconds, at most `patience`."""
    with tempfile.TemporaryDirectory(prefix="hfta-target-") as name:
        folder = pathlib.Path(name)
        script = ROOT / "bench" / "peers" / "digits_study.py"
        command = [sys.executable, str(script), str(folder / "study.db"), "--seed", str(seed), "--accuracy", str(accuracy)]
        try:
            return run(command, folder, patience, GLIBC_TUNABLES=TUNABLES)[0]  # hfta-tune sees to its own malloc
        except subprocess.TimeoutExpired:
            return patience


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--accuracy", type=float, default=0.99)
    parser.add_argument("--patience", type=float, default=120)
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=["hyperband", "asha", "auto"])
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build/release/bin/hfta-tune")
    arguments = parser.parse_args()
    seconds: dict[str, list[float]] = {name: [] for name in ("optuna", *arguments.methods)}
    for seed in range(1, arguments.seeds + 1):
        seconds["optuna"].append(optuna(seed, arguments.accuracy, arguments.patience))
        for method in arguments.methods:
            seconds[method].append(ours(arguments.binary.resolve(), method, seed, arguments.accuracy))
        print(f"seed {seed}: " + ", ".join(f"{name} {values[-1]:.1f} s" for name, values in seconds.items()), flush=True)
    print(f"\nOptuna is ended after {arguments.patience:g} s.\n\n| | median s | least | most | Optuna takes |\n|---|---|---|---|---|")
    median = {name: statistics.median(values) for name, values in seconds.items()}
    for name, values in seconds.items():
        print(f"| {name} | {median[name]:.1f} | {min(values):.1f} | {max(values):.1f} | {median['optuna'] / median[name]:.1f} |")


if __name__ == "__main__":
    main()
