#!/usr/bin/env python3
"""Does Optuna see in a study store what hfta-tune reports of it?

    optuna_check.py STORE STUDY REPORT_JSON [--reread COMMAND]

STORE is the SQLite file, REPORT_JSON what `hfta-tune report STUDY --storage STORE --format json` printed ("-": standard
input). Needs optuna and optuna-dashboard. Checks, in this order:

 1. optuna.load_study: state, value, parameters, intermediate values and numbers of every trial agree with the report, and
    the file's bytes are what they were.
 2. On a copy: Optuna adds trials to the study (optimize with the same distributions, enqueue_trial), numbers stay
    contiguous, the earlier trials as they were.
 3. With --reread: COMMAND, in which {store} and {study} are replaced, prints a report of that copy, and 1. holds for it.
 4. optuna-dashboard's app, called in process, answers over the copy.
 5. On the copy: delete_study leaves no row of the study in any hfta_* table.

Exit status 0 if all of it holds; otherwise 1 and one line per difference on standard error (77 without Optuna).
"""
import argparse
import hashlib
import json
import math
import os
import shlex
import sqlite3
import subprocess
import sys
import tempfile
import warnings

try:
    import optuna
    import optuna_dashboard
except ImportError as error:
    print(f"optuna_check: skipped: {error}", file=sys.stderr)
    sys.exit(77)

optuna.logging.set_verbosity(optuna.logging.ERROR)
warnings.simplefilter("ignore")

ADDED = 4


class Differences:
    def __init__(self):
        self.lines = []
        self.checks = 0

    def check(self, holds, what):
        self.checks += 1
        if not holds:
            self.lines.append(what)

    def equal(self, found, wanted, what):
        self.check(same(found, wanted), f"{what}: Optuna has {found!r}, the report {wanted!r}")


def same(a, b):
    """Equal in type and value; a float may stand for a whole number, null for what is not finite."""
    if a is None or b is None:
        return all(x is None or (isinstance(x, float) and not math.isfinite(x)) for x in (a, b))
    if isinstance(a, bool) or isinstance(b, bool) or isinstance(a, str) or isinstance(b, str):
        return type(a) is type(b) and a == b
    # Optuna keeps integers as doubles: beyond 2^53 it has the nearest one.
    return float(a) == float(b) if max(abs(a), abs(b)) > 2**53 else a == b


def url(path):
    return "sqlite:///" + os.path.abspath(path)


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def rows(path, sql, *arguments):
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        return connection.execute(sql, arguments).fetchall()


def stored_metric(path, study, metric):
    """{number: {epoch: value}} of our own table; None for NaN and the infinities."""
    out = {}
    for number, epoch, value in rows(
        path,
        "SELECT t.number, m.epoch, m.value FROM studies s JOIN trials t ON t.study_id = s.study_id "
        "JOIN hfta_epoch_metrics m ON m.trial_id = t.trial_id WHERE s.study_name = ? AND m.name = ?",
        study,
        metric,
    ):
        out.setdefault(number, {})[epoch] = value
    return out


def compare_trial(diff, trial, row, ours, metric):
    name = f"trial {trial.number}"
    diff.equal(trial.state.name, row["state"], f"{name}: state")
    diff.equal(trial.value, row["value"], f"{name}: value")
    diff.check(set(trial.params) == set(row["params"]),
               f"{name}: parameters: Optuna has {sorted(trial.params)}, the report {sorted(row['params'])}")
    for key in set(trial.params) & set(row["params"]):
        diff.equal(trial.params[key], row["params"][key], f"{name}: parameter {key}")
    steps = trial.intermediate_values
    diff.equal(max(steps, default=0), row["epochs"], f"{name}: epochs")
    if steps:
        diff.equal(steps[max(steps)], row["metrics"].get(metric), f"{name}: last {metric}")
    if ours is not None:
        diff.check(set(steps) == set(ours), f"{name}: epochs: Optuna has {sorted(steps)}, hfta_epoch_metrics {sorted(ours)}")
        for step in set(steps) & set(ours):
            diff.equal(steps[step], ours[step], f"{name}: {metric} at epoch {step}")
    if trial.state.is_finished():
        diff.check(row["duration_s"] is not None and abs(trial.duration.total_seconds() - row["duration_s"]) < 1e-5,
                   f"{name}: duration: Optuna has {trial.duration}, the report {row['duration_s']} s")


def compare(diff, path, study_name, report):
    study = optuna.load_study(study_name=study_name, storage=url(path))
    trials = study.get_trials()
    metric = report["metric"]
    diff.equal(study_name, report["study"], "study")
    diff.equal(study.direction.name.lower(), report["direction"].lower(), "direction")
    diff.equal((study.metric_names or ["value"])[0], metric, "metric")
    diff.check(len(trials) == len(report["trials"]),
               f"trials: Optuna has {len(trials)}, the report {len(report['trials'])}")
    counts = {}
    for trial in trials:
        counts[trial.state.name] = counts.get(trial.state.name, 0) + 1
    diff.check(counts == {state: n for state, n in report["counts"].items() if n},
               f"counts: Optuna has {counts}, the report {report['counts']}")
    by_number = {row["number"]: row for row in report["trials"]}
    ours = stored_metric(path, study_name, metric)
    diff.check([t.number for t in trials] == list(range(len(trials))), "numbers are not 0, 1, 2, ...")
    for trial in trials:
        if trial.number in by_number:
            compare_trial(diff, trial, by_number[trial.number], ours.get(trial.number), metric)
    finite = [t for t in trials if t.state.name == "COMPLETE" and math.isfinite(t.value)]
    if finite:
        sign = -1 if study.direction.name == "MAXIMIZE" else 1
        best = min(finite, key=lambda t: (sign * t.value, t.number))
        diff.equal(best.number, (report["best"] or {}).get("number"), "best trial")
    else:
        diff.equal(None, report["best"], "best trial")
    return trials


def suggest(trial, name, d):
    if isinstance(d, optuna.distributions.CategoricalDistribution):
        return trial.suggest_categorical(name, d.choices)
    if isinstance(d, optuna.distributions.IntDistribution):
        return trial.suggest_int(name, d.low, d.high, step=d.step, log=d.log)
    return trial.suggest_float(name, d.low, d.high, step=d.step, log=d.log)


def let_optuna_continue(diff, path, study_name, before):
    distributions = {}
    for trial in before:
        distributions.update(trial.distributions)
    study = optuna.load_study(study_name=study_name, storage=url(path),
                              sampler=optuna.samplers.TPESampler(seed=0, n_startup_trials=2),
                              pruner=optuna.pruners.MedianPruner(n_startup_trials=1))

    def objective(trial):
        for name, distribution in distributions.items():
            suggest(trial, name, distribution)
        for step in range(1, 4):
            trial.report(0.5 + step / 10, step)
        if trial.number % 2:
            raise optuna.TrialPruned()
        return 0.25 + trial.number / 1024

    study.optimize(objective, n_trials=ADDED)
    queued = next((t.params for t in before if t.params), {})
    study.enqueue_trial(queued)
    trials = study.get_trials()
    diff.check(trials[-1].state.name == "WAITING", f"enqueue_trial: found state {trials[-1].state.name}, wanted WAITING")
    study.optimize(objective, n_trials=1)
    study.enqueue_trial(queued)  # this one is left waiting
    trials = study.get_trials()
    waiting = sum(t.state.name == "WAITING" for t in before)
    added = ADDED + 2 - min(waiting, ADDED)
    diff.check(len(trials) == len(before) + added, f"Optuna added {len(trials) - len(before)} trials, wanted {added}")
    diff.check([t.number for t in trials] == list(range(len(trials))),
               f"numbers after Optuna added trials: {[t.number for t in trials]}, wanted 0, 1, 2, ...")
    run = trials[-2]
    diff.check(run.state.is_finished() and all(same(run.params[k], v) for k, v in queued.items()),
               f"trial {run.number} was queued with {queued}, ran with {run.params} ({run.state.name})")
    for old, new in zip(before, trials):
        if old.state.name == "WAITING":
            continue
        diff.check(repr((old.state, old.value, old.params, old.intermediate_values, old.datetime_start)) ==
                   repr((new.state, new.value, new.params, new.intermediate_values, new.datetime_start)),
                   f"trial {old.number} changed while Optuna added others: {old} became {new}")


def get(app, path):
    status = []
    query = path.split("?")
    environment = {"REQUEST_METHOD": "GET", "PATH_INFO": query[0], "QUERY_STRING": query[1] if len(query) > 1 else "",
                   "SERVER_NAME": "localhost", "SERVER_PORT": "80", "SCRIPT_NAME": "", "wsgi.url_scheme": "http",
                   "wsgi.input": open(os.devnull, "rb"), "wsgi.errors": sys.stderr, "HTTP_ACCEPT": "application/json"}
    body = b"".join(app(environment, lambda line, headers, error=None: status.append(line)))
    return status[0], body


def let_dashboard_show(diff, path, study_name):
    app = optuna_dashboard.wsgi(storage=url(path))
    study_id = rows(path, "SELECT study_id FROM studies WHERE study_name = ?", study_name)[0][0]
    count = rows(path, "SELECT count(*) FROM trials WHERE study_id = ?", study_id)[0][0]
    answers = {}
    for page in ("/dashboard", "/api/meta", "/api/studies", f"/api/studies/{study_id}", f"/csv/{study_id}"):
        status, answers[page] = get(app, page)
        diff.check(status.startswith("200"), f"optuna-dashboard: GET {page}: {status}: {answers[page][:200]!r}")
    if diff.lines:
        return
    summaries = json.loads(answers["/api/studies"])["study_summaries"]
    diff.check(study_name in [s["study_name"] for s in summaries], f"optuna-dashboard lists {summaries}")
    shown = json.loads(answers[f"/api/studies/{study_id}"])["trials"]
    diff.check(len(shown) == count, f"optuna-dashboard shows {len(shown)} trials, the store has {count}")


def let_optuna_delete(diff, path, study_name):
    study_id = rows(path, "SELECT study_id FROM studies WHERE study_name = ?", study_name)[0][0]
    trial_ids = {r[0] for r in rows(path, "SELECT trial_id FROM trials WHERE study_id = ?", study_id)}
    optuna.delete_study(study_name=study_name, storage=url(path))
    for (table,) in rows(path, "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'hfta\\_%' ESCAPE '\\'"):
        columns = [c[1] for c in rows(path, f"PRAGMA table_info({table})")]
        left = []
        if "study_id" in columns:
            left = rows(path, f"SELECT * FROM {table} WHERE study_id = ?", study_id)
        elif "trial_id" in columns:
            left = [r for r in rows(path, f"SELECT trial_id FROM {table}") if r[0] in trial_ids]
        diff.check(not left, f"delete_study left {len(left)} rows in {table}")


def read_report(path):
    with sys.stdin if path == "-" else open(path, encoding="utf-8") as file:
        return json.load(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store")
    parser.add_argument("study")
    parser.add_argument("report_json")
    parser.add_argument("--reread", metavar="COMMAND")
    arguments = parser.parse_args()
    if not os.path.isfile(arguments.store):
        parser.error(f"{arguments.store}: no such file")
    diff = Differences()
    bytes_before = digest(arguments.store)
    trials = compare(diff, arguments.store, arguments.study, read_report(arguments.report_json))
    diff.check(digest(arguments.store) == bytes_before, "the store's bytes changed by reading")
    with tempfile.TemporaryDirectory(prefix="optuna_check-") as folder:
        copy = os.path.join(folder, "copy.db")
        with sqlite3.connect(f"file:{arguments.store}?mode=ro", uri=True) as source, sqlite3.connect(copy) as target:
            source.backup(target)
        let_optuna_continue(diff, copy, arguments.study, trials)
        if arguments.reread:
            command = [word.format(store=copy, study=arguments.study) for word in shlex.split(arguments.reread)]
            printed = subprocess.run(command, capture_output=True, text=True)
            diff.check(printed.returncode == 0, f"{command}: exit {printed.returncode}: {printed.stderr}")
            if printed.returncode == 0:
                compare(diff, copy, arguments.study, json.loads(printed.stdout))
        let_dashboard_show(diff, copy, arguments.study)
        let_optuna_delete(diff, copy, arguments.study)
    for line in diff.lines[:50]:
        print(f"optuna_check: {line}", file=sys.stderr)
    if diff.lines:
        print(f"optuna_check: {len(diff.lines)} of {diff.checks} checks failed", file=sys.stderr)
        return 1
    print(f"optuna_check: {diff.checks} checks hold for {len(trials)} trials (Optuna {optuna.__version__}, "
          f"optuna-dashboard {optuna_dashboard.__version__})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
