"""How cost grows: simulated studies of 10 to 10,000 trials and of longer and longer ones, and arrays of 1 to 64 slots.

Every curve is fitted over its upper half by a power of its size; at most linear is an exponent of at most 1.1. Whole
processes are measured from outside, sizes in turn, so that a busy machine slows all alike.
"""

import argparse
import json
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from curves import Curve, draw_curves, table
from figures import FIGURES
from harness import ROOT, WORK, Entry, commit, machine, prepared, say, undisturbed
from peers import Contestant, Failed, Race, Server

CONFIG = """
study: growth
storage: growth.db
seed: 1
{method}
run_cap: {trials}
metric: {{name: val_accuracy, goal: maximize}}
parameters:
  lr: {{{lr}}}
  momentum: {{{momentum}}}
  weight_decay: {{{weight_decay}}}
  hidden: {{{hidden}}}
model:
  layers: [flatten, {{linear: [64, "${{hidden}}"]}}, relu, {{linear: ["${{hidden}}", 10]}}]
data: {{name: digits, batch_size: 64, validation: 0.2}}
train:
  epochs: {epochs}
  loss: cross_entropy
  optimizer: {{name: sgd, lr: "${{lr}}", momentum: "${{momentum}}", weight_decay: "${{weight_decay}}"}}
"""
HIDDEN = "values: [32, 64, 128]"
INFINITE = {"lr": "distribution: log_uniform_values, min: 1.0e-4, max: 1.0", "momentum": "min: 0.0, max: 0.99",
            "weight_decay": "distribution: log_uniform_values, min: 1.0e-6, max: 1.0e-1", "hidden": HIDDEN}
FINITE = {"lr": "distribution: q_uniform, min: 0.05, max: 1.0, q: 0.05",  # 25,200 combinations
          "momentum": "distribution: q_uniform, min: 0.0, max: 0.95, q: 0.05",
          "weight_decay": "distribution: q_uniform, min: 0.0, max: 0.1, q: 0.005", "hidden": HIDDEN}

# A further strategy is a line here.
METHODS: dict[str, tuple[str, dict[str, str]]] = {
    "random": ("method: random", INFINITE),
    "hyperband": ("method: hyperband\nhyperband: {min_epochs: 1, max_epochs: 9, eta: 3}", INFINITE),
    "grid": ("method: grid", FINITE),
    # A shape of each trial's own: as many partitions as trials, the worst that a packer can be given.
    "shapes": ("method: hyperband\nhyperband: {min_epochs: 1, max_epochs: 9, eta: 3}",
               INFINITE | {"hidden": "distribution: int_uniform, min: 1, max: 1000000"}),
}
EPOCHS = 9  # where trials are counted
TRIALS = 16  # where epochs are
LONG = 2.0  # seconds of a run that is not repeated so often


@dataclass
class Taken:
    wall_s: float
    cpu_s: float
    rss_bytes: int  # at its peak


def taken(command: list[str], folder: Path) -> Taken:
    timed = [sys.executable, "-S", str(ROOT / "bench" / "timed.py"), "log", *command]
    done = subprocess.run(timed, cwd=folder, stdout=subprocess.PIPE)
    if done.returncode != 0:
        raise SystemExit(f"bench/growth: {' '.join(command)} failed:\n{(folder / 'log').read_text()[-2000:]}")
    return Taken(**json.loads(done.stdout))


@dataclass
class Study:
    """One study that is simulated, and what was measured of it."""

    method: str
    trials: int
    epochs: int = EPOCHS
    runs: dict[str, list[Taken]] = field(default_factory=dict)  # by command
    store_bytes: int = 0
    rows: int = 0

    def measure(self, binary: Path, trains: bool) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            method, space = METHODS[self.method]
            text = CONFIG.format(method=method, trials=self.trials, epochs=self.epochs, **space)
            (folder / "study.yaml").write_text(text)
            self.note("simulate", [binary, "simulate", "study.yaml", "--keep", "kept.db"], folder)
            self.note("report", [binary, "report", "--storage", "kept.db"], folder)
            self.note("resume", [binary, "resume", "growth", "--storage", "kept.db"], folder)
            self.count(folder / "kept.db")
            if trains:
                self.note("one more trial", [binary, "resume", "growth", "--storage", "kept.db", "--trials",
                                             self.trials + 1, "--device", "cpu"], folder)

    def note(self, what: str, command: list[Any], folder: Path) -> None:
        self.runs.setdefault(what, []).append(taken([str(word) for word in command], folder))

    def count(self, store: Path) -> None:
        self.store_bytes = store.stat().st_size
        with closing(sqlite3.connect(store)) as connection:
            tables = [name for name, in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            self.rows = sum(connection.execute(f'SELECT count(*) FROM "{t}"').fetchone()[0] for t in tables)

    def median(self, what: str, of: Callable[[Taken], float]) -> float:
        return statistics.median(of(t) for t in self.runs[what])

    @staticmethod
    def from_json(json: dict[str, Any]) -> "Study":
        runs = {what: [Taken(**one) for one in those] for what, those in json["runs"].items()}
        return Study(**json | {"runs": runs})

    def wanted(self, rounds: int) -> int:
        """Long runs vary less, and there is no time for many."""
        done = self.runs.get("simulate", [])
        return 3 if done and done[0].wall_s > LONG else rounds


def simulated(studies: list[Study], args: argparse.Namespace) -> None:
    trains = (args.binary.parent / "libhfta_torch.so").exists()
    for r in range(args.rounds):
        say(f"round {r + 1} of {args.rounds}")
        for study in studies:
            if r < study.wanted(args.rounds):
                study.measure(args.binary, trains and study.method == "random" and study.epochs == EPOCHS)


def raced(workload: str, widths: list[int], args: argparse.Namespace) -> list[dict[str, Any]]:
    """As bench/run measures its peer `ours`, without the others and without the check of losses; widths take turns."""
    race = Race(workload, WORK / workload, args.threads, "cpu", binary=args.step)
    batch = prepared(race)["batch"]
    entries = [Entry(server_of(race, width, args.limit), {"check": {"wrong": False}}) for width in widths]
    for entry in entries:
        entry.server.measure(args.window)  # finds the pace
    for r in range(args.array_rounds):
        say(f"{workload}, round {r + 1} of {args.array_rounds}")
        for entry in entries:
            try:
                entry.rounds.append(undisturbed(entry, args))
            except (Failed, BrokenPipeError) as failure:
                code = entry.server.process.wait()
                raise SystemExit(f"bench/growth: {workload}, {entry.server.width} wide: ended with {code}") from failure
    for entry in entries:
        entry.facts |= {"lowering": entry.server.ready["lowering"], **entry.server.quit()}
    return [entry.as_json(race, batch, width) for entry, width in zip(entries, widths)]


def server_of(race: Race, width: int, limit: float) -> Server:
    server = Server(Contestant("ours"), race, width, race.folder / f"growth-{width}.log")
    try:
        server.wait(limit)
    except Failed as failure:
        raise SystemExit(f"bench/growth: {race.workload}, {width} wide: {failure}") from failure
    return server


def curves_of(studies: list[Study], rows: list[dict[str, Any]]) -> list[Curve]:
    """What is plotted: every cost by what it may grow with."""
    curves = []
    for method in METHODS:
        those = [s for s in studies if s.method == method and s.epochs == EPOCHS]
        curves += study_curves(those, method, "trials", [s.trials for s in those])
    those = [s for s in studies if s.trials == TRIALS]
    curves += study_curves(those, f"{TRIALS} random trials", "epochs", [s.epochs for s in those])
    for workload in dict.fromkeys(row["workload"] for row in rows):
        those = [row for row in rows if row["workload"] == workload]
        widths = [row["width"] for row in those]
        curves.append(Curve(workload, "slots", "a step of all, ms", widths, [r["ms_per_step"] for r in those]))
        curves.append(Curve(workload, "slots", "peak memory, MiB", widths, [r["rss_peak"] / 2**20 for r in those]))
    return curves


def study_curves(studies: list[Study], name: str, along: str, sizes: list[int]) -> list[Curve]:
    curves = [Curve(name, along, f"{what}, CPU s", sizes, [s.median(what, lambda t: t.cpu_s) for s in studies])
              for what in (studies[0].runs if studies else [])]
    if studies:
        wall = [s.median("simulate", lambda t: t.wall_s) for s in studies]
        memory = [s.median("simulate", lambda t: t.rss_bytes) / 2**20 for s in studies]
        curves += [Curve(name, along, "simulate, wall s", sizes, wall),
                   Curve(name, along, "simulate, peak MiB", sizes, memory),
                   Curve(name, along, "store, MiB", sizes, [s.store_bytes / 2**20 for s in studies]),
                   Curve(name, along, "store, rows", sizes, [s.rows for s in studies])]
    return curves


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/growth", description=__doc__)
    parser.add_argument("--parts", default="studies,arrays", help="others are kept from --output; none: all are")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--trials", default="10,30,100,300,1000,3000,10000")
    parser.add_argument("--epochs", default="10,30,100,300,1000,3000", help=f"of {TRIALS} trials")
    parser.add_argument("--workloads", default="W1", help="of bench/run, for arrays")
    parser.add_argument("--widths", default="1,2,4,8,16,32,64")
    parser.add_argument("--threads", type=int, default=1, choices=(1, 2), help="of arrays")
    parser.add_argument("--rounds", type=int, default=5, help="of studies; 3 of what takes long")
    parser.add_argument("--array-rounds", type=int, default=9)
    parser.add_argument("--window", type=float, default=0.4, help="seconds that an array is measured in a round")
    parser.add_argument("--tries", type=int, default=3, help="for a window in which others used the machine")
    parser.add_argument("--limit", type=float, default=120, help="seconds in which an array has to be ready")
    parser.add_argument("--binary", type=Path, default=ROOT / "build/release/bin/hfta-tune")
    parser.add_argument("--step", type=Path, default=Race.binary, help="hfta_bench_step")
    parser.add_argument("--output", type=Path, default=ROOT / "bench/results/growth.json")
    parser.add_argument("--figures", type=Path, default=FIGURES)
    return parser.parse_args()


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def conditions() -> dict[str, Any]:
    return {"machine": machine(), "commit": commit(), "began": time.strftime("%Y-%m-%d %H:%M:%S")}


def measure(args: argparse.Namespace, results: dict[str, Any]) -> None:
    """Parts that are not asked for stay as they were."""
    args.binary = args.binary.absolute()
    if "studies" in args.parts:
        results["studies"] = conditions()
        studies = [Study(m, n) for m in args.methods.split(",") for n in numbers(args.trials)]
        studies += [Study("random", TRIALS, epochs) for epochs in numbers(args.epochs)]
        simulated(studies, args)
        results["studies"]["runs"] = [asdict(s) for s in studies]
    if "arrays" in args.parts:
        results["arrays"] = conditions()
        results["arrays"]["runs"] = [r for w in args.workloads.split(",") for r in raced(w, numbers(args.widths), args)]
    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.write_text(json.dumps(results, indent=1))


def main() -> None:
    args = parsed()
    results = json.loads(args.output.read_text()) if args.output.exists() else {}
    if args.parts != "none":
        measure(args, results)
    curves = curves_of([Study.from_json(s) for s in results.get("studies", {}).get("runs", [])],
                       results.get("arrays", {}).get("runs", []))
    print("\n".join(table(curves)))
    draw_curves(curves, args.figures)
    if worse := [c for c in curves if not c.at_most_linear]:
        raise SystemExit("bench/growth: worse than linear: " + "; ".join(f"{c.name}, {c.cost}" for c in worse))


if __name__ == "__main__":
    main()
