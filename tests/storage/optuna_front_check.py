#!/usr/bin/env python3
"""Does Optuna see the same Pareto front as we do, in a study of several objectives?

    optuna_front_check.py STORE STUDY TOOL

TOOL is storage_sample, which wrote STUDY into STORE (`write_front`) and prints what our code reads of it (`front`).
Compares directions, metric names, states, values, the front and its hypervolume; on a copy once more after Optuna's
NSGAIISampler has added trials. Exit status 0 if all agree; 1 and the differences on standard error (77 without Optuna).
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings

try:
    import numpy
    import optuna
    from optuna._hypervolume import compute_hypervolume
except ImportError as error:
    print(f"optuna_front_check: skipped: {error}", file=sys.stderr)
    sys.exit(77)

optuna.logging.set_verbosity(optuna.logging.ERROR)
warnings.simplefilter("ignore")
ADDED = 40


def open_study(path, name, **options):
    return optuna.load_study(study_name=name, storage="sqlite:///" + os.path.abspath(path), **options)


def seen_by_optuna(path, name, reference):
    study = open_study(path, name)
    signs = numpy.array([-1 if d.name == "MAXIMIZE" else 1 for d in study.directions])
    points = signs * numpy.array([t.values for t in study.best_trials], dtype=float)
    return {"objectives": [list(pair) for pair in zip(study.metric_names, (d.name for d in study.directions))],
            "trials": [{"number": t.number, "state": t.state.name, "values": t.values or []} for t in study.trials],
            "front": sorted(t.number for t in study.best_trials),
            "reference": reference,
            "hypervolume": float(compute_hypervolume(points, numpy.array(reference)))}


def compare(path, name, tool):
    ours = json.loads(subprocess.run([tool, "front", path, name], check=True, capture_output=True, text=True).stdout)
    optunas = seen_by_optuna(path, name, ours["reference"])
    volume, other = ours.pop("hypervolume"), optunas.pop("hypervolume")
    different = [f"{key}: Optuna has {optunas[key]}, we have {ours[key]}" for key in optunas if optunas[key] != ours[key]]
    if abs(volume - other) > 1e-12 * abs(other):
        different.append(f"hypervolume: Optuna has {other!r}, we have {volume!r}")
    return different, ours


def let_optuna_add(path, name):
    def constraints(trial):  # violated by a part of the trials
        return (trial.params["x"] - 0.7, -1.0)

    sampler = optuna.samplers.NSGAIISampler(population_size=8, seed=0, constraints_func=constraints)
    study = open_study(path, name, sampler=sampler)

    def objective(trial):
        x, y = trial.suggest_float("uniform", -1, 1), trial.suggest_float("x", 0, 1)
        return 1 - abs(x) * y, 1000 * (1 - y) * (x + 1) / 2

    study.optimize(objective, n_trials=ADDED)


def main():
    path, name, tool = sys.argv[1:]
    different, ours = compare(path, name, tool)
    if ours["front"] != [0, 1, 4]:
        different.append(f"front: found {ours['front']}, wanted [0, 1, 4]")
    with tempfile.TemporaryDirectory(prefix="optuna_front_check-") as folder:
        copy = os.path.join(folder, "copy.db")
        shutil.copy(path, copy)
        let_optuna_add(copy, name)
        more, ours = compare(copy, name, tool)
        different += [f"after {ADDED} trials of Optuna's: {line}" for line in more]
        if len(ours["front"]) < 4:
            different.append(f"front: found only {ours['front']} after {ADDED} trials of Optuna's")
    for line in different:
        print(f"optuna_front_check: {line}", file=sys.stderr)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
