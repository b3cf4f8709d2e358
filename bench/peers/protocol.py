"""How the harness talks to whoever is raced. A peer is a process of its own that answers lines.

Started, it takes ten training steps and writes one line of JSON: first_step_s (compiling included), losses [step][slot]
before each step, rss_start (behind the imports) and rss, in bytes, and, where it knows, runs: the instructions it uses.
`measure SECONDS` then trains for about that long and answers {steps, wall_s, cpu_s}, a step being one of all slots;
`quit` answers {rss_peak} and ends. bench/step.cpp speaks the same.
"""

import argparse
import json
import math
import os
import resource
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHECKED_STEPS = 10


def rates(width: int) -> list[float]:
    """Learning rates of the slots."""
    if width == 1:
        return [1e-3]
    return [1e-4 * 100 ** (slot / (width - 1)) for slot in range(width)]


class Peer(ABC):
    stride = 1  # steps are taken so many at a time

    @abstractmethod
    def train(self, steps: int) -> list[Any]:
        """Goes on training; the losses of every step, [B] or [stride, B] each, perhaps still being computed."""

    @abstractmethod
    def wait(self) -> None:
        """Until all that was asked is done."""

    def info(self) -> dict[str, Any]:
        return {}


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def timed(peer: Peer, steps: int) -> dict[str, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    peer.train(steps)
    peer.wait()
    return {"steps": steps, "wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}


class Pace:
    """How many steps fill a window."""

    def __init__(self, stride: int) -> None:
        self.stride = stride
        self.seconds = 0.0  # of a step; 0: not known

    def measure(self, peer: Peer, seconds: float) -> dict[str, float]:
        result = timed(peer, self.steps_for(seconds))
        while self.seconds == 0 and result["wall_s"] < seconds / 4:
            result = timed(peer, 2 * int(result["steps"]))
        self.seconds = result["wall_s"] / result["steps"]
        return result

    def steps_for(self, seconds: float) -> int:
        if self.seconds == 0:
            return self.stride
        return max(1, round(seconds / self.seconds / self.stride)) * self.stride


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True, help="what workloads.prepare wrote")
    parser.add_argument("--workload", required=True)
    parser.add_argument("--variant", default="")
    parser.add_argument("--width", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rate", type=float, help="the one slot's learning rate, in place of its share of the range")
    parser.add_argument("--hfta", type=Path)
    return parser.parse_args()


def tell(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


def first_steps(peer: Peer) -> dict[str, Any]:
    begin = time.perf_counter()
    losses = peer.train(peer.stride)
    peer.wait()
    first = time.perf_counter() - begin
    losses += peer.train(math.ceil(CHECKED_STEPS / peer.stride - 1) * peer.stride)
    steps: list[list[float]] = []
    for loss in losses:
        steps += loss.tolist() if peer.stride > 1 else [loss.tolist()]
    return {"first_step_s": first, "losses": steps[:CHECKED_STEPS]}


def serve(make: Callable[[argparse.Namespace], Peer]) -> None:
    """Call it when everything is imported."""
    answers = os.dup(1)
    os.dup2(2, 1)  # what libraries print is no answer
    sys.stdout = os.fdopen(answers, "w")
    start = resident()
    peer = make(arguments())
    ready = first_steps(peer)
    tell({**ready, **peer.info(), "rss_start": start, "rss": resident()})
    pace = Pace(peer.stride)
    for line in sys.stdin:
        command, *rest = line.split()
        if command == "quit":
            break
        tell(pace.measure(peer, float(rest[0])))
    tell({"rss_peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, **peer.info()})
