"""Replays strategies on recorded curves (bench/search/curves): ours by `hfta-tune simulate`, Optuna's in this process.

    bench/search/replay.py --seeds 50 --output bench/results/replay.json

Each strategy trains with eight slots until its budget of trial-epochs is used up: a round is an epoch of every slot, and
a trial that ends leaves its slot to the next one. Kept is, per seed, the best value of the metric that any trial had
shown after each trial-epoch. `curves_table.py` prints the table.
"""

import argparse
import csv
import gzip
import json
import math
import sqlite3
import subprocess
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import optuna
import yaml

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
TASKS = ("tabular", "cnn", "text", "head", "regression")
SLOTS = 8

# What `--set` makes of a task's config.
OURS = {
    "auto": ["method=auto"],
    "random": ["method=random"],
    "random + median": ["method=random", "early_stopping=median"],
    "random + asha": ["method=random", "early_stopping=asha"],
    "hyperband": ["method=hyperband"],
    "bohb": ["method=bohb"],
    "dehb": ["method=dehb"],
    "gp": ["method=gp"],
    "gp + asha": ["method=gp", "early_stopping=asha"],
    "freeze_thaw": ["method=freeze_thaw"],
    "cmaes": ["method=cmaes"],
    "tpe": ["method=tpe"],
    "tpe + median": ["method=tpe", "early_stopping=median"],
    "tpe + asha": ["method=tpe", "early_stopping=asha"],
}
SAMPLERS = {
    "random": lambda seed: optuna.samplers.RandomSampler(seed=seed),
    "tpe": lambda seed: optuna.samplers.TPESampler(seed=seed),
    "gp": lambda seed: optuna.samplers.GPSampler(seed=seed),
    "cmaes": lambda seed: optuna.samplers.CmaEsSampler(seed=seed),
}
PRUNERS = {
    "none": lambda epochs: optuna.pruners.NopPruner(),
    "median": lambda epochs: optuna.pruners.MedianPruner(),
    "sha": lambda epochs: optuna.pruners.SuccessiveHalvingPruner(),
    "hyperband": lambda epochs: optuna.pruners.HyperbandPruner(min_resource=1, max_resource=epochs, reduction_factor=3),
}


@dataclass(frozen=True)
class Parameter:
    """A parameter of a task, with its place on the unit scale, as search/unit_scale.hpp defines it."""

    name: str
    values: tuple = ()
    low: float = 0
    high: float = 1
    log: bool = False
    integer: bool = False

    @staticmethod
    def of(name: str, written: dict) -> "Parameter":
        if "values" in written:
            return Parameter(name, tuple(written["values"]))
        low, high = written["min"], written["max"]
        return Parameter(name, (), low, high, "log" in written.get("distribution", ""), isinstance(low, int))

    def distribution(self) -> optuna.distributions.BaseDistribution:
        if self.values:
            return optuna.distributions.CategoricalDistribution(self.values)
        if self.integer:
            return optuna.distributions.IntDistribution(self.low, self.high)
        return optuna.distributions.FloatDistribution(self.low, self.high, log=self.log)

    def place(self, value: object) -> float:
        if self.values:
            return float([str(v) for v in self.values].index(str(value)))
        x = float(value)
        if self.integer:
            return (x - self.low + 0.5) / (self.high - self.low + 1)
        if self.log:
            return math.log(x / self.low) / math.log(self.high / self.low)
        return (x - self.low) / (self.high - self.low)


class Task:
    def __init__(self, name: str):
        self.name = name
        self.config = yaml.safe_load((HERE / "tasks" / f"{name}.yaml").read_text())
        self.file = HERE / "curves" / f"{name}.csv.gz"
        self.metric = self.config["metric"]["name"]
        self.sign = -1 if self.config["metric"]["goal"] == "maximize" else 1
        self.epochs = self.config["train"]["epochs"]
        self.space = [Parameter.of(key, written) for key, written in self.config["parameters"].items()]
        self.words = np.array([bool(parameter.values) for parameter in self.space])
        self.places, self.curves = self._read()

    def _read(self) -> tuple[np.ndarray, list[list[float]]]:
        places, curves = [], []
        with gzip.open(self.file, "rt") as lines:
            for row in csv.DictReader(lines):
                if row["epoch"] == "1":
                    places.append([p.place(row[f"param.{p.name}"]) for p in self.space])
                    curves.append([])
                curves[-1].append(float(row[self.metric]))
        return np.array(places), curves

    def curve(self, params: dict) -> list[float]:
        """Of the nearest recorded configuration, as NearestConfiguration has it."""
        away = self.places - np.array([p.place(params[p.name]) for p in self.space])
        away[:, self.words] = away[:, self.words] != 0
        return self.curves[int(np.argmin((away**2).sum(1)))]

    def best(self) -> float:
        """The least loss of all curves; of a goal to maximize, minus the value."""
        return min(self.sign * v for curve in self.curves for v in curve if math.isfinite(v))


def best_so_far(values: Iterator[float], sign: int, budget: int) -> list[float]:
    best, kept = math.inf, []
    for value in values:
        if len(kept) == budget:
            break
        best = min(best, sign * value) if math.isfinite(value) else best
        kept.append(best)
    return kept


@contextmanager
def simulated(task: str, strategy: str, keys: Iterable[str], words: Iterable[str], binary: Path) -> Iterator[Path]:
    """The store of a study by a strategy of OURS on the task's curves: `keys` are of its config, `words` of the command."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "kept.db"
        sets = [word for key in (*OURS[strategy], *keys, "run_cap=null") for word in ("--set", key)]
        subprocess.run([binary, "simulate", HERE / "tasks" / f"{task}.yaml", "--curves", HERE / "curves" / f"{task}.csv.gz",
                        "--keep", store, *words, *sets], check=True, capture_output=True)
        yield store


def ours(task: Task, name: str, seed: int, budget: int, binary: Path) -> list[float]:
    keys = [f"seed={seed}", f"budget.epochs={budget}"]
    with simulated(task.name, name, keys, ["--width", str(SLOTS)], binary) as store:
        rows = sqlite3.connect(store).execute(
            "SELECT m.value FROM hfta_occupancy o JOIN hfta_epoch_metrics m ON m.trial_id = o.trial_id AND "
            "m.epoch = o.epoch WHERE m.name = ? ORDER BY o.round, o.array, o.slot LIMIT ?", (task.metric, budget))
        return best_so_far((math.nan if v is None else v for (v,) in rows), task.sign, budget)


def optuna_rounds(task: Task, sampler: str, pruner: str, seed: int) -> Iterator[float]:
    """The metric after each trial-epoch of a study with SLOTS workers that train in step."""
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=SAMPLERS[sampler](seed), pruner=PRUNERS[pruner](task.epochs),
                                direction="minimize")
    space = {parameter.name: parameter.distribution() for parameter in task.space}
    slots: list[tuple[optuna.Trial, list[float], int]] = []
    while True:
        while len(slots) < SLOTS:
            trial = study.ask(space)
            slots.append((trial, task.curve(trial.params), 0))
        still = []
        for trial, curve, epoch in slots:
            value = task.sign * curve[min(epoch, len(curve) - 1)]
            yield task.sign * value
            if not math.isfinite(value):
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
                continue
            trial.report(value, epoch + 1)
            if epoch + 1 == task.epochs:
                study.tell(trial, value)
            elif trial.should_prune():
                study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            else:
                still.append((trial, curve, epoch + 1))
        slots = still


def run(seed: int, task: str, who: str, name: str, budget: int, binary: Path) -> list[float]:
    loaded = Task(task)
    if who == "ours":
        return ours(loaded, name, seed, budget, binary)
    sampler, pruner = name.split(" + ")
    return best_so_far(optuna_rounds(loaded, sampler, pruner, seed), loaded.sign, budget)


def strategies() -> list[tuple[str, str]]:
    peers = [f"{sampler} + {pruner}" for sampler in SAMPLERS for pruner in PRUNERS]
    return [*(("ours", name) for name in OURS), *(("optuna", name) for name in peers)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--only", default="", help="words that the strategies' names contain, as in 'ours:tpe,optuna:gp'")
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--budget", type=int, default=1000, help="trial-epochs of a study")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--binary", type=Path, default=ROOT / "build" / "release" / "bin" / "hfta-tune")
    parser.add_argument("--output", type=Path, required=True, help="JSON; seeds that are in it already stay")
    chosen = parser.parse_args()
    results = json.loads(chosen.output.read_text()) if chosen.output.exists() else {}
    wanted = [s for s in strategies() if any(word in ":".join(s) for word in chosen.only.split(","))]
    with ProcessPoolExecutor(chosen.jobs) as pool:
        for task in chosen.tasks.split(","):
            for who, name in wanted:
                one = partial(run, task=task, who=who, name=name, budget=chosen.budget, binary=chosen.binary)
                entry = results.setdefault(f"{task}/{who}/{name}", {"best": Task(task).best(), "budget": chosen.budget,
                                                                    "curves": []})
                more = pool.map(one, range(len(entry["curves"]), chosen.seeds))
                entry["curves"] += [[float(f"{v:.6g}") for v in curve[9::10]] for curve in more]
                chosen.output.write_text(json.dumps(results) + "\n")
                print(f"{task} {who} {name}: {np.median([curve[-1] for curve in entry['curves']]):.5g}", flush=True)


if __name__ == "__main__":
    main()
