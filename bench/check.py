"""Whether a peer trained what it was asked to: its first losses against serial PyTorch's at the same rates."""

import json
import math
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Any

from peers import SCRIPTS, Race, rates

FIRST = 3  # steps that decide: later ones differ by what rounding has grown to
ALLOWED = 2e-2  # relative difference, or
TIMES_DISTURBED = 5  # so many times that of a serial run from weights that are a few roundings off
SLOTS = 5  # that are looked at, first and last among them

Curves = dict[int, list[float]]  # losses by slot


@dataclass(frozen=True)
class Check:
    first: float  # largest relative difference in the first steps
    all: float  # and in all that were told
    wrong: bool

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


# Words in what peers say that they run, narrowest set first: ATen's, LIBXSMM's and our loops' names.
SAID = {"sse4": ("DEFAULT", "x86-64", "wsm"), "avx": ("snb",), "avx2": ("AVX2", "x86-64-v3", "hsw"),
        "avx512": ("AVX512", "x86-64-v4", "skx", "clx", "cpx", "knl", "knm")}


def beyond(isa: str, runs: str) -> bool:
    """Whether a peer that is held to the set says that it runs a wider one."""
    sets = list(SAID)
    if isa not in sets:
        return False
    wider = {word for name in sets[sets.index(isa) + 1:] for word in SAID[name]}
    return not wider.isdisjoint(runs.replace(",", " ").split())


def looked_at(width: int) -> list[int]:
    return sorted({round(i * (width - 1) / (SLOTS - 1)) for i in range(SLOTS)})


def serial_curves(race: Race, width: int, *flags: str) -> Curves:
    """Kept beside the workload's files."""
    file = race.folder / f"reference{''.join(flags)}.json"
    known: dict[str, list[float]] = json.loads(file.read_text()) if file.exists() else {}
    names = {slot: repr(rates(width)[slot]) for slot in looked_at(width)}
    missing = sorted(set(names.values()) - known.keys())
    if missing:
        command = [sys.executable, str(SCRIPTS / "reference.py"), *flags, str(race.folder), race.workload, *missing]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        output = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, env=environment)
        known |= json.loads(output.stdout)
        file.write_text(json.dumps(known))
    return {slot: known[name] for slot, name in names.items()}


def apart(a: list[float], b: list[float]) -> list[float]:
    """Relative differences, step by step; infinite where there is no number."""
    differences = [abs(x - y) / max(abs(y), 1e-6) for x, y in zip(a, b)]
    return [d if math.isfinite(d) else math.inf for d in differences]


def check(race: Race, width: int, losses: list[list[float]]) -> Check:
    """`losses`: [step][slot]."""
    wanted, disturbed = serial_curves(race, width), serial_curves(race, width, "--disturbed")
    off = {slot: apart([step[slot] for step in losses], curve) for slot, curve in wanted.items()}
    wrong = any(d > max(ALLOWED, TIMES_DISTURBED * rounding)
                for slot, differences in off.items()
                for d, rounding in zip(differences[:FIRST], apart(disturbed[slot], wanted[slot])))
    return Check(max(max(d[:FIRST]) for d in off.values()), max(max(d) for d in off.values()), wrong)
