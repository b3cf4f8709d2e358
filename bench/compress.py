#!/usr/bin/env python3
"""Whether compressed training finds what uncompressed training finds: 27 trials on the digits of each of three nets.

    python3 bench/compress.py [--epochs 8] [--seeds 2] [--nets vgg,resnet,mobilenet] [--hfta-tune PROGRAM]

Each net's study is a grid of 3 learning rates, 3 momenta and 3 weight decays, which is run under each seed with
`memory.policy: keep` and with `compress`. The distance of two runs is the mean over trials of the difference of their
last val_accuracy; tau is Kendall's tau-b of their rankings. Both are means: over all pairs of runs with `keep`, and over
pairs with `keep` and `compress` of one seed. Compression costs nothing where that is no further than another seed is.
"""

import argparse
import itertools
import json
import math
import pathlib
import subprocess
import tempfile
from statistics import mean

ROOT = pathlib.Path(__file__).resolve().parent.parent


def conv(inputs, outputs, kernel=3, groups=1):
    return {"conv2d": {"in_channels": inputs, "out_channels": outputs, "kernel_size": kernel, "padding": kernel // 2,
                       "groups": groups}}


def head(channels):
    return [{"adaptive_avg_pool2d": 2}, "flatten", {"linear": [4 * channels, 10]}]


def vgg():
    layers = [conv(1, 16), "relu", conv(16, 16), "relu", {"max_pool2d": 2}, conv(16, 32), "relu", conv(32, 32), "relu"]
    return layers + head(32)


def resnet():
    layers = [conv(1, 16), {"batch_norm2d": 16}, {"relu": {"name": "block0"}}]
    for block in range(2):
        layers += [conv(16, 16), {"batch_norm2d": 16}, "relu", conv(16, 16), {"batch_norm2d": 16},
                   {"add": f"block{block}"}, {"relu": {"name": f"block{block + 1}"}}]
    return layers + head(16)


def mobilenet():
    layers = [conv(1, 16), {"batch_norm2d": 16}, "relu"]
    for inputs, outputs in ((16, 32), (32, 32)):
        layers += [conv(inputs, inputs, groups=inputs), {"batch_norm2d": inputs}, "relu",
                   conv(inputs, outputs, kernel=1), {"batch_norm2d": outputs}, "relu"]
    return layers + head(32)


NETS = {"vgg": vgg, "resnet": resnet, "mobilenet": mobilenet}


def config(layers, epochs):
    return {"study": "compress", "method": "grid", "metric": {"name": "val_accuracy", "goal": "maximize"},
            "parameters": {"lr": {"values": [0.02, 0.06, 0.2]}, "momentum": {"values": [0.0, 0.5, 0.9]},
                           "weight_decay": {"values": [1e-6, 1e-3, 1e-2]}},
            "model": {"layers": layers},
            "data": {"name": "digits", "batch_size": 32, "validation": 0.3},
            "train": {"epochs": epochs, "loss": "cross_entropy",
                      "optimizer": {"name": "sgd", "lr": "${lr}", "momentum": "${momentum}",
                                    "weight_decay": "${weight_decay}"}}}


def accuracies(program, folder, policy, seed):
    """val_accuracy by trial."""
    store = folder / f"{policy}-{seed}.db"
    settings = {"storage": store, "seed": seed, "memory.policy": policy}
    subprocess.run([program, folder / "study.json", *(a for k, v in settings.items() for a in ("--set", f"{k}={v}"))],
                   check=True, capture_output=True)
    found = subprocess.run([program, "report", "--storage", store, "--format", "json"], check=True, text=True,
                           stdout=subprocess.PIPE).stdout
    trials = json.loads(found)["trials"]
    return [trial["value"] for trial in sorted(trials, key=lambda trial: trial["number"])]


def distance(a, b):
    return mean(abs(x - y) for x, y in zip(a, b))


def tau(a, b):
    def order(x, y):
        return (x > y) - (x < y)
    pairs = [(order(a[i], a[j]), order(b[i], b[j])) for i, j in itertools.combinations(range(len(a)), 2)]
    untied = sum(x != 0 for x, _ in pairs) * sum(y != 0 for _, y in pairs)
    return sum(x * y for x, y in pairs) / math.sqrt(untied) if untied else 0.0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=2, help="at least 2")
    parser.add_argument("--nets", default=",".join(NETS))
    parser.add_argument("--hfta-tune", type=pathlib.Path, default=ROOT / "build/release/bin/hfta-tune")
    options = parser.parse_args()
    seeds = range(1, options.seeds + 1)
    print("| net | pairs of runs | best | mean | distance | tau |\n|---|---|---|---|---|---|")
    for net in options.nets.split(","):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "study.json").write_text(json.dumps(config(NETS[net](), options.epochs)))
            keep, compress = ([accuracies(options.hfta_tune, folder, policy, seed) for seed in seeds]
                              for policy in ("keep", "compress"))
        for pairs, runs, what in (([*itertools.combinations(keep, 2)], keep, "keep, two seeds"),
                                  ([*zip(keep, compress)], compress, "compress and keep, one seed")):
            print(f"| {net} | {what} | {mean(max(run) for run in runs):.4f} | {mean(mean(run) for run in runs):.4f} | "
                  f"{mean(distance(*pair) for pair in pairs):.4f} | {mean(tau(*pair) for pair in pairs):.3f} |",
                  flush=True)


if __name__ == "__main__":
    main()
