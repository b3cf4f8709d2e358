"""Whether a peer trained what it was asked to: its first losses against serial PyTorch's at the same rates."""

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Any

from peers import SCRIPTS, Race, rates

FIRST = 3  # steps that decide: later ones differ by what rounding has grown to
ALLOWED = 2e-2
SLOTS = 5  # that are looked at, first and last among them


@dataclass(frozen=True)
class Check:
    first: float  # largest relative difference in the first steps
    all: float  # and in all that were told

    @property
    def wrong(self) -> bool:
        return not self.first <= ALLOWED

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "wrong": self.wrong}


def looked_at(width: int) -> list[int]:
    return sorted({round(i * (width - 1) / (SLOTS - 1)) for i in range(SLOTS)})


def references(race: Race, width: int) -> dict[int, list[float]]:
    """By slot. Kept beside the workload's files."""
    file = race.folder / "reference.json"
    known: dict[str, list[float]] = json.loads(file.read_text()) if file.exists() else {}
    names = {slot: repr(rates(width)[slot]) for slot in looked_at(width)}
    missing = sorted(set(names.values()) - known.keys())
    if missing:
        command = [sys.executable, str(SCRIPTS / "reference.py"), str(race.folder), race.workload, *missing]
        output = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1"})
        known |= json.loads(output.stdout)
        file.write_text(json.dumps(known))
    return {slot: known[name] for slot, name in names.items()}


def check(race: Race, width: int, losses: list[list[float]]) -> Check:
    """`losses`: [step][slot]."""
    def apart(steps: int) -> float:
        differences = [abs(step[slot] - wanted) / max(abs(wanted), 1e-6)
                       for slot, curve in references(race, width).items()
                       for step, wanted in zip(losses[:steps], curve)]
        return max(d if d == d else float("inf") for d in differences)

    return Check(apart(FIRST), apart(len(losses)))
