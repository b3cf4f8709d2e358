"""Whole studies by the real program: the same table at any width, after any interruption; errors with their exit codes.

usage: study_check.py HFTA_TUNE SCRATCH_FOLDER [widths|promotions|interruptions|groups|errors ...]
"""

import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

# Layers before a batch norm have no bias: its gradient is zero but for rounding, which Adam divides by the root of its
# own square. Such a bias would walk by the noise of the kernels that a width happens to choose.
MLP = """
model:
  layers:
    - flatten
    - {linear: {in_features: 64, out_features: "${hidden}", bias: false}}
    - {batch_norm1d: "${hidden}"}
    - relu
    - {dropout: "${dropout}"}
    - {linear: ["${hidden}", 10]}
"""
CONV = """
model:
  layers:
    - {conv2d: {in_channels: 1, out_channels: 4, kernel_size: 3, padding: 1, bias: false}}
    - {batch_norm2d: 4}
    - relu
    - {max_pool2d: 2}
    - flatten
    - {dropout: "${dropout}"}
    - {linear: [64, "${hidden}"]}
    - relu
    - {linear: ["${hidden}", 10]}
"""
STUDY = """
study: s
storage: s.db
seed: 3
method: hyperband
hyperband: {{min_epochs: 1, max_epochs: 9, eta: 3}}
run_cap: 17
metric: {{name: val_loss, goal: minimize}}
parameters:
  lr: {{distribution: log_uniform_values, min: 1.0e-3, max: {most}}}
  wd: {{values: [0, 1.0e-3]}}
  dropout: {{min: 0.0, max: 0.5}}
  hidden: {{values: [16, 24]}}
data: {{name: digits, batch_size: 64, validation: 0.2, test: 0.2}}
train:
  epochs: 9
  dtype: {dtype}
  loss: cross_entropy
  optimizer: {{name: {optimizer}, lr: "${{lr}}", weight_decay: "${{wd}}"{more}}}
  schedule: {{name: cosine}}
"""


def study(model, optimizer, dtype):
    sgd = optimizer == "sgd"
    return STUDY.format(optimizer=optimizer, dtype=dtype, most=0.3 if sgd else 0.03,
                        more=", momentum: 0.9" if sgd else "") + model


class Runs:
    def __init__(self, binary, scratch):
        self.binary, self.scratch, self.count = binary, scratch, 0
        shutil.rmtree(scratch, ignore_errors=True)
        self.environment = dict(os.environ, HFTA_CACHE=str(scratch / "cache"))

    def folder(self, text):
        self.count += 1
        folder = self.scratch / f"run{self.count}"
        folder.mkdir(parents=True)
        (folder / "study.yaml").write_text(text)
        return folder

    def start(self, folder, *options):
        return subprocess.Popen([self.binary, folder / "study.yaml", *options], env=self.environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, folder, *options, wanted=0):
        process = self.start(folder, *options)
        out, err = process.communicate(timeout=300)
        assert process.returncode == wanted, f"exit {process.returncode}, wanted {wanted}\n{out}\n{err}"
        return out, err

    def table(self, folder):
        command = [self.binary, "report", "--storage", folder / "s.db", "--format", "json"]
        report = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        return [{key: trial[key] for key in ("number", "state", "value", "params", "epochs", "metrics")}
                for trial in report["trials"]], report["best"]


def same(found, expected, tolerance):
    """Tables equal in states, parameters and epochs; numbers within tolerance (0: bit for bit)."""
    assert len(found) == len(expected), f"{len(found)} trials, wanted {len(expected)}"
    for a, b in zip(found, expected):
        for key in ("number", "state", "params", "epochs"):
            assert a[key] == b[key], f"trial {b['number']}: {key}: found {a[key]}, wanted {b[key]}"
        numbers = [("value", a["value"], b["value"])]
        numbers += [(name, a["metrics"].get(name), value) for name, value in b["metrics"].items()]
        for name, x, y in numbers:
            close = x == y or (tolerance > 0 and abs(x - y) <= tolerance * max(abs(x), abs(y)))
            assert close, f"trial {b['number']}: {name}: found {x!r}, wanted {y!r}"


def widths(runs):
    for model, optimizer in ((MLP, "adamw"), (MLP, "sgd"), (CONV, "sgd"), (CONV, "adamw")):
        text = study(model, optimizer, "float64")
        expected = None
        for width in ("1", "4", "16", "auto"):
            folder = runs.folder(text)
            runs.run(folder, "--width", width)
            table, best = runs.table(folder)
            if expected is None:
                expected, expected_best = table, best
                assert sum(t["state"] == "COMPLETE" for t in table) >= 3
            same(table, expected, 1e-9)
            assert best["number"] == expected_best["number"]
        print(f"widths: {optimizer}: equal at 1, 4, 16 and auto")


def curves(folder):
    """Every metric of every epoch, by trial number."""
    with sqlite3.connect(folder / "s.db") as store:
        rows = store.execute("SELECT t.number, m.epoch, m.name, m.value FROM hfta_epoch_metrics m"
                             " JOIN trials t ON t.trial_id = m.trial_id ORDER BY 1, 2, 3").fetchall()
    found = {}
    for number, *row in rows:
        found.setdefault(number, []).append(tuple(row))
    return found


def promotions(runs):
    """A trial that was paused and promoted five times, among others that come and go, has the curve of one that is
    trained through beside quite others."""
    long = study(CONV, "sgd", "float32").replace("epochs: 9", "epochs: 32").replace("max_epochs: 9, eta: 3",
                                                                                      "max_epochs: 32, eta: 2")
    for dtype, widths_and_tolerance in (("float32", [("16", 0)]), ("float64", [("16", 0), ("3", 1e-9)])):
        text = long.replace("dtype: float32", f"dtype: {dtype}").replace("run_cap: 17", "run_cap: 32")
        folder = runs.folder(text)
        runs.run(folder, "--width", "16")
        winner = runs.table(folder)[1]
        assert winner["epochs"] == 32, winner
        through = text.replace("method: hyperband", "method: grid").replace("run_cap: 32\n", "")
        through = "\n".join(line for line in through.splitlines() if not line.startswith("hyperband:")) + "\n"
        for name, value in winner["params"].items():
            through = re.sub(rf"^  {name}: .*$", f"  {name}: {{value: {value!r}}}", through, flags=re.MULTILINE)
        seeds = [1000 + i for i in range(5)] + [winner["number"]] + [2000 + i for i in range(10)]
        through = through.replace("parameters:\n", f"parameters:\n  seed: {{values: {seeds}}}\n")
        through = through.replace("train:\n", "train:\n  seed: ${seed}\n")
        for width, tolerance in widths_and_tolerance:
            other = runs.folder(through)
            runs.run(other, "--width", width)
            a, b = curves(folder)[winner["number"]], curves(other)[5]
            assert len(a) == len(b) == 32 * 3, (len(a), len(b))
            for x, y in zip(a, b):
                assert x[:2] == y[:2] and abs(x[2] - y[2]) <= tolerance * abs(y[2]), (dtype, width, x, y)
    print("promotions: five of them change no bit")


def wait_stopped(process):
    """Until the process is stopped, as HFTA_FAULTS has it do at some place; it must not end before."""
    code = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT).si_code
    assert code == os.CLD_STOPPED, "ended before it was stopped"


def seconds_of(runs, text, *options):
    """What a study takes from its start to its end, on this machine as it is now."""
    began = time.monotonic()
    runs.run(runs.folder(text), *options)
    return time.monotonic() - began


def lives_to_the_end(runs, folder, how, whole, *options):
    """Sends each life of a study the signal until one reaches the study's end; how many there were."""
    for lives in range(1, 40):
        process = runs.start(folder, *options)
        try:  # longer from life to life, so that each gets further than the last
            _, err = process.communicate(timeout=whole * (0.2 + 0.1 * lives))
        except subprocess.TimeoutExpired:
            process.send_signal(how)
            _, err = process.communicate(timeout=300)
        if process.returncode == 0:
            return lives
        # A signal that comes before the program has begun does what it does to any program.
        codes = (128 + how,) if "hfta-tune: " in err else (128 + how, -how)
        codes = (-how,) if how == signal.SIGKILL else codes
        assert process.returncode in codes, f"exit {process.returncode}, wanted {codes}\n{err}"
    raise AssertionError("no life reaches the end")


def broken_off(runs, text, how, whole, *options):
    """The folder of a study that was broken off by the signal again and again until it had ended, and how many lives
    it had. `whole`: what one takes that nothing disturbs; less is tried where the first life reaches the end."""
    while whole > 0.01:
        folder = runs.folder(text)
        lives = lives_to_the_end(runs, folder, how, whole, *options)
        if lives > 1:
            return folder, lives
        whole /= 2
    raise AssertionError("no study is broken off")


def interruptions(runs):
    text = study(CONV, "sgd", "float32")
    folder = runs.folder(text)
    runs.run(folder)  # and the choices are remembered for the others
    expected, expected_best = runs.table(folder)
    whole = seconds_of(runs, text)
    for how in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        folder, lives = broken_off(runs, text, how, whole)
        table, best = runs.table(folder)
        same(table, expected, 0)
        assert best == expected_best or {**best, "duration_s": 0} == {**expected_best, "duration_s": 0}, (best, expected_best)
        print(f"interruptions: {how.name}: {lives} lives, the same table bit for bit")


GROUPS = """groups: [
      {params: "*bias", weight_decay: 0},
      {params: "layers.1", lr: "${dropout}", betas: [0.8, 0.99]},
      {params: head, lr_scale: 10}]"""


def groups(runs):
    """Groups of parameters: what a plan says of them; the same table at any width, and when killed on the way."""
    text = study(MLP, "adamw", "float64").replace('"${wd}"}', '"${wd}", ' + GROUPS + "}")
    text = text.replace('{linear: ["${hidden}", 10]}', '{linear: ["${hidden}", 10], name: head}')
    text = text.replace("dropout: {min: 0.0", "dropout: {min: 0.001")
    folder = runs.folder(text)
    out = subprocess.run([runs.binary, "plan", folder / "study.yaml", "--format", "json"], env=runs.environment, text=True,
                         capture_output=True, check=True).stdout
    for partition in json.loads(out)["partitions"]:
        hidden = int(re.search(r"hidden=(\d+)", partition["partition"])[1])
        assert [g["parameters"] for g in partition["groups"]] == [hidden + 10, 64 * hidden, 10 * hidden], partition
        assert partition["parameters"] - sum(g["parameters"] for g in partition["groups"]) == hidden, partition
    runs.run(folder, "--width", "1")
    expected, _ = runs.table(folder)
    for width in ("4", "auto"):
        other = runs.folder(text)
        runs.run(other, "--width", width)
        same(runs.table(other)[0], expected, 1e-9)
    whole = seconds_of(runs, text, "--width", "1")
    killed, lives = broken_off(runs, text, signal.SIGKILL, whole, "--width", "1")
    same(runs.table(killed)[0], expected, 0)
    refused = runs.folder(text.replace("params: head", "params: haed"))
    _, err = runs.run(refused, wanted=2)
    assert "train.optimizer.groups.2.params: found no parameter 'haed'; did you mean 'head'?" in err, err
    print(f"groups: equal at 1, 4 and auto, and bit for bit after {lives} lives")


ERRORS = [
    # what is set, exit code, words of the message
    ("model.layers.1.linear=[63, 16]", 2, ["linear", "[N, 64]", "[N, 63]"]),
    ("data.batch_size=0", 2, ["data.batch_size", "found 0"]),
    ("array.device=cuda", 4, ["cuda", "cpu"]),
    ("model.layers.5.linear=[\"${hidden}\", 4]", 2, ["[N, 4]", "10 classes"]),
    ("model.layers.5.linear=[\"${hiden}\", 10]", 2, ["hiden", "hidden"]),
    ("train.optimizer.nme=sgd", 2, ["nme", "name"]),
    ("parameters.lr.min=0", 2, ["lr", "found 0"]),
    ("parameters.wd.values=[]", 2, ["wd"]),
    ("data.batch_size=1078", 2, ["batch_size", "one sample"]),
]


def errors(runs):
    for setting, code, words in ERRORS:
        folder = runs.folder(study(MLP, "sgd", "float32"))
        out, err = runs.run(folder, "--set", setting, wanted=code)
        assert len(err.strip().splitlines()) == 1, err
        for word in words:
            assert word in err, f"{setting}: found '{err.strip()}', wanted '{word}' in it"
        assert sorted(p.name for p in folder.iterdir()) == ["study.yaml"], "something was created"
    print(f"errors: {len(ERRORS)} mistakes told in one line each, nothing created")


def main():
    runs = Runs(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
    for name in sys.argv[3:] or ("widths", "promotions", "interruptions", "groups", "errors"):
        {"widths": widths, "promotions": promotions, "interruptions": interruptions, "groups": groups,
         "errors": errors}[name](runs)


if __name__ == "__main__":
    main()
