"""What is raced: models, batches and losses. Everyone starts from one file of weights and one of data."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

import models

SEED = 1

LOSSES: dict[str, Callable[..., Tensor]] = {
    "cross_entropy": F.cross_entropy,
    "mse": F.mse_loss,
    "bce_with_logits": F.binary_cross_entropy_with_logits,
}


@dataclass(frozen=True)
class Workload:
    title: str
    model: Callable[[], nn.Module]
    data: Callable[[int, Generator], tuple[Tensor, Tensor]]  # so many samples and their targets
    batch: int
    batches: int = 8
    loss: str = "cross_entropy"


def normal(*shape: int, classes: int) -> Callable[[int, Generator], tuple[Tensor, Tensor]]:
    return lambda n, g: (torch.randn(n, *shape, generator=g), torch.randint(classes, (n,), generator=g))


def tokens(length: int, vocabulary: int) -> Callable[[int, Generator], tuple[Tensor, Tensor]]:
    def draw(n: int, g: Generator) -> tuple[Tensor, Tensor]:
        text = torch.randint(vocabulary, (n, length + 1), generator=g)
        return text[:, :-1].contiguous(), text[:, 1:].contiguous()

    return draw


def clouds(points: int, parts: int) -> Callable[[int, Generator], tuple[Tensor, Tensor]]:
    return lambda n, g: (torch.randn(n, points, 3, generator=g), torch.randint(parts, (n, points), generator=g))


def noise(n: int, g: Generator) -> tuple[Tensor, Tensor]:
    return torch.randn(n, 100, generator=g), torch.rand(n, 3, 64, 64, generator=g) * 2 - 1


def images(n: int, g: Generator) -> tuple[Tensor, Tensor]:
    return torch.randn(n, 3, 64, 64, generator=g), torch.randint(2, (n,), generator=g).float()


class Workloads(dict[str, Workload]):
    """The workloads below by name; any other name is one of model_zoo.py's, which is imported when it is asked for."""

    def __missing__(self, name: str) -> Workload:
        import model_zoo

        title, model, data, batch, loss = model_zoo.ALL[name]
        return Workload(title, model, data, batch, 2, loss)


ALL = Workloads({
    "W1": Workload("MLP 64-128-64-10, batch 64", models.Mlp, normal(64, classes=10), 64),
    "W2": Workload("CNN on 28x28, batch 64", models.Cnn, normal(1, 28, 28, classes=10), 64),
    "W3": Workload("PointNet classifier, 8 x 256 points", models.PointNetClassifier, normal(256, 3, classes=16), 8, 4),
    "W4": Workload("ResNet-18 on 32x32, batch 16", models.ResNet18, normal(3, 32, 32, classes=10), 16, 2),
    "W5": Workload("Transformer LM, d 64, 16 x 32 tokens",
                   lambda: models.TransformerLm(1000, 64, 4, 256, 32), tokens(32, 1000), 16),
    "pointnet-seg": Workload("PointNet segmentation, 8 x 256 points", models.PointNetSegmentation, clouds(256, 4), 8,
                             4),
    "dcgan-g": Workload("DCGAN generator, batch 16", models.DcganGenerator, noise, 16, 2, "mse"),
    "dcgan-d": Workload("DCGAN discriminator, batch 16", models.DcganDiscriminator, images, 16, 2, "bce_with_logits"),
    "mobilenet": Workload("MobileNetV3-Large on 32x32, batch 16", models.mobilenet, normal(3, 32, 32, classes=10), 16,
                          2),
    "transformer": Workload("Transformer LM, d 200, 20 x 35 tokens, 10,000 words",
                            lambda: models.TransformerLm(10000, 200, 2, 200, 35), tokens(35, 10000), 20, 4),
    "bert": Workload("BERT encoder, 2 layers, d 128, 16 x 64 tokens",
                     lambda: models.Bert(1000, 128, 4, 64), tokens(64, 1000), 16, 4),
})


def build(name: str) -> nn.Module:
    torch.manual_seed(SEED)
    return ALL[name].model().train()


def load_data(name: str, folder: Path) -> list[tuple[Tensor, Tensor]]:
    """The batches, in order."""
    data = np.load(folder / "data.npz")
    x, y = torch.from_numpy(data["x"]), torch.from_numpy(data["y"])
    return list(zip(x.split(ALL[name].batch), y.split(ALL[name].batch)))


def prepare(name: str, folder: Path) -> None:
    """Writes data.npz, weights.npz (the state dict), model.pt2 and workload.json."""
    folder.mkdir(parents=True, exist_ok=True)
    workload = ALL[name]
    x, y = workload.data(workload.batch * workload.batches, Generator().manual_seed(SEED))
    np.savez(folder / "data.npz", x=x.numpy(), y=y.numpy())
    model = build(name)
    np.savez(folder / "weights.npz", **{k: v.detach().numpy() for k, v in model.state_dict().items()})
    torch.export.save(torch.export.export(model, (x[: workload.batch],)), folder / "model.pt2")
    facts = {"batch": workload.batch, "batches": workload.batches, "loss": workload.loss, "title": workload.title,
             "parameters": [k for k, _ in model.named_parameters()]}
    (folder / "workload.json").write_text(json.dumps(facts, indent=1))


if __name__ == "__main__":
    import sys

    for workload_name in sys.argv[2:]:
        prepare(workload_name, Path(sys.argv[1]) / workload_name)
