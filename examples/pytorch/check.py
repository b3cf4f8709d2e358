#!/usr/bin/env python3
"""Loads the exported weights into the module and compares its validation loss with the report's.

    check.py best.safetensors report.json
"""
import json
import pathlib
import sys

import numpy as np
import torch
from safetensors.torch import load_file

from net import Net

here = pathlib.Path(__file__).resolve().parent
weights, report = sys.argv[1:] if len(sys.argv) == 3 else (here / "best.safetensors", here / "report.json")

model = Net()
model.load_state_dict(load_file(weights), strict=True)
model.eval()

data = np.load(here / "validation.npz")
with torch.no_grad():
    logits = model(torch.from_numpy(data["x"]))
    loss = torch.nn.functional.cross_entropy(logits, torch.from_numpy(data["y"])).item()
accuracy = (logits.argmax(1).numpy() == data["y"]).mean()

reported = json.loads(pathlib.Path(report).read_text())["best"]["metrics"]["val_loss"]
print(f"accuracy {accuracy:.4f}, loss {loss:.6f}, reported loss {reported:.6f}")
if abs(loss - reported) > 1e-5 * max(1, abs(reported)):
    sys.exit("the weights are not those of the report")
