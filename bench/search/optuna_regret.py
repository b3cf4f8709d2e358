#!/usr/bin/env python3
"""Optuna's samplers on the functions of functions.hpp, measured as hfta_bench_search measures ours.

  OMP_NUM_THREADS=1 .venv-bench/bin/python bench/search/optuna_regret.py --output optuna.json

The output has the layout of hfta_bench_search's; table.py joins the two. Runs that the file has already are kept.
"""
import argparse
import json
import math
import pathlib
import time
import warnings

import numpy as np
import optuna

MARKS = (20, 60, 100)
HISTORIES = (10, 100, 1000)

A = np.array([[10, 3, 17, 3.5, 1.7, 8], [.05, 10, 17, .1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, .05, 10, .1, 14]])
P = 1e-4 * np.array([[1312, 1696, 5569, 124, 8283, 5886], [2329, 4135, 8307, 3736, 1004, 9991],
                     [2348, 1451, 3522, 2883, 3047, 6650], [4047, 8828, 8732, 5743, 1091, 381]])
ALPHA = np.array([1.0, 1.2, 3.0, 3.2])


def branin(p):
    x, y = p["x0"], p["x1"]
    return ((y - 5.1 / (4 * math.pi**2) * x * x + 5 / math.pi * x - 6)**2 +
            10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10)


def hartmann6(p):
    x = np.array([p[f"x{i}"] for i in range(6)])
    return float(-(ALPHA * np.exp(-(A * (x - P)**2).sum(1))).sum())


def mixed(p):
    offset = {"a": .3, "b": 0., "c": .15, "d": .6}[p["opt"]]
    return ((math.log10(p["lr"]) - math.log10(3e-3))**2 / 2 + (math.log2(p["width"]) - math.log2(96))**2 / 20 +
            offset + 2 * (p["drop"] - .2)**2)


D = optuna.distributions
FUNCTIONS = {  # name: (function, space, least value)
    "branin": (branin, {"x0": D.FloatDistribution(-5, 10), "x1": D.FloatDistribution(0, 15)}, 0.39788735772973816),
    "hartmann6": (hartmann6, {f"x{i}": D.FloatDistribution(0, 1) for i in range(6)}, -3.32236801141551),
    "mixed": (mixed, {"lr": D.FloatDistribution(1e-5, 1, log=True), "width": D.IntDistribution(8, 512, log=True),
                      "drop": D.FloatDistribution(0, .9, step=.1), "opt": D.CategoricalDistribution("abcd")}, 0.0),
}
S = optuna.samplers
SAMPLERS = {
    "random": lambda seed: S.RandomSampler(seed=seed),
    "qmc": lambda seed: S.QMCSampler(seed=seed, scramble=True),
    "tpe": lambda seed: S.TPESampler(seed=seed),
    "cmaes": lambda seed: S.CmaEsSampler(seed=seed),
    "gp": lambda seed: S.GPSampler(seed=seed, deterministic_objective=True),
}


def regrets(function, sampler, seed, batch):
    """Simple regret after each mark; `batch` trials are asked, then told."""
    f, space, least = FUNCTIONS[function]
    study = optuna.create_study(sampler=SAMPLERS[sampler](seed))
    best, curve = math.inf, []
    while len(curve) < MARKS[-1]:
        asked = [study.ask(space) for _ in range(min(batch, MARKS[-1] - len(curve)))]
        for trial in asked:
            value = f(trial.params)
            study.tell(trial, value)
            best = min(best, value)
            curve.append(best - least)
    return [curve[mark - 1] for mark in MARKS]


def milliseconds(function, sampler, history, asks=5):
    """Processor time of one ask behind a history of random trials: the median of `asks`, the first left out."""
    f, space, _ = FUNCTIONS[function]
    study = optuna.create_study(sampler=S.RandomSampler(seed=1))
    for _ in range(history):
        trial = study.ask(space)
        study.tell(trial, f(trial.params))
    study.sampler = SAMPLERS[sampler](0)
    took = []
    for _ in range(asks + 1):
        began = time.process_time()
        trial = study.ask(space)
        took.append(1e3 * (time.process_time() - began))
        study.tell(trial, f(trial.params))
    return float(np.median(took[1:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--functions", default=",".join(FUNCTIONS))
    parser.add_argument("--samplers", default=",".join(SAMPLERS))
    parser.add_argument("--batches", default="1,8")
    parser.add_argument("--output", type=pathlib.Path, required=True)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)

    result = {"program": f"Optuna {optuna.__version__}", "marks": MARKS, "regret": {}, "milliseconds": {}}
    if args.output.exists():
        result = json.loads(args.output.read_text())

    def keep(section, key, measure):
        if key in result[section]:
            return
        result[section][key] = measure()
        args.output.write_text(json.dumps(result) + "\n")
        print(key, "done", flush=True)

    for sampler in args.samplers.split(","):
        for function in args.functions.split(","):
            for batch in map(int, args.batches.split(",")):
                keep("regret", f"{function}/{sampler}/{batch}",
                     lambda: [regrets(function, sampler, seed, batch) for seed in range(args.seeds)])
            for history in HISTORIES:
                keep("milliseconds", f"{function}/{sampler}/{history}",
                     lambda: milliseconds(function, sampler, history))


if __name__ == "__main__":
    main()
