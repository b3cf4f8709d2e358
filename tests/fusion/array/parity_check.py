"""Follows parity_dump's arrays in plain PyTorch: the same weights, samples and numbers, one trial by itself.

usage: parity_check.py FOLDER [--dump PARITY_DUMP]     (FOLDER as parity_dump wrote it, or writes it now)

One step in float32, 100 in float64: each loss, each gradient of the first step, and every weight and buffer after the
first step and the last are as near as rounding lets them be (noise_floor.py). One step in bfloat16: loss and gradients
within 2e-2 of those under torch.autocast, and nearer to them than to those in float32. Exits 1 and names what differs.
"""

import argparse
import json
import pathlib
import struct
import subprocess
import sys

import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from noise_floor import NoiseFloor, nudge_module

DTYPES = {"F32": np.float32, "F64": np.float64, "I64": np.int64}


def read(path):
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    meta = header.pop("__metadata__")
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        data = np.frombuffer(raw[8 + length + begin : 8 + length + end], DTYPES[entry["dtype"]])
        tensors[name] = torch.from_numpy(data.copy()).reshape(entry["shape"])
    return meta, tensors


def conv_net():
    n = torch.nn
    conv = lambda i, o: n.Conv2d(i, o, 3, padding=1, bias=False)
    return n.Sequential(conv(1, 4), n.BatchNorm2d(4), n.ReLU(), n.MaxPool2d(2),
                        conv(4, 6), n.BatchNorm2d(6), n.ReLU(), n.Flatten(), n.Linear(96, 5))


def mlp():
    n = torch.nn
    return n.Sequential(n.Flatten(), n.Linear(12, 16), n.ReLU(), n.Linear(16, 16), n.Tanh(), n.Linear(16, 4))


def optimizer(name, parameters, meta):
    lr, decay = float(meta["lr"]), float(meta["weight_decay"])
    if name == "sgd":
        return torch.optim.SGD(parameters, lr=lr, weight_decay=decay, momentum=float(meta["momentum"]),
                               nesterov=meta["nesterov"] == "1")
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[name]
    return kind(parameters, lr=lr, weight_decay=decay)


def difference(a, b):
    norm = b.double().norm().item()
    return (a.double() - b.double()).norm().item() / (norm or 1.0)


def loaded(model_name, dtype, tensors):
    """The model with the weights it began with, and those by their names in the array."""
    net = (conv_net if model_name == "conv" else mlp)().to(dtype).train()
    names = {f"layers.{key}": value for key, value in net.state_dict(keep_vars=True).items()}
    names.pop("layers.1.num_batches_tracked", None)
    names.pop("layers.5.num_batches_tracked", None)
    with torch.no_grad():
        for name, weight in names.items():
            weight.copy_(tensors["init." + name])
    return net, names


def check_bfloat16(path):
    model_name = path.stem.split("-")[0]
    meta, tensors = read(path)
    loss_of = torch.nn.CrossEntropyLoss(label_smoothing=float(meta["label_smoothing"]))
    found, failures = {}, []
    for lower in (False, True):
        net, names = loaded(model_name, torch.float32, tensors)
        with torch.autocast("cpu", torch.bfloat16, enabled=lower):
            loss = loss_of(net(tensors["x"][:6]), tensors["y"][:6])
        loss.backward()
        found[lower] = {name: weight.grad for name, weight in names.items() if weight.grad is not None}
        found[lower]["loss"] = loss.detach()
    names = list(found[False])
    ours = {name: tensors["losses"][0] if name == "loss" else tensors["grad." + name] for name in names}
    near = {name: difference(ours[name], found[True][name]) for name in names}
    far = {name: difference(ours[name], found[False][name]) for name in names}
    for name in names:
        if not near[name] <= 2e-2:
            failures.append(f"{path.stem}: {name}: off by {near[name]:.2e} of its norm, wanted 2e-02")
    if not sum(near.values()) < 0.5 * sum(far.values()):
        failures.append(f"{path.stem}: found it as near to float32 as to torch.autocast, wanted it nearer to the latter")
    print(f"{path.stem:28s} to torch.autocast {max(near.values()):.1e}, to float32 {max(far.values()):.1e}")
    return failures


def follow(path, nudge):
    """What PyTorch computes of the case from nudged weights and samples, by name."""
    model_name, optimizer_name, dtype_name, _ = path.stem.split("-")
    meta, tensors = read(path)
    exact = dtype_name == "float64"
    net, names = loaded(model_name, torch.float64 if exact else torch.float32, tensors)
    nudge_module(net, nudge)
    x = nudge(tensors["x"])
    loss_of = torch.nn.CrossEntropyLoss(label_smoothing=float(meta["label_smoothing"]))
    step = optimizer(optimizer_name, net.parameters(), meta)
    found = {"losses": []}
    for s in range(100 if exact else 1):
        rows = slice(s % 5 * 6, s % 5 * 6 + 6)
        step.zero_grad()
        loss = loss_of(net(x[rows]), tensors["y"][rows])
        loss.backward()
        step.step()
        found["losses"].append(loss.item())
        if s == 0:
            for name, weight in names.items():
                found["one." + name] = weight.detach().clone()
                if weight.grad is not None:
                    found["grad." + name] = weight.grad.clone()
    if exact:
        found |= {"end." + name: weight.detach().clone() for name, weight in names.items()}
    return found


def check(path):
    dtype_name = path.stem.split("-")[2]
    if dtype_name == "bfloat16":
        return check_bfloat16(path)
    _, tensors = read(path)
    floor = NoiseFloor(lambda nudge: follow(path, nudge), getattr(torch, dtype_name))
    worst, failures = {}, []
    for name in floor.wanted:
        found = tensors[name]
        verdict = floor.judge(name, found[:len(floor.wanted[name])].tolist() if name == "losses" else found)
        kind = name.split(".")[0]
        worst[kind] = max(worst.get(kind, 0.0), verdict.off)
        if verdict.failure:
            failures.append(f"{path.stem}: {name}: {verdict.failure}")
    print(f"{path.stem:28s} " + ", ".join(f"{what} {d:.1e}" for what, d in worst.items()))
    return failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--dump", metavar="PARITY_DUMP", help="fills the folder first")
    arguments = parser.parse_args()
    if arguments.dump:
        arguments.folder.mkdir(exist_ok=True)
        subprocess.run([arguments.dump, arguments.folder], check=True)
    torch.set_num_threads(1)
    paths = sorted(arguments.folder.glob("*.safetensors"))
    failures = [failure for path in paths for failure in check(path)]
    for failure in failures:
        print("FAIL", failure)
    if len(paths) != 28:
        sys.exit(f"found {len(paths)} cases, wanted 28")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
