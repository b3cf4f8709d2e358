"""Trains adversarial networks in phases, three slots side by side for three epochs, with hfta-tune and with a plain
PyTorch loop, both in float64: every figure of every epoch has to agree to 1e-9.

    phases_check.py HFTA_TUNE MODEL_CURVE [NAME...]
"""
from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python" / "src"))

from every_way import Curve, check_all, largest_difference  # noqa: E402
from own_losses import Data, batches, draws, mlp  # noqa: E402

EPOCHS, TRAIN, VALIDATION, BATCH = 3, 43, 11, 6  # the last batch of either is short
SCALES = [0.5, 1.0, 2.0]  # of the rates, by slot
OPTIMIZERS = {"adam": torch.optim.Adam, "rmsprop": torch.optim.RMSprop, "sgd": torch.optim.SGD,
              "adamw": torch.optim.AdamW}


class Dcgan(nn.Module):
    """Each loss is a method, as a loop by hand would call it. Convolutions with batch norm (Radford et al., arXiv:1511.06434); the noise is an input."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = nn.Sequential(nn.ConvTranspose2d(4, 8, 4, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
                                       nn.ConvTranspose2d(8, 1, 4, 2, 1), nn.Tanh())
        self.discriminator = nn.Sequential(nn.Conv2d(1, 8, 4, 2, 1, bias=False), nn.BatchNorm2d(8), nn.LeakyReLU(0.2),
                                           nn.Flatten(), nn.Linear(128, 1), nn.Flatten(0))

    def d_loss(self, x: Tensor, z: Tensor) -> Tensor:
        real, false = self.discriminator(x), self.discriminator(self.generator(z).detach())
        return (F.binary_cross_entropy_with_logits(real, torch.ones_like(real))
                + F.binary_cross_entropy_with_logits(false, torch.zeros_like(false)))

    def g_loss(self, x: Tensor, z: Tensor) -> Tensor:
        fooled = self.discriminator(self.generator(z))
        return F.binary_cross_entropy_with_logits(fooled, torch.ones_like(fooled))

    def forward(self, x: Tensor, z: Tensor) -> dict[str, Tensor]:
        return {"d_loss": self.d_loss(x, z), "g_loss": self.g_loss(x, z)}


class Wgan(nn.Module):
    """A critic with clamped weights (Arjovsky et al., arXiv:1701.07875); losses of samples."""

    def __init__(self) -> None:
        super().__init__()
        self.generator, self.critic = mlp(3, 12, 4), mlp(4, 12, 1)

    def critic_loss(self, x: Tensor, z: Tensor) -> Tensor:
        return (self.critic(self.generator(z).detach()) - self.critic(x)).squeeze(1)

    def g_loss(self, x: Tensor, z: Tensor) -> Tensor:
        return -self.critic(self.generator(z)).squeeze(1)

    def forward(self, x: Tensor, z: Tensor) -> dict[str, Tensor]:
        return {"critic_loss": self.critic_loss(x, z), "g_loss": self.g_loss(x, z)}


class AdversarialAutoencoder(nn.Module):
    """Three phases; the encoder is trained in two of them, by an optimizer of its own in each (Makhzani et al.,
    arXiv:1511.05644). The head is in no phase."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder, self.judge = mlp(4, 10, 2), mlp(2, 10, 4), mlp(2, 8, 1)
        self.head = nn.Linear(4, 4)

    def rebuilt(self, x: Tensor, z: Tensor) -> Tensor:
        return F.mse_loss(self.decoder(self.encoder(x)), self.head(x))

    def judged(self, x: Tensor, z: Tensor) -> Tensor:
        return (F.softplus(-self.judge(z)) + F.softplus(self.judge(self.encoder(x).detach()))).mean()

    def fooled(self, x: Tensor, z: Tensor) -> Tensor:
        return F.softplus(-self.judge(self.encoder(x))).mean()

    def forward(self, x: Tensor, z: Tensor) -> dict[str, Tensor]:
        return {"rebuilt": self.rebuilt(x, z), "judged": self.judged(x, z), "fooled": self.fooled(x, z)}


class OneOfTwo(nn.Module):
    """One phase. What its loss does not depend on leaves no trace in the running statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.head = nn.BatchNorm1d(4), mlp(4, 8, 1)

    def rebuilt(self, x: Tensor, z: Tensor) -> Tensor:
        return (self.head(self.norm(x).amax(2)).squeeze(1) - x.sum((1, 2))) ** 2

    def forward(self, x: Tensor, z: Tensor) -> dict[str, Tensor]:
        return {"rebuilt": self.rebuilt(x, z), "other": self.head(self.norm(3 * z).amax(2)).squeeze(1)}


@dataclass
class Phase:
    loss: str
    params: list[str]  # modules
    optimizer: str
    numbers: dict[str, float]
    every: int = 1
    clip_weights: float | None = None
    clip_norm: float | None = None

    def as_config(self) -> dict[str, object]:
        optimizer = {"name": self.optimizer, **self.numbers, "lr": f"${{lr_{self.loss}}}"}
        further = {"clip_weights": self.clip_weights, "clip_norm": self.clip_norm}
        return {"loss": self.loss, "params": self.params, "optimizer": optimizer, "every": self.every,
                **{name: value for name, value in further.items() if value is not None}}


@dataclass
class Case:
    name: str
    module: Callable[[], nn.Module]
    data: Callable[[int, int], Data]
    phases: list[Phase]
    metrics: dict[str, str] = field(default_factory=dict)


def cases() -> list[Case]:
    adam = {"lr": 0.01, "beta1": 0.5}
    def images(n: int, s: int) -> Data:
        return {"x": draws(s)(n, 1, 8, 8), "z": draws(s + 1)(n, 4, 1, 1)}
    return [
        Case("dcgan", Dcgan, images, [Phase("d_loss", ["discriminator"], "adam", adam),
                                      Phase("g_loss", ["generator"], "adam", adam)]),
        Case("wgan", Wgan, lambda n, s: {"x": draws(s)(n, 4), "z": draws(s + 1)(n, 3)},
             [Phase("critic_loss", ["critic"], "rmsprop", {"lr": 0.01}, clip_weights=0.1),
              Phase("g_loss", ["generator"], "rmsprop", {"lr": 0.005}, every=3)]),
        Case("autoencoder", AdversarialAutoencoder, lambda n, s: {"x": draws(s)(n, 4), "z": draws(s + 1)(n, 2)},
             [Phase("rebuilt", ["encoder", "decoder"], "adamw", {"lr": 0.01, "weight_decay": 0.1}, clip_norm=0.5),
              Phase("judged", ["judge"], "sgd", {"lr": 0.1, "momentum": 0.9}),
              Phase("fooled", ["encoder"], "adam", {"lr": 0.02})]),
        Case("one", OneOfTwo, lambda n, s: {"x": draws(s)(n, 4, 3), "z": draws(s + 1)(n, 4, 3)},
             [Phase("rebuilt", ["head"], "sgd", {"lr": 0.01})]),
    ]


def torch_numbers(phase: Phase, scale: float) -> dict[str, object]:
    numbers: dict[str, object] = dict(phase.numbers, lr=phase.numbers["lr"] * scale)
    if "beta1" in numbers:
        numbers["betas"] = (numbers.pop("beta1"), 0.999)
    return numbers


def serial(case: Case, scale: float, train: Data, validation: Data, state: dict[str, Tensor]) -> Curve:
    module = case.module().double()
    module.load_state_dict(state)
    parameters = [[p for m in phase.params for p in module.get_submodule(m).parameters()] for phase in case.phases]
    optimizers = [OPTIMIZERS[phase.optimizer](own, **torch_numbers(phase, scale))
                  for phase, own in zip(case.phases, parameters)]
    curve: Curve = []
    for _ in range(EPOCHS):
        module.train()
        sums: dict[str, list[float]] = {phase.loss: [0.0, 0.0] for phase in case.phases}
        for at, batch in enumerate(batches(train, BATCH), start=1):
            for phase, own, optimizer in zip(case.phases, parameters, optimizers):
                if at % phase.every:
                    continue
                loss = getattr(module, phase.loss)(**batch).mean()
                module.zero_grad()
                loss.backward()
                if phase.clip_norm is not None:
                    nn.utils.clip_grad_norm_(own, phase.clip_norm)
                optimizer.step()
                if phase.clip_weights is not None:
                    with torch.no_grad():
                        for parameter in own:
                            parameter.clamp_(-phase.clip_weights, phase.clip_weights)
                samples = len(batch["x"])
                sums[phase.loss][0] += loss.item() * samples
                sums[phase.loss][1] += samples
        figures = {f"train_{name}": total / count for name, (total, count) in sums.items()}
        figures["train_loss"] = figures[f"train_{case.phases[0].loss}"]
        module.eval()
        evaluated: dict[str, float] = {phase.loss: 0.0 for phase in case.phases}
        with torch.no_grad():
            for batch in batches(validation, BATCH):
                outputs = module(**batch)
                for name in evaluated:
                    evaluated[name] += outputs[name].mean().item() * len(batch["x"]) / VALIDATION
        figures.update({f"val_{name}": value for name, value in evaluated.items()})
        figures["val_loss"] = figures[f"val_{case.phases[0].loss}"]
        curve.append(figures)
    return curve


def fused(case: Case, train: Data, validation: Data, module: nn.Module, folder: Path) -> list[Curve]:
    import hfta_tune as ht

    space = {f"lr_{phase.loss}": ht.grid([phase.numbers["lr"] * scale for scale in SCALES]) for phase in case.phases}
    metrics = {phase.loss: f"mean({phase.loss})" for phase in case.phases}
    study = ht.tune(module, train, space, phases=[phase.as_config() for phase in case.phases], metrics=metrics,
                    metric="val_loss", goal="minimize", epochs=EPOCHS, batch_size=BATCH, validation=validation,
                    shuffle=False, dtype="float64", width=3, method="grid", name=case.name, progress=False,
                    storage=folder / "phases.db")
    curves = study.curves()
    def of(scale: float) -> Curve:
        wanted = {f"lr_{phase.loss}": phase.numbers["lr"] * scale for phase in case.phases}
        number = next(trial.number for trial in study.trials if trial.params == wanted)
        return [{name: values[epoch] for name, values in curves[number].items()} for epoch in range(EPOCHS)]
    return [of(scale) for scale in SCALES]


def check(case: Case, _model_curve: str, folder: Path) -> tuple[float, str]:
    torch.manual_seed(1)
    module = case.module().double()
    state = {name: value.clone() for name, value in module.state_dict().items()}
    train, validation = case.data(TRAIN, 100), case.data(VALIDATION, 200)
    wanted = [serial(case, scale, train, validation, state) for scale in SCALES]
    return largest_difference(wanted, fused(case, train, validation, module, folder)), ""


if __name__ == "__main__":
    sys.exit(check_all(cases(), check))
