"""Trains small models with every built-in loss, three slots side by side for three epochs, with hfta-tune and with a
plain PyTorch loop, both in float64: losses of every epoch, and every trained figure after it, agree to 1e-9. Where a
loss has a number, each slot has its own.

    builtin_check.py HFTA_TUNE MODEL_CURVE [NAME...]

Then every step's loss, in every way to run three slots: one by one, together, compiled (where that can be).
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

from every_way import Curve, Steps, check_all, compare, largest_difference  # noqa: E402
from own_losses import draws, mlp, whole  # noqa: E402

EPOCHS, TRAIN, VALIDATION, BATCH, RATE = 3, 27, 13, 8, 0.02
LOSS_NUMBERS = {"sigmoid_focal": 2}  # gamma, and alpha at its default
# Of a batch: the loss of every element or position, already weighted, and its weights (None: all alike).
Elements = tuple[Tensor, Tensor | None]


@dataclass
class Case:
    name: str
    loss: dict[str, object]
    elements: Callable[[Tensor, Tensor, float | None], Elements]
    target: Callable[[int, int], Tensor]
    module: Callable[[], nn.Module]
    inputs: Callable[[int, int], Tensor] = lambda n, seed: draws(seed)(n, 5)
    number: str | None = None
    values: list[float] = field(default_factory=lambda: [0.0, 0.1, 0.5])
    evaluated: float | None = None  # the number in evaluation, where it is not the slot's


class Head(nn.Module):
    """A net, and what is done to its output."""

    def __init__(self, net: nn.Module, then: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.net, self.then = net, then

    def forward(self, x: Tensor) -> Tensor:
        return self.then(self.net(x))


class Tokens(nn.Module):
    def __init__(self, classes_last: bool) -> None:
        super().__init__()
        self.words, self.head, self.last = nn.Embedding(9, 6), nn.Linear(6, 9), classes_last

    def forward(self, ids: Tensor) -> Tensor:
        logits = self.head(self.words(ids).tanh())
        return logits if self.last else logits.transpose(1, 2)


def classes(n: int, seed: int) -> Tensor:
    return whole(seed, 4, n)


def with_holes(ignored: int) -> Callable[[int, int], Tensor]:
    def target(n: int, seed: int) -> Tensor:
        y = whole(seed, 4, n)
        y[::5] = ignored
        return y
    return target


def tokens(n: int, seed: int) -> Tensor:
    y = whole(seed, 9, n, 6)
    y[:, 4:][::2] = -100
    return y


def by_classes(ignored: int = -100, weight: list[float] | None = None, dim: int = 1,
               each: Callable[..., Tensor] = F.cross_entropy) -> Callable[[Tensor, Tensor, float | None], Elements]:
    table = None if weight is None else torch.tensor(weight, dtype=torch.float64)

    def elements(output: Tensor, y: Tensor, number: float | None) -> Elements:
        logits = output if dim == 1 else output.movedim(-1, 1)
        options = {"label_smoothing": number} if number is not None else {}
        loss = each(logits, y, weight=table, ignore_index=ignored, reduction="none", **options)
        counted = (y != ignored).double()
        own = counted if table is None else counted * table[y.clamp(min=0)]
        return loss, own
    return elements


def focal(output: Tensor, y: Tensor, gamma: float | None) -> Elements:
    log_p = output.log_softmax(1).gather(1, y.clamp(min=0)[:, None]).squeeze(1)
    counted = (y != -100).double()
    return -((1 - log_p.exp()) ** gamma) * log_p * counted, counted


def alike(each: Callable[..., Tensor]) -> Callable[[Tensor, Tensor, float | None], Elements]:
    def elements(output: Tensor, y: Tensor, number: float | None) -> Elements:
        y = y.reshape(output.shape)
        return (each(output, y) if number is None else each(output, y, number)), None
    return elements


def by_shares(output: Tensor, y: Tensor, smoothing: float | None) -> Elements:
    return F.cross_entropy(output, y, label_smoothing=smoothing or 0.0, reduction="none"), None


def sigmoid_focal(y: Tensor, t: Tensor, gamma: float) -> Tensor:
    """torchvision.ops.sigmoid_focal_loss with its default alpha."""
    p = y.sigmoid()
    plain = F.binary_cross_entropy_with_logits(y, t, reduction="none")
    return plain * (1 - (p * t + (1 - p) * (1 - t))) ** gamma * (0.25 * t + 0.75 * (1 - t))


def quantile(y: Tensor, t: Tensor, q: float) -> Tensor:
    return torch.maximum(q * (t - y), (q - 1) * (t - y))


def reals(*shape: int) -> Callable[[int, int], Tensor]:
    return lambda n, seed: draws(seed + 7)(n, *shape)


def shares(*shape: int) -> Callable[[int, int], Tensor]:
    return lambda n, seed: draws(seed + 7)(n, *shape).sigmoid()


def signs(n: int, seed: int) -> Tensor:
    return draws(seed + 7)(n, 2).sign()


def counts(n: int, seed: int) -> Tensor:
    return whole(seed + 7, 6, n, 2).double()


def distributions(log: bool) -> Callable[[int, int], Tensor]:
    return lambda n, seed: (lambda p: p.log() if log else p)(draws(seed + 7)(n, 3).softmax(1))


def cases() -> list[Case]:
    logits, two, column = lambda: mlp(5, 8, 4), lambda: mlp(5, 8, 2), lambda: mlp(5, 8, 1)
    positive = torch.tensor([0.5, 3.0], dtype=torch.float64)
    weights = [0.5, 1.0, 2.5, 0.0]

    def images(n: int, seed: int) -> Tensor:
        return draws(seed)(n, 2, 4, 3)

    def logits_of(y: Tensor, t: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(y, t, pos_weight=positive, reduction="none")

    def rates(log: bool) -> Callable[[Tensor, Tensor], Tensor]:
        return lambda y, t: F.poisson_nll_loss(y, t, log_input=log, reduction="none")

    def divergence(log: bool) -> Callable[[Tensor, Tensor], Tensor]:
        return lambda y, t: F.kl_div(y, t, log_target=log, reduction="none")

    smoothed = {"number": "label_smoothing", "evaluated": 0.0}
    nll = by_classes(each=F.nll_loss)
    return [
        Case("cross_entropy", {"name": "cross_entropy"}, by_classes(), classes, logits, **smoothed),
        Case("cross_entropy, weighted", {"name": "cross_entropy", "class_weight": weights}, by_classes(weight=weights),
             classes, logits, **smoothed),
        Case("cross_entropy, ignored", {"name": "cross_entropy"}, by_classes(), with_holes(-100), logits, **smoothed),
        Case("cross_entropy, ignored and weighted", {"name": "cross_entropy", "ignore_index": 2, "class_weight": weights},
             by_classes(2, weights), with_holes(2), logits, **smoothed),
        Case("cross_entropy of one class", {"name": "cross_entropy"}, by_classes(), lambda n, s: torch.ones(n).long(),
             logits, **smoothed),
        Case("cross_entropy [N, C, H, W]", {"name": "cross_entropy"}, by_classes(),
             lambda n, s: whole(s, 3, n, 4, 3), lambda: nn.Conv2d(2, 3, 3, padding=1), images, **smoothed),
        Case("cross_entropy [N, V, T]", {"name": "cross_entropy"}, by_classes(), tokens, lambda: Tokens(False),
             lambda n, s: whole(s, 9, n, 6), **smoothed),
        Case("cross_entropy [N, T, V]", {"name": "cross_entropy"}, by_classes(dim=-1), tokens, lambda: Tokens(True),
             lambda n, s: whole(s, 9, n, 6), **smoothed),
        Case("nll", {"name": "nll"}, nll, with_holes(-100), lambda: Head(logits(), lambda y: y.log_softmax(1))),
        Case("nll, weighted", {"name": "nll", "class_weight": weights}, by_classes(weight=weights, each=F.nll_loss),
             classes, lambda: Head(logits(), lambda y: y.log_softmax(1))),
        Case("focal", {"name": "focal"}, focal, with_holes(-100), logits, number="gamma", values=[0.0, 0.5, 2.0]),
        Case("soft_cross_entropy", {"name": "soft_cross_entropy"}, by_shares, distributions(False),
             lambda: mlp(5, 8, 3), **smoothed),
        Case("soft_cross_entropy [N, C, H, W]", {"name": "soft_cross_entropy"}, by_shares,
             lambda n, s: draws(s + 7)(n, 3, 4, 3).softmax(1), lambda: nn.Conv2d(2, 3, 3, padding=1), images, **smoothed),
        Case("mse", {"name": "mse"}, alike(lambda y, t: (y - t) ** 2), reals(2), two),
        Case("mse of a column", {"name": "mse"}, alike(lambda y, t: (y - t) ** 2), reals(), column),
        Case("l1", {"name": "l1"}, alike(lambda y, t: (y - t).abs()), reals(2), two),
        Case("huber", {"name": "huber"}, alike(lambda y, t, p: F.huber_loss(y, t, delta=p, reduction="none")), reals(2),
             two, number="delta", values=[0.1, 0.7, 2.0]),
        Case("smooth_l1", {"name": "smooth_l1"}, alike(lambda y, t, p: F.smooth_l1_loss(y, t, beta=p, reduction="none")),
             reals(2), two, number="beta", values=[0.0, 0.7, 2.0]),
        Case("quantile", {"name": "quantile"}, alike(quantile), reals(), column, number="quantile",
             values=[0.1, 0.5, 0.9]),
        Case("poisson_nll", {"name": "poisson_nll"}, alike(rates(True)), counts, two),
        Case("poisson_nll of rates", {"name": "poisson_nll", "log_input": False}, alike(rates(False)), counts,
             lambda: Head(two(), lambda y: F.softplus(y))),
        Case("kl_div", {"name": "kl_div"}, alike(divergence(False)), distributions(False),
             lambda: Head(mlp(5, 8, 3), lambda y: y.log_softmax(1))),
        Case("kl_div of logarithms", {"name": "kl_div", "log_target": True}, alike(divergence(True)), distributions(True),
             lambda: Head(mlp(5, 8, 3), lambda y: y.log_softmax(1))),
        Case("bce_with_logits", {"name": "bce_with_logits"},
             alike(lambda y, t: F.binary_cross_entropy_with_logits(y, t, reduction="none")), shares(2), two),
        Case("bce_with_logits, weighted", {"name": "bce_with_logits", "pos_weight": [0.5, 3.0]}, alike(logits_of),
             shares(2), two),
        Case("bce", {"name": "bce"}, alike(lambda y, t: F.binary_cross_entropy(y, t, reduction="none")), shares(2),
             lambda: Head(two(), lambda y: y.sigmoid())),
        Case("sigmoid_focal", {"name": "sigmoid_focal"}, alike(sigmoid_focal), shares(2), two, number="gamma",
             values=[0.0, 0.5, 2.0]),
        Case("hinge", {"name": "hinge"}, alike(lambda y, t: (1 - y * t).clamp(min=0)), signs, two),
        Case("soft_margin", {"name": "soft_margin"}, alike(lambda y, t: F.soft_margin_loss(y, t, reduction="none")),
             signs, two),
    ]


def mean_of(elements: Elements) -> tuple[Tensor, float]:
    loss, weight = elements
    if weight is None:
        return loss.mean(), float(len(loss))
    return loss.sum() / weight.sum(), weight.sum().item()


def serial(case: Case, number: float | None, data: list[Tensor],
           state: dict[str, Tensor]) -> tuple[list[dict[str, float]], Steps]:
    x, y, validation_x, validation_y = data
    module = case.module().double()
    module.load_state_dict(state)
    optimizer = torch.optim.Adam(module.parameters(), lr=RATE)
    curve, steps = [], []
    for _ in range(EPOCHS):
        total = weights = 0.0
        for i in range(0, len(x), BATCH):
            loss, weight = mean_of(case.elements(module(x[i:i + BATCH]), y[i:i + BATCH], number))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps.append(loss.item())
            total, weights = total + loss.item() * weight, weights + weight
        with torch.no_grad():
            evaluated = number if case.evaluated is None else case.evaluated
            value, _ = mean_of(case.elements(module(validation_x), validation_y, evaluated))
        curve.append({"train_loss": total / weights, "val_loss": value.item()})
    return curve, steps


def check(case: Case, model_curve: str, folder: Path) -> tuple[float, str]:
    import hfta_tune as ht

    torch.manual_seed(1)
    module = case.module().double()
    state = {name: value.clone() for name, value in module.state_dict().items()}
    data = [case.inputs(TRAIN, 1), case.target(TRAIN, 2), case.inputs(VALIDATION, 3), case.target(VALIDATION, 4)]
    numbers: list[float | None] = list(case.values) if case.number else [None]
    loss = dict(case.loss) | ({case.number: ht.grid(case.values)} if case.number else {})
    space = {} if case.number else {"lr": ht.grid([RATE, 2 * RATE])}
    study = ht.tune(module, (data[0], data[1]), space, loss=loss, metrics=[], metric="val_loss",
                    optimizer={"name": "adam", "lr": RATE} if case.number else "adam", epochs=EPOCHS, batch_size=BATCH,
                    validation=(data[2], data[3]), shuffle=False, dtype="float64", width=3, method="grid",
                    name="check", progress=False, storage=folder / "losses.db")
    curves = study.curves()
    wanted: list[Curve] = []
    found: list[Curve] = []
    for trial in study.trials:
        if case.number is None and trial.params["lr"] != RATE:
            continue  # a neighbour
        number = next(iter(trial.params.values())) if case.number else None
        wanted.append(serial(case, number, data, state)[0])
        found.append([{name: curves[trial.number][name][epoch] for name in wanted[-1][epoch]} for epoch in range(EPOCHS)])
    worst = largest_difference(wanted, found)
    if len(study.trials) < len(numbers):
        raise AssertionError(f"found {len(study.trials)} trials, wanted {len(numbers)}")
    options = {name: value for name, value in case.loss.items() if name != "name"}
    if "T, V]" in case.name:
        options["class_dim"] = -1
    slots = (numbers * 3)[:3]
    spec = {"model": str(next(folder.rglob("model.pt2"))), "loss": case.loss["name"], "loss_options": options,
            "batch": BATCH, "optimizer": "adam", "batches": [len(part) for part in data[0].split(BATCH)],
            "slots": [{"lr": RATE} | ({"loss_numbers": [n, 0.25][:LOSS_NUMBERS.get(case.loss["name"], 1)]} if case.number else {})
                      for n in slots]}
    wanted_steps = [serial(case, number, data, state)[1] for number in slots]
    off, ways = compare(spec, model_curve, folder, [data[0]], data[1], wanted_steps, EPOCHS)
    return max(worst, off), ways


if __name__ == "__main__":
    sys.exit(check_all(cases(), check))
