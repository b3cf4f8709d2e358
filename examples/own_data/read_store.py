#!/usr/bin/env python3
"""Reads the study back: read_store.py [waves.db] [waves]

A study store is an Optuna study in an SQLite file. With Optuna installed (pip install optuna) this uses it; without, it
asks SQLite for the same table.
"""
import contextlib
import pathlib
import sqlite3
import sys

store = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("waves.db")
study_name = sys.argv[2] if len(sys.argv) > 2 else "waves"


def with_optuna(optuna):
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.load_study(study_name=study_name, storage=f"sqlite:///{store}")
    best = study.best_trial
    print(f"{len(study.trials)} trials; the best is number {best.number} with {best.value:.4f}: {best.params}")
    print("its value after each epoch:", [round(value, 3) for value in best.intermediate_values.values()])


def with_sqlite():
    query = """
        SELECT t.number, v.value FROM trials t JOIN studies s USING (study_id) JOIN trial_values v USING (trial_id)
        WHERE s.study_name = ? AND t.state = 'COMPLETE' AND v.value_type = 'FINITE'
        ORDER BY v.value DESC, t.number LIMIT 5"""
    with contextlib.closing(sqlite3.connect(f"{store.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        for number, value in connection.execute(query, (study_name,)):
            print(f"trial {number}: {value:.4f}")


if not store.exists():
    sys.exit(f"{store} is not there yet: run hfta-tune on config.yaml first")
try:
    import optuna
except ImportError:
    with_sqlite()
else:
    with_optuna(optuna)
