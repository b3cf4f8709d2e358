"""The study of bench/study.py by Optuna and PyTorch, as somebody would write it who wants it quick: data as tensors on
hand, fused Adam, no DataLoader.

    optuna_study.py MODEL DATA.npz STORAGE.db --trials N --epochs N --threads N [--report]
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import optuna
import torch
import torch.nn.functional as F
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import models  # noqa: E402

BATCH, VALIDATION = 64, 0.2


def load(file: Path) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Training inputs and labels, then those of validation."""
    data = np.load(file)
    order = np.random.default_rng(1).permutation(len(data["y"]))
    cut = round(len(order) * (1 - VALIDATION))
    parts = [torch.from_numpy(data[key][rows]) for rows in (order[:cut], order[cut:]) for key in ("x", "y")]
    return parts[0], parts[1], parts[2], parts[3]


def accuracy(model: nn.Module, x: Tensor, y: Tensor) -> float:
    model.eval()
    with torch.no_grad():
        right = (model(x).argmax(1) == y).float().mean().item()
    model.train()
    return right


def objective(trial: optuna.Trial, args: argparse.Namespace, data: tuple[Tensor, Tensor, Tensor, Tensor]) -> float:
    torch.manual_seed(trial.number)
    x, y, val_x, val_y = data
    model = models.Cnn() if args.model == "cnn" else nn.Sequential(nn.Flatten(), models.Mlp())
    optimizer = torch.optim.Adam(model.parameters(), lr=trial.suggest_float("lr", 1e-4, 1e-1, log=True),
                                 weight_decay=trial.suggest_float("weight_decay", 1e-6, 1e-2, log=True), fused=True)
    if args.channels_last:
        model, x = model.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    value = 0.0
    for epoch in range(args.epochs):
        for rows in torch.randperm(len(x)).split(BATCH):
            optimizer.zero_grad()
            F.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()
        value = accuracy(model, val_x, val_y)
        if args.report:
            trial.report(value, epoch)
    return value


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=("mlp", "cnn"))
    parser.add_argument("data", type=Path)
    parser.add_argument("storage", type=Path)
    parser.add_argument("--trials", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--report", action="store_true", help="store every epoch's value, as hfta-tune does")
    parser.add_argument("--worker", type=int, default=0, help="another process of the same study; its seed")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.set_flush_denormal(True)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    data = load(args.data)
    study = optuna.create_study(study_name="bench", storage=f"sqlite:///{args.storage}", direction="maximize",
                                sampler=optuna.samplers.RandomSampler(seed=args.worker), load_if_exists=True)
    study.optimize(lambda trial: objective(trial, args, data), n_trials=args.trials)
    if not args.worker:
        print(f"{len(study.trials)} trials, best {study.best_value:.4f}")


if __name__ == "__main__":
    main()
