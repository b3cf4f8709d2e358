#!/usr/bin/env python3
"""Optuna's samplers on the problems of fronts.cpp: how much of the front's hypervolume is still missing.

  OMP_NUM_THREADS=1 .venv-bench/bin/python bench/search/optuna_fronts.py [--seeds 20] [--samplers nsga2 tpe random]

Prints lines of the form of hfta_bench_fronts': the median over the seeds, and the quartiles, after 100 and 300 trials.
"""
import argparse
import math
import warnings

import numpy as np
import optuna
from optuna._hypervolume import compute_hypervolume

from optuna_regret import FUNCTIONS, mixed

MARKS, BATCHES = (100, 300), (1, 8)
S = optuna.samplers
SAMPLERS = {
    "nsga2": lambda seed: S.NSGAIISampler(seed=seed),
    "nsga2-20": lambda seed: S.NSGAIISampler(seed=seed, population_size=20),
    "tpe": lambda seed: S.TPESampler(seed=seed),
    "random": lambda seed: S.RandomSampler(seed=seed),
}


def zdt(power):
    def values(p):
        x = [p[f"x{i}"] for i in range(6)]
        g = 1 + 9 * sum(x[1:]) / 5
        return x[0], g * (1 - (x[0] / g)**power)
    return values


def mixed_width(p):
    return mixed(p), math.log2(p["width"]) - 3


def volume(points, reference):
    points = np.array([point for point in points if all(a < b for a, b in zip(point, reference))])
    return compute_hypervolume(points, np.array(reference, dtype=float)) if len(points) else 0.0


FAR = (5, 6)
BEST_MIXED = [mixed_width({"lr": 3e-3, "width": width, "drop": 0.2, "opt": "b"}) for width in range(8, 513)]
PROBLEMS = {  # name: (values, space, reference, the front's hypervolume)
    "zdt1": (zdt(0.5), FUNCTIONS["hartmann6"][1], (1, 10), 10 - 1 / 3),
    "zdt2": (zdt(2), FUNCTIONS["hartmann6"][1], (1, 10), 10 - 2 / 3),
    "mixed_width": (mixed_width, FUNCTIONS["mixed"][1], FAR, volume(BEST_MIXED, FAR)),
}


def missing(problem, sampler, seed, batch):
    values, space, reference, whole = PROBLEMS[problem]
    study = optuna.create_study(directions=["minimize", "minimize"], sampler=SAMPLERS[sampler](seed))
    points, left = [], []
    while len(points) < MARKS[-1]:
        for trial in [study.ask(space) for _ in range(min(batch, MARKS[-1] - len(points)))]:
            points.append(values(trial.params))
            study.tell(trial, points[-1])
            if len(points) in MARKS:
                left.append(whole - volume(points, reference))
    return left


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--samplers", nargs="+", choices=SAMPLERS, default=list(SAMPLERS))
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    for problem in PROBLEMS:
        for sampler in arguments.samplers:
            for batch in BATCHES:
                runs = [missing(problem, sampler, seed, batch) for seed in range(arguments.seeds)]
                cells = [np.quantile(left, (0.5, 0.25, 0.75), method="lower") for left in zip(*runs)]
                print(f"{problem:12} {sampler:10} batches of {batch}" +
                      "".join(f"  {a:.3f} [{b:.3f}, {c:.3f}]" for a, b, c in cells), flush=True)


if __name__ == "__main__":
    main()
