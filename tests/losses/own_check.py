"""Trains models that compute their own loss, three slots side by side for three epochs, with hfta-tune and with a plain
PyTorch loop, both in float64: every figure of every epoch has to agree to 1e-9.

    own_check.py HFTA_TUNE MODEL_CURVE [NAME...]

Then every step's loss, in every way to run three slots: one by one, together, compiled (where that can be).
"""
from __future__ import annotations

import math
import os
import sys
import tempfile
from pathlib import Path

import torch
from torch import Tensor

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python" / "src"))

from every_way import Steps, compare  # noqa: E402
from own_losses import Data, Job, jobs  # noqa: E402

RATES = [0.003, 0.01, 0.03]
EPOCHS, TRAIN, VALIDATION = 3, 27, 13  # the last batch of either is short
OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
Curve = list[dict[str, float]]


def batches(data: Data, size: int) -> list[Data]:
    count = len(next(iter(data.values())))
    return [{name: values[i:i + size] for name, values in data.items()} for i in range(0, count, size)]


class Sums:
    """Sums over a set, as docs/metrics.md defines them."""

    def __init__(self, weight: str | None) -> None:
        self.weight_name, self.loss, self.weight, self.samples = weight, 0.0, 0.0, 0
        self.sums: dict[str, float] = {}
        self.means: dict[str, tuple[float, float]] = {}

    def add(self, outputs: dict[str, Tensor], samples: int) -> None:
        weight = float(samples) if self.weight_name is None else outputs[self.weight_name].double().sum().item()
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


def step_loss(outputs: dict[str, Tensor]) -> Tensor:
    return outputs["loss"].mean()


def serial(job: Job, rate: float, train: Data, validation: Data, state: dict[str, Tensor]) -> tuple[Curve, Steps]:
    """What a trial ought to do: figures by epoch, and every step's loss."""
    module = job.module().double()
    module.load_state_dict(state)
    optimizer = OPTIMIZERS[job.optimizer]([p for p in module.parameters() if p.requires_grad], lr=rate)
    curve: Curve = []
    steps: Steps = []
    for _ in range(EPOCHS):
        module.train()
        trained, evaluated = Sums(job.weight), Sums(job.weight)
        for batch in batches(train, job.batch):
            outputs = module(**batch)
            optimizer.zero_grad()
            step_loss(outputs).backward()
            optimizer.step()
            steps.append(step_loss(outputs).item())
            trained.add(outputs, len(next(iter(batch.values()))))
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

    loss = {"output": "loss"} | ({"weight": job.weight} if job.weight else {})
    study = ht.tune(module, train, {"lr": ht.grid(RATES)}, loss=loss, metrics=job.metrics, metric="val_loss",
                    optimizer=job.optimizer, epochs=EPOCHS, batch_size=job.batch, validation=validation, shuffle=False,
                    dtype="float64", width=len(RATES), method="grid", name=job.name, progress=False,
                    storage=folder / "losses.db")
    curves = study.curves()
    by_rate = {trial.params["lr"]: curves[trial.number] for trial in study.trials}
    return [[{name: values[epoch] for name, values in by_rate[rate].items()} for epoch in range(EPOCHS)]
            for rate in RATES]


def check(job: Job, model_curve: str, folder: Path) -> tuple[float, str]:
    """The largest difference, relative to figures above 1; and what the executors say."""
    torch.manual_seed(1)
    module = job.module().double()
    state = {name: value.clone() for name, value in module.state_dict().items()}
    train, validation = job.data(TRAIN, 100), job.data(VALIDATION, 200)
    found = fused(job, train, validation, module, folder)
    worst = 0.0
    slots = [serial(job, rate, train, validation, state) for rate in RATES]
    for (wanted, _), curve in zip(slots, found):
        for figures, given in zip(wanted, curve):
            if set(figures) != set(given):
                raise AssertionError(f"{job.name}: found {sorted(given)}, wanted {sorted(figures)}")
            for name, value in figures.items():
                worst = max(worst, abs(given[name] - value) / max(1.0, abs(value)))
    spec = {"model": str(next(folder.rglob("model.pt2"))), "loss": "model", "output": "loss", "batch": job.batch,
            "optimizer": job.optimizer, "slots": [{"lr": rate} for rate in RATES],
            "batches": [len(next(iter(b.values()))) for b in batches(train, job.batch)]}
    if job.weight:
        spec["further"] = [job.weight]
    inputs = [train[name] for name in train]
    off, ways = compare(spec, model_curve, folder, inputs, None, [steps for _, steps in slots], EPOCHS)
    return max(worst, off), ways


def main() -> int:
    os.environ["HFTA_TUNE"] = sys.argv[1]
    wanted = set(sys.argv[3:])
    failed = 0
    for job in jobs():
        if wanted and job.name not in wanted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                worst, ways = check(job, sys.argv[2], Path(folder))
            except Exception as error:  # noqa: BLE001: the others are tried, too
                print(f"{job.name}: {error}", flush=True)
                failed += 1
                continue
        failed += worst > 1e-9 or math.isnan(worst)
        print(f"{job.name}: within {worst:.1e}{ways}", flush=True)
    print(f"{failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
