"""Follows every optimizer in torch.optim: fifty steps in float64, three slots, each way to run a step.

    torch_check.py MODEL_CURVE

A small network is exported and trained by model_curve, slot by slot (chunk 1), together (chunk 3) and compiled. The
losses of all steps and the answers after them are as near to PyTorch's as rounding lets them be (noise_floor.py). Slot 0
has the defaults of torch.optim, which it is not told; the others have what ROWS says. Every optimizer is followed once
more with parameter groups, each with numbers of its own in each slot, under a schedule and with gradients clipped. Lion,
which torch.optim lacks, is written here from its paper.
"""

import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass, field

import torch
from safetensors.torch import save_file
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from noise_floor import NoiseFloor, Nudge, nudge_module

STEPS, BATCH = 50, 8
WITHIN = 1e-9  # whatever rounding does
WAYS = {"1": {"chunk": 1}, "3": {"chunk": 3}, "compiled": {"chunk": 1, "compiled": True}}


class Lion(torch.optim.Optimizer):
    """Chen et al., "Symbolic Discovery of Optimization Algorithms" (2023), Algorithm 2."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                mean = self.state[p].setdefault("exp_avg", torch.zeros_like(p))
                update = torch.sign(beta1 * mean + (1 - beta1) * p.grad)
                p -= group["lr"] * (update + group["weight_decay"] * p)
                mean.mul_(beta2).add_((1 - beta2) * p.grad)


# torch.optim's class, and the numbers of slots 1 and 2.
ROWS = {
    "sgd": (torch.optim.SGD, {"lr": 0.05, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01},
            {"lr": 0.02, "momentum": 0.8, "nesterov": True}),
    "adam": (torch.optim.Adam, {"lr": 0.01, "betas": (0.8, 0.99), "eps": 1e-6}, {"lr": 0.02, "weight_decay": 0.1}),
    "adamw": (torch.optim.AdamW, {"lr": 0.01, "betas": (0.8, 0.99), "eps": 1e-6}, {"lr": 0.02, "weight_decay": 0.0}),
    "rmsprop": (torch.optim.RMSprop, {"lr": 0.003, "alpha": 0.9, "centered": True, "eps": 1e-3, "weight_decay": 0.01},
                {"lr": 0.001, "momentum": 0.8}),
    "rmsprop, centered": (torch.optim.RMSprop, {"centered": True, "eps": 1e-3},
                          {"lr": 0.001, "momentum": 0.8, "centered": True, "eps": 1e-3}),
    "adagrad": (torch.optim.Adagrad, {"lr": 0.05, "lr_decay": 0.1, "weight_decay": 0.01},
                {"lr": 0.1, "initial_accumulator_value": 0.5, "eps": 1e-6}),
    "adadelta": (torch.optim.Adadelta, {"lr": 0.5, "rho": 0.8, "eps": 1e-4}, {"lr": 2.0, "weight_decay": 0.1}),
    "adamax": (torch.optim.Adamax, {"lr": 0.01, "betas": (0.8, 0.99), "eps": 1e-6}, {"weight_decay": 0.1}),
    "nadam": (torch.optim.NAdam, {"lr": 0.01, "betas": (0.8, 0.99), "momentum_decay": 0.5, "weight_decay": 0.1},
              {"weight_decay": 0.1, "decoupled_weight_decay": True, "momentum_decay": 0.0}),
    "radam": (torch.optim.RAdam, {"lr": 0.01, "betas": (0.8, 0.9), "weight_decay": 0.1},
              {"lr": 0.02, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    "rprop": (torch.optim.Rprop, {"lr": 0.003, "etas": (0.3, 1.5)}, {"lr": 0.001, "step_sizes": (5e-4, 5e-3)}),
    "lion": (Lion, {"lr": 0.003, "betas": (0.8, 0.9)}, {"lr": 0.001, "weight_decay": 0.5}),
}

# Patterns of the parameter groups, and which parameters of the network they mean; 0.weight is in none. The norm's bias
# belongs to the first group that matches it.
GROUPS = [(["*bias"], ["0.bias", "2.bias", "3.bias", "5.bias"]),
          (["3"], ["3.weight"]),
          (["2.weight", "5.*"], ["2.weight", "5.weight"])]

# Numbers of the last group, besides its lr.
LAST_GROUP = {
    "sgd": {"momentum": 0.5, "dampening": 0.0}, "adam": {"betas": (0.7, 0.9)}, "adamw": {"eps": 1e-5},
    "rmsprop": {"alpha": 0.8, "momentum": 0.5}, "adagrad": {"lr_decay": 0.3}, "adadelta": {"rho": 0.7},
    "adamax": {"betas": (0.7, 0.9)}, "nadam": {"momentum_decay": 0.2}, "radam": {"betas": (0.7, 0.9)},
    "rprop": {"etas": (0.4, 1.3)}, "lion": {"betas": (0.7, 0.8)},
}


@dataclass
class Slot:
    """What a slot trains with: torch.optim's keywords, and those of each of GROUPS."""

    numbers: dict
    groups: list[dict] = field(default_factory=list)
    schedule: dict = field(default_factory=dict)
    clip_norm: float | None = None

    def optimizer(self, optimizer_class, model: nn.Module) -> torch.optim.Optimizer:
        if not self.groups:
            return optimizer_class(model.parameters(), **self.numbers)
        parameters = dict(model.named_parameters())
        groups = [{"params": [parameters.pop(name) for name in names], **numbers}
                  for (_, names), numbers in zip(GROUPS, self.groups, strict=True)]
        return optimizer_class([{"params": list(parameters.values())}, *groups], **self.numbers)

    def scheduler(self, optimizer: torch.optim.Optimizer) -> torch.optim.lr_scheduler.LRScheduler:
        numbers, schedulers = dict(self.schedule), torch.optim.lr_scheduler
        match numbers.pop("name", "constant"):
            case "step":
                return schedulers.StepLR(optimizer, **numbers)
            case "cosine":
                return schedulers.CosineAnnealingLR(optimizer, STEPS, **numbers)
            case "linear":
                return schedulers.LinearLR(optimizer, **numbers)
        return schedulers.ConstantLR(optimizer, 1.0)

    def as_json(self) -> dict:
        """As model_curve takes it."""
        slot = plain(self.numbers) | {"groups": [plain(numbers) for numbers in self.groups], "schedule": self.schedule}
        return slot if self.clip_norm is None else slot | {"clip_norm": self.clip_norm}


def grouped(name: str) -> list[Slot]:
    """The slots of ROWS with groups, under three schedules, the later two clipped."""
    optimizer_class, *given = ROWS[name]
    kind, slots = name.split(",")[0], []
    schedules = [{"name": "step", "step_size": 10, "gamma": 0.7}, {"name": "cosine"},
                 {"name": "linear", "start_factor": 0.3, "total_iters": 20}]
    for numbers, schedule, clip_norm in zip([{}, *given], schedules, (None, 0.5, 0.2), strict=True):
        defaults = optimizer_class([nn.Parameter(torch.zeros(1))], **numbers).defaults
        lr = float(defaults["lr"])
        if schedule["name"] == "cosine":
            schedule["eta_min"] = 0.2 * lr
        decays = [{"weight_decay": 0.0}, {"weight_decay": 0.05}] if "weight_decay" in defaults else [{}, {}]
        groups = [{"lr": 0.5 * lr, **decays[0]}, decays[1], {"lr": 1.5 * lr, **LAST_GROUP[kind]}]
        if numbers.get("nesterov"):
            groups[2]["nesterov"] = False
        slots.append(Slot(numbers, groups, schedule, clip_norm))
    return slots


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 6), nn.LayerNorm(6), nn.GELU(), nn.Linear(6, 3))


def samples() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    return torch.randn(STEPS * BATCH, 5), torch.randint(0, 3, (STEPS * BATCH,))


def follow(optimizer_class, slot: Slot, nudge: Nudge) -> dict:
    model, (x, y) = network().double(), samples()
    nudge_module(model, nudge)
    x = nudge(x.double())
    torch.set_default_dtype(torch.float64)  # NAdam keeps its product of momenta in the default type
    optimizer, losses = slot.optimizer(optimizer_class, model), []
    scheduler = slot.scheduler(optimizer)
    for step in range(STEPS):
        rows = slice(step * BATCH, (step + 1) * BATCH)
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        if slot.clip_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), slot.clip_norm)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    torch.set_default_dtype(torch.float32)
    with torch.no_grad():
        return {"losses": losses, "answer": model(x[:BATCH]).flatten()}


def plain(numbers: dict) -> dict:
    """torch.optim's keywords, each pair as two."""
    slot = copy.deepcopy(numbers)
    for pair, names in (("betas", ("beta1", "beta2")), ("etas", ("eta_minus", "eta_plus")),
                        ("step_sizes", ("step_size_min", "step_size_max"))):
        if pair in slot:
            slot.update(zip(names, slot.pop(pair)))
    return slot


def check(model_curve: str, folder: pathlib.Path, name: str, slots: list[Slot]) -> list[str]:
    optimizer_class = ROWS[name][0]
    floors = [NoiseFloor(lambda nudge, s=slot: follow(optimizer_class, s, nudge), torch.float64) for slot in slots]
    failures, off = [], 0.0
    for way, lowering in WAYS.items():
        spec = {"model": str(folder / "model.pt2"), "data": str(folder / "data.safetensors"), "dtype": "float64",
                "loss": "cross_entropy", "optimizer": name.split(",")[0], "batch": BATCH, "steps": STEPS,
                "groups": [patterns for patterns, _ in GROUPS] if slots[0].groups else [],
                "slots": [slot.as_json() for slot in slots], **lowering}
        (folder / "spec.json").write_text(json.dumps(spec))
        done = subprocess.run([model_curve, str(folder / "spec.json")], capture_output=True, text=True)
        if done.returncode != 0:
            return [f"{way}: {done.stderr.strip()}"]
        found = json.loads(done.stdout)
        if "refused" in found:
            return [f"{way}: {found['refused']}"]
        for slot, floor in enumerate(floors):
            answers = torch.tensor(found["predictions"][slot], dtype=torch.float64)
            for quantity, ours in (("losses", [step[slot] for step in found["losses"]]), ("answer", answers)):
                verdict = floor.judge(quantity, ours)
                off = max(off, verdict.off)
                if verdict.failure:
                    failures.append(f"{way}, slot {slot}, {quantity}: {verdict.failure}")
    if not off <= WITHIN:
        failures.append(f"off by {off:.1e}, wanted {WITHIN:.0e}")
    print(f"{'FAILED' if failures else 'ok    '} {name}{', groups' if slots[0].groups else ''}: off by {off:.1e}", *failures, sep="\n  ", flush=True)
    return failures


def main() -> int:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as text, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = pathlib.Path(text)
        x, y = samples()
        shapes = ({0: torch.export.Dim("batch", min=2, max=4096)},)
        torch.export.save(torch.export.export(network(), (x[:BATCH],), dynamic_shapes=shapes, strict=False),
                          folder / "model.pt2")
        save_file({"y": y, "x0": x}, folder / "data.safetensors")
        failures = {}
        for name, (_, *given) in ROWS.items():
            alone = [Slot(numbers) for numbers in ({}, *given)]
            failures[name] = check(sys.argv[1], folder, name, alone) + check(sys.argv[1], folder, name, grouped(name))
    for name, found in failures.items():
        for failure in found:
            print(f"{name}: {failure}", file=sys.stderr)
    return 1 if any(failures.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
