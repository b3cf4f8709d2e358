"""Trains each module of modes.py with model_curve, and evaluates what it became in PyTorch's eval().

    modes_check.py MODEL_CURVE [NAME ...]

By a graph of its own, evaluation equals PyTorch's to 1e-9 in float64, slot by slot, together and compiled; so do the
losses where training does not draw. The training graph alone is doubted, unless it is known to say the same: then it
equals PyTorch, too. A graph of evaluation that draws is doubted.
"""

import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from modes import MODES, Mode

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples" / "pytorch"))
from export_both import export_both

STEPS, BATCH, SLOTS = 4, 8, 3
LIMIT = 1e-9


def first(output):
    return output if isinstance(output, torch.Tensor) else output[0]


def losses_of(fresh: nn.Module, x, y, rate: float) -> list[float]:
    model = copy.deepcopy(fresh).double().train()
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    losses = []
    for rows in torch.arange(STEPS * BATCH).split(BATCH):
        loss = nn.functional.cross_entropy(first(model(x[rows].double())), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


class Checks:
    def __init__(self, model_curve: str, name: str, mode: Mode, folder: pathlib.Path):
        self.model_curve, self.name, self.mode, self.folder = model_curve, name, mode, folder
        torch.manual_seed(0)
        self.fresh = mode.model().train()
        torch.manual_seed(1)
        self.x, self.y = torch.randn(STEPS * BATCH, 6), torch.randint(0, 3, (STEPS * BATCH,))
        save_file({"x0": self.x, "y": self.y}, folder / "data.safetensors")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            export_both(copy.deepcopy(self.fresh), (self.x[:BATCH],), str(folder / "model"))
        self.rates = [0.1 * (slot + 1) for slot in range(SLOTS)]

    def run(self, own: bool, **way) -> dict:
        states = [str(self.folder / f"slot{slot}.safetensors") for slot in range(SLOTS)]
        spec = {"model": str(self.folder / "model.pt2"), "data": str(self.folder / "data.safetensors"), "dtype": "float64",
                "loss": "cross_entropy", "optimizer": "sgd", "batch": BATCH, "steps": STEPS, "states": states,
                "slots": [{"lr": rate, "seed": slot} for slot, rate in enumerate(self.rates)], **way}
        if own:
            spec["evaluation"] = str(self.folder / "model.eval.pt2")
        (self.folder / "spec.json").write_text(json.dumps(spec))
        done = subprocess.run([self.model_curve, str(self.folder / "spec.json")], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr.strip()
        return json.loads(done.stdout)

    def compare(self, found: dict, what: str) -> None:
        for slot, rate in enumerate(self.rates):
            if not self.mode.draws:
                wanted = torch.tensor(losses_of(self.fresh, self.x, self.y, rate), dtype=torch.float64)
                losses = torch.tensor([step[slot] for step in found["losses"]], dtype=torch.float64)
                off = ((losses - wanted) / wanted).abs().max().item()
                assert off <= LIMIT, f"{what}: losses differ by {off:.1e}"
            model = copy.deepcopy(self.fresh).double()
            missing = model.load_state_dict(load_file(self.folder / f"slot{slot}.safetensors"), strict=False)
            assert not [name for name in missing.unexpected_keys if not name.startswith("optimizer.")], missing
            with torch.no_grad():
                wanted = first(model.eval()(self.x[:BATCH].double())).flatten()
            answer = torch.tensor(found["predictions"][slot], dtype=torch.float64)
            off = ((answer - wanted).norm() / wanted.norm()).item()
            assert off <= LIMIT, f"{what}: evaluation differs by {off:.1e}"

    def all(self) -> str:
        own = self.run(True, chunk=1)
        if self.mode.evaluation_draws:
            assert "draws at random in evaluation" in own["doubt"], own["doubt"]
        else:
            assert own["doubt"] == "", own["doubt"]
            self.compare(own, "own graph, one by one")
            self.compare(self.run(True, chunk=SLOTS), "own graph, together")
            compiled = self.run(True, chunk=1, compiled=True)
            if "refused" not in compiled:
                self.compare(compiled, "own graph, compiled")
        alone = self.run(False, chunk=1)
        if self.mode.unseen:
            return f"{own['doubt'] or 'equal'}; alone: cannot be seen"
        assert (alone["doubt"] == "") == self.mode.alone, f"alone: doubt '{alone['doubt']}'"
        if self.mode.alone:
            self.compare(alone, "alone")
        return f"{own['doubt'] or 'equal'}; alone: {alone['doubt'] or 'equal'}"


def main() -> int:
    torch.set_num_threads(1)
    failed = 0
    for name in sys.argv[2:] or MODES:
        with tempfile.TemporaryDirectory() as folder:
            try:
                print(f"ok     {name}: {Checks(sys.argv[1], name, MODES[name], pathlib.Path(folder)).all()}", flush=True)
            except Exception as error:
                print(f"FAILED {name}: {type(error).__name__}: {str(error)[:500]}", flush=True)
                failed += 1
    print(f"{len(sys.argv[2:] or MODES)} modules, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
