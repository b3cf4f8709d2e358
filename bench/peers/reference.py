"""What every slot ought to do: the losses of a plain serial run at each of the rates that are named, as JSON.

    reference.py [--disturbed] FOLDER WORKLOAD RATE...

Disturbed, weights begin a few roundings beside those that everyone starts from: as far as that run is off, a right
program may be.
"""

import argparse
import json
from pathlib import Path

import torch

from protocol import CHECKED_STEPS
from torch_eager import Eager


DISTURBANCE = 1e-6  # relative


def losses(folder: Path, workload: str, rate: float, disturbed: bool) -> list[float]:
    peer = Eager(argparse.Namespace(folder=folder, workload=workload, rate=rate, variant="", threads=1, device="cpu"))
    if disturbed:
        torch.manual_seed(1)
        with torch.no_grad():
            for p in peer.model.parameters():
                p.mul_(1 + DISTURBANCE * torch.randn_like(p))
    return [loss.item() for loss in peer.train(CHECKED_STEPS)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--disturbed", action="store_true")
    parser.add_argument("folder", type=Path)
    parser.add_argument("workload")
    parser.add_argument("rates", nargs="+")
    args = parser.parse_args()
    print(json.dumps({rate: losses(args.folder, args.workload, float(rate), args.disturbed) for rate in args.rates}))


if __name__ == "__main__":
    main()
