"""Trains adapters of Hugging Face models as an array, and follows each slot in PEFT.

    lora_check.py MODEL_CURVE [--short | --only NAME ...]

Of each model of adapted_models.py, with AdamW, clipping, no decay of biases and norms, and labels of -100:

own      adapters of the config, ranks 2, 4, 8 and 4 in one array, each with its alpha: losses and trained weights are
         those of PEFT, which trains the true rank; what pads is zero
peft     the model that PEFT wrapped, exported, with alphas bound slot by slot: likewise
same     one slot of either: losses, gradients and outputs agree
alone    a slot of the array is what it is alone, at its own rank

batches  a slot that steps once in 4 batches, or in 2, is what it is with batches 4 and 2 times as large; the words that
         count differ from sample to sample
packed      texts packed two to a row, apart by a mask and positions of their own, train as texts in rows of their own
half        a base that is stored in bfloat16 gives the bits of the same numbers in float32
eight       a base of eight bits (torchao): adapters of the config are those that PEFT puts in, in float32 to 1e-5
optimizers  of one model: under each of the table ranks 2, 4 and 8 in one array are what they are alone, and what pads
         them stays zero

In float64 to 1e-9 of PEFT and 1e-12 of each other; the first loss in float32 to 1e-4. CI runs `--short`, four models.
"""

import argparse
import contextlib
import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

import torch
from safetensors.torch import load_file, save_file

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
try:
    import peft
    import transformers
    from adapted_models import CASES, WIDE, Case
except ImportError as missing:
    print(f"skipped, the package {missing.name} is not installed")
    sys.exit(77)

transformers.logging.set_verbosity_error()
SHORT = ["bert", "gpt2", "llama", "vit"]
BATCH, STEPS, CLIP = 4, 5, 0.5
RANKS, LARGEST = [2, 4, 8, 4], 8
ALPHAS = [4.0, 4.0, 16.0, 1.0]
UNDECAYED = ["*bias", "*norm*", "*Norm*"]
LR, DECAY = 2e-2, 0.1


def rate(slot: int) -> float:
    return LR / (1 + slot)


# ---- What hfta-tune does ----


def export(model: torch.nn.Module, inputs: dict, file: pathlib.Path) -> None:
    batch = torch.export.Dim("batch", min=2, max=512)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(model, (), {name: x[:BATCH] for name, x in inputs.items()},
                                      dynamic_shapes={name: {0: batch} for name in inputs}, strict=False)
        torch.export.save(program, file)


def slot_of(slot: int, hypers: list[float]) -> dict:
    return {"lr": rate(slot), "weight_decay": DECAY, "groups": [{"weight_decay": 0.0}], "clip_norm": CLIP, "seed": slot,
            "hypers": hypers}


def own_slots() -> list[dict]:
    """With adapters of the config, each of its own rank and alpha."""
    return [slot_of(slot, [rank, alpha / rank]) for slot, (rank, alpha) in enumerate(zip(RANKS, ALPHAS))]


def adapters_of(case: Case) -> dict:
    """Of the largest rank; what a slot uses of it is among the slot's numbers."""
    return {"targets": case.targets, "train": case.train, "rank": LARGEST, "alpha": 1.0}


class Runner:
    """Runs model_curve on one file; a run ends with each slot's state."""

    def __init__(self, model_curve: str, folder: pathlib.Path, inputs: dict):
        self.program, self.folder, self.inputs = model_curve, folder, inputs
        save_file({f"x{i}": x.contiguous() for i, x in enumerate(inputs.values())}, folder / "data.safetensors")

    def __call__(self, model: str, slots: list[dict], steps: int = STEPS, dtype: str = "float64", **more) -> dict:
        states = [str(self.folder / f"state-{i}.safetensors") for i in range(len(slots))]
        spec = {"model": str(self.folder / model), "data": str(self.folder / "data.safetensors"), "dtype": dtype,
                "loss": "model", "output": "loss", "optimizer": "adamw", "groups": [UNDECAYED], "batch": BATCH,
                "steps": steps, "evaluated": BATCH, "states": states, "slots": slots, "chunk": 1, **more}
        if steps == 0:
            spec["batches"] = []
        (self.folder / "spec.json").write_text(json.dumps(spec))
        done = subprocess.run([self.program, str(self.folder / "spec.json")], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        found = json.loads(done.stdout)
        found["states"] = [load_file(state) for state in states]
        return found


# ---- What PEFT does ----


def wrapped(case: Case, rank: int, alpha: float, model: torch.nn.Module | None = None) -> torch.nn.Module:
    config = peft.LoraConfig(r=rank, lora_alpha=alpha, target_modules=list(case.targets), modules_to_save=list(case.train) or None,
                             task_type=case.task)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return peft.get_peft_model(model or case.model(), config)


def plain(name: str) -> str:
    """A parameter's name in a model that PEFT wrapped, as hfta-tune's own adapters have it."""
    return name.removeprefix("base_model.model.").replace(".modules_to_save.default", "").replace(".default", "")


def find(state: dict, name: str) -> torch.Tensor:
    """A parameter of a model that PEFT wrapped, in the state of a trial: of the wrapper's, of what it wraps, or of the
    plain model's with adapters of the config."""
    for candidate in (name, name.removeprefix("base_model.model."), plain(name)):
        if candidate in state:
            return state[candidate]
    raise KeyError(f"found no '{name}' among {sorted(state)}")


def put(model: torch.nn.Module, state: dict, rank: int) -> None:
    """The state's adapters, cut to their rank, and what else is trained."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.requires_grad:
                value = find(state, name)
                dim = 0 if "_A" in name else 1
                parameter.copy_(value.narrow(dim, 0, rank) if "lora_" in name else value)


@contextlib.contextmanager
def float64_throughout():
    """Where a model of float64 goes down to float32 (norms, rotations, the loss), it stays as it is.

    hfta-tune widens a graph of float32 as a whole.
    """
    to, narrow = torch.Tensor.to, torch.Tensor.float
    widened = lambda dtype: torch.float64 if dtype is torch.float32 else dtype
    torch.Tensor.to = lambda self, *args, **kwargs: to(self, *map(widened, args), **{k: widened(v) for k, v in kwargs.items()})
    torch.Tensor.float = lambda self: self.double()
    try:
        yield
    finally:
        torch.Tensor.to, torch.Tensor.float = to, narrow


def follow(case: Case, inputs: dict, state: dict, slot: int, alpha: float, rank: int) -> dict:
    """Losses of each step, and trained parameters after them."""
    model = wrapped(case, rank, alpha).double()
    put(model, state, rank)
    inputs = {name: x.double() if x.is_floating_point() else x for name, x in inputs.items()}
    trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    undecayed = [p for name, p in trained if plain(name).endswith("bias") or "norm" in plain(name).lower()]
    decayed = [p for name, p in trained if all(p is not other for other in undecayed)]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": DECAY}, {"params": undecayed, "weight_decay": 0.0}],
                                  lr=rate(slot))
    losses = []
    for step in range(STEPS):
        with float64_throughout():
            loss = model(**{name: x[step * BATCH:(step + 1) * BATCH] for name, x in inputs.items()}).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([p for _, p in trained], CLIP)
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses, "weights": {name: p.detach() for name, p in trained}}


# ---- Verdicts ----


class Verdicts:
    def __init__(self, case: str):
        self.case, self.failures = case, []

    def within(self, what: str, off: float, bound: float) -> None:
        verdict = "ok" if off <= bound else f"wanted at most {bound:.0e}"
        print(f"{self.case:12s} {what:34s} {off:.1e} {verdict}", flush=True)
        if not off <= bound:
            self.failures.append(f"{self.case}: {what}: found {off:.1e}, wanted at most {bound:.0e}")


def off(found, wanted) -> float:
    found, wanted = torch.as_tensor(found, dtype=torch.float64), torch.as_tensor(wanted, dtype=torch.float64)
    return ((found - wanted).norm() / wanted.norm().clamp_min(1e-30)).item()


def apart(found: torch.Tensor, wanted: torch.Tensor) -> float:
    """The difference, relative to the norm, or to 1 where that is less."""
    return ((found.double() - wanted.double()).norm() / wanted.double().norm().clamp_min(1)).item()


def off_weights(case: Case, state: dict, reference: dict, rank: int) -> float:
    """Of all that is trained, the largest difference, relative to its norm, or to 1 where that is less."""
    worst = 0.0
    for name, wanted in reference["weights"].items():
        found = find(state, name)
        if "lora_" in name:
            found = found.narrow(0 if "_A" in name else 1, 0, rank)
        worst = max(worst, apart(found, wanted))
    return worst


def padding(state: dict, rank: int) -> float:
    """The largest number beyond a slot's rank, in weights and in what the optimizer keeps of them."""
    worst = 0.0
    for name, tensor in state.items():
        if "lora_" in name and tensor.dim() >= 2:
            dim = 0 if "_A" in name else 1
            rest = tensor.narrow(dim, rank, tensor.shape[dim] - rank)
            worst = max(worst, rest.abs().max().item() if rest.numel() else 0.0)
    return worst


def check_own(case: Case, run: Runner, verdicts: Verdicts) -> None:
    lora = adapters_of(case)
    slots = own_slots()
    first = run("base.pt2", slots, steps=0, lora=lora)["states"]
    references = [follow(case, run.inputs, first[slot], slot, ALPHAS[slot], RANKS[slot]) for slot in range(4)]
    for way, more in {"slot by slot": {}, "together": {"chunk": 4}, "compiled": {"compiled": True}}.items():
        found = run("base.pt2", slots, lora=lora, **more)
        losses = [[step[slot] for step in found["losses"]] for slot in range(4)]
        verdicts.within(f"own, {way}: losses", max(off(losses[i], references[i]["losses"]) for i in range(4)), 1e-9)
        verdicts.within(f"own, {way}: weights",
                        max(off_weights(case, found["states"][i], references[i], RANKS[i]) for i in range(4)), 1e-9)
        verdicts.within(f"own, {way}: padding", max(padding(found["states"][i], RANKS[i]) for i in range(4)), 0)
    narrow = run("base.pt2", slots, steps=1, dtype="float32", lora=lora)
    verdicts.within("own, float32: first loss", max(off(narrow["losses"][0][i], references[i]["losses"][0]) for i in range(4)), 1e-4)


def check_alone(case: Case, run: Runner, verdicts: Verdicts) -> None:
    lora = adapters_of(case)
    slots = own_slots()
    together = run("base.pt2", slots, lora=lora)
    worst = 0.0
    for slot in range(3):
        lone = run("base.pt2", [slots[slot]], lora=lora)
        same = all(torch.equal(lone["states"][0][name], tensor) for name, tensor in together["states"][slot].items())
        verdicts.within(f"alone, slot {slot}: bits that differ", 0.0 if same else 1.0, 0)
        alone = run("base.pt2", [slots[slot]], lora={**lora, "rank": RANKS[slot]})
        for name, tensor in alone["states"][0].items():
            found = together["states"][slot][name]
            if "lora_" in name:
                found = found.narrow(0 if "_A" in name else 1, 0, RANKS[slot])
            worst = max(worst, apart(found, tensor))
    verdicts.within("alone, at its own rank: weights", worst, 1e-12)


def check_peft(case: Case, run: Runner, verdicts: Verdicts) -> None:
    bound = ["*." + target + ".other" for target in case.targets]
    slots = [slot_of(slot, [ALPHAS[slot] / 4] * len(bound)) for slot in range(4)]
    more = {"bind": {path: 1.0 for path in bound}}
    first = run("peft.pt2", slots, steps=0, **more)["states"]
    references = [follow(case, run.inputs, first[slot], slot, ALPHAS[slot], 4) for slot in range(4)]
    for way, chunk in (("slot by slot", 1), ("together", 4)):
        found = run("peft.pt2", slots, chunk=chunk, **more)
        losses = [[step[slot] for step in found["losses"]] for slot in range(4)]
        verdicts.within(f"peft, {way}: losses", max(off(losses[i], references[i]["losses"]) for i in range(4)), 1e-9)
        verdicts.within(f"peft, {way}: weights",
                        max(off_weights(case, found["states"][i], references[i], 4) for i in range(4)), 1e-9)


def check_same(case: Case, run: Runner, verdicts: Verdicts) -> None:
    """PEFT's model is exported with the weights that hfta-tune drew for its own adapters."""
    rank, alpha = 4, 8.0
    lora = {"targets": case.targets, "train": case.train, "rank": rank, "alpha": alpha}
    first = run("base.pt2", [slot_of(0, [rank, alpha / rank])], steps=0, lora=lora)["states"][0]
    model = wrapped(case, rank, alpha).double()
    put(model, first, rank)
    inputs = {name: x.double() if x.is_floating_point() else x for name, x in run.inputs.items()}
    with float64_throughout():
        export(model if case.task else model.base_model.model, inputs, run.folder / "same.pt2")
    own = run("base.pt2", [slot_of(0, [rank, alpha / rank])], lora=lora, gradients=True)
    theirs = run("same.pt2", [slot_of(0, [])], gradients=True)
    verdicts.within("same: losses", off(own["losses"], theirs["losses"]), 1e-12)
    verdicts.within("same: outputs", off(own["predictions"][0], theirs["predictions"][0]), 1e-12)
    gradients = {plain("base_model.model." + name.removeprefix("base_model.model.")): g for name, g in theirs["gradients"].items()}
    assert gradients.keys() == own["gradients"].keys(), f"found {gradients.keys() ^ own['gradients'].keys()}"
    verdicts.within("same: gradients", max(off(own["gradients"][name], g) for name, g in gradients.items()), 1e-12)


def check_optimizers(case: Case, run: Runner, verdicts: Verdicts) -> None:
    lora = adapters_of(case)
    slots = own_slots()[:3]
    names = subprocess.run([run.program, "--optimizers"], capture_output=True, text=True, check=True).stdout.split()
    for name in names:
        for way, more in {"together": {"chunk": 3}, "compiled": {"compiled": True}}.items():
            together = run("base.pt2", slots, lora=lora, optimizer=name, **more)["states"]
            weights = [{key: x for key, x in state.items() if not key.startswith("optimizer.")} for state in together]
            verdicts.within(f"{name}, {way}: padding", max(padding(weights[i], RANKS[i]) for i in range(3)), 0)
            worst = 0.0
            for slot in range(3):
                alone = run("base.pt2", [slots[slot]], lora={**lora, "rank": RANKS[slot]}, optimizer=name, **more)["states"][0]
                for key, tensor in alone.items():
                    if tensor.dtype != torch.float64:
                        continue
                    found = together[slot][key]
                    if "lora_" in key and tensor.dim() >= 2:
                        found = found.narrow(0 if "_A" in key else 1, 0, RANKS[slot])
                    worst = max(worst, apart(found, tensor))
            verdicts.within(f"{name}, {way}: alone", worst, 1e-12)


def check_batches(case: Case, run: Runner, verdicts: Verdicts) -> None:
    lora = adapters_of(case)
    slots = own_slots()
    each = [4, 2, 1, 4]
    accumulating = [{**slot, "accumulate": count} for slot, count in zip(slots, each)]
    for way, more in {"slot by slot": {}, "together": {"chunk": 4}, "compiled": {"compiled": True}}.items():
        found = run("base.pt2", accumulating, steps=4, lora=lora, **more)["states"]
        worst = 0.0
        for slot, count in enumerate(each):
            wanted = run("base.pt2", [slots[slot]], steps=4 // count, batch=BATCH * count, lora=lora)["states"][0]
            trained = [name for name in wanted if "lora_" in name or any(part in name.split(".") for part in case.train)]
            worst = max(worst, *(apart(found[slot][name], wanted[name]) for name in trained))
        verdicts.within(f"batches, {way}: weights", worst, 1e-12)


def packed(inputs: dict) -> dict:
    """Every two texts in one row: no word sees the other text, and the first word of each is nobody's to predict."""
    texts, length = inputs["input_ids"].shape
    rows: dict[str, list] = {"input_ids": [], "attention_mask": [], "position_ids": [], "labels": []}
    for first in range(0, texts, 2):
        ids, labels = torch.zeros(2 * length, dtype=torch.long), torch.full((2 * length,), -100)
        positions, text, begin = torch.zeros(2 * length, dtype=torch.long), torch.full((2 * length,), -1), 0
        for each in (first, first + 1):
            count = int(inputs["attention_mask"][each].sum())
            place = slice(begin, begin + count)
            ids[place], labels[place] = inputs["input_ids"][each, :count], inputs["labels"][each, :count]
            positions[place], text[place] = torch.arange(count), each
            labels[begin] = -100
            begin += count
        order = torch.arange(2 * length)
        sees = (text[:, None] == text[None, :]) & (order[:, None] >= order[None, :])
        for name, row in zip(rows, (ids, sees[None], positions, labels)):
            rows[name].append(row)
    return {name: torch.stack(row) for name, row in rows.items()}


def check_packed(case: Case, run: Runner, verdicts: Verdicts) -> None:
    lora = adapters_of(case)
    slots = own_slots()
    folder = run.folder / "packed"
    folder.mkdir()
    inputs = packed(run.inputs)
    export(case.model(), inputs, folder / "base.pt2")
    in_rows = Runner(run.program, folder, inputs)
    wanted = run("base.pt2", slots, lora=lora)["states"]
    for way, more in {"together": {"chunk": 4}, "compiled": {"compiled": True}}.items():
        found = in_rows("base.pt2", slots, lora=lora, batch=BATCH // 2, evaluated=BATCH // 2, **more)["states"]
        worst = max(apart(found[slot][name], wanted[slot][name])
                    for slot in range(4) for name in wanted[slot] if "lora_" in name and "optimizer" not in name)
        verdicts.within(f"packed, {way}: weights", worst, 1e-12)


def check_half(case: Case, run: Runner, verdicts: Verdicts) -> None:
    lora = adapters_of(case)
    slots = own_slots()
    half = case.model().bfloat16()
    export(half, run.inputs, run.folder / "half.pt2")
    export(half.float(), run.inputs, run.folder / "float.pt2")
    for way, more in {"slot by slot": {}, "together": {"chunk": 4}, "compiled": {"compiled": True}}.items():
        found = run("half.pt2", slots, lora=lora, dtype="float32", **more)
        wanted = run("float.pt2", slots, lora=lora, dtype="float32", **more)
        same = found["losses"] == wanted["losses"] and all(
            torch.equal(found["states"][slot][name], x) for slot in range(4) for name, x in wanted["states"][slot].items())
        verdicts.within(f"half, {way}: bits that differ", 0.0 if same else 1.0, 0)


def check_eight(case: Case, run: Runner, verdicts: Verdicts) -> None:
    """PEFT's model is exported with the weights that hfta-tune drew for its own adapters."""
    try:
        from torchao.quantization import Int8WeightOnlyConfig, quantize_
        from torchao.utils import unwrap_tensor_subclass
    except ImportError:
        print(f"{case.name:12s} eight: skipped, the package torchao is not installed")
        return
    rank, alpha = 4, 8.0
    lora = {"targets": case.targets, "train": case.train, "rank": rank, "alpha": alpha}
    slots = [slot_of(0, [rank, alpha / rank])]
    base = case.model()
    quantize_(base.model, Int8WeightOnlyConfig())
    export(unwrap_tensor_subclass(copy.deepcopy(base)), run.inputs, run.folder / "eight.pt2")
    first = run("eight.pt2", slots, steps=0, dtype="float32", lora=lora)["states"][0]
    model = wrapped(case, rank, alpha, base)
    put(model, first, rank)
    export(unwrap_tensor_subclass(model), run.inputs, run.folder / "eight-peft.pt2")
    for way, more in {"op by op": {}, "compiled": {"compiled": True}}.items():
        own = run("eight.pt2", slots, dtype="float32", lora=lora, **more)
        theirs = run("eight-peft.pt2", [slot_of(0, [])], dtype="float32", **more)
        verdicts.within(f"eight, {way}: losses", off(own["losses"], theirs["losses"]), 1e-5)
        weights = {name: x for name, x in theirs["states"][0].items() if "lora_" in name and "optimizer" not in name}
        verdicts.within(f"eight, {way}: weights",
                        max(apart(find(own["states"][0], name), x) for name, x in weights.items()), 1e-5)
        moved = max(apart(own["states"][0][name], first[name]) for name in map(plain, weights))
        verdicts.within(f"eight, {way}: weights that stay", 0.0 if moved > 1e-3 else 1.0, 0)


def check(model_curve: str, case: Case) -> list[str]:
    verdicts = Verdicts(case.name)
    with tempfile.TemporaryDirectory(prefix="hfta-lora-") as name:
        folder = pathlib.Path(name)
        inputs = case.inputs(BATCH * STEPS)
        run = Runner(model_curve, folder, inputs)
        export(case.model(), inputs, folder / "base.pt2")
        model = wrapped(case, 4, 4.0)
        export(model if case.task else model.base_model.model, inputs, folder / "peft.pt2")
        check_own(case, run, verdicts)
        check_alone(case, run, verdicts)
        check_batches(case, run, verdicts)
        if case.kind == "words":
            check_packed(case, run, verdicts)
        if case.name == "llama":
            check_half(WIDE, Runner(model_curve, folder, inputs), verdicts)
            check_eight(case, run, verdicts)
        if case.name == "bert":
            check_optimizers(case, run, verdicts)
        check_peft(case, run, verdicts)
        check_same(case, run, verdicts)
    return verdicts.failures


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model_curve")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--only", nargs="+", choices=[case.name for case in CASES])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    wanted = arguments.only or (SHORT if arguments.short else [case.name for case in CASES])
    failures = [failure for case in CASES if case.name in wanted for failure in check(arguments.model_curve, case)]
    print("\n".join(failures) or f"{len(wanted)} models: adapters train as PEFT's do")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
