"""What the checks of losses share: their command line, and the losses of single steps in every way to run an array: slot
by slot, together, compiled."""
from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol, TypeVar

import torch
from safetensors.torch import save_file
from torch import Tensor

Steps = list[float]  # losses
Curve = list[dict[str, float]]  # figures by epoch
MOST = 1e-9  # what figures may differ by
WAYS = {"chunk 1": {"chunk": 1}, "chunk 3": {"chunk": 3}, "compiled": {"chunk": 1, "compiled": True}}


def compare(spec: dict[str, object], model_curve: str, folder: Path, inputs: list[Tensor], target: Tensor | None,
            wanted: list[Steps], epochs: int) -> tuple[float, str]:
    """`wanted`: by slot. The largest difference, relative to losses above 1; and which ways do not run the model."""
    arrays = {f"x{i}": values for i, values in enumerate(inputs)} | ({} if target is None else {"y": target})
    save_file({name: torch.cat([values] * epochs).contiguous() for name, values in arrays.items()},
              folder / "steps.safetensors")
    spec = spec | {"data": str(folder / "steps.safetensors"), "dtype": "float64",
                   "batches": spec["batches"] * epochs}  # type: ignore[operator]
    worst, refused = 0.0, []
    for name, way in WAYS.items():
        (folder / "steps.json").write_text(json.dumps(spec | way))
        done = subprocess.run([model_curve, str(folder / "steps.json")], capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(f"{name}: {done.stderr.strip()[:300]}")
        found = json.loads(done.stdout)
        if "refused" in found:
            refused.append(f"; not {name}: {found['refused']}")
            continue
        for step, losses in enumerate(found["losses"]):
            for slot, value in enumerate(losses):
                off = abs(value - wanted[slot][step]) / max(1.0, abs(wanted[slot][step]))
                worst = max(worst, off) if off == off else float("nan")
    return worst, "".join(refused)


def largest_difference(wanted: list[Curve], found: list[Curve]) -> float:
    """Of every figure of every epoch, relative to figures above 1; NaN if one of them is."""
    off = [0.0]
    for curve, of_trial in zip(wanted, found, strict=True):
        for figures, given in zip(curve, of_trial, strict=True):
            if set(figures) != set(given):
                raise AssertionError(f"found {sorted(given)}, wanted {sorted(figures)}")
            off += [abs(given[name] - value) / max(1.0, abs(value)) for name, value in figures.items()]
    return math.nan if any(map(math.isnan, off)) else max(off)


class Named(Protocol):
    name: str


Checked = TypeVar("Checked", bound=Named)


def check_all(cases: Iterable[Checked], check: Callable[[Checked, str, Path], tuple[float, str]]) -> int:
    """CHECK.py HFTA_TUNE MODEL_CURVE [NAME...]: checks the named cases, or all. `check` takes a case, MODEL_CURVE and an
    empty folder, and gives the largest difference and what the ways to run say. The exit status: 1 if a case fails."""
    os.environ["HFTA_TUNE"] = sys.argv[1]
    wanted = set(sys.argv[3:])
    failed = 0
    for case in cases:
        if wanted and case.name not in wanted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                worst, ways = check(case, sys.argv[2], Path(folder))
            except Exception as error:  # noqa: BLE001: the others are tried, too
                print(f"{case.name}: {error}", flush=True)
                failed += 1
                continue
        failed += worst > MOST or math.isnan(worst)
        print(f"{case.name}: within {worst:.1e}{ways}", flush=True)
    print(f"{failed} failed")
    return int(failed > 0)
