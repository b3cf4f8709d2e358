"""Trains models that compute their own loss, three slots side by side for three epochs, with hfta-tune and with a plain
PyTorch loop, both in float64: every figure of every epoch has to agree to 1e-9.

    own_check.py HFTA_TUNE MODEL_CURVE [NAME...]

Then every step's loss, in every way to run three slots: one by one, together, compiled (where that can be). Some jobs
train once more with the gradients of 1, 2 and 4 batches accumulated.
"""
from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python" / "src"))

from every_way import Curve, Steps, check_all, compare, largest_difference  # noqa: E402
from own_losses import Data, Job, batches, jobs  # noqa: E402

RATE = 0.01
GRIDS: dict[str, list[float]] = {"lr": [0.003, RATE, 0.03], "accumulate": [1, 2, 4]}
# Means of samples, of labels, of a batch as a whole, of tokens, of tokens that the graph alone tells.
ACCUMULATED = {"vae", "ctc", "dice", "language", "ensembled"}
EPOCHS, TRAIN, VALIDATION = 3, 27, 13  # the last batch of either is short
OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}


class Sums:
    """Sums over a set, as docs/metrics.md defines them."""

    def __init__(self, job: Job) -> None:
        self.job, self.loss, self.weight, self.samples = job, 0.0, 0.0, 0
        self.sums: dict[str, float] = {}
        self.means: dict[str, tuple[float, float]] = {}

    def add(self, outputs: dict[str, Tensor], samples: int) -> None:
        weight = weighs(self.job, outputs, samples)
        self.loss += outputs["loss"].mean().item() * weight
        self.weight += weight
        self.samples += samples
        for name, value in outputs.items():
            total, count = value.double().sum().item(), float(value.numel())
            self.sums[name] = self.sums.get(name, 0.0) + total
            if value.dim() == 0:
                total, count = total * weight, weight
            before = self.means.get(name, (0.0, 0.0))
            self.means[name] = (before[0] + total, before[1] + count)

    def mean_loss(self) -> float:
        return self.loss / self.weight

    def value(self, formula: str) -> float:
        class Mean:
            """mean(x), where x is a name that stands for its sum everywhere else."""

        names: dict[str, object] = dict(self.sums)
        for name, (total, count) in self.means.items():
            formula = formula.replace(f"mean({name})", repr(total / count))
        names.update(loss=self.mean_loss(), samples=self.samples, exp=math.exp, log=math.log, max=max)
        return float(eval(formula, {"__builtins__": {}}, names))


def weighs(job: Job, outputs: dict[str, Tensor], samples: int) -> float:
    return float(samples) if job.weight is None else outputs[job.weight].double().sum().item()


def step_loss(outputs: dict[str, Tensor]) -> Tensor:
    return outputs["loss"].mean()


def serial(job: Job, numbers: dict[str, float], train: Data, validation: Data,
           state: dict[str, Tensor]) -> tuple[Curve, Steps]:
    """What a trial ought to do: figures by epoch, and every batch's loss."""
    rate, accumulate = numbers.get("lr", RATE), int(numbers.get("accumulate", 1))
    module = job.module().double()
    module.load_state_dict(state)
    optimizer = OPTIMIZERS[job.optimizer]([p for p in module.parameters() if p.requires_grad], lr=rate)
    curve: Curve = []
    steps: Steps = []
    for _ in range(EPOCHS):
        module.train()
        trained, evaluated, summed = Sums(job), Sums(job), 0.0
        given = batches(train, job.batch)
        for at, batch in enumerate(given, start=1):
            outputs, samples = module(**batch), len(next(iter(batch.values())))
            weight = weighs(job, outputs, samples)
            (weight * step_loss(outputs)).backward()
            summed += weight
            if at % accumulate == 0 or at == len(given):
                for parameter in module.parameters():
                    if parameter.grad is not None:
                        parameter.grad /= summed
                optimizer.step()
                optimizer.zero_grad()
                summed = 0.0
            steps.append(step_loss(outputs).item())
            trained.add(outputs, samples)
        module.eval()
        with torch.no_grad():
            for batch in batches(validation, job.batch):
                evaluated.add(module(**batch), len(next(iter(batch.values()))))
        figures = {"train_loss": trained.mean_loss(), "val_loss": evaluated.mean_loss()}
        figures.update({f"val_{name}": evaluated.value(formula) for name, formula in job.metrics.items()})
        curve.append(figures)
    return curve, steps


def fused(job: Job, train: Data, validation: Data, module: torch.nn.Module, folder: Path) -> list[Curve]:
    import hfta_tune as ht

    loss = {"output": "loss"} | ({"weight": job.weight} if job.weight and job.told else {})
    optimizer = job.optimizer if job.searched == "lr" else {"name": job.optimizer, "lr": RATE}
    study = ht.tune(module, train, {job.searched: ht.grid(GRIDS[job.searched])}, loss=loss, metrics=job.metrics,
                    metric="val_loss", optimizer=optimizer, epochs=EPOCHS, batch_size=job.batch, validation=validation,
                    shuffle=False, dtype="float64", width=3, method="grid", name=job.name, progress=False,
                    storage=folder / "losses.db")
    curves = study.curves()
    by_value = {trial.params[job.searched]: curves[trial.number] for trial in study.trials}
    return [[{name: values[epoch] for name, values in by_value[value].items()} for epoch in range(EPOCHS)]
            for value in GRIDS[job.searched]]


def check(job: Job, model_curve: str, folder: Path) -> tuple[float, str]:
    """The largest difference, relative to figures above 1; and what the executors say."""
    torch.manual_seed(1)
    module = job.module().double()
    state = {name: value.clone() for name, value in module.state_dict().items()}
    train, validation = job.data(TRAIN, 100), job.data(VALIDATION, 200)
    found = fused(job, train, validation, module, folder)
    slots = [serial(job, {job.searched: value}, train, validation, state) for value in GRIDS[job.searched]]
    worst = largest_difference([curve for curve, _ in slots], found)
    if job.searched != "lr":
        return worst, ""
    spec = {"model": str(next(folder.rglob("model.pt2"))), "loss": "model", "output": "loss", "batch": job.batch,
            "optimizer": job.optimizer, "slots": [{"lr": rate} for rate in GRIDS["lr"]],
            "batches": [len(next(iter(b.values()))) for b in batches(train, job.batch)]}
    if job.weight and job.told:
        spec["further"] = [job.weight]
    inputs = [train[name] for name in train]
    off, ways = compare(spec, model_curve, folder, inputs, None, [steps for _, steps in slots], EPOCHS)
    return max(worst, off), ways


def all_jobs() -> Iterator[Job]:
    for job in jobs():
        yield job
        if job.name in ACCUMULATED:
            yield replace(job, name=f"{job.name}-accumulating", searched="accumulate")


if __name__ == "__main__":
    sys.exit(check_all(all_jobs(), check))
