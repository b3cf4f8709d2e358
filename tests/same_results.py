#!/usr/bin/env python3
"""Whether two builds of hfta-tune end the same studies in the same tables and the same kept weights, bit for bit.

usage: same_results.py OLD NEW [STUDY ...]      OLD, NEW: binaries; STUDY: names from the table below, all unless named

For refactorings: build the commit before and the commit after, and compare. Both take the ways to run that OLD measured
(they share its cache), since two ways give results that are equal up to rounding only.
"""

import argparse
import contextlib
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/engine/fused"))
from kills_check import read_tables, same_tables  # noqa: E402

EXPORTED = """
study: s
seed: 5
method: random
run_cap: 6
keep: 2
metric: {{name: val_loss}}
parameters:
  lr: {{distribution: log_uniform_values, min: 1.0e-3, max: 1.0e-1}}
  decay: {{values: [0, 1.0e-3]}}
model: {{file: model.pt2, init: {init}}}
data: {{train: train.npz, validation: 0.25, batch_size: 16}}
train:
  epochs: 4
  loss: cross_entropy
  optimizer: {{name: {optimizer}, lr: "${{lr}}", weight_decay: "${{decay}}"}}
"""


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 12, num_layers=2, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(24, 4)

    def forward(self, x):
        return self.head(self.drop(self.lstm(x)[0][:, -1]))


class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv1d(7, 16, 3, padding=1), nn.ReLU(), nn.Conv1d(16, 16, 3), nn.Flatten())
        self.backbone.requires_grad_(False)
        self.head = nn.Sequential(nn.Linear(16 * 4, 24), nn.LayerNorm(24), nn.GELU(), nn.Dropout(0.1), nn.Linear(24, 4))

    def forward(self, x):
        return self.head(self.backbone(x))


def from_config(name, *changes):
    """One of configs/, with its data where they lie."""
    def write(folder):
        text = (ROOT / "configs" / f"{name}.yaml").read_text().replace("../data/", f"{ROOT}/data/")
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new)
        (folder / "study.yaml").write_text(text)
    return write


def exported(module, optimizer, init):
    def write(folder):
        torch.manual_seed(0)
        batch = torch.export.Dim("batch", min=2, max=1024)
        example = (torch.randn(2, 7, 6),)
        program = torch.export.export(module().train(), example, dynamic_shapes=({0: batch},))
        torch.export.save(program, folder / "model.pt2")
        rng = np.random.default_rng(0)
        x = rng.standard_normal((160, 7, 6)).astype(np.float32)
        np.savez(folder / "train.npz", x=x, y=np.argmax(x[:, :4].sum(-1), -1))
        (folder / "study.yaml").write_text(EXPORTED.format(optimizer=optimizer, init=init))
    return write


KILLS = ("trials-added@1=kill", "committed@2=kill", "state-saved@3=kill", "in-transaction@4=kill", "epoch-ended@5=kill")
STUDIES = {  # name: (what writes its files, the faults that its processes meet before one may finish)
    "hyperband": (from_config("digits"), ()),
    "grid": (from_config("grid"), ()),
    "seeds": (from_config("seeds"), ()),
    "regression": (from_config("diabetes"), ()),
    "exported_lstm": (exported(Lstm, "adam", "fresh"), ()),
    "frozen_backbone": (exported(Frozen, "sgd", "exported"), ()),
    "killed": (from_config("digits", ("run_cap: 98", "run_cap: 34"), ("max_epochs: 27", "max_epochs: 9"),
                           ("epochs: 27", "epochs: 9")), KILLS),
}


def run(binary, folder, cache, faults):
    """The store at the end of the study."""
    for order in (*faults, ""):
        environment = dict(os.environ, HFTA_CACHE=str(cache), HFTA_FAULTS=order)
        done = subprocess.run([binary, "study.yaml", "--set", "storage=s.db"], cwd=folder, env=environment, text=True,
                              capture_output=True)
        wanted = -signal.SIGKILL if order else 0
        assert done.returncode == wanted, f"{order}: exit {done.returncode}, wanted {wanted}\n{done.stderr}"
    return folder / "s.db"


def ways(store):
    """How its arrays ran."""
    with contextlib.closing(sqlite3.connect(store)) as database:
        return database.execute("SELECT DISTINCT partition, choices_json ->> 'lowering' FROM hfta_arrays ORDER BY 1, 2").fetchall()


def kept(store):
    """Of the states beside the store: where they are and what is in them; their names hold epoch and checksum."""
    beside = store.with_name("s.db.hfta")
    return {str(file.relative_to(beside)): file.read_bytes() for file in beside.rglob("*") if file.is_file()}


def report(binary, store):
    return subprocess.run([binary, "report", "--storage", store, "--format", "csv"], check=True, capture_output=True).stdout


def compare(name, binaries, scratch):
    write, faults = STUDIES[name]
    began = time.monotonic()
    stores = []
    for which, binary in zip(("old", "new"), binaries):
        folder = scratch / name / which
        folder.mkdir(parents=True)
        write(folder)
        stores.append(run(binary, folder, scratch / name / "cache", faults))
    old, new = stores
    assert ways(new) == ways(old), f"{name}: found arrays that ran as {ways(new)}, wanted {ways(old)}"
    same_tables(read_tables(new), read_tables(old))
    states = kept(old)
    assert states and kept(new) == states, f"{name}: kept states differ: {sorted(kept(new))}, {sorted(states)}"
    for binary in binaries:  # each reads the other's
        assert report(binary, old) == report(binaries[0], old), f"{name}: reports of one store differ"
    trials = len(read_tables(old)["trials"])
    print(f"{name}: {trials} trials, {len(states)} states: the same, bit for bit ({time.monotonic() - began:.0f} s)", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("studies", nargs="*", choices=[*STUDIES, []], metavar="STUDY")
    arguments = parser.parse_args()
    scratch = pathlib.Path(tempfile.mkdtemp())
    try:
        for name in arguments.studies or STUDIES:
            compare(name, [arguments.old.resolve(), arguments.new.resolve()], scratch)
    finally:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
