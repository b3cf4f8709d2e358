#!/usr/bin/env python3
"""Writes optuna-5.0.sql: a study that Optuna alone made, as SQL text, for golden_test.cpp. Run it with a new Optuna when
its tables change, and keep the old file: make_optuna_golden.py OUTPUT.sql"""
import os
import sqlite3
import sys
import tempfile

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

SPACE = {"lr": FloatDistribution(1e-5, 0.1, log=True), "momentum": FloatDistribution(0.0, 0.9, step=0.1),
         "batch": IntDistribution(16, 128, step=16), "width": IntDistribution(8, 512, log=True),
         "opt": CategoricalDistribution(["sgd", None, True, 3, 3.5, "w\u00f6rd", float("nan")])}


def params(k):
    return {"lr": 1e-5 * 2**k, "momentum": 0.1 * k, "batch": 16 * (k + 1), "width": 8 + k, "opt": SPACE["opt"].choices[k % 6]}


with tempfile.TemporaryDirectory() as folder:
    url = "sqlite:///" + os.path.join(folder, "golden.db")
    optuna.create_study(study_name="first", storage=url)
    study = optuna.create_study(study_name="golden", storage=url, direction="maximize")
    study.set_metric_names(["val_accuracy"])
    study.set_user_attr("who", "optuna")
    nan, inf = float("nan"), float("inf")
    rows = [(TrialState.COMPLETE, 0.75, {1: 0.5, 2: 0.75}), (TrialState.PRUNED, 0.25, {1: 0.25}),
            (TrialState.FAIL, None, {1: nan}), (TrialState.COMPLETE, inf, {3: inf, 7: -inf}),
            (TrialState.COMPLETE, 0.875, {}), (TrialState.PRUNED, None, {})]
    for k, (state, value, steps) in enumerate(rows):
        study.add_trial(create_trial(state=state, value=value, params=params(k), distributions=SPACE,
                                     intermediate_values=steps, user_attrs={"k": k}, system_attrs={"x": [k]}))
    study.ask()
    study.enqueue_trial({"lr": 0.01})
    with sqlite3.connect(os.path.join(folder, "golden.db")) as database, open(sys.argv[1], "w", encoding="utf-8") as out:
        out.write(f"-- Made by make_optuna_golden.py with Optuna {optuna.__version__}.\n")
        for line in database.iterdump():
            out.write(line + "\n")
