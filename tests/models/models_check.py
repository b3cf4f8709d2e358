"""Exports each model of zoo.py, trains it three slots wide with model_curve, and follows each slot in plain PyTorch.

    models_check.py MODEL_CURVE [--short | --only NAME ...] [--forms FORM ...] [--jobs N] [--write docs/model-coverage.md]

Every loss of a few steps in float64, and the model's answer in evaluation mode after them, are as near to PyTorch's as
rounding lets them be (noise_floor.py): slot by slot (chunk 1), together (chunk 3) and compiled. So is the loss of the
first step in float32. Dropout and stochastic depth are off: their masks are counted, which PyTorch's are not.

Each model is exported in every one of the ways asked for (exporting.py), in float32 as people do; the float64 run widens
its weights, as PyTorch's `double()` does. CI runs `--short`, which leaves out the models that take minutes; the whole,
and `--forms all` (over an hour on two cores), are run by hand. idioms_check.py has small models in all forms.
Models run side by side, one per core and two at most (--jobs), each in a process of its own with one thread.
"""

import argparse
import copy
import json
import multiprocessing
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from typing import Callable, Iterator

import torch
from safetensors.torch import save_file
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from exporting import FORMS, exported
from noise_floor import NoiseFloor, Nudge, nudge_module
from zoo import CASES, Case

SLOTS = 3
USUAL = "bounded"
WAYS = {"1": {"chunk": 1}, str(SLOTS): {"chunk": SLOTS}, "compiled": {"chunk": 1, "compiled": True}}


def without_dropout(model: nn.Module) -> nn.Module:
    for module in model.modules():
        if isinstance(module, (nn.Dropout, nn.Dropout2d)) or type(module).__name__ == "StochasticDepth":
            module.p = 0.0
        if isinstance(module, nn.MultiheadAttention):
            module.dropout = 0.0
    return model


def hyperparameters(case: Case, slot: int) -> dict:
    return {"lr": case.lr * (1 + slot), "weight_decay": 0.01 * slot, "momentum": 0.9 if slot % 2 else 0.0, "seed": slot}


def picked(output, case: Case) -> torch.Tensor:
    if isinstance(output, dict):
        output = list(output.values())
    return output if isinstance(output, torch.Tensor) else output[case.output or 0]


def loss_of(output: torch.Tensor, target: torch.Tensor, case: Case) -> torch.Tensor:
    return nn.functional.mse_loss(output, target) if case.loss == "mse" else nn.functional.cross_entropy(output, target)


def follow(case: Case, fresh: nn.Module, data: list, target: torch.Tensor, slot: int, dtype: torch.dtype, steps: int,
           nudge: Nudge) -> dict:
    """Losses of each step, and the answer to the first samples in evaluation mode afterwards."""
    model = copy.deepcopy(fresh).to(dtype)
    nudge_module(model, nudge)
    cast = lambda t: t.to(dtype) if t.is_floating_point() else t
    data, target = [nudge(cast(x)) for x in data], cast(target)
    hyper = hyperparameters(case, slot)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=hyper["lr"], momentum=hyper["momentum"], weight_decay=hyper["weight_decay"])
    losses = []
    for step in range(steps):
        rows = slice(step * case.batch, (step + 1) * case.batch)
        loss = loss_of(picked(model(*[x[rows] for x in data]), case), target[rows], case)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        answer = picked(model(*[x[:case.batch] for x in data]), case).double().flatten()
    return {"losses": losses, "answer": answer}


def export(case: Case, folder: pathlib.Path, form: str) -> nn.Module:
    """The model as it was exported, before any training."""
    torch.manual_seed(0)
    model = without_dropout(case.model()).train()
    fresh = copy.deepcopy(model)
    program = exported(model, case.inputs(case.batch), form)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(program, folder / "model.pt2")
    return fresh


def run(model_curve: str, case: Case, folder: pathlib.Path, dtype: str, steps: int, **more) -> dict:
    spec = {"model": str(folder / "model.pt2"), "data": str(folder / "data.safetensors"), "dtype": dtype,
            "loss": case.loss, "optimizer": "sgd", "batch": case.batch, "steps": steps, "freeze": case.freeze,
            "slots": [hyperparameters(case, slot) for slot in range(SLOTS)], **more}
    if case.output is not None:
        spec["output"] = case.output
    (folder / "spec.json").write_text(json.dumps(spec))
    # Freed blocks are kept, as hfta-tune keeps them: large weights would otherwise fault in anew at every step.
    environment = {**os.environ, "MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}
    done = subprocess.run([model_curve, str(folder / "spec.json")], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    if done.stderr:
        raise RuntimeError(f"standard error: {done.stderr.strip()}")
    return json.loads(done.stdout)


def judged(floors: list[NoiseFloor], found: dict, way: str) -> tuple[float, float, list[str]]:
    """How far losses and answers are off, over all slots, and what is wrong with them."""
    off, failures = {"losses": 0.0, "answer": 0.0}, []
    for slot, floor in enumerate(floors):
        ours = {"losses": [step[slot] for step in found["losses"]],
                "answer": torch.tensor(found["predictions"][slot], dtype=torch.float64)}
        for name, quantity in ours.items():
            verdict = floor.judge(name, quantity)
            off[name] = max(off[name], verdict.off)
            if verdict.failure:
                failures.append(f"{way}, slot {slot}, {name}: {verdict.failure}")
    return off["losses"], off["answer"], failures


def check(model_curve: str, name: str, form: str) -> dict:
    case, began = CASES[name], time.monotonic()
    row, failures = {"name": label(name, form)}, []
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        fresh = export(case, folder, form)
        torch.manual_seed(1)
        size = case.batch * case.steps
        data = list(case.inputs(size))
        target = case.target(size) if case.target else torch.randint(0, case.classes, (size,))
        save_file({"y": target.contiguous(), **{f"x{i}": x.contiguous() for i, x in enumerate(data)}},
                  folder / "data.safetensors")

        def floor(slot: int, dtype: torch.dtype, steps: int) -> NoiseFloor:
            return NoiseFloor(lambda nudge: follow(case, fresh, data, target, slot, dtype, steps, nudge), dtype)

        floors = [floor(slot, torch.float64, case.steps) for slot in range(SLOTS)]
        for way, lowering in WAYS.items():
            found = run(model_curve, case, folder, "float64", case.steps, **lowering)
            if "refused" in found:
                row["refused"] = found["refused"]
                continue
            row[f"losses{way}"], row[f"answers{way}"], wrong = judged(floors, found, way)
            failures += wrong
            if way == str(SLOTS):
                row["by_slot"] = sorted({op for op, way in found["choices"] if op.startswith("aten::") and way == "per_slot"})
                row["batched"] = sorted({op for op, way in found["choices"] if op.startswith("aten::") and way == "batched"})
        first = floor(0, torch.float32, 1)
        row["float32"] = 0.0
        for way in ("1", str(SLOTS)):
            verdict = first.judge("losses", [run(model_curve, case, folder, "float32", 1, **WAYS[way])["losses"][0][0]])
            row["float32"] = max(row["float32"], verdict.off)
            if verdict.failure:
                failures.append(f"{way} in float32, loss: {verdict.failure}")
    return row | {"noise": max(max(f.noise["losses"]) for f in floors), "failures": failures,
                  "seconds": time.monotonic() - began}


def label(name: str, form: str) -> str:
    return name if form == USUAL else f"{name} ({form})"


def op_in(refusal: str) -> str:
    """'file:1: path: aten::gru.input: cannot be compiled: ...' -> 'gru.input'."""
    return refusal.split("aten::", 1)[1].split(":", 1)[0] if "aten::" in refusal else refusal


def table(rows: list[dict]) -> str:
    shown = lambda ops: ", ".join(op.removeprefix("aten::") for op in ops) or "-"
    lines = ["# Models that were followed in PyTorch", "",
             "Each is exported, trained three slots wide for a few steps with other learning rates, weight decay and "
             "momentum per slot,", "and followed by three PyTorch runs. Shown is the largest relative difference of a "
             "loss: in float64 with slots one by one,", "together and compiled, and in float32 at the first step; what "
             "rounding alone makes of a loss (PyTorch against PyTorch", "from weights and images one rounding beside, "
             "in float64), by which differences are judged (`tests/noise_floor.py`); and the ops", "that have no rule of "
             "their own. A model that cannot be compiled says what it is that has no compiler.", "",
             "Printed by `.venv/bin/python tests/models/models_check.py build/release/tests/models/model_curve --write "
             "docs/model-coverage.md`.", "",
             "| model | one by one | together | compiled | rounding alone | float32 | through batching | slot by slot |",
             "|---|---|---|---|---|---|---|---|"]
    compiled = lambda r: f"{r['lossescompiled']:.0e}" if "lossescompiled" in r else op_in(r["refused"])
    lines += [f"| {r['name']} | {r['losses1']:.0e} | {r['losses3']:.0e} | {compiled(r)} | {r['noise']:.0e} | {r['float32']:.0e} | {shown(r['batched'])} | "
              f"{shown(r['by_slot'])} |" for r in rows]
    return "\n".join(lines) + "\n"


def in_processes(exports: list[tuple], jobs: int, model_curve: str) -> Iterator[tuple[tuple, Callable[[], dict]]]:
    """Each (name, form) with its row's call as it ends. Two that need much memory never run at the same time."""
    waiting = list(exports)
    running: dict[Future, tuple] = {}
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=spawn, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        while waiting or running:
            blocked = any(CASES[name].large for name, _ in running.values())
            fitting = [export for export in waiting if not (blocked and CASES[export[0]].large)]
            for export in fitting[:1] if len(running) < jobs else []:
                waiting.remove(export)
                running[pool.submit(check, model_curve, *export)] = export
            if fitting and len(running) < jobs:
                continue
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), future.result


def one_by_one(exports: list[tuple], model_curve: str) -> Iterator[tuple[tuple, Callable[[], dict]]]:
    torch.set_num_threads(1)  # as model_curve runs a slot: kernels split over threads round differently
    for export in exports:
        yield export, lambda: check(model_curve, *export)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("model_curve")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--only", nargs="+", default=list(CASES), choices=CASES, metavar="NAME")
    which.add_argument("--short", dest="only", action="store_const",
                       const=[name for name, case in CASES.items() if not case.long])
    parser.add_argument("--forms", nargs="+", default=[USUAL], choices=[*FORMS, "all"], metavar="FORM")
    parser.add_argument("--jobs", type=int, default=min(2, len(os.sched_getaffinity(0))))
    parser.add_argument("--write", type=pathlib.Path)
    arguments = parser.parse_args()
    forms = FORMS if "all" in arguments.forms else arguments.forms
    exports = [(name, form) for name in CASES if name in arguments.only for form in forms]
    if arguments.jobs > 1:
        ended = in_processes(exports, arguments.jobs, arguments.model_curve)
    else:
        ended = one_by_one(exports, arguments.model_curve)
    rows, failed = {}, 0
    for export, result in ended:
        name = label(*export)
        try:
            row = result()
        except Exception as error:
            print(f"FAILED {name}: {type(error).__name__}: {str(error)[:600]}", flush=True)
            failed += 1
            continue
        rows[export] = row
        failed += bool(row["failures"])
        print(f"{'FAILED' if row['failures'] else 'ok    '} {name}: losses {row['losses1']:.1e} {row['losses3']:.1e}, "
              f"compiled {row.get('lossescompiled', row.get('refused'))}, answers {row['answers1']:.1e} "
              f"{row['answers3']:.1e}, rounding alone {row['noise']:.1e}, float32 {row['float32']:.1e}, by slot "
              f"{row['by_slot']}, {row['seconds']:.0f} s", *row["failures"], sep="\n  ", flush=True)
    if arguments.write:
        arguments.write.write_text(table([rows[export] for export in exports if export in rows]))
    print(f"{len(rows)} of {len(exports)} exports ran, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
