"""Exports each model of zoo.py, trains it three slots wide with model_curve, and follows each slot in plain PyTorch.

    models_check.py MODEL_CURVE [--only NAME ...] [--forms FORM ...] [--jobs N] [--write docs/model-coverage.md]

Every loss of five steps in float64 equals PyTorch's to 1e-9 (relative), slot by slot (chunk 1) and together (chunk 3);
in float32 the first step's to 1e-4. So does the model's answer in evaluation mode after those steps (1e-8). Dropout and
stochastic depth are off: their masks are counted, which PyTorch's are not.

Each model is exported in every one of the ways asked for (exporting.py; `--forms all` takes about an hour, and is run by
hand; idioms_check.py has small models in all of them), in float32 as people do; the float64 run widens its weights, as PyTorch's `double()` does.
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

from exporting import FORMS, exported
from zoo import CASES, Case

STEPS, BATCH, SLOTS = 5, 4, 3
USUAL = "bounded"
ROOT = pathlib.Path(__file__).resolve().parents[2]


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


def follow(case: Case, fresh: nn.Module, data: list, target: torch.Tensor, slot: int, dtype: torch.dtype, steps=STEPS):
    """Losses of each step, and the answer to the first samples in evaluation mode afterwards."""
    model = copy.deepcopy(fresh).to(dtype)
    hyper = hyperparameters(case, slot)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=hyper["lr"], momentum=hyper["momentum"], weight_decay=hyper["weight_decay"])
    cast = lambda t: t.to(dtype) if t.is_floating_point() else t
    losses = []
    for step in range(steps):
        rows = slice(step * BATCH, (step + 1) * BATCH)
        loss = loss_of(picked(model(*[cast(x[rows]) for x in data]), case), cast(target[rows]), case)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        answer = picked(model(*[cast(x[:BATCH]) for x in data]), case).double().flatten()
    return losses, answer


def export(case: Case, folder: pathlib.Path, form: str) -> nn.Module:
    """The model as it was exported, before any training."""
    torch.manual_seed(0)
    model = without_dropout(case.model()).train()
    fresh = copy.deepcopy(model)
    program = exported(model, case.inputs(BATCH), form)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(program, folder / "model.pt2")
    return fresh


def run(model_curve: str, case: Case, folder: pathlib.Path, dtype: str, chunk: int, **more) -> dict:
    spec = {"model": str(folder / "model.pt2"), "data": str(folder / "data.safetensors"), "dtype": dtype, "chunk": chunk,
            "loss": case.loss, "optimizer": "sgd", "batch": BATCH, "steps": STEPS, "freeze": case.freeze,
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


def difference(found, wanted) -> float:
    return max(abs(a - b) / max(abs(b), 1e-12) for a, b in zip(found, wanted, strict=True))


def check(model_curve: str, name: str, form: str) -> dict:
    case, began = CASES[name], time.monotonic()
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        fresh = export(case, folder, form)
        torch.manual_seed(1)
        data = list(case.inputs(BATCH * STEPS))
        target = case.target(BATCH * STEPS) if case.target else torch.randint(0, case.classes, (BATCH * STEPS,))
        save_file({"y": target.contiguous(), **{f"x{i}": x.contiguous() for i, x in enumerate(data)}},
                  folder / "data.safetensors")
        wanted = [follow(case, fresh, data, target, slot, torch.float64) for slot in range(SLOTS)]
        row = {"name": label(name, form)}
        for way in ("1", str(SLOTS), "compiled"):
            chunk, compiled = (1, True) if way == "compiled" else (int(way), False)
            found = run(model_curve, case, folder, "float64", chunk, compiled=compiled)
            if "refused" in found:
                row["refused"] = found["refused"]
                continue
            # Compiled sums are made in another order. Batch norm over four samples makes more of that at every step,
            # as of any rounding: what counts there is the loss, and the one behind its own update.
            steps = 2 if compiled else STEPS
            losses = max(difference([step[slot] for step in found["losses"]][:steps], wanted[slot][0][:steps])
                         for slot in range(SLOTS))
            answers = max((torch.tensor(found["predictions"][slot], dtype=torch.float64) - wanted[slot][1]).norm().item()
                          / max(wanted[slot][1].norm().item(), 1e-12) for slot in range(SLOTS))
            row[f"losses{way}"], row[f"answers{way}"] = losses, answers
            if way == str(SLOTS):
                row["by_slot"] = sorted({op for op, way in found["choices"] if op.startswith("aten::") and way == "per_slot"})
                row["batched"] = sorted({op for op, way in found["choices"] if op.startswith("aten::") and way == "batched"})
        first = follow(case, fresh, data, target, 0, torch.float32, 1)[0][0]
        row["float32"] = max(difference([run(model_curve, case, folder, "float32", chunk, steps=1)["losses"][0][0]], [first])
                             for chunk in (1, SLOTS))
    row["ok"] = (max(row["losses1"], row["losses3"]) <= 1e-9 and max(row["answers1"], row["answers3"]) <= 1e-8
                 and row.get("lossescompiled", 0) <= 1e-8 and row["float32"] <= 1e-4)
    row["seconds"] = time.monotonic() - began
    return row


def label(name: str, form: str) -> str:
    return name if form == USUAL else f"{name} ({form})"


def op_in(refusal: str) -> str:
    """'file:1: path: aten::gru.input: cannot be compiled: ...' -> 'gru.input'."""
    return refusal.split("aten::", 1)[1].split(":", 1)[0] if "aten::" in refusal else refusal


def table(rows: list[dict]) -> str:
    shown = lambda ops: ", ".join(op.removeprefix("aten::") for op in ops) or "-"
    lines = ["# Models that were followed in PyTorch", "",
             "Each is exported, trained three slots wide for five steps with other learning rates, weight decay and "
             "momentum per slot,", "and followed by three PyTorch runs. Shown is the largest relative difference of a "
             "loss: in float64 with slots one by one,", "together (limit 1e-9) and compiled (two steps, 1e-8), and in "
             "float32 at the first step (1e-4); and the ops that have no rule of their own.", "A model that cannot be compiled says what it is "
             "that has no compiler.", "",
             "Printed by `.venv/bin/python tests/models/models_check.py build/release/tests/models/model_curve --write "
             "docs/model-coverage.md`.", "",
             "| model | one by one | together | compiled | float32 | through batching | slot by slot |",
             "|---|---|---|---|---|---|---|"]
    compiled = lambda r: f"{r['lossescompiled']:.0e}" if "lossescompiled" in r else op_in(r["refused"])
    lines += [f"| {r['name']} | {r['losses1']:.0e} | {r['losses3']:.0e} | {compiled(r)} | {r['float32']:.0e} | {shown(r['batched'])} | "
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
    parser.add_argument("--only", nargs="+", default=list(CASES), choices=CASES, metavar="NAME")
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
        failed += not row["ok"]
        print(f"{'ok    ' if row['ok'] else 'FAILED'} {name}: losses {row['losses1']:.1e} {row['losses3']:.1e}, compiled "
              f"{row.get('lossescompiled', row.get('refused'))}, answers "
              f"{row['answers1']:.1e} {row['answers3']:.1e}, float32 {row['float32']:.1e}, by slot {row['by_slot']}, "
              f"{row['seconds']:.0f} s", flush=True)
    if arguments.write:
        arguments.write.write_text(table([rows[export] for export in exports if export in rows]))
    print(f"{len(rows)} of {len(exports)} exports ran, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
