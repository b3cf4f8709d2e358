"""Exports each model of the idioms_*.py beside it in four ways, and follows it in PyTorch.

    idioms_check.py MODEL_CURVE [--only NAME ...] [--forms FORM ...]

Every way that a graph can be run (slot by slot, the same with images channels last, three slots together, compiled, as a
pipeline of two stages) makes three training steps in float64, the last with a short batch where the batch size is free, and evaluates a larger
batch. Losses and answers equal those of PyTorch's train() and eval() to 1e-9, or to 100 times what one rounding at the
beginning makes of PyTorch's own run, where that is more. None is refused but as a pipeline, and `plan` has nothing
against any.
"""

import argparse
import copy
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import save_file
from torch import nn

from each_case import check_each
from exporting import FORMS, exported
import idioms_algebra
import idioms_complex
import idioms_in_place
import idioms_positions
import idioms_slices
import idioms_views
from idioms import CLASSES, Idiom

BATCH, EVALUATED, SLOTS, RATE = 4, 7, 3, 0.05
COLLECTIONS = [idioms_algebra, idioms_complex, idioms_in_place, idioms_positions, idioms_slices, idioms_views]
CASES = {name: case for collection in COLLECTIONS for name, case in collection.CASES.items()}
REFUSED = idioms_complex.REFUSED | idioms_positions.REFUSED
WAYS = {"alone": {"chunk": 1}, "channels last": {"chunk": 1, "channels_last": True}, "together": {"chunk": SLOTS},
        "compiled": {"chunk": 1, "compiled": True}, "stages": {"chunk": 1, "compiled": True, "stages": 2}}


def batches(form: str) -> list[int]:
    return [BATCH, BATCH, BATCH] if form == "static" else [BATCH, BATCH, 3]


def evaluated(form: str) -> int:
    return BATCH if form == "static" else EVALUATED


def in_float64(model: nn.Module) -> nn.Module:
    return model._apply(lambda t: t.to(torch.complex128) if t.is_complex() else t.double() if t.is_floating_point() else t)


def follow(fresh: nn.Module, data: list, target: torch.Tensor, slot: int, form: str, nudge: float = 0) -> torch.Tensor:
    """Losses of each step, then the answer to the first samples in evaluation mode. `nudge`: of the first weights."""
    model = in_float64(copy.deepcopy(fresh))
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(1 + nudge)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE * (1 + slot))
    cast = lambda t: t.double() if t.is_floating_point() else t
    losses, begin = [], 0
    for n in batches(form):
        rows = slice(begin, begin + n)
        loss = nn.functional.cross_entropy(model(*[cast(x[rows]) for x in data]), target[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        begin += n
    model.eval()
    with torch.no_grad():
        answer = model(*[cast(x[: evaluated(form)]) for x in data])
    return torch.cat([torch.stack(losses), answer.flatten()])


def distance(found: torch.Tensor, wanted: torch.Tensor) -> float:
    worst = ((found - wanted).abs() / (wanted.abs() + 1e-3)).max().item()
    return worst if worst == worst else float("inf")


def train(model_curve: str, folder: pathlib.Path, forms: list[str]) -> list[dict]:
    slots = [{"lr": RATE * (1 + slot), "seed": slot} for slot in range(SLOTS)]
    specs = [{"model": str(folder / f"{form}.pt2"), "data": str(folder / "data.safetensors"), "dtype": "float64",
              "loss": "cross_entropy", "optimizer": "sgd", "batch": BATCH, "batches": batches(form),
              "evaluated": evaluated(form), "slots": slots, **way} for form in forms for way in WAYS.values()]
    (folder / "specs.json").write_text(json.dumps(specs))
    done = subprocess.run([model_curve, str(folder / "specs.json")], capture_output=True, text=True)
    if done.returncode != 0 or done.stderr:
        raise RuntimeError(f"ended with {done.returncode}: {done.stderr.strip()[:500]}")
    return json.loads(done.stdout)


def judge(way: str, result: dict, wanted: list[torch.Tensor], limit: float) -> str:
    """What is wrong; "": nothing."""
    if "refused" in result:
        return "" if way == "stages" else f"{way}: refused: {result['refused']}"
    if result["plan_refused"]:
        return f"{way}: trains, but plan says: {result['plan_refused']}"
    for slot in range(SLOTS):
        losses = [step[slot] for step in result["losses"]]
        found = torch.tensor(losses + result["predictions"][slot], dtype=torch.float64)
        if way == "stages" and not result["predictions"][slot]:  # the last stage has them
            found = torch.cat([found, wanted[slot][len(losses):]])
        if found.shape != wanted[slot].shape:
            return f"{way}: slot {slot}: found {found.numel()} numbers, wanted {wanted[slot].numel()}"
        worst = distance(found, wanted[slot])
        if worst > limit:
            return f"{way}: slot {slot}: differs by {worst:.1e}, allowed {limit:.1e}"
    return ""


def prepare(idiom: Idiom, folder: pathlib.Path, forms: list[str]):
    torch.manual_seed(0)
    model = idiom.model().train()
    fresh = copy.deepcopy(model)
    for form in forms:
        torch.export.save(exported(model, idiom.inputs(BATCH), form), folder / f"{form}.pt2")
    torch.manual_seed(1)
    data = list(idiom.inputs(3 * BATCH))
    target = torch.randint(0, CLASSES, (3 * BATCH,))
    save_file({"y": target, **{f"x{i}": x.contiguous() for i, x in enumerate(data)}}, folder / "data.safetensors")
    return fresh, data, target


def check(model_curve: str, idiom: Idiom, forms: list[str]) -> list[str]:
    """What is wrong."""
    wrong = []
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        fresh, data, target = prepare(idiom, folder, forms)
        results = iter(train(model_curve, folder, forms))
        for form in forms:
            wanted = [follow(fresh, data, target, slot, form) for slot in range(SLOTS)]
            beside = follow(fresh, data, target, SLOTS - 1, form, nudge=2.0**-52)
            limit = max(1e-9, 100 * distance(beside, wanted[SLOTS - 1]))
            for way, result in zip(WAYS, results):
                fault = judge(way, result, wanted, limit)
                if fault:
                    wrong.append(f"{form}: {fault}")
    return wrong


def check_refused(model_curve: str, idiom: Idiom, words: str) -> list[str]:
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        prepare(idiom, folder, ["unbounded"])
        results = train(model_curve, folder, ["unbounded"])
    return [f"{way}: wanted '{words}', found {result.get('refused', 'no refusal')}" for way, result in zip(WAYS, results)
            if words not in result.get("refused", "") or words not in result["plan_refused"]]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("model_curve")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=[*CASES, *REFUSED])
    parser.add_argument("--forms", nargs="+", default=list(FORMS), choices=FORMS)
    arguments = parser.parse_args()
    model_curve, forms = arguments.model_curve, arguments.forms

    def wrong_with(name: str) -> list[str]:
        return check_refused(model_curve, *REFUSED[name]) if name in REFUSED else check(model_curve, CASES[name], forms)

    return check_each(arguments.only or [*CASES, *REFUSED], wrong_with)


if __name__ == "__main__":
    sys.exit(main())
