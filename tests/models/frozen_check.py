"""A frozen backbone under sixteen heads: run once a step, held once, and at least eight times as fast as sixteen runs.

    frozen_check.py MODEL_CURVE
"""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import torch
import torchvision
from safetensors.torch import save_file
from torch import nn

SLOTS, BATCH, STEPS, REPEATS = 16, 16, 6, 3


class Finetuned(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = torchvision.models.resnet18(weights=None, num_classes=64).requires_grad_(False)
        self.head = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 10))

    def train(self, mode=True):
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(self, x):
        return self.head(self.backbone(x))


def run(model_curve: str, folder: pathlib.Path, slots: int) -> dict:
    spec = {"model": str(folder / "model.pt2"), "data": str(folder / "data.safetensors"), "dtype": "float32",
            "chunk": slots, "loss": "cross_entropy", "optimizer": "adam", "batch": BATCH, "steps": STEPS,
            "slots": [{"lr": 1e-3 * (1 + slot), "seed": slot} for slot in range(slots)]}
    (folder / "spec.json").write_text(json.dumps(spec))
    return json.loads(subprocess.run([model_curve, str(folder / "spec.json")], capture_output=True, check=True).stdout)


def main() -> int:
    torch.manual_seed(0)
    model = Finetuned().train()
    example = (torch.randn(2, 3, 64, 64),)
    program = torch.export.export(model, example, dynamic_shapes=({0: torch.export.Dim("batch", min=2, max=4096)},))
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        torch.export.save(program, folder / "model.pt2")
        save_file({"x0": torch.randn(BATCH * STEPS, 3, 64, 64), "y": torch.randint(0, 10, (BATCH * STEPS,))},
                  folder / "data.safetensors")
        together, alone = [], []
        for _ in range(REPEATS):  # in turn: the machine is shared
            together.append(run(sys.argv[1], folder, SLOTS))
            alone.append(run(sys.argv[1], folder, 1))
    seconds = [statistics.median(r["seconds"] for r in runs) for runs in (together, alone)]
    ratio = SLOTS * seconds[1] / seconds[0]
    backbone = sum(t.nbytes for t in model.backbone.state_dict().values() if t.is_floating_point())
    head = sum(p.nbytes for p in model.head.parameters())
    one = together[0]
    checks = {"the backbone runs once a step": one["shared_runs"] == STEPS,
              "memory holds one copy of it": backbone <= one["shared_bytes"] <= 1.01 * backbone + 4096,
              "a slot holds its head and its optimizer's state": one["bytes_per_slot"] == 3 * head,
              "one sweep of heads is at least eight times as fast": ratio >= 8,
              "slots train": one["losses"][0][0] != one["losses"][-1][0]}
    print(f"{SLOTS} heads together {seconds[0]:.3f} s, one alone {seconds[1]:.3f} s: {ratio:.1f} times as fast as in turn")
    print(f"shared {one['shared_bytes']} bytes, per slot {one['bytes_per_slot']}, backbone runs {one['shared_runs']}")
    for name, holds in checks.items():
        print(f"{'ok    ' if holds else 'FAILED'} {name}")
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
