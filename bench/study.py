"""A whole study, start-up counted: 32 random trials of ten epochs by hfta-tune, and by Optuna and Ray Tune with PyTorch.

The same network, space, batch size and number of trials; every epoch is validated; all keep what they find. Processes
are timed from outside, in turn, each time from nothing: hfta-tune remembers no lowering from the time before.
"""

import argparse
import importlib.util
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from harness import ROOT, commit, machine, say
from peers import TUNABLES

CONFIG = """
study: bench
storage: {folder}/study.db
seed: 1
method: random
run_cap: {trials}
metric: {{name: val_accuracy, goal: maximize}}
parameters:
  lr: {{distribution: log_uniform_values, min: 1.0e-4, max: 1.0e-1}}
  weight_decay: {{distribution: log_uniform_values, min: 1.0e-6, max: 1.0e-2}}
model:
  layers:
{layers}
data: {{{data}, batch_size: 64, validation: 0.2}}
train:
  epochs: {epochs}
  loss: cross_entropy
  optimizer: {{name: adam, lr: "${{lr}}", weight_decay: "${{weight_decay}}"}}
"""

LAYERS = {
    "mlp": ["flatten", "linear: [64, 128]", "relu", "linear: [128, 64]", "relu", "linear: [64, 10]"],
    "cnn": ["conv2d: {in_channels: 1, out_channels: 16, kernel_size: 3, padding: 1}", "relu", "max_pool2d: 2",
            "conv2d: {in_channels: 16, out_channels: 32, kernel_size: 3, padding: 1}", "relu", "max_pool2d: 2",
            "flatten", "linear: [1568, 10]"],
}


@dataclass(frozen=True)
class Study:
    model: str
    trials: int
    epochs: int
    data: Path  # .npz
    binary: Path

    def config(self, folder: Path) -> str:
        layers = "\n".join(f"    - {{{layer}}}" if ":" in layer else f"    - {layer}" for layer in LAYERS[self.model])
        data = "name: digits" if self.model == "mlp" else f"train: {self.data}"
        return CONFIG.format(folder=folder, trials=self.trials, epochs=self.epochs, layers=layers, data=data)


def ours(study: Study, threads: int, folder: Path) -> list[list[str]]:
    (folder / "study.yaml").write_text(study.config(folder))
    return [pinned(threads, [str(study.binary), str(folder / "study.yaml")])]


def peer(name: str, *flags: str, processes: int = 1) -> Callable[[Study, int, Path], list[list[str]]]:
    def commands(study: Study, threads: int, folder: Path) -> list[list[str]]:
        script = str(ROOT / "bench" / "peers" / f"{name}_study.py")
        line = [sys.executable, script, study.model, str(study.data), str(folder / f"{name}.db"), "--epochs",
                str(study.epochs), "--trials", str(study.trials // processes), "--threads", str(threads // processes)]
        layout = ["--channels-last"] if study.model == "cnn" else []
        worker = [["--worker", str(i)] if processes > 1 else [] for i in range(processes)]
        return [pinned(threads, [*line, *layout, *flags, *w]) for w in worker]

    return commands


def pinned(threads: int, command: list[str]) -> list[str]:
    return ["taskset", "-c", "0", *command] if threads == 1 else command


WAYS: dict[str, Callable[[Study, int, Path], list[list[str]]]] = {
    "hfta-tune": ours,
    "optuna": peer("optuna"),
    "optuna, every epoch stored": peer("optuna", "--report"),
    "optuna, a process per core": peer("optuna", processes=2),
    "ray": peer("ray"),
}


def raced(threads: int) -> list[str]:
    without = {"optuna, a process per core"} if threads == 1 else set()
    if importlib.util.find_spec("ray") is None:
        without.add("ray")
    return [way for way in WAYS if way not in without]


@dataclass(frozen=True)
class Taken:
    wall: float
    cpu: float  # of all processes


def children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def timed(way: str, study: Study, threads: int) -> Taken:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        commands = WAYS[way](study, threads, folder)
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "HFTA_CACHE": str(folder / "cache")}
        if way != "hfta-tune":  # which sees to its own malloc
            environment["GLIBC_TUNABLES"] = TUNABLES
        with (folder / "log").open("w") as log:
            begin, cpu = time.perf_counter(), children_cpu()
            running = [subprocess.Popen(c, env=environment, stdout=log, stderr=log, cwd=folder) for c in commands]
            codes = [process.wait() for process in running]
            taken = Taken(time.perf_counter() - begin, children_cpu() - cpu)
        if any(codes):
            raise SystemExit(f"bench/study: {way} failed:\n{(folder / 'log').read_text()[-2000:]}")
        return taken


def race(study: Study, threads: int, repeats: int) -> dict[str, object]:
    ways = raced(threads)
    times: dict[str, list[Taken]] = {way: [] for way in ways}
    for way in ways:  # reads files into the cache
        timed(way, replace(study, trials=2, epochs=1), threads)
    for _ in range(repeats):
        for way in ways:
            times[way].append(timed(way, study, threads))
    wall = {way: statistics.median(t.wall for t in taken) for way, taken in times.items()}
    cpu = {way: statistics.median(t.cpu for t in taken) for way, taken in times.items()}
    for way, taken in times.items():
        spread = f"{min(t.wall for t in taken):.2f} to {max(t.wall for t in taken):.2f}"
        print(f"{study.model} {threads} threads  {way:28} {wall[way]:7.2f} s ({spread}), {cpu[way]:7.2f} s of CPU;"
              f" {wall[way] / wall['hfta-tune']:.2f} and {cpu[way] / cpu['hfta-tune']:.2f} x hfta-tune's", flush=True)
    return {"machine": machine(), "commit": commit(), "model": study.model, "threads": threads, "trials": study.trials,
            "epochs": study.epochs, "runs": {way: [asdict(t) for t in taken] for way, taken in times.items()},
            "wall_s": wall, "cpu_s": cpu, "ratio": {way: seconds / wall["hfta-tune"] for way, seconds in wall.items()}}


def write_data(folder: Path) -> dict[str, Path]:
    """The digits as hfta-tune has them, and as many random images of 28x28."""
    folder.mkdir(parents=True, exist_ok=True)
    table = np.loadtxt(ROOT / "data" / "digits.csv", delimiter=",", skiprows=1)
    labels = table[:, 64].astype(np.int64)
    np.savez(folder / "mlp.npz", x=(table[:, :64] / 16).astype(np.float32).reshape(-1, 1, 8, 8), y=labels)
    images = np.random.default_rng(1).standard_normal((len(labels), 1, 28, 28), np.float32)
    np.savez(folder / "cnn.npz", x=images, y=labels)
    return {model: folder / f"{model}.npz" for model in LAYERS}


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench/study", description=__doc__)
    parser.add_argument("--models", default="mlp,cnn")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--trials", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--binary", type=Path, default=ROOT / "build/release/bin/hfta-tune")
    parser.add_argument("--output", type=Path, default=ROOT / "bench/results/study.json")
    parser.add_argument("--add", action="store_true", help="keep what the output has of other studies")
    args = parser.parse_args()
    args.output.parent.mkdir(parents=True, exist_ok=True)
    data = write_data(ROOT / "build" / "bench" / "study")
    studies: list[dict[str, object]] = []
    if args.add and args.output.exists():
        studies = json.loads(args.output.read_text())["studies"]
    for model in args.models.split(","):
        for threads in map(int, args.threads.split(",")):
            say(f"{model}, {threads} threads")
            study = Study(model, args.trials, args.epochs, data[model], args.binary)
            studies = [s for s in studies if (s["model"], s["threads"]) != (model, threads)]
            studies.append(race(study, threads, args.repeats))
            args.output.write_text(json.dumps({"studies": studies}, indent=1))


if __name__ == "__main__":
    main()
