"""repeat and folds equal studies by hand: the same configurations under seeds that the config gives, and on files of folds.

usage: repetitions_check.py HFTA_TUNE SCRATCH_FOLDER [repeat|folds ...]
"""

import importlib.util
import json
import math
import pathlib
import subprocess
import sys

import numpy as np
from study_check import MLP, Runs, same

ROOT = pathlib.Path(__file__).resolve().parents[3]
STUDY = """
study: s
storage: s.db
seed: 3
method: random
run_cap: 3
metric: {name: val_loss, goal: minimize}
parameters:
  lr: {distribution: log_uniform_values, min: 1.0e-3, max: 3.0e-2}
  dropout: {min: 0.0, max: 0.5}
  hidden: {values: [16, 24]}
train:
  epochs: 3
  dtype: float64
  loss: cross_entropy
  optimizer: {name: adamw, lr: "${lr}"}
""" + MLP
DIGITS = "data: {name: digits, batch_size: 64, order: per_trial, test: 0.2%s}\n"
T_975 = {2: 4.302653, 3: 3.182446}  # Student's t by degrees of freedom
MASK = 2**64 - 1


def report(runs, folder):
    command = [runs.binary, "report", "--storage", folder / "s.db", "--format", "json"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def run(runs, text):
    folder = runs.folder(text)
    runs.run(folder, "--width", "4")
    return folder


def of_repetition(table, name, index, count):
    """The trials of one seed or fold, as a study of their own numbers them."""
    chosen = [trial for trial in table if trial["params"][name] == index]
    assert [trial["number"] for trial in chosen] == list(range(index, len(table), count)), chosen
    return [{**trial, "number": number, "params": {key: value for key, value in trial["params"].items() if key != name}}
            for number, trial in enumerate(chosen)]


def check_configurations(found, count):
    """The report's numbers of each configuration, from its trials' values; best first."""
    values = {trial["number"]: trial["value"] for trial in found["trials"]}
    means = []
    for one in found["configurations"]:
        own = np.array([values[number] for number in one["trials"]])
        half = T_975[count - 1] * own.std(ddof=1) / math.sqrt(count)
        for name, wanted in (("mean", own.mean()), ("value", own.mean()), ("deviation", own.std(ddof=1)),
                             ("low", own.mean() - half), ("high", own.mean() + half), ("median", np.median(own))):
            assert math.isclose(one[name], wanted, rel_tol=1e-6), f"{name}: found {one[name]}, wanted {wanted}"
        assert one["complete"] == count == len(own)
        means.append(own.mean())
    assert means == sorted(means)
    best = found["configurations"][0]["trials"]
    assert found["best"]["number"] == min(best, key=values.get), found["best"]
    assert "test_loss" in found["best"]["metrics"]


def check_optuna(folder, name, count):
    """Optuna sees each repetition as a trial with a parameter of that name."""
    if importlib.util.find_spec("optuna") is None:
        print("optuna: skipped, it is not installed")
        return
    import optuna
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    groups = {}
    for trial in optuna.load_study(study_name="s", storage=f"sqlite:///{folder / 's.db'}").trials:
        params = dict(trial.params)
        index = params.pop(name)
        groups.setdefault(tuple(params.items()), []).append(index)
    assert list(groups.values()) == 3 * [list(range(count))], groups


def repeat(runs):
    text = STUDY.replace("  epochs: 3\n", "  epochs: 3\n  seed: 40\n") + DIGITS % ", validation: 0.2"
    folder = run(runs, text.replace("run_cap: 3", "run_cap: 3\nrepeat: 3"))
    table = runs.table(folder)[0]
    assert len({trial["value"] for trial in table}) == 9, "seeds make no difference"
    for seed in range(3):
        by_hand = run(runs, text.replace("seed: 40", f"seed: {40 + seed}"))
        same(of_repetition(table, "repeat", seed, 3), runs.table(by_hand)[0], 0)
    check_configurations(report(runs, folder), 3)
    check_optuna(folder, "repeat", 3)
    print("repeat: equal to three studies with train.seed, bit for bit")


def mix(z):
    z = (z + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


class Counted:
    """base/random.hpp: Philox4x32-10 (Salmon et al., SC'11)."""

    def __init__(self, seed, stream, item):
        self.key, place = mix(seed ^ mix(stream)), mix(item ^ mix(0))
        self.counter = [0, 0, place & 0xFFFFFFFF, place >> 32]
        self.words = []

    def next_u32(self):
        if not self.words:
            c, k0, k1 = list(self.counter), self.key & 0xFFFFFFFF, self.key >> 32
            for _ in range(10):
                p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
                c = [(p1 >> 32) ^ c[1] ^ k0, p1 & 0xFFFFFFFF, (p0 >> 32) ^ c[3] ^ k1, p0 & 0xFFFFFFFF]
                k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
            self.words = c
            self.counter[0] += 1
        return self.words.pop(0)

    def below(self, bound):
        limit = MASK - (MASK % bound + 1) % bound
        while True:
            draw = self.next_u32() | self.next_u32() << 32
            if draw <= limit:
                return draw % bound


def permuted(size, seed, item):
    order, random = list(range(size)), Counted(seed, 5, item)  # 5: Stream::kSplit
    for i in range(size, 1, -1):
        other = random.below(i)
        order[i - 1], order[other] = order[other], order[i - 1]
    return order


def write_folds(folder, count, seed):
    """Test data are the first fifth of one permutation; what is left is dealt class by class in the order of another."""
    rows = np.loadtxt(ROOT / "data" / "digits.csv", delimiter=",", skiprows=1)
    header = (ROOT / "data" / "digits.csv").read_text().splitlines()[0].split(",")
    label = header.index("label")
    x = (np.delete(rows, label, 1).astype(np.float32) / np.float32(16)).reshape(-1, 1, 8, 8)
    y = rows[:, label].astype(np.int64)
    held = round(0.2 * len(y))
    order = permuted(len(y), seed, 0)
    test, rest = sorted(order[:held]), sorted(order[held:])
    np.savez(folder / "test.npz", x=x[test], y=y[test])
    x, y = x[rest], y[rest]
    order = permuted(len(y), seed, 1)
    classes = [[i for i in order if y[i] == label] for label in range(10)]
    for _ in range(len(y) % count):
        max(classes, key=len).pop()
    dealt = sum(classes, [])
    for fold in range(count):
        part = sorted(dealt[fold::count])
        others = sorted(set(range(len(y))) - set(part))
        np.savez(folder / f"held-{fold}.npz", x=x[part], y=y[part])
        np.savez(folder / f"train-{fold}.npz", x=x[others], y=y[others])


def folds(runs):
    text = STUDY.replace("run_cap: 3", "run_cap: 3\nfolds: {count: 4, stratified: true}") + DIGITS % ""
    folder = run(runs, text)
    table = runs.table(folder)[0]
    files = runs.scratch / "files"
    files.mkdir()
    write_folds(files, 4, 3)
    for fold in range(4):
        data = (f'data: {{train: "{files}/train-{fold}.npz", validation: "{files}/held-{fold}.npz", '
                f'test: "{files}/test.npz", batch_size: 64, order: per_trial}}\n')
        by_hand = run(runs, STUDY.replace("  epochs: 3\n", "  epochs: 3\n  seed: 0\n") + data)
        same(of_repetition(table, "fold", fold, 4), runs.table(by_hand)[0], 0)
    check_configurations(report(runs, folder), 4)
    check_optuna(folder, "fold", 4)
    print("folds: equal to four studies on files of folds, bit for bit")


PARTS = {"repeat": repeat, "folds": folds}


def main():
    binary, scratch = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    for name in sys.argv[3:] or PARTS:
        PARTS[name](Runs(binary, scratch / name))


if __name__ == "__main__":
    main()
