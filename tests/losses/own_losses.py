"""Models that compute their own loss, of different kinds, with data and metrics: what own_check.py trains."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Data = dict[str, Tensor]


@dataclass
class Job:
    """A module, and what a config says of its loss. Batches are the data's, in their order."""

    name: str
    module: Callable[[], nn.Module]
    data: Callable[[int, int], Data]  # (samples, seed)
    weight: str | None = None
    told: bool = True  # whether the config names the weight
    metrics: dict[str, str] = field(default_factory=dict)
    optimizer: str = "adam"
    batch: int = 8
    frozen: list[str] = field(default_factory=list)
    searched: str = "lr"  # what differs between the slots


def batches(data: Data, size: int) -> list[Data]:
    count = len(next(iter(data.values())))
    return [{name: values[i:i + size] for name, values in data.items()} for i in range(0, count, size)]


def draws(seed: int) -> Callable[..., Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return lambda *sizes: torch.randn(*sizes, generator=generator, dtype=torch.float64)


def whole(seed: int, high: int, *sizes: int) -> Tensor:
    return torch.randint(0, high, sizes, generator=torch.Generator().manual_seed(seed))


def mlp(*sizes: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inside, outside in zip(sizes, sizes[1:]):
        layers += [nn.Linear(inside, outside), nn.Tanh()]
    return nn.Sequential(*layers[:-1])


class Vae(nn.Module):
    """Evidence lower bound; the noise is an input."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = mlp(6, 12, 6), mlp(3, 12, 6)

    def forward(self, x: Tensor, noise: Tensor) -> dict[str, Tensor]:
        mean, log_variance = self.encoder(x).chunk(2, dim=1)
        rebuilt = self.decoder(mean + noise * (0.5 * log_variance).exp())
        error = F.mse_loss(rebuilt, x, reduction="none").sum(1)
        divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum(1)
        return {"loss": (error + 0.3 * divergence).mean(), "error": error.mean(), "divergence": divergence}


class InfoNce(nn.Module):
    """Every other sample of the batch is a negative."""

    def __init__(self) -> None:
        super().__init__()
        self.net = mlp(5, 10, 4)

    def forward(self, one: Tensor, other: Tensor) -> dict[str, Tensor]:
        a, b = F.normalize(self.net(one), dim=1), F.normalize(self.net(other), dim=1)
        logits = a @ b.T / 0.2
        labels = torch.arange(one.shape[0], device=one.device)
        return {"loss": F.cross_entropy(logits, labels), "hits": (logits.argmax(1) == labels).sum()}


class Clip(nn.Module):
    """Both directions, with a learned temperature."""

    def __init__(self) -> None:
        super().__init__()
        self.image, self.text = nn.Linear(6, 4), nn.Embedding(9, 4)
        self.scale = nn.Parameter(torch.tensor(1.0))

    def forward(self, pixels: Tensor, words: Tensor) -> dict[str, Tensor]:
        image = F.normalize(self.image(pixels), dim=-1)
        text = F.normalize(self.text(words).mean(1), dim=-1)
        logits = self.scale.exp() * image @ text.t()
        labels = torch.arange(pixels.shape[0])
        loss = (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2
        return {"loss": loss, "scale": self.scale.exp()}


class Triplet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = mlp(4, 8, 3)

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> dict[str, Tensor]:
        a, p, n = self.net(anchor), self.net(positive), self.net(negative)
        near, far = (a - p).pow(2).sum(1), (a - n).pow(2).sum(1)
        return {"loss": F.relu(near - far + 0.4).mean(), "right": (near < far).double()}


class Quantiles(nn.Module):
    """Three quantiles at once, a loss for every sample and quantile."""

    def __init__(self) -> None:
        super().__init__()
        self.net = mlp(3, 8, 3)
        self.register_buffer("levels", torch.tensor([0.1, 0.5, 0.9]))

    def forward(self, x: Tensor, y: Tensor) -> dict[str, Tensor]:
        error = y[:, None] - self.net(x)
        return {"loss": torch.maximum(self.levels * error, (self.levels - 1) * error), "below": (error < 0).double()}


class Oscillator(nn.Module):
    """u'' + u = 0 by finite differences, with u(0) = 0 and u(h) = h."""

    def __init__(self) -> None:
        super().__init__()
        self.net = mlp(1, 12, 1)

    def forward(self, time: Tensor) -> dict[str, Tensor]:
        h = 0.1
        u = self.net(time)
        residual = (self.net(time + h) - 2 * u + self.net(time - h)) / h**2 + u
        start = self.net(torch.zeros_like(time[:1])).square() + (self.net(torch.full_like(time[:1], h)) - h).square()
        return {"loss": residual.square().mean() + start.sum(), "residual": residual.abs().mean()}


class Ctc(nn.Module):
    """Connectionist temporal classification (Graves et al., ICML 2006) by its forward recursion: torch.export cannot
    export torch's own."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.GRU(3, 6, batch_first=True)
        self.head = nn.Linear(6, 5)

    def forward(self, x: Tensor, labels: Tensor, lengths: Tensor) -> dict[str, Tensor]:
        log_p = self.head(self.net(x)[0]).log_softmax(-1)
        blanks = torch.zeros_like(labels)
        states = torch.cat([torch.stack([blanks, labels], 2).flatten(1), blanks[:, :1]], 1)
        before = F.pad(states, (2, 0))[:, :-2]
        skips = (states != 0) & (states != before)
        seen = log_p.gather(2, states[:, None].expand(-1, x.shape[1], -1))
        never = torch.full_like(seen[:, 0], -1e30)
        alpha = torch.cat([seen[:, 0, :2], never[:, 2:]], 1)
        for step in range(1, x.shape[1]):
            one, two = F.pad(alpha, (1, 0), value=-1e30)[:, :-1], F.pad(alpha, (2, 0), value=-1e30)[:, :-2]
            ways = torch.stack([alpha, one, torch.where(skips, two, never)])
            alpha = ways.logsumexp(0) + seen[:, step]
        last = 2 * lengths[:, None]
        each = -torch.logaddexp(alpha.gather(1, last), alpha.gather(1, last - 1)).squeeze(1)
        return {"loss": each.sum() / lengths.sum(), "labels": lengths}


class Focal(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = mlp(5, 8, 1)

    def forward(self, x: Tensor, y: Tensor) -> dict[str, Tensor]:
        logits = self.net(x).squeeze(-1)
        plain = F.binary_cross_entropy_with_logits(logits, y, reduction="none")
        p = logits.sigmoid()
        each = plain * (1 - (p * y + (1 - p) * (1 - y))) ** 2 * (0.25 * y + 0.75 * (1 - y))
        found = logits > 0
        return {"loss": each.mean(), "tp": (found & (y > 0.5)).sum(), "fp": (found & (y < 0.5)).sum(),
                "fn": (~found & (y > 0.5)).sum()}


class Dice(nn.Module):
    """Segmentation: the soft overlap of a batch, plus cross entropy."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(2, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 3, 1))

    def forward(self, image: Tensor, mask: Tensor) -> dict[str, Tensor]:
        logits = self.net(image)
        p, one_hot = logits.softmax(1), F.one_hot(mask, 3).permute(0, 3, 1, 2).to(logits.dtype)
        overlap, total = (p * one_hot).sum((0, 2, 3)), (p + one_hot).sum((0, 2, 3))
        dice = 1 - (2 * overlap / (total + 1e-6)).mean()
        return {"loss": dice + 0.5 * F.cross_entropy(logits, mask), "dice": dice,
                "hits": (logits.argmax(1) == mask).sum(), "pixels": torch.ones_like(mask)}


class MultiTask(nn.Module):
    """Two losses weighted by learned uncertainties (Kendall et al., CVPR 2018)."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.value, self.kind = mlp(4, 8, 8), nn.Linear(8, 1), nn.Linear(8, 3)
        self.log_variance = nn.Parameter(torch.zeros(2))

    def forward(self, x: Tensor, amount: Tensor, label: Tensor) -> dict[str, Tensor]:
        features = self.body(x).tanh()
        first = F.huber_loss(self.value(features).squeeze(1), amount)
        second = F.cross_entropy(self.kind(features), label, label_smoothing=0.1)
        precision = (-self.log_variance).exp()
        loss = precision[0] * first + precision[1] * second + self.log_variance.sum()
        return {"loss": loss, "first": first, "second": second}


class LanguageModel(nn.Module):
    """Next tokens, padded; the mean over the tokens that count."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(11, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(8, 11)

    def forward(self, ids: Tensor, labels: Tensor) -> dict[str, Tensor]:
        ahead = torch.triu(torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool), 1)
        logits = self.head(self.body(self.words(ids), mask=ahead, is_causal=True))
        loss = F.cross_entropy(logits.view(-1, 11), labels.reshape(-1), ignore_index=-100)
        counted = labels != -100
        return {"loss": loss, "tokens": counted.sum(), "hits": ((logits.argmax(-1) == labels) & counted).sum()}


class Ensembled(nn.Module):
    """Two heads learn the same padded labels, and their weights are kept small; nothing says what batches count by."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.first, self.second = nn.Embedding(11, 8), nn.Linear(8, 11), nn.Linear(8, 11)

    def forward(self, ids: Tensor, labels: Tensor) -> dict[str, Tensor]:
        features = self.words(ids).tanh()
        losses = [F.cross_entropy(head(features).flatten(0, 1), labels.flatten()) for head in (self.first, self.second)]
        penalty = 0.01 * sum(head.weight.square().sum() for head in (self.first, self.second))
        return {"loss": -(-torch.stack(losses).mean() - penalty), "tokens": (labels != -100).sum()}


class Distillation(nn.Module):
    """A student learns a frozen teacher's softened answers, and the labels."""

    def __init__(self) -> None:
        super().__init__()
        self.teacher, self.student = mlp(4, 16, 3), mlp(4, 6, 3)
        self.teacher.requires_grad_(False)

    def forward(self, x: Tensor, y: Tensor) -> dict[str, Tensor]:
        with torch.no_grad():
            wanted = self.teacher(x)
        found = self.student(x)
        soft = F.kl_div((found / 2).log_softmax(1), (wanted / 2).log_softmax(1), log_target=True,
                        reduction="batchmean") * 4
        each = 0.5 * F.cross_entropy(found, y, reduction="none")
        return {"loss": soft + each.mean(), "agreed": (found.argmax(1) == wanted.argmax(1)).float()}


def vae_data(n: int, seed: int) -> Data:
    draw = draws(seed)
    return {"x": draw(n, 6), "noise": draw(n, 3)}


def infonce_data(n: int, seed: int) -> Data:
    draw = draws(seed)
    one = draw(n, 5)
    return {"one": one, "other": one + 0.3 * draw(n, 5)}


def triplet_data(n: int, seed: int) -> Data:
    draw = draws(seed)
    anchor = draw(n, 4)
    return {"anchor": anchor, "positive": anchor + 0.5 * draw(n, 4), "negative": draw(n, 4)}


def ctc_data(n: int, seed: int) -> Data:
    return {"x": draws(seed)(n, 9, 3), "labels": 1 + whole(seed, 4, n, 4), "lengths": 2 + whole(seed + 1, 3, n)}


def language_data(n: int, seed: int) -> Data:
    ids = whole(seed, 11, n, 6)
    labels = torch.cat([ids[:, 1:], torch.full((n, 1), -100)], 1)
    lengths = 2 + whole(seed + 1, 5, n)
    labels[torch.arange(6)[None] >= lengths[:, None]] = -100
    return {"ids": ids, "labels": labels}


def jobs() -> list[Job]:
    f1 = {"f1": "2*tp / (2*tp + fp + fn)", "precision": "tp / max(tp + fp, 1)"}
    return [
        Job("vae", Vae, vae_data, metrics={"error": "mean(error)", "elbo": "-(mean(error) + mean(divergence))"}),
        Job("infonce", InfoNce, infonce_data, metrics={"accuracy": "hits / samples"}),
        Job("clip", Clip, lambda n, s: {"pixels": draws(s)(n, 6), "words": whole(s, 9, n, 5)},
            metrics={"scale": "mean(scale)", "bits": "loss / log(2)"}),
        Job("triplet", Triplet, triplet_data, metrics={"right": "right / samples"}),
        Job("quantile", Quantiles, lambda n, s: {"x": draws(s)(n, 3), "y": draws(s + 1)(n)},
            metrics={"coverage": "mean(below)", "all": "below"}, optimizer="sgd"),
        Job("oscillator", Oscillator, lambda n, s: {"time": draws(s)(n, 1)}, metrics={"residual": "mean(residual)"}),
        Job("ctc", Ctc, ctc_data, weight="labels", metrics={"labels": "labels"}),
        Job("focal", Focal, lambda n, s: {"x": draws(s)(n, 5), "y": (draws(s + 1)(n) > 0.3).double()}, metrics=f1),
        Job("dice", Dice, lambda n, s: {"image": draws(s)(n, 2, 5, 4), "mask": whole(s, 3, n, 5, 4)},
            metrics={"dice": "1 - mean(dice)", "accuracy": "hits / pixels"}),
        Job("multitask", MultiTask,
            lambda n, s: {"x": draws(s)(n, 4), "amount": draws(s + 1)(n), "label": whole(s, 3, n)},
            metrics={"first": "mean(first)", "ratio": "mean(second) / mean(first)"}, optimizer="adamw"),
        Job("language", LanguageModel, language_data, weight="tokens",
            metrics={"perplexity": "exp(loss)", "accuracy": "hits / tokens"}, optimizer="adamw"),
        Job("ensembled", Ensembled, language_data, weight="tokens", told=False, optimizer="sgd"),
        Job("distillation", Distillation, lambda n, s: {"x": draws(s)(n, 4), "y": whole(s, 3, n)},
            metrics={"agreement": "agreed / samples"}, optimizer="sgd"),
    ]
