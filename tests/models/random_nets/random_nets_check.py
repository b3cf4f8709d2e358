"""Trains random nets (nets.py) in every way that a graph can be run, and follows them in PyTorch.

    random_nets_check.py MODEL_CURVE [--seeds FIRST LAST] [--minutes M] [--forms FORM ...] [--text]

Three steps in float64, with another learning rate, momentum and weight decay in each slot. Losses, the answer in
evaluation mode and the whole state afterwards are as near to PyTorch's as rounding lets them be (noise_floor.py). A way
that cannot run a net refuses it with words; slot by slot every net runs. A net that PyTorch cannot train or export, or
that makes too much of a rounding, is passed over: a third at most. A tenth may be refused, in stages more.
CI takes a few nets; a search for errors takes thousands: `--seeds 10000 20000 --minutes 60 --reduce`.
"""

import argparse
import copy
import functools
import json
import multiprocessing
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.fx.experimental.symbolic_shapes import is_concrete_int

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[up]) for up in (1, 2)]
from exporting import FORMS, exported
from noise_floor import NoiseFloor, Nudge, nudge_module
from nets import CLASSES, RandomNet

# Samples of each step: with a fixed batch size, with a free one, with one that may be 1.
FIXED, FREE, ONE = [6, 6, 6], [6, 5, 3], [6, 1, 3]
SLOTS = [
    {"lr": 0.05, "weight_decay": 0.05, "momentum": 0.0, "seed": 0},
    {"lr": 0.1, "weight_decay": 0.02, "momentum": 0.9, "seed": 1},
]
SHOWN = 12  # of what is wrong with one net


class PassedOver(Exception):
    """The net says nothing of hfta-tune."""


def beside_one(tensor: torch.Tensor) -> torch.Tensor:
    """With a one more: numbers that cancel to nearly 0 are compared with 1."""
    return torch.cat([tensor.detach().double().flatten(), torch.ones(1, dtype=torch.float64)])


def ways(seed: int) -> dict[str, dict]:
    return {
        "alone": {"chunk": 1}, "together": {"chunk": len(SLOTS)}, "channels last": {"chunk": 1, "channels_last": True},
        "per slot": {"chunk": len(SLOTS),
                     "families": {"conv": "unfolded", "linear": "per_slot", "batch_norm": "per_slot"}},
        "compiled": {"chunk": 1, "compiled": True}, "two stages": {"chunk": 1, "compiled": True, "stages": 2},
        "stages": {"chunk": 1, "compiled": True, "stages": random.Random(seed).choice([3, 4])},
    }


def has_fixed_batch(program: torch.export.ExportedProgram) -> bool:
    """Whether an input's first size is a number: by Dim.AUTO a net may fix it."""
    names = program.graph_signature.user_inputs
    return any(is_concrete_int(node.meta["val"].shape[0])
               for node in program.graph.nodes if node.op == "placeholder" and node.name in names)


class Followed:
    """A net, its data, and what PyTorch makes of them."""

    def __init__(self, seed: int, form: str, skipped: frozenset[int]):
        self.form, self.batches = form, FIXED if form == "static" else FREE
        if form in ("unbounded", "auto") and seed % 2:
            self.batches = ONE
        torch.manual_seed(seed)
        self.net = RandomNet(seed, skipped).train()
        self.frozen = [name for name, p in self.net.named_parameters() if not p.requires_grad]
        self.data = self.net.inputs(sum(self.batches))
        self.target = torch.randint(0, CLASSES, (sum(self.batches),))
        try:
            self.floors = [NoiseFloor(functools.partial(self._follow, slot), torch.float64) for slot in SLOTS]
        except (RuntimeError, ValueError, IndexError) as error:
            raise PassedOver(f"PyTorch: {str(error).splitlines()[0][:120]}")
        for floor in self.floors:
            for name, wanted in floor.wanted.items():
                if verdict := floor.judge(name, wanted).failure:
                    raise PassedOver(f"{name}: {verdict}")

    def _follow(self, slot: dict, nudge: Nudge) -> dict:
        model = copy.deepcopy(self.net).double()
        nudge_module(model, nudge)
        data = [nudge(x.double() if x.is_floating_point() else x) for x in self.data]
        trained = [p for p in model.parameters() if p.requires_grad]
        optimizer = torch.optim.SGD(trained, lr=slot["lr"], momentum=slot["momentum"],
                                    weight_decay=slot["weight_decay"])
        losses = []
        for rows in torch.arange(sum(self.batches)).split(self.batches):
            loss = nn.functional.cross_entropy(model(*[x[rows] for x in data]), self.target[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(1 + loss.item())  # as beside_one()
        state = {name: beside_one(tensor) for name, tensor in model.state_dict().items()}
        model.eval()
        with torch.no_grad():
            answer = model(*self._first_batch(data)).flatten()
        return {"losses": losses, **({"answer": answer} if self.net.evaluated else {}), **state}

    def _first_batch(self, data: list) -> tuple:
        return tuple(x[: self.batches[0]] for x in data)

    def save(self, folder: pathlib.Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                program = exported(copy.deepcopy(self.net), self._first_batch(self.data), self.form)
                torch.export.save(program, folder / "model.pt2")
            except Exception as error:  # of many types
                raise PassedOver(f"torch.export: {str(error).splitlines()[0][:120]}")
        if self.form != "static" and has_fixed_batch(program):
            raise PassedOver("torch.export: it fixed the batch size")
        inputs = {f"x{i}": x.contiguous() for i, x in enumerate(self.data)}
        save_file({"y": self.target, **inputs}, folder / "data.safetensors")


def run(model_curve: str, folder: pathlib.Path, specs: list[dict]) -> list[dict]:
    """Results in order; of a process that crashed, {"crashed": words}."""
    (folder / "specs.json").write_text(json.dumps(specs))
    done = subprocess.run([model_curve, str(folder / "specs.json")], capture_output=True, text=True, timeout=300)
    if done.returncode == 0 and not done.stderr:
        return json.loads(done.stdout)
    if len(specs) == 1:
        return [{"crashed": f"ended with {done.returncode}: {done.stderr.strip()[:300]}"}]
    return [run(model_curve, folder, [spec])[0] for spec in specs]


def found_by(result: dict, slot: int, state: str) -> dict:
    found = {name: beside_one(tensor) for name, tensor in load_file(state).items()}
    found["losses"] = [1 + step[slot] for step in result["losses"]]
    if result["predictions"][slot]:  # the last of several stages has them
        found["answer"] = torch.tensor(result["predictions"][slot], dtype=torch.float64)
    return found


def faults(followed: Followed, way: str, result: dict, states: list[str]) -> list[str]:
    if "crashed" in result:
        return [f"{way}: {result['crashed']}"]
    if "refused" in result:
        return [f"{way}: refused: {result['refused']}"] if way == "alone" else []
    out = []
    for slot, floor in enumerate(followed.floors):
        found = found_by(result, slot, states[slot])
        for name in found.keys() & floor.wanted.keys():
            if failure := floor.judge(name, found[name]).failure:
                out.append(f"{way}, slot {slot}, {name}: {failure}")
    return sorted(out)


def check(model_curve: str, seed: int, form: str, skipped: frozenset[int] = frozenset()) -> tuple[list[str], dict]:
    """What is wrong, and what each way that refused said."""
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        followed = Followed(seed, form, skipped)
        followed.save(folder)
        specs = {way: {"model": str(folder / "model.pt2"), "data": str(folder / "data.safetensors"), "dtype": "float64",
                       "loss": "cross_entropy", "optimizer": "sgd", "batch": followed.batches[0],
                       "batches": followed.batches, "freeze": followed.frozen, "slots": SLOTS, **lowering,
                       "states": [str(folder / f"{way} {slot}.safetensors") for slot in range(len(SLOTS))]}
                 for way, lowering in ways(seed).items()}
        results = dict(zip(specs, run(model_curve, folder, list(specs.values()))))
        wrong = [fault for way in specs for fault in faults(followed, way, results[way], specs[way]["states"])]
        refused = {way: result["refused"] for way, result in results.items() if "refused" in result}
    return wrong, refused


def check_apart(*arguments) -> tuple[list[str], dict]:
    """check() in a process of its own: some nets end PyTorch's (its group norm of images channels last, for one)."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
        try:
            return pool.submit(check, *arguments).result()
        except BrokenProcessPool:
            raise PassedOver("PyTorch: its process ended")


def reduced(model_curve: str, seed: int, form: str) -> RandomNet:
    """The net with as many steps left out as it takes to fail."""
    skipped: frozenset[int] = frozenset()
    for step in RandomNet(seed).skippable():
        try:
            wrong, _ = check_apart(model_curve, seed, form, skipped | {step})
        except PassedOver:
            continue
        skipped |= {step} if wrong else set()
    return RandomNet(seed, skipped)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("model_curve")
    parser.add_argument("--seeds", nargs=2, type=int, default=[0, 40], metavar=("FIRST", "END"))
    parser.add_argument("--minutes", type=float, default=float("inf"), help="no new net is begun behind these")
    parser.add_argument("--forms", nargs="+", default=["static"], choices=FORMS, metavar="FORM")
    parser.add_argument("--text", action="store_true", help="print the nets")
    parser.add_argument("--reduce", action="store_true", help="print a net that fails without what does not matter")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    began, failed, passed, tried, refusals = time.monotonic(), 0, 0, 0, Counter()
    for seed in range(*arguments.seeds):
        for form in arguments.forms:
            if time.monotonic() - began > 60 * arguments.minutes:
                break
            tried += 1
            if arguments.text:
                print(RandomNet(seed).text())
            try:
                wrong, refused = check_apart(arguments.model_curve, seed, form)
            except PassedOver as why:
                passed += 1
                print(f"passed over {seed} {form}: {why}", flush=True)
                continue
            failed += bool(wrong)
            refusals.update(way for way in refused if "stages" not in way)
            words = [f"{way}: refused: {why[:200]}" for way, why in refused.items()]
            print(f"{'FAILED' if wrong else 'ok    '} {seed} {form}", *wrong[:SHOWN], *words, sep="\n    ", flush=True)
            if wrong and arguments.reduce:
                print(reduced(arguments.model_curve, seed, form).text(), flush=True)
    print(f"{tried} nets, {passed} passed over, {failed} failed, refused: {dict(refusals)}, "
          f"{time.monotonic() - began:.0f} s")
    return 1 if failed or passed > tried / 3 + 1 or max(refusals.values(), default=0) > tried / 10 + 1 else 0


if __name__ == "__main__":
    sys.exit(main())
