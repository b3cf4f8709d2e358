"""Binds a number of a module to a hyperparameter, and follows every slot in PyTorch with the number in its place.

    bound_check.py MODEL_CURVE [NAME ...]

Each slot has a number of its own. Slot by slot, together and compiled, losses of a few steps and the answer in evaluation
mode are as near to PyTorch's as rounding lets them be (noise_floor.py). The module is exported with the first slot's
number: for some that is the op's default, which exports leave out.
"""

import copy
import functools
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass
from typing import Callable

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from each_case import check_each
from exporting import exported
from noise_floor import NoiseFloor, Nudge, nudge_module

BATCH, STEPS, FEATURES, CLASSES, RATE = 6, 3, 6, 4, 0.1
WAYS = {"alone": {"chunk": 1}, "together": {"chunk": 3}, "compiled": {"chunk": 1, "compiled": True}}
counting = lambda x: torch.arange(1, FEATURES + 1)


@dataclass(frozen=True)
class Case:
    """`function(x, h)` of x [N, F]; `argument`: the name of h in the op's schema. `refused`: with these words."""

    argument: str
    function: Callable
    numbers: tuple[float, float, float] = (0.5, 0.25, 0.7)
    refused: str = ""


def attention(x, h):
    q = x.view(-1, 3, 2)
    return F.scaled_dot_product_attention(q, q.sin(), q.cos(), scale=h).reshape(x.shape)


CASES = {
    "mul": Case("other", lambda x, h: x * h),
    "div": Case("other", lambda x, h: x / h),
    "add": Case("other", lambda x, h: x + h),
    "power": Case("exponent", lambda x, h: x.sigmoid() ** h),
    "mul of truths": Case("other", lambda x, h: x + (x > 0) * h),
    "mul of integers": Case("other", lambda x, h: x * (counting(x) * h)),
    "div of integers": Case("other", lambda x, h: x * (counting(x) / h)),
    "add of integers": Case("other", lambda x, h: x * (counting(x) + h)),
    "mul in bfloat16": Case("other", lambda x, h: x + (counting(x).to(torch.bfloat16) * h).to(x.dtype), (0.5, 0.3, 0.7)),
    "div in bfloat16": Case("other", lambda x, h: x + (counting(x).to(torch.bfloat16) / h).to(x.dtype), (0.5, 0.3, 0.7)),
    "leaky_relu": Case("negative_slope", F.leaky_relu, (0.01, 0.2, 0.5)),
    "elu": Case("alpha", lambda x, h: F.elu(x, h), (1.0, 0.5, 2.0)),
    "celu": Case("alpha", lambda x, h: F.celu(x, h), (1.0, 0.5, 2.0)),
    "softplus": Case("beta", lambda x, h: F.softplus(x, h), (1.0, 0.5, 2.0)),
    "softshrink": Case("lambd", F.softshrink, (0.5, 0.1, 0.3)),
    "hardtanh": Case("max_val", lambda x, h: F.hardtanh(x, -1.0, h), (1.0, 0.3, 0.6)),
    "huber": Case("delta", lambda x, h: F.huber_loss(x, x.cos(), "none", h), (1.0, 0.5, 0.2)),
    "layer_norm": Case("eps", lambda x, h: F.layer_norm(x, (FEATURES,), eps=h), (1e-5, 0.1, 1.0)),
    "group_norm": Case("eps", lambda x, h: F.group_norm(x, 2, eps=h), (1e-5, 0.1, 1.0)),
    "rms_norm": Case("eps", lambda x, h: F.rms_norm(x, (FEATURES,), eps=h), (1e-5, 0.1, 1.0)),
    "rrelu": Case("lower", lambda x, h: F.rrelu(x, h, 0.9, training=False), (0.125, 0.3, 0.6)),
    "attention": Case("scale", attention, (0.5, 1.0, 2.0)),
    "one number of two": Case("other@0.5", lambda x, h: x / (x.abs() + 1e-6) / h + x * h),
    "two numbers of one name": Case("other", lambda x, h: x / (x.abs() + 1e-6) / h, refused="names 2 different numbers: 1e-06 at "),
    "no such number": Case("other@0.75", lambda x, h: x * h, refused="names no number 0.75, but 0.5"),
}


class Net(nn.Module):
    """`apart`: is called where the bound number stands, so that its path is of a module of its own."""

    def __init__(self, case: Case):
        super().__init__()
        self.first, self.apart, self.head = nn.Linear(FEATURES, FEATURES), Function(case), nn.Linear(FEATURES, CLASSES)

    def forward(self, x):
        return self.head(self.apart(self.first(x)))


class Function(nn.Module):
    def __init__(self, case: Case):
        super().__init__()
        self.function, self.number = case.function, case.numbers[0]

    def forward(self, x):
        return self.function(x, self.number)


def follow(fresh: Net, x: torch.Tensor, y: torch.Tensor, number: float, nudge: Nudge) -> dict:
    model = copy.deepcopy(fresh).double()
    model.apart.number = number
    nudge_module(model, nudge)
    x = nudge(x.double())
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=RATE), []
    for rows in torch.arange(len(x)).split(BATCH):
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        return {"losses": losses, "answer": model.eval()(x[:BATCH]).flatten()}


def run(model_curve: str, case: Case, folder: pathlib.Path, way: dict) -> dict:
    spec = {"model": str(folder / "model.pt2"), "data": str(folder / "data.safetensors"), "dtype": "float64", "batch": BATCH,
            "loss": "cross_entropy", "optimizer": "sgd", "steps": STEPS, "bind": {f"apart.{case.argument}": case.numbers[0]},
            "slots": [{"lr": RATE, "seed": i, "hypers": [number]} for i, number in enumerate(case.numbers)], **way}
    (folder / "specs.json").write_text(json.dumps([spec]))
    done = subprocess.run([model_curve, str(folder / "specs.json")], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"ended with {done.returncode}: {done.stderr.strip()[:300]}")
    return json.loads(done.stdout)[0]


def check(model_curve: str, case: Case) -> list[str]:
    torch.manual_seed(0)
    net, x, y = Net(case), torch.randn(BATCH * STEPS, FEATURES), torch.randint(0, CLASSES, (BATCH * STEPS,))
    floors = [NoiseFloor(functools.partial(follow, net, x, y, number), torch.float64) for number in case.numbers]
    wrong = []
    with tempfile.TemporaryDirectory() as text, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = pathlib.Path(text)
        torch.export.save(exported(copy.deepcopy(net), (x[:BATCH],), "static"), folder / "model.pt2")
        save_file({"x0": x, "y": y}, folder / "data.safetensors")
        for name, way in WAYS.items():
            result = run(model_curve, case, folder, way)
            if case.refused:
                wrong += [] if case.refused in result.get("refused", "") else [f"{name}: wanted '{case.refused}': {result}"]
                continue
            if said := result.get("refused") or result["plan_refused"]:
                wrong.append(f"{name}: refused: {said}")
                continue
            for slot, floor in enumerate(floors):
                found = {"losses": [step[slot] for step in result["losses"]],
                         "answer": torch.tensor(result["predictions"][slot], dtype=torch.float64)}
                failures = [floor.judge(quantity, value).failure for quantity, value in found.items()]
                wrong += [f"{name}, slot {slot}: {failure}" for failure in failures if failure]
    return wrong


if __name__ == "__main__":
    sys.exit(check_each(sys.argv[2:] or CASES, lambda name: check(sys.argv[1], CASES[name])))
