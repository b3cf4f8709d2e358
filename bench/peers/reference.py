"""What every slot ought to do: the losses of a plain serial run at each of the rates that are named, as JSON.

    reference.py FOLDER WORKLOAD RATE...
"""

import argparse
import json
import sys
from pathlib import Path

from protocol import CHECKED_STEPS
from torch_eager import Eager


def losses(folder: Path, workload: str, rate: float) -> list[float]:
    peer = Eager(argparse.Namespace(folder=folder, workload=workload, rate=rate, variant="", threads=1, device="cpu"))
    return [loss.item() for loss in peer.train(CHECKED_STEPS)]


if __name__ == "__main__":
    folder, workload, *wanted = sys.argv[1:]
    print(json.dumps({rate: losses(Path(folder), workload, float(rate)) for rate in wanted}))
