#!/usr/bin/env python3
"""Data parallel over two processes: hfta-tune on cpu:1+cpu:1 and PyTorch's DistributedDataParallel (gloo), run by run.

    bench/data_parallel.py [--rounds 3] [--epochs 6] [--slots 1 8] [--models mlp conv transformer]

Both train the same exported module with SGD and momentum, one thread a process, batches divided between the two. Shown are
milliseconds of a training step of one trial: the median over all epochs but the first, then over the rounds, which the two
take in turn. PyTorch trains one trial; with more slots, hfta-tune trains so many side by side, and its time is divided by
their number. The command fails if hfta-tune's first losses differ from PyTorch's by more than 1e-3.
"""

import argparse
import os
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

from peers import TUNABLES

ROOT = pathlib.Path(__file__).resolve().parent.parent
RATE, MOMENTUM, RANKS = 0.01, 0.9, 2
STUDY = """\
study: s
storage: {folder}/run.db
seed: 1
method: random
run_cap: {slots}
metric: {{name: train_loss}}
parameters: {{weight_decay: {{min: 0.0, max: 1.0e-9}}}}
model: {{file: {folder}/model.pt2}}
data: {{train: {folder}/train.npz, batch_size: {batch}, shuffle: false}}
train:
  epochs: {epochs}
  loss: cross_entropy
  optimizer: {{name: sgd, lr: {rate}, momentum: {momentum}, weight_decay: "${{weight_decay}}"}}
array: {{width: {slots}, device: cpu:1+cpu:1, divide: batches_evenly}}
"""


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(128, 4, 256, dropout=0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(128, 10)

    def forward(self, x):
        return self.head(self.layers(x).mean(1))


def mlp():
    return nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))


def conv():
    return nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(4), nn.Flatten(),
                         nn.Linear(64 * 16, 10))


MODELS = {"mlp": (mlp, (256,), 128), "conv": (conv, (3, 32, 32), 64), "transformer": (Transformer, (32, 128), 32)}


def made(name):
    torch.manual_seed(0)
    return MODELS[name][0]()


def write_inputs(folder, name, steps):
    _, shape, batch = MODELS[name]
    torch.manual_seed(1)
    x = torch.randn(steps * batch, *shape)
    np.savez(folder / "train.npz", x=x, y=(x.flatten(1)[:, 0] > 0).long().numpy())
    dynamic = ({0: torch.export.Dim("batch", min=2)},)
    torch.export.save(torch.export.export(made(name), (x[:batch],), dynamic_shapes=dynamic), folder / "model.pt2")


def rank(index, folder, name, epochs, port):
    """One of DDP's processes; the first prints the first epoch's mean loss and the seconds of each epoch."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=index, world_size=RANKS)
    model = nn.parallel.DistributedDataParallel(made(name))
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    data = np.load(folder / "train.npz")
    batch = MODELS[name][2]
    own = [torch.tensor(data[key]).unflatten(0, (-1, batch)).chunk(RANKS, 1)[index].contiguous() for key in "xy"]
    seconds, losses = [], []
    for _ in range(epochs):
        dist.barrier()
        begin, total = time.perf_counter(), torch.zeros(())
        for x, y in zip(*own):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        seconds.append(time.perf_counter() - begin)
        dist.all_reduce(total)
        losses.append(total.item() / RANKS / len(own[0]))
    if index == 0:
        print(losses[0], *seconds)
    dist.barrier()  # neither leaves while the other still talks to it
    dist.destroy_process_group()


def pytorch(folder, name, epochs, port):
    command = [sys.executable, __file__, "--folder", str(folder), "--models", name, "--epochs", str(epochs), "--port", str(port)]
    environment = {**os.environ, "GLIBC_TUNABLES": TUNABLES, "OMP_NUM_THREADS": "1"}
    ranks = [subprocess.Popen([*command, "--rank", str(i)], env=environment, stdout=subprocess.PIPE, text=True)
             for i in range(RANKS)]
    told = [one.communicate()[0] for one in ranks]
    if any(one.returncode for one in ranks):
        raise SystemExit("bench/data_parallel.py: a process of PyTorch failed")
    first, *seconds = map(float, told[0].split())
    return first, statistics.median(seconds[1:])


def ours(binary, folder, name, epochs, slots):
    config = folder / "study.yaml"
    store = folder / "run.db"
    store.unlink(missing_ok=True)
    config.write_text(STUDY.format(folder=folder, slots=slots, batch=MODELS[name][2], epochs=epochs, rate=RATE,
                                   momentum=MOMENTUM))
    subprocess.run([binary, config], check=True, capture_output=True,
                   env={**os.environ, "HFTA_CACHE": str(folder / "choices")})
    with sqlite3.connect(store) as database:
        seconds = [row[0] for row in database.execute("SELECT seconds FROM hfta_rounds ORDER BY round")]
        first = database.execute("SELECT value FROM hfta_epoch_metrics WHERE epoch = 1 AND name = 'train_loss'").fetchone()[0]
    return first, statistics.median(seconds[1:]) / slots


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--steps", type=int, default=64, help="of an epoch")
    parser.add_argument("--slots", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build/release/bin/hfta-tune")
    for name in ("--rank", "--port"):
        parser.add_argument(name, type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=pathlib.Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rank is not None:
        return rank(arguments.rank, arguments.folder, arguments.models[0], arguments.epochs, arguments.port)
    print("| model | DDP, ms a step | " + " | ".join(f"hfta-tune, {slots} slots | DDP takes" for slots in arguments.slots) + " |")
    print("|---|---|" + "---|---|" * len(arguments.slots))
    for name in arguments.models:
        with tempfile.TemporaryDirectory() as text:
            folder = pathlib.Path(text)
            write_inputs(folder, name, arguments.steps)
            theirs, own = [], {slots: [] for slots in arguments.slots}
            for count in range(arguments.rounds):
                first, seconds = pytorch(folder, name, arguments.epochs, 29500 + os.getpid() % 1000 + count)
                theirs.append(seconds)
                for slots, found in own.items():
                    loss, seconds = ours(arguments.binary.resolve(), folder, name, arguments.epochs, slots)
                    if abs(loss - first) > 1e-3:
                        raise SystemExit(f"bench/data_parallel.py: {name}: found a first loss of {loss}, wanted PyTorch's {first}")
                    found.append(seconds)
            ms = [1e3 * statistics.median(values) / arguments.steps for values in (theirs, *own.values())]
            print(f"| {name} | {ms[0]:.2f} | " + " | ".join(f"{one:.2f} | {ms[0] / one:.2f}" for one in ms[1:]) + " |", flush=True)


if __name__ == "__main__":
    main()
