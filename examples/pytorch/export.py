#!/usr/bin/env python3
"""Writes what hfta-tune needs: model.pt2, model.eval.pt2, and the digits as train.npz and validation.npz.

The digits stand for data of your own: arrays with the samples first, as the model takes them.
"""
import pathlib

import numpy as np
import torch

from export_both import export_both
from net import Net

here = pathlib.Path(__file__).resolve().parent

table = np.loadtxt(here.parent.parent / "data" / "digits.csv", delimiter=",", skiprows=1)
images = (table[:, :64] / 16).astype(np.float32).reshape(-1, 1, 8, 8)
labels = table[:, 64].astype(np.int64)
np.savez(here / "train.npz", x=images[:1400], y=labels[:1400])
np.savez(here / "validation.npz", x=images[1400:], y=labels[1400:])

torch.manual_seed(0)
export_both(Net().train(), (torch.from_numpy(images[:8]),), here / "model")
print(f"wrote model.pt2, model.eval.pt2, train.npz and validation.npz to {here}")
