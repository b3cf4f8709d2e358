"""Trains the tasks of bench/search/tasks with hfta-tune, 1,024 random configurations of each, and keeps their curves.

    bench/search/record.py --work FOLDER [TASK ...]

A curve is the study's metric after each epoch, with five digits: what `hfta-tune simulate --curves` reads. That of a
trial that diverged ends with NaN. A killed run resumes when it is started again with the same folder.
"""

import argparse
import csv
import gzip
import io
import json
import sqlite3
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
TASKS = ("tabular", "cnn", "text", "head", "regression")


def train(task: str, work: Path, binary: Path, trials: int | None) -> Path:
    (work / f"{task}.yaml").write_text((HERE / "tasks" / f"{task}.yaml").read_text())
    limit = ["--trials", str(trials)] if trials else []
    subprocess.run([str(binary), str(work / f"{task}.yaml"), *limit], check=True, stdout=subprocess.DEVNULL)
    return work / f"{task}.db"


def report(task: str, store: Path, binary: Path) -> dict:
    line = [str(binary), "report", task, "--storage", str(store), "--format", "json"]
    return json.loads(subprocess.run(line, check=True, capture_output=True).stdout)


def curves_of(store: Path, metric: str) -> dict[int, list[float]]:
    """By the trial's number, the metric after epochs 1, 2, ...; what is not finite is NaN."""
    rows = sqlite3.connect(f"file:{store}?mode=ro", uri=True).execute(
        "SELECT t.number, m.epoch, m.value FROM trials t JOIN hfta_epoch_metrics m ON m.trial_id = t.trial_id "
        "WHERE m.name = ? ORDER BY t.number, m.epoch", (metric,))
    curves: dict[int, list[float]] = {}
    for number, epoch, value in rows:
        curve = curves.setdefault(number, [])
        assert epoch == len(curve) + 1
        curve.append(float("nan") if value is None else value)
    return curves


def short(value: object) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def write(task: str, store: Path, told: dict, path: Path) -> int:
    trials = {trial["number"]: trial for trial in told["trials"]}
    names = list(told["trials"][0]["params"])
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(["trial", "epoch", told["metric"], *(f"param.{name}" for name in names)])
    curves = curves_of(store, told["metric"])
    for number, curve in curves.items():
        if trials[number]["state"] == "FAIL":
            curve[-1] = float("nan")  # it diverged in this epoch, whatever the metric still was
        for epoch, value in enumerate(curve, 1):
            first = [short(trials[number]["params"][name]) for name in names] if epoch == 1 else [""] * len(names)
            lines.writerow([number, epoch, short(value), *first])
    path.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
    return len(curves)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", choices=[*TASKS, []], default=TASKS, metavar="TASK")
    parser.add_argument("--work", type=Path, required=True, help="folder of data, models and stores")
    parser.add_argument("--binary", type=Path, default=ROOT / "build" / "release" / "bin" / "hfta-tune")
    parser.add_argument("--trials", type=int, help="instead of the tasks' own run_cap")
    parser.add_argument("--output", type=Path, default=HERE / "curves")
    chosen = parser.parse_args()
    chosen.output.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, str(HERE / "make_data.py"), str(chosen.work)], check=True)
    for task in chosen.tasks:
        store = train(task, chosen.work, chosen.binary, chosen.trials)
        count = write(task, store, report(task, store, chosen.binary), chosen.output / f"{task}.csv.gz")
        print(f"{task}: {count} curves in {chosen.output / task}.csv.gz")


if __name__ == "__main__":
    main()
