#!/usr/bin/env python3
"""What large nets need of memory under each policy: the nets of COMET's table 1 (Jin et al., VLDB 2022), not trained.

    bench/memory.py [--batch 32] [--limit 16GB] [--nets alexnet,vgg16,resnet18,resnet50] [--hfta-tune PROGRAM]

Images are of 224 x 224, the optimizer is SGD with momentum. `hfta-tune plan` compiles each net, which places every
tensor of a step in an arena, and trains nothing. Every way to run computes the same bits. A slot's bytes are weights,
buffers and momentum; an arena's are all that one step of one slot is computed in. `fit` is how many trials fit at a time
where each works in an arena of its own.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile

import numpy as np
import torch
import torchvision

ROOT = pathlib.Path(__file__).resolve().parent.parent
STUDY = """\
study: memory
method: random
run_cap: 1
metric: {{name: train_loss}}
parameters: {{lr: {{min: 0.01, max: 0.1}}}}
model: {{file: model.pt2}}
data: {{train: train.npz, batch_size: {batch}}}
train: {{epochs: 1, loss: cross_entropy, optimizer: {{name: sgd, lr: "${{lr}}", momentum: 0.9}}}}
array: {{width: 1, threads: 1}}
memory: {{limit: 1TB}}
"""
MEBI = 1 << 20


def exported(net, batch):
    model = getattr(torchvision.models, net)(weights=None, num_classes=1000).train()
    example = torch.zeros(2, 3, 224, 224)
    return torch.export.export(model, (example,), dynamic_shapes=({0: torch.export.Dim("batch", min=2, max=4096)},),
                               strict=False)


def planned(program, folder, net, batch):
    torch.export.save(exported(net, batch), folder / "model.pt2")
    (folder / "study.yaml").write_text(STUDY.format(batch=batch))
    done = subprocess.run([program, "plan", folder / "study.yaml", "--format", "json"], check=True, text=True,
                          stdout=subprocess.PIPE)
    return json.loads(done.stdout)["partitions"][0]["memory"]["ways"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--limit", type=float, default=16e9, help="bytes")
    parser.add_argument("--nets", default="alexnet,vgg16,resnet18,resnet50")
    parser.add_argument("--hfta-tune", type=pathlib.Path, default=ROOT / "build/release/bin/hfta-tune")
    options = parser.parse_args()
    print(f"batch {options.batch}, {options.limit / 1e9:g} GB\n\n| net | policy | MiB/slot | MiB/arena | times less than keep | fit |\n"
          "|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        np.savez(folder / "train.npz", x=np.zeros((options.batch, 3, 224, 224), np.float32),
                 y=np.arange(options.batch, dtype=np.int64))
        for net in options.nets.split(","):
            ways = planned(options.hfta_tune, folder, net, options.batch)
            keep = ways[0]["bytes_per_slot"] + ways[0]["bytes_per_arena"]
            for way in ways:
                policy = next((part for part in way["lowering"].split(", ") if "recompute" in part), "keep")
                all_of_it = way["bytes_per_slot"] + way["bytes_per_arena"]
                print(f"| {net} | {policy} | {way['bytes_per_slot'] / MEBI:.0f} | {way['bytes_per_arena'] / MEBI:.0f} | "
                      f"{keep / all_of_it:.2f} | {int(options.limit // all_of_it)} |", flush=True)


if __name__ == "__main__":
    main()
