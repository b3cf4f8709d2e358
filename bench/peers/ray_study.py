"""The study of bench/study.py by Ray Tune and PyTorch: a trial to a core, which is what Ray does by itself, in processes
that serve one trial after another.

    ray_study.py MODEL DATA.npz FOLDER --trials N --epochs N --threads CORES
"""

import argparse
import functools
import os
from typing import Any

os.environ |= {"RAY_AIR_NEW_OUTPUT": "0", "RAY_DEDUP_LOGS": "0", "RAY_USAGE_STATS_ENABLED": "0",
               "RAY_AUTH_MODE": "disabled"}

import ray  # noqa: E402
import torch  # noqa: E402
from ray import tune  # noqa: E402

from study_training import LR, WEIGHT_DECAY, Data, arguments, load, train  # noqa: E402


def trial(config: dict[str, Any], args: argparse.Namespace, data: Data) -> None:
    torch.set_num_threads(1)
    train(args, data, config["seed"], config["lr"], config["weight_decay"],
          lambda value, epoch: tune.report({"val_accuracy": value}))


def main() -> None:
    args = arguments().parse_args()
    storage = str(args.storage.resolve())
    ray.init(num_cpus=args.threads, include_dashboard=False, log_to_driver=False, _temp_dir=storage + ".tmp",
             runtime_env={"env_vars": {"PYTHONPATH": os.path.dirname(os.path.abspath(__file__))}})
    trainable = tune.with_parameters(functools.partial(trial, args=args), data=load(args.data))
    results = tune.Tuner(
        tune.with_resources(trainable, {"cpu": 1}),
        param_space={"lr": tune.loguniform(*LR), "weight_decay": tune.loguniform(*WEIGHT_DECAY),
                     "seed": tune.randint(0, 1 << 31)},
        tune_config=tune.TuneConfig(num_samples=args.trials, metric="val_accuracy", mode="max", reuse_actors=True),
        run_config=tune.RunConfig(storage_path=storage, verbose=0),
    ).fit()
    if results.errors:
        raise SystemExit(f"{len(results.errors)} trials failed: {results.errors[0]}")
    print(f"{len(results)} trials, best {results.get_best_result().metrics['val_accuracy']:.4f}")


if __name__ == "__main__":
    main()
