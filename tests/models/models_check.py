"""Exports each model of zoo.py, trains it three slots wide with model_curve, and follows each slot in plain PyTorch.

    models_check.py MODEL_CURVE [--short | --only NAME ...] [--forms FORM ...] [--jobs N] [--write docs/model-coverage.md]

Every loss of a few steps in float64, and the model's answer in evaluation mode after them, are as near to PyTorch's as
rounding lets them be (noise_floor.py): slot by slot (chunk 1), together (chunk 3) and compiled. So is the loss of the
first step in float32. Dropout and stochastic depth are off: their masks are counted, which PyTorch's are not.

Each model is exported in every one of the ways asked for (exporting.py), in float32 as people do; the float64 run widens
its weights, as PyTorch's `double()` does. CI runs `--short`, which leaves out the models that take minutes; the whole,
and `--forms all`, are run by hand. idioms_check.py has small models in all forms.
Models run side by side, one per core and two at most (--jobs), each in a process of its own with one thread.
HFTA_TEST_DEVICE=cuda has both train on a GPU, where nothing is compiled.
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
DEVICE = os.environ.get("HFTA_TEST_DEVICE", "cpu")
WAYS = {"1": {"chunk": 1}, str(SLOTS): {"chunk": SLOTS}}
if DEVICE == "cpu":
    WAYS["compiled"] = {"chunk": 1, "compiled": True}
    WAYS["stages"] = {"chunk": 1, "compiled": True, "stages": 2}
torch.backends.cudnn.allow_tf32 = False


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
    model = model.to(DEVICE)
    cast = lambda t: t.to(dtype) if t.is_floating_point() else t
    data, target = [nudge(cast(x)).to(DEVICE) for x in data], cast(target).to(DEVICE)
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
        answer = picked(model(*[x[:case.batch] for x in data]), case).double().flatten().cpu()
    return {"losses": losses, "answer": answer}


def fresh_model(case: Case) -> nn.Module:
    """The model before any training, the same at every call."""
    torch.manual_seed(0)
    return without_dropout(case.model()).train()


def export(case: Case, folder: pathlib.Path, form: str) -> None:
    program = exported(fresh_model(case), case.inputs(case.batch), form)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(program, folder / "model.pt2")


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


class Reference:
    """A model's data, and what PyTorch makes of it: the same for every way of exporting it."""

    def __init__(self, case: Case):
        self.case, fresh = case, fresh_model(case)
        torch.manual_seed(1)
        size = case.batch * case.steps
        self.data = list(case.inputs(size))
        self.target = case.target(size) if case.target else torch.randint(0, case.classes, (size,))

        def floor(slot: int, dtype: torch.dtype, steps: int) -> NoiseFloor:
            return NoiseFloor(lambda nudge: follow(case, fresh, self.data, self.target, slot, dtype, steps, nudge), dtype)

        self.floors = [floor(slot, torch.float64, case.steps) for slot in range(SLOTS)]
        self.first = floor(0, torch.float32, 1)

    def save_data(self, folder: pathlib.Path) -> None:
        inputs = {f"x{i}": x.contiguous() for i, x in enumerate(self.data)}
        save_file({"y": self.target.contiguous(), **inputs}, folder / "data.safetensors")


def check_form(model_curve: str, reference: Reference, form: str, folder: pathlib.Path) -> dict:
    case, row, failures = reference.case, {}, []
    export(case, folder, form)
    for way, lowering in WAYS.items():
        found = run(model_curve, case, folder, "float64", case.steps, **lowering)
        if way == "stages" and "stages of a pipeline, wanted at most 1" in found.get("refused", ""):
            continue  # one layer is trained
        if "refused" in found:
            failures.append(f"{way}: refused: {found['refused']}")
            continue
        row[f"losses{way}"], row[f"answers{way}"], wrong = judged(reference.floors, found, way)
        failures += wrong
        if way == "compiled":
            row["by_torch"] = sorted(found["by_torch"])
        if found["why_eager"]:
            row["why_eager"] = found["why_eager"]
        if way == str(SLOTS):
            row["by_slot"] = sorted({op for op, way in found["choices"] if op.startswith("aten::") and way == "per_slot"})
            row["batched"] = sorted({op for op, way in found["choices"] if op.startswith("aten::") and way == "batched"})
    row["float32"] = 0.0
    for way in ("1", str(SLOTS)):
        found = run(model_curve, case, folder, "float32", 1, **WAYS[way])
        verdict = reference.first.judge("losses", [found["losses"][0][0]])
        row["float32"] = max(row["float32"], verdict.off)
        if verdict.failure:
            failures.append(f"{way} in float32, loss: {verdict.failure}")
    return row | {"noise": max(max(f.noise["losses"]) for f in reference.floors), "failures": failures}


def check(name: str, model_curve: str, forms: list[str]) -> list[dict]:
    """A row for each form; one that did not end has "error"."""
    reference, rows = Reference(CASES[name]), []
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        reference.save_data(folder)
        for form in forms:
            began, row = time.monotonic(), {"name": label(name, form)}
            try:
                row |= check_form(model_curve, reference, form, folder)
            except Exception as error:
                row["error"] = f"{type(error).__name__}: {str(error)[:600]}"
            rows.append(row | {"seconds": time.monotonic() - began})
    return rows


def label(name: str, form: str) -> str:
    return name if form == USUAL else f"{name} ({form})"


def worst(rows: list[dict]) -> dict:
    """The rows of one model's forms as one: the largest difference of any form."""
    merged = dict(rows[0])
    for row in rows[1:]:
        for key, value in row.items():
            if isinstance(value, float):
                merged[key] = max(merged.get(key, 0.0), value)
            elif key in ("by_slot", "batched", "by_torch"):
                merged[key] = sorted({*merged[key], *value})
    return merged


def table(models: dict[str, list[dict]], forms: list[str]) -> str:
    rows = [worst(rows) | {"name": name} for name, rows in models.items()]
    shown = lambda ops: ", ".join(op.removeprefix("aten::") for op in ops) or "-"
    lines = ["# Models that were followed in PyTorch", "",
             "Each is exported, trained three slots wide for a few steps with other learning rates, weight decay and "
             "momentum per slot,", "and followed by three PyTorch runs. Shown is the largest relative difference of a "
             "loss: in float64 with slots one by one,", "together and compiled, and in float32 at the first step; what "
             "rounding alone makes of a loss (PyTorch against PyTorch", "from weights and images one rounding beside, "
             "in float64), by which differences are judged (`tests/noise_floor.py`); and",
             "the ops without a rule of their own, which run through LibTorch's batching or slot by slot, and those "
             "without a", "compiler, which LibTorch runs in a compiled model (\"in parts\").", "",
             f"Each was exported in {len(forms)} ways ({', '.join(forms)} sizes); the largest difference of any is shown." if len(forms) > 1
             else f"Exported with {forms[0]} sizes.", "",
             "Printed by `.venv/bin/python tests/models/models_check.py build/release/tests/models/model_curve --forms "
             f"{'all' if len(forms) == len(FORMS) else ' '.join(forms)} --write docs/model-coverage.md`.", "",
             "| model | one by one | together | compiled | rounding alone | float32 | through batching | slot by slot | in parts |",
             "|---|---|---|---|---|---|---|---|---|"]
    lines += [f"| {r['name']} | {r['losses1']:.0e} | {r['losses3']:.0e} | {r['lossescompiled']:.0e} | {r['noise']:.0e} | {r['float32']:.0e} | {shown(r['batched'])} | "
              f"{shown(r['by_slot'])} | {shown(r['by_torch'])} |" for r in rows]
    return "\n".join(lines) + "\n"


def in_processes(names: list[str], jobs: int, *arguments) -> Iterator[tuple[str, Callable[[], list]]]:
    """Each name with its rows' call as it ends. Two that need much memory never run at the same time."""
    waiting = list(names)
    running: dict[Future, str] = {}
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=spawn, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        while waiting or running:
            blocked = any(CASES[name].large for name in running.values())
            fitting = [name for name in waiting if not (blocked and CASES[name].large)]
            for name in fitting[:1] if len(running) < jobs else []:
                waiting.remove(name)
                running[pool.submit(check, name, *arguments)] = name
            if fitting and len(running) < jobs:
                continue
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), future.result


def one_by_one(names: list[str], *arguments) -> Iterator[tuple[str, Callable[[], list]]]:
    torch.set_num_threads(1)  # as model_curve runs a slot: kernels split over threads round differently
    for name in names:
        yield name, lambda: check(name, *arguments)


def show(row: dict) -> bool:
    """Prints one row; whether all of it is right."""
    if "error" in row:
        print(f"FAILED {row['name']}: {row['error']}", flush=True)
        return False
    print(f"{'FAILED' if row['failures'] else 'ok    '} {row['name']}: losses {row['losses1']:.1e} {row['losses3']:.1e}, "
          f"compiled {row.get('lossescompiled', -1):.1e}, by LibTorch {row.get('by_torch')}, answers {row['answers1']:.1e} "
          f"{row['answers3']:.1e}, rounding alone {row['noise']:.1e}, float32 {row['float32']:.1e}, by slot "
          f"{row['by_slot']}, {row['seconds']:.0f} s" + (f", not captured: {row['why_eager']}" if row.get("why_eager") else ""), *row["failures"], sep="\n  ", flush=True)
    return not row["failures"]


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
    forms = list(FORMS if "all" in arguments.forms else arguments.forms)
    names = [name for name in CASES if name in arguments.only]
    if arguments.jobs > 1:
        ended = in_processes(names, arguments.jobs, arguments.model_curve, forms)
    else:
        ended = one_by_one(names, arguments.model_curve, forms)
    rows, failed = {}, 0
    for name, result in ended:
        try:
            rows[name] = result()
        except Exception as error:  # the process of this model is gone, or PyTorch itself could not train it
            rows[name] = [{"name": name, "error": f"{type(error).__name__}: {str(error)[:600]}"}]
        for row in rows[name]:
            failed += not show(row)
    ran = {name: [row for row in rows[name] if "error" not in row] for name in names}
    if arguments.write:
        arguments.write.write_text(table({name: of_model for name, of_model in ran.items() if of_model}, forms))
    print(f"{sum(map(len, ran.values()))} of {len(names) * len(forms)} exports ran, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
