#!/usr/bin/env python3
"""Studies of heads over frozen backbones, with the real program: features_check.py HFTA_TUNE FOLDER [bits kills plan]

bits   the table and the kept weights are the same whatever array.cache is: multi-input models, evaluation files, two
       partitions over one backbone, an order of samples for each trial
kills  a study that is killed again and again ends with the table of one that nothing disturbed
plan   says what is shared and kept, and what prevents it
"""
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

import numpy as np
import torch
from torch import nn


class Backbone(nn.Module):
    """Of two inputs, with what torch.nn leaves to training's mode."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 32)
        self.body = nn.Sequential(nn.Linear(32, 64), nn.ReLU(inplace=True), nn.Dropout(0.1), nn.Linear(64, 64))
        self.norm = nn.BatchNorm1d(64)

    def forward(self, ids, mask):
        x = self.body(self.embed(ids)) * mask.unsqueeze(-1)
        return torch.tanh(self.norm(x.sum(1) / mask.sum(1, keepdim=True)))


class Text(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.backbone = Backbone().requires_grad_(False)
        self.drop = nn.Dropout(0.2)
        self.first, self.head = nn.Linear(64, width), nn.Linear(width, 3)
        self.noisy = False

    def train(self, mode=True):
        super().train(mode)
        self.backbone.train(mode and self.noisy)
        return self

    def forward(self, ids, mask):
        return self.head(torch.relu(self.first(self.drop(self.backbone(ids, mask)))))


STUDY = """\
study: text
storage: text.db
seed: 2
keep: 3
method: random
run_cap: 6
metric: {name: val_loss}
parameters:
  lr: {distribution: log_uniform_values, min: 1.0e-3, max: 1.0e-1}
  width: {values: [8, 16]}
model: {file: "text-${width}.pt2", evaluation: "text-${width}.eval.pt2"}
data: {train: train.npz, validation: validation.npz, test: test.npz, x: [ids, mask], batch_size: 16, order: per_trial}
train:
  epochs: 3
  loss: cross_entropy
  optimizer: {name: adam, lr: "${lr}"}
array: {width: 3, threads: 2}
"""


def export(folder, name, model, dynamic=True):
    example = (torch.randint(0, 30, (4, 10)), torch.ones(4, 10))
    batch = {0: torch.export.Dim("batch")}
    shapes = {"ids": batch, "mask": batch} if dynamic else None
    for mode, suffix in (True, ""), (False, ".eval"):
        torch.export.save(torch.export.export(model.train(mode), example, dynamic_shapes=shapes),
                          folder / f"{name}{suffix}.pt2")


def write_inputs(folder):
    torch.manual_seed(1)
    for name, count in (("train", 130), ("validation", 45), ("test", 31)):
        ids, mask = torch.randint(0, 30, (count, 10)), (torch.arange(10) < torch.randint(3, 11, (count, 1))).float()
        np.savez(folder / f"{name}.npz", ids=ids, mask=mask, y=(ids.sum(1) % 3).numpy())
    torch.manual_seed(2)
    backbone = Backbone()
    backbone.norm.running_mean.normal_()
    for width in 8, 16:
        model = Text(width)
        model.backbone.load_state_dict(backbone.state_dict())
        export(folder, f"text-{width}", model)
    model.noisy = True
    export(folder, "noisy", model)
    model.noisy = False
    export(folder, "fixed", model, dynamic=False)
    (folder / "text.yaml").write_text(STUDY)


class Runs:
    def __init__(self, binary, root):
        self.binary, self.root, self.inputs, self.count = binary.resolve(), root.resolve(), root.resolve() / "inputs", 0
        shutil.rmtree(self.root, ignore_errors=True)
        self.inputs.mkdir(parents=True)
        write_inputs(self.inputs)

    def folder(self):
        self.count += 1
        return pathlib.Path(shutil.copytree(self.inputs, self.root / str(self.count)))

    def start(self, folder, *words):
        environment = {**os.environ, "HFTA_CACHE": str(self.root / "cache")}
        return subprocess.Popen([self.binary, *words], cwd=folder, env=environment, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def run(self, folder, *words, code=0):
        process = self.start(folder, *words)
        out, err = process.communicate()
        assert process.returncode == code, f"{words}: {process.returncode}\n{out}{err}"
        return out


QUERIES = (
    "SELECT number, state, value FROM trials LEFT JOIN trial_values USING (trial_id) ORDER BY number",
    "SELECT number, epoch, name, m.value FROM trials JOIN hfta_epoch_metrics m USING (trial_id) ORDER BY 1, 2, 3",
    "SELECT number, name, m.value FROM trials JOIN hfta_test_metrics m USING (trial_id) ORDER BY 1, 2")


def results(runs, folder):
    with sqlite3.connect(folder / "text.db") as database:
        rows = [database.execute(query).fetchall() for query in QUERIES]
    runs.run(folder, "export", "text", "--storage", "text.db", "--output", "best.safetensors")
    return rows, hashlib.sha256((folder / "best.safetensors").read_bytes()).hexdigest()


def check_bits(runs):
    found = {}
    for words in ("array.cache=auto",), ("array.cache=off",), ("array.cache=0",), ("array.cache=100",), \
            ("array.cache=12000",), ("array.cache=auto", "array.width=1"), ("array.cache=off", "array.threads=1"):
        folder = runs.folder()
        runs.run(folder, "text.yaml", *(word for setting in words for word in ("--set", setting)))
        found[words] = results(runs, folder)
    expected = found["array.cache=auto",]
    assert len(expected[0][1]) == 6 * 3 * 3 and len(expected[0][2]) == 2, expected
    for words, result in found.items():
        assert result == expected, f"{words}: found {result}, wanted {expected}"


def killed_to_the_end(runs, folder, cache, whole):
    """Kills a study, which takes `whole` seconds undisturbed, at most six times, and lets it end; how many times."""
    kills = 0
    while True:
        process = runs.start(folder, "text.yaml", "--set", f"array.cache={cache}")
        try:
            _, err = process.communicate(timeout=random.uniform(0.2, 0.9) * whole if kills < 6 else None)
            assert process.returncode == 0, err
            return kills
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            kills += 1


def check_kills(runs):
    undisturbed = runs.folder()
    runs.run(undisturbed, "text.yaml")  # and the choices are remembered for the others
    expected = results(runs, undisturbed)
    random.seed(3)
    for cache in "auto", "off", "12000":
        began = time.perf_counter()
        runs.run(runs.folder(), "text.yaml", "--set", f"array.cache={cache}")
        whole, kills = time.perf_counter() - began, 0
        while kills == 0:  # again, and sooner, where the machine has become that much faster
            assert whole > 0.01, "no study is killed"
            folder = runs.folder()
            kills = killed_to_the_end(runs, folder, cache, whole)
            whole /= 2
            assert results(runs, folder) == expected, f"array.cache={cache}, killed {kills} times"


def plan(runs, *settings):
    folder = runs.folder()
    words = [word for setting in settings for word in ("--set", setting)]
    table = runs.run(folder, "plan", "text.yaml", *words)
    return json.loads(runs.run(folder, "plan", "text.yaml", "--format", "json", *words))["partitions"][0], table


def check_plan(runs):
    partition, table = plan(runs)
    features = partition["features"]
    assert features["shared"] and features["bytes_per_sample"] == 64 * 4 and features["samples"] == 130 + 45 + 31, features
    assert features["kept_bytes"] == 256 * 206 and features["prevented"] == "", features
    assert "256 bytes per sample" in table and "each sample is computed once" in table, table
    off, table = plan(runs, "array.cache=off")
    assert off["features"]["kept_bytes"] == 0 and "computed in every epoch" in table, table
    assert partition["bytes"] - off["bytes"] == 256 * 206, (partition["bytes"], off["bytes"])
    noisy, table = plan(runs, "model.file=noisy.pt2", "model.evaluation=noisy.eval.pt2", "parameters.width={values: [16]}")
    assert "backbone.body.2.eval() before the export" in table and "draws random numbers" in table, table
    fixed, table = plan(runs, "model.file=fixed.pt2", "model.evaluation=fixed.eval.pt2", "parameters.width={values: [16]}",
                        "data.batch_size=4")
    assert not fixed["features"]["shared"] and "exactly 4" in fixed["features"]["prevented"], fixed


CHECKS = {"bits": check_bits, "kills": check_kills, "plan": check_plan}


def main() -> int:
    runs = Runs(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
    for name in sys.argv[3:] or CHECKS:
        begin = time.perf_counter()
        CHECKS[name](runs)
        print(f"ok {name} ({time.perf_counter() - begin:.1f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
