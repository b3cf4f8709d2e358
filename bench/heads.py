#!/usr/bin/env python3
"""A sweep of heads over one frozen backbone: hfta-tune with its features kept and not kept, and PyTorch, run by run.

    bench/heads.py [--trials 16] [--epochs 10] [--rounds 3] [--pytorch-runs 16]

Every trial trains a head behind a frozen ResNet-18 in evaluation mode, on images of 32 x 32, and is validated after each
epoch. PyTorch trains one trial after the other; its backbone runs under no_grad, in every epoch, in batches. The times are
those of whole commands: start, reading the model and choosing a way to run are counted; of PyTorch only training is.
Where fewer PyTorch runs are made than there are trials, their time is scaled up, and the output says so. The command
fails if a table differs between the two ways of hfta-tune in any bit.
"""

import argparse
import os
import pathlib
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
import torchvision
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parent.parent
STUDY = """\
study: heads
storage: {storage}
seed: 1
method: random
run_cap: {trials}
metric: {{name: val_loss}}
parameters:
  lr: {{distribution: log_uniform_values, min: 1.0e-4, max: 1.0e-2}}
model: {{file: {folder}/heads.pt2}}
data: {{train: {folder}/train.npz, validation: {folder}/validation.npz, batch_size: {batch}}}
train:
  epochs: {epochs}
  loss: cross_entropy
  optimizer: {{name: adam, lr: "${{lr}}"}}
array: {{width: {trials}, threads: {threads}, cache: {cache}}}
"""


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = torchvision.models.resnet18(weights=None, num_classes=512).requires_grad_(False)
        self.backbone.fc = nn.Identity()
        self.head = nn.Sequential(nn.Linear(512, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 10))

    def train(self, mode=True):
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(self, x):
        return self.head(self.backbone(x))


def write_inputs(folder, model, samples):
    torch.manual_seed(1)
    for name, count in (("train", samples), ("validation", samples // 4)):
        x = torch.randn(count, 3, 32, 32)
        np.savez(folder / f"{name}.npz", x=x, y=(4 * (x.mean((1, 2, 3)) > 0) + torch.randint(0, 4, (count,))).numpy())
    shapes = ({0: torch.export.Dim("batch")},)
    program = torch.export.export(model.train(), (torch.randn(4, 3, 32, 32),), dynamic_shapes=shapes)
    torch.export.save(program, folder / "heads.pt2")


def table(store):
    with sqlite3.connect(store) as database:
        return database.execute("SELECT number, epoch, name, value FROM trials JOIN hfta_epoch_metrics USING (trial_id)"
                                " ORDER BY 1, 2, 3").fetchall()


def ours(arguments, folder, cache, count):
    storage = folder / f"{cache}-{count}.db"
    config = folder / "heads.yaml"
    config.write_text(STUDY.format(storage=storage, folder=folder, trials=arguments.trials, batch=arguments.batch,
                                   epochs=arguments.epochs, threads=arguments.threads, cache=cache))
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([arguments.binary, config], check=True, capture_output=True,
                   env={**os.environ, "HFTA_CACHE": str(folder / "choices")})
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu, table(storage)


def evaluate(model, x, y, batch):
    model.eval()
    with torch.no_grad():
        return sum(nn.functional.cross_entropy(model(a), b, reduction="sum").item()
                   for a, b in zip(x.split(batch), y.split(batch))) / len(y)


def pytorch(arguments, folder):
    """Wall and CPU seconds of one trial."""
    train, validation = (np.load(folder / f"{name}.npz") for name in ("train", "validation"))
    x, y, vx, vy = (torch.tensor(a) for a in (train["x"], train["y"], validation["x"], validation["y"]))
    model = Heads()
    optimizer = torch.optim.Adam(model.head.parameters(), lr=1e-3, fused=True)
    begin, cpu = time.perf_counter(), time.process_time()
    for _ in range(arguments.epochs):
        model.train()
        for rows in torch.randperm(len(x)).split(arguments.batch):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()
        evaluate(model, vx, vy, arguments.batch)
    return time.perf_counter() - begin, time.process_time() - cpu


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--samples", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3, help="of hfta-tune, both ways in turn; the median counts")
    parser.add_argument("--pytorch-runs", type=int, default=0, help="0: as many as trials")
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build/release/bin/hfta-tune")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    times = {"auto": [], "off": []}
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        write_inputs(folder, Heads(), arguments.samples)
        tables = []
        for count in range(arguments.rounds):
            for cache, found in times.items():
                wall, cpu, rows = ours(arguments, folder, cache, count)
                found.append((wall, cpu))
                tables.append(rows)
        runs = arguments.pytorch_runs or arguments.trials
        alone = [pytorch(arguments, folder) for _ in range(runs)]
    scale = arguments.trials / runs
    rows = {"features kept": [statistics.median(column) for column in zip(*times["auto"])],
            "array.cache: off": [statistics.median(column) for column in zip(*times["off"])],
            "PyTorch": [scale * sum(column) for column in zip(*alone)]}
    print(f"{arguments.trials} trials x {arguments.epochs} epochs, {arguments.samples} + {arguments.samples // 4} images,"
          f" batch {arguments.batch}, {arguments.threads} threads; {arguments.rounds} rounds, {runs} PyTorch runs"
          + ("" if scale == 1 else f", scaled by {scale:g}"))
    print("| | wall s | CPU s | times as long |\n|---|---|---|---|")
    for name, (wall, cpu) in rows.items():
        print(f"| {name} | {wall:.1f} | {cpu:.1f} | {wall / rows['features kept'][0]:.1f} |")
    same = all(rows == tables[0] for rows in tables) and len(tables[0]) > 0
    print("the tables are the same in every bit" if same else "FAILED: the tables differ")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
