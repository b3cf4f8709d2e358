"""The study of bench/study.py by Optuna and PyTorch.

    optuna_study.py MODEL DATA.npz STORAGE.db --trials N --epochs N --threads N [--report]
"""

import argparse
import time

import optuna
import torch

from study_training import LR, WEIGHT_DECAY, Data, arguments, load, train


def objective(trial: optuna.Trial, args: argparse.Namespace, data: Data) -> float:
    lr = trial.suggest_float("lr", *LR, log=True)
    weight_decay = trial.suggest_float("weight_decay", *WEIGHT_DECAY, log=True)
    return train(args, data, trial.number, lr, weight_decay, trial.report if args.report else None)


def main() -> None:
    parser = arguments()
    parser.add_argument("--report", action="store_true", help="store every epoch's value, as hfta-tune does")
    parser.add_argument("--worker", type=int, default=0, help="another process of the same study; its seed")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    data = load(args.data)
    created = args.storage.with_suffix(".created")  # Optuna's processes must not make one file's tables at a time
    while args.worker and not created.exists():
        time.sleep(0.01)
    study = optuna.create_study(study_name="bench", storage=f"sqlite:///{args.storage}", direction="maximize",
                                sampler=optuna.samplers.RandomSampler(seed=args.worker), load_if_exists=True)
    created.touch()
    study.optimize(lambda trial: objective(trial, args, data), n_trials=args.trials)
    if not args.worker:
        print(f"{len(study.trials)} trials, best {study.best_value:.4f}")


if __name__ == "__main__":
    main()
