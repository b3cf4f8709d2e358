"""Writes the data and the exported models of the tasks in bench/search/tasks into a folder."""

import argparse
import pydoc_data.topics
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from torch import nn

ROOT = Path(__file__).resolve().parents[2]
WINDOW = 32  # characters of a text


def export_both(model: nn.Module, example: torch.Tensor, path: Path) -> None:
    shapes = ({0: torch.export.Dim("batch")},)
    for suffix, mode in ((".pt2", model.train), (".eval.pt2", model.eval)):
        torch.export.save(torch.export.export(mode(), (example,), dynamic_shapes=shapes), path.with_suffix(suffix))


def tabular(folder: Path) -> None:
    data = load_breast_cancer()
    x = (data.data - data.data.mean(0)) / data.data.std(0)
    np.savez(folder / "tabular.npz", x=x.astype(np.float32), y=data.target.astype(np.int64))


class Text(nn.Module):
    """One layer of a Transformer over characters."""

    def __init__(self, words: int, width: int = 32):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.place = nn.Parameter(0.02 * torch.randn(WINDOW, width))
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(width) for _ in range(3))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(width, words)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens) + self.place
        q, k, v = (part.unflatten(-1, (4, -1)).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, -1))
        attended = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        x = x + self.down(nn.functional.gelu(self.up(self.norm2(x))))
        return self.head(self.drop(self.norm3(x))).transpose(1, 2)


def text(folder: Path) -> None:
    letters = "\n".join(pydoc_data.topics.topics[key] for key in sorted(pydoc_data.topics.topics))
    letters = "".join(c for c in letters.lower() if " " <= c <= "~" or c == "\n")
    alphabet = {c: i for i, c in enumerate(sorted(set(letters)))}
    tokens = np.array([alphabet[c] for c in letters], dtype=np.int64)
    samples = np.lib.stride_tricks.sliding_window_view(tokens, WINDOW + 1)[::WINDOW]
    samples = samples[np.random.default_rng(1).permutation(len(samples))[:512]]
    for name, part in (("text", samples[:320]), ("text_validation", samples[320:])):
        np.savez(folder / f"{name}.npz", x=part[:, :-1], y=part[:, 1:])
    export_both(Text(len(alphabet)), torch.tensor(samples[:4, :-1].copy()), folder / "text")


class Digits(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(),
                                  nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveMaxPool2d(1),
                                  nn.Flatten())
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(32, 5)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.drop(self.stem(images)))


def head(folder: Path) -> None:
    table = np.loadtxt(ROOT / "data" / "digits.csv", delimiter=",", skiprows=1)
    x, y = table[:, :64].reshape(-1, 1, 8, 8).astype(np.float32) / 16, table[:, 64].astype(np.int64)
    images, labels = torch.tensor(x[y < 5]), torch.tensor(y[y < 5])
    model = Digits().train()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(20):
        for rows in torch.randperm(len(labels)).split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images[rows]), labels[rows]).backward()
            optimizer.step()
    model.head = nn.Linear(32, 5)
    np.savez(folder / "head.npz", x=x[y >= 5], y=y[y >= 5] - 5)
    export_both(model, images[:4], folder / "head")


def regression(folder: Path) -> None:
    table = np.loadtxt(ROOT / "data" / "diabetes.csv", delimiter=",", skiprows=1)
    y = (table[:, -1:] - table[:, -1].mean()) / table[:, -1].std()
    np.savez(folder / "regression.npz", x=table[:, :-1].astype(np.float32), y=y.astype(np.float32))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for task in (tabular, text, head, regression):
        torch.manual_seed(1)
        task(folder)


if __name__ == "__main__":
    main()
