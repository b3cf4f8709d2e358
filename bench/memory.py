#!/usr/bin/env python3
"""What large nets need of memory under each policy: the nets of COMET's table 1 (Jin et al., VLDB 2022), not trained.

    bench/memory.py [--batch 32] [--limit 16e9] [--nets alexnet,vgg16,resnet18,resnet50] [--clip] [--hfta-tune PROGRAM]

Images are of 224 x 224, the optimizer is SGD with momentum. `hfta-tune plan` compiles each net, which places every
tensor of a step in an arena, and trains nothing. Every way to run but `compress` computes the same bits; the arena of
that is as `plan` expects it. A slot's bytes are weights,
buffers and momentum; an arena's are all that one step of one slot is computed in. `fit` is how many trials fit at a time
where each works in an arena of its own. With --clip gradients are clipped by their norm, so that all lie in memory together.
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
train: {{epochs: 1, loss: cross_entropy, optimizer: {{name: sgd, lr: "${{lr}}", momentum: 0.9}}{clip}}}
array: {{width: 1, threads: 1}}
memory: {{limit: 1TB}}
"""
MEBI = 1 << 20


def exported(net, batch):
    model = getattr(torchvision.models, net)(weights=None, num_classes=1000).train()
    example = torch.zeros(2, 3, 224, 224)
    return torch.export.export(model, (example,), dynamic_shapes=({0: torch.export.Dim("batch", min=2, max=4096)},),
                               strict=False)


def planned(program, folder, policy):
    """The ways to run: each a policy's name, bytes of a slot and of an arena."""
    done = subprocess.run([program, "plan", folder / "study.yaml", "--format", "json", "--set", f"memory.policy={policy}"],
                          check=True, text=True, stdout=subprocess.PIPE)
    for way in json.loads(done.stdout)["partitions"][0]["memory"]["ways"]:
        recompute = next((part for part in way["lowering"].split(", ") if "recompute" in part), "keep")
        yield policy if policy == "compress" else recompute, way["bytes_per_slot"], way["bytes_per_arena"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--limit", type=float, default=16e9, help="bytes")
    parser.add_argument("--nets", default="alexnet,vgg16,resnet18,resnet50")
    parser.add_argument("--clip", action="store_true")
    parser.add_argument("--hfta-tune", type=pathlib.Path, default=ROOT / "build/release/bin/hfta-tune")
    options = parser.parse_args()
    print(f"batch {options.batch}, {options.limit / 1e9:g} GB\n\n| net | policy | MiB/slot | MiB/arena | times less than keep | fit |\n"
          "|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        np.savez(folder / "train.npz", x=np.zeros((options.batch, 3, 224, 224), np.float32),
                 y=np.arange(options.batch, dtype=np.int64))
        for net in options.nets.split(","):
            torch.export.save(exported(net, options.batch), folder / "model.pt2")
            (folder / "study.yaml").write_text(STUDY.format(batch=options.batch, clip=", clip_norm: 1" if options.clip else ""))
            ways = [way for policy in ("auto", "compress") for way in planned(options.hfta_tune, folder, policy)]
            keep = sum(ways[0][1:])
            for policy, slot, arena in ways:
                print(f"| {net} | {policy} | {slot / MEBI:.0f} | {arena / MEBI:.0f} | {keep / (slot + arena):.2f} | "
                      f"{int(options.limit // (slot + arena))} |", flush=True)



if __name__ == "__main__":
    main()
