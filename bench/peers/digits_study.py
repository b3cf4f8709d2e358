"""The study of configs/digits.yaml by Optuna (TPE, Hyperband) and PyTorch, until a trial has reached an accuracy.

    digits_study.py STORAGE.db --seed N --accuracy A
"""

import argparse
import time
from pathlib import Path

import numpy as np
import optuna
import torch
import torch.nn.functional as F
from study_training import BATCH
from study_training import accuracy as validated
from torch import Tensor, nn

EPOCHS, PART = 27, 0.2  # of the images, for validation and for test each
MOST_TRIALS = 2000


def load(seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Training images and labels, then those of validation."""
    table = np.loadtxt(Path(__file__).resolve().parents[2] / "data" / "digits.csv", delimiter=",", skiprows=1)
    order = np.random.default_rng(seed).permutation(len(table))
    x = torch.from_numpy((table[order, :64] / 16).astype(np.float32).reshape(-1, 1, 8, 8))
    y = torch.from_numpy(table[order, 64].astype(np.int64))
    part = round(len(table) * PART)
    return x[2 * part:], y[2 * part:], x[:part], y[:part]


def network(dropout: float, hidden: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1),
                         nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(dropout),
                         nn.Linear(512, hidden), nn.ReLU(), nn.Linear(hidden, 10))


def train(trial: optuna.Trial, data: tuple[Tensor, Tensor, Tensor, Tensor], accuracy: float) -> float:
    x, y, val_x, val_y = data
    lr = trial.suggest_float("lr", 1e-4, 1.0, log=True)
    momentum = trial.suggest_float("momentum", 0.0, 0.99)
    weight_decay = trial.suggest_float("weight_decay", 1e-6, 1e-1, log=True)
    dropout = trial.suggest_float("dropout", 0.0, 0.8)
    smoothing = trial.suggest_float("label_smoothing", 0.0, 0.5)
    model = network(dropout, trial.suggest_categorical("hidden", [32, 64, 128]))
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum, weight_decay=weight_decay, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    value = 0.0
    for epoch in range(EPOCHS):
        for rows in torch.randperm(len(x)).split(BATCH):
            optimizer.zero_grad()
            F.cross_entropy(model(x[rows]), y[rows], label_smoothing=smoothing).backward()
            optimizer.step()
        schedule.step()
        value = validated(model, val_x, val_y)
        trial.report(value, epoch + 1)
        if value >= accuracy:
            trial.study.stop()
            return value
        if trial.should_prune():
            raise optuna.TrialPruned
    return value


def main() -> None:
    begin = time.perf_counter()  # behind the imports
    parser = argparse.ArgumentParser()
    parser.add_argument("storage", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--accuracy", type=float, default=0.99)
    arguments = parser.parse_args()
    torch.set_flush_denormal(True)
    torch.manual_seed(arguments.seed)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(storage=f"sqlite:///{arguments.storage}", direction="maximize",
                                sampler=optuna.samplers.TPESampler(seed=arguments.seed),
                                pruner=optuna.pruners.HyperbandPruner(min_resource=1, max_resource=EPOCHS, reduction_factor=3))
    data = load(arguments.seed)
    study.optimize(lambda trial: train(trial, data, arguments.accuracy), n_trials=MOST_TRIALS)
    print(f"{len(study.trials)} trials, best {study.best_value:.4f}, without imports {time.perf_counter() - begin:.2f} s")


if __name__ == "__main__":
    main()
