#!/usr/bin/env python3
"""Studies of exported models, with the real program: exported_check.py HFTA_TUNE FOLDER [round_trip evaluations errors changes ranks stages]

round_trip  what is exported loads into the module, strictly, and gives the value that the study reports
evaluations what evaluation computes where it is another graph, and which array an input takes
errors      mistakes, told in one line with the place
changes     a study goes on with the model file and the numbers of data that it was begun with, and with no others
ranks       a model for one batch size is trained by processes that have slots of their own, and are to find that out
stages      processes that have layers of their own find what one device does, with tied weights and frozen layers, too
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn

from kills_check import read_tables, same_tables


class Text(nn.Module):
    """Two inputs of integers, two outputs, tied and unused parameters, a constant."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 16)
        self.backbone = nn.Sequential(nn.Linear(16, 16), nn.BatchNorm1d(16), nn.Tanh())
        self.drop = nn.Dropout(0.3)
        self.first = nn.Linear(16, 16)
        self.second = nn.Linear(16, 16)
        self.second.weight = self.first.weight
        self.head = nn.Linear(16, 3)
        self.aux = nn.Linear(16, 5)
        self.unused = nn.Parameter(torch.ones(3))
        self.register_buffer("scale", torch.full((1,), 0.5), persistent=False)

    def forward(self, ids, mask):
        x = self.backbone((self.embed(ids) * mask.unsqueeze(-1)).mean(1))
        x = self.second(torch.relu(self.first(self.drop(x)))) * self.scale
        return {"aux": self.aux(x), "logits": self.head(x)}


class Spectral(nn.Module):
    """Training runs a power iteration and keeps its vectors; evaluation does not."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 16)
        self.body = nn.utils.parametrizations.spectral_norm(nn.Linear(16, 16))
        self.head = nn.Linear(16, 3)

    def forward(self, ids, mask):
        return {"logits": self.head(torch.tanh(self.body((self.embed(ids) * mask.unsqueeze(-1)).mean(1))))}


class Overwritten(nn.Module):
    """What i0e needs for its gradient is written before the backward, which is never asked for it."""

    def __init__(self):
        super().__init__()
        self.embed, self.body, self.head = nn.Embedding(20, 16), nn.Linear(16, 16), nn.Linear(16, 3)

    def forward(self, ids, mask):
        features = self.body((self.embed(ids) * mask.unsqueeze(-1)).mean(1))
        u = features * 2
        bessel = torch.special.i0e(u)
        u[:, :8].add_(1.0)
        return {"logits": self.head(u + features * (bessel > 0.3))}


class Flat(nn.Module):
    """Exported for one batch size, its graph has that number in the reshape."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 16)
        self.drop = nn.Dropout(0.3)
        self.head = nn.Linear(96, 3)

    def forward(self, ids, mask):
        x = self.embed(ids) * mask.unsqueeze(-1)
        return {"logits": self.head(self.drop(x.reshape(x.shape[0], 96)))}


STUDY = """\
study: text
method: random
run_cap: 4
metric: {name: val_loss}
parameters:
  lr: {distribution: log_uniform_values, min: 1.0e-3, max: 1.0e-1}
  dropout: {min: 0.0, max: 0.5}
model:
  file: text.pt2
  bind: {drop.p: "${dropout}"}
data: {train: train.npz, validation: validation.npz, x: [ids, mask], batch_size: 32}
train:
  epochs: 3
  loss: {name: cross_entropy, output: logits}
  optimizer: {name: adam, lr: "${lr}"}
"""


class Runs:
    def __init__(self, binary, root):
        self.binary, self.root, self.count = binary.resolve(), root.resolve(), 0
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir(parents=True)
        self.environment = {**os.environ, "HFTA_CACHE": ""}
        self.made = self.root / "made"
        self.made.mkdir()
        self.make()

    def make(self):
        torch.manual_seed(0)
        module = Text()
        self.state = {name: tensor.clone() for name, tensor in module.state_dict().items()}

        def export(name, batch, dynamic=True, module=module.train()):
            example = (torch.randint(0, 20, (batch, 6)), torch.rand(batch, 6) > 0.2)
            shapes = ({0: torch.export.Dim("b")},) * 2 if dynamic else None
            torch.export.save(torch.export.export(module, example, dynamic_shapes=shapes), self.made / name)

        export("text.pt2", 8)
        export("fixed.pt2", 32, dynamic=False)
        export("flat.pt2", 32, dynamic=False, module=Flat().train())
        export("eval.pt2", 8, module=module.eval())
        torch.manual_seed(0)
        spectral = Spectral()
        export("spectral.pt2", 8, module=spectral.train())
        export("spectral.eval.pt2", 8, module=spectral.eval())
        export("other.eval.pt2", 8, module=Spectral().eval())
        export("overwritten.pt2", 8, module=Overwritten().train())
        random = np.random.default_rng(0)
        for name, size in (("train.npz", 150), ("validation.npz", 53)):
            ids = random.integers(0, 20, (size, 6))
            np.savez(self.made / name, ids=ids, mask=random.random((size, 6)) > 0.2, y=ids.sum(1) % 3,
                     long=np.concatenate([ids, ids], 1), beyond=ids + 5, broken=ids + 0.5)

    def folder(self):
        self.count += 1
        folder = self.root / f"study{self.count}"
        shutil.copytree(self.made, folder)
        (folder / "text.yaml").write_text(STUDY)
        return folder

    def run(self, folder, *words, wanted=0):
        done = subprocess.run([self.binary, *words], cwd=folder, env=self.environment, capture_output=True, text=True,
                              timeout=300)
        assert done.returncode == wanted, f"{words}: exit {done.returncode}, wanted {wanted}\n{done.stdout}{done.stderr}"
        return done


def settings(options):
    return [word for option in options for word in ("--set", option)]


def round_trip(runs):
    cases = [
        # settings, type, parameters that stay as they were exported
        ([], torch.float32, ["unused", "aux.weight", "aux.bias"]),
        (["train.dtype=float64"], torch.float64, ["unused", "aux.weight"]),
        (["train.dtype=float64", "model.freeze=[backbone, embed.*]"], torch.float64, ["backbone.0.weight", "embed.weight"]),
        (["train.loss.output=0", "model.init=fresh", "model.freeze=embed"], torch.float32, ["embed.weight", "head.bias"]),
        (["model.file=fixed.pt2"], torch.float32, ["unused"]),
    ]
    for options, dtype, kept in cases:
        folder = runs.folder()
        runs.run(folder, "text.yaml", *settings(options))
        runs.run(folder, "export", "--storage", "text.db", "--output", "best.safetensors")
        report = json.loads(runs.run(folder, "report", "--storage", "text.db", "--format", "json").stdout)
        state = load_file(folder / "best.safetensors")
        module = Text().to(dtype)
        module.load_state_dict(state, strict=True)
        module.eval()
        assert all(t.dtype in (dtype, torch.int64) for t in state.values()), {n: t.dtype for n, t in state.items()}
        for name in kept:
            assert torch.equal(state[name].float(), runs.state[name]), f"{name} is not as it was exported"
        output = "aux" if "train.loss.output=0" in options else "logits"
        assert not torch.equal(state[("aux" if output == "aux" else "head") + ".weight"].float(),
                               runs.state[("aux" if output == "aux" else "head") + ".weight"]), "nothing was trained"
        data = np.load(folder / "validation.npz")
        with torch.no_grad():
            logits = module(torch.tensor(data["ids"]), torch.tensor(data["mask"]))[output]
        loss = torch.nn.functional.cross_entropy(logits, torch.tensor(data["y"])).item()
        value = report["best"]["value"]
        assert abs(loss - value) < (1e-5 if dtype == torch.float32 else 1e-12), f"{options}: {loss}, reported {value}"
        print(f"round_trip: {options}: loss {loss:.6f}, reported {value:.6f}")


def ranks(runs):
    folder = runs.folder()
    runs.run(folder, "text.yaml", "--device", "cpu:1+cpu:1", *settings(["model.file=flat.pt2"]))
    report = runs.run(folder, "report", "--storage", "text.db").stdout
    assert "; slots " in report and " over ranks" in report, report


def stages(runs):
    plain = STUDY.replace("  dropout: {min: 0.0, max: 0.5}\n", "").replace('  bind: {drop.p: "${dropout}"}\n', "")
    for name in ("spectral", "overwritten"):
        (runs.made / f"{name}.yaml").write_text(plain.replace("text", name))
    staged = ["--device", "cpu:1+cpu:1", "--set", "array.divide=stages"]
    cases = [("text", []), ("text", ["model.freeze=embed"]), ("text", ["model.freeze=[backbone, head]"]),
             ("text", ["model.file=fixed.pt2"]), ("spectral", ["model.evaluation=spectral.eval.pt2"])]
    for name, options in cases:
        one, two = runs.folder(), runs.folder()
        base = settings([*options, "train.dtype=float64"])
        runs.run(one, f"{name}.yaml", "--device", "cpu:1", *base, "--set", "memory.policy=recompute")  # compiled
        runs.run(two, f"{name}.yaml", *staged, *base)
        same_tables(read_tables(two / f"{name}.db"), read_tables(one / f"{name}.db"))
    done = runs.run(runs.folder(), "overwritten.yaml", *staged, wanted=2)
    assert "array.divide: found stages" in done.stderr and "aten::add_.Tensor" in done.stderr, done.stderr
    print(f"stages: {len(cases)} studies as on one device")


def evaluations(runs):
    """A model whose evaluation is another graph: told alone, by its own graph equal to PyTorch's eval()."""
    base = ["train.dtype=float64"]
    study = STUDY.replace("  dropout: {min: 0.0, max: 0.5}\n", "").replace('  bind: {drop.p: "${dropout}"}\n', "")
    (runs.made / "spectral.yaml").write_text(study.replace("text", "spectral"))
    folder = runs.folder()
    done = runs.run(folder, "spectral.yaml", *settings(base), wanted=2)
    for word in ("spectral.yaml:8: model.evaluation", "writes '", "training_graph", "export_both"):
        assert word in done.stderr, done.stderr
    runs.run(folder, "spectral.yaml", *settings(base + ["model.evaluation=spectral.eval.pt2"]))
    runs.run(folder, "export", "--storage", "spectral.db", "--output", "best.safetensors")
    report = json.loads(runs.run(folder, "report", "--storage", "spectral.db", "--format", "json").stdout)
    module = Spectral().double()
    module.load_state_dict(load_file(folder / "best.safetensors"), strict=True)
    data = np.load(folder / "validation.npz")
    with torch.no_grad():
        logits = module.eval()(torch.tensor(data["ids"]), torch.tensor(data["mask"]))["logits"]
    loss = torch.nn.functional.cross_entropy(logits, torch.tensor(data["y"])).item()
    assert abs(loss - report["best"]["value"]) < 1e-10, f"{loss}, reported {report['best']['value']}"
    # Both files are held to their content.
    shutil.copy(folder / "other.eval.pt2", folder / "spectral.eval.pt2")
    done = runs.run(folder, "spectral.yaml", *settings(base + ["model.evaluation=spectral.eval.pt2", "run_cap=6"]), wanted=2)
    assert "another spectral.eval.pt2" in done.stderr, done.stderr
    # What is meant, and what is only trained, runs.
    runs.run(runs.folder(), "spectral.yaml", *settings(base + ["model.evaluation=training_graph"]))
    runs.run(runs.folder(), "spectral.yaml", *settings(base + ["data.validation=null", "metric.name=train_loss"]))
    # By name, whatever the order.
    values = []
    for x in ("[ids, mask]", "[mask, ids]"):
        folder = runs.folder()
        runs.run(folder, "text.yaml", "--set", f"data.x={x}")
        values.append(json.loads(runs.run(folder, "report", "--storage", "text.db", "--format", "json").stdout)["best"]["value"])
    assert values[0] == values[1], values
    print(f"evaluations: loss {loss:.6f} as reported; other orders of inputs give {values[0]:.6f}")


ERRORS = [
    # what is set, words of the message
    (["model.file=none.pt2"], ["model.file", "none.pt2", "no such file"]),
    (["model.file=train.npz"], ["model.file", "train.npz", "torch.export.save"]),
    (["model.freeze=backbon"], ["text.yaml:9: model", "'backbon'", "backbone"]),
    (["model.freeze='*'"], ["model", "freeze"]),
    (["model.bind.drop.q=0.1"], ["model.bind", "'drop.q'"]),
    (["parameters.dropout.max=1.5"], ["text.yaml:10: model.bind: drop.p: found 1.5"]),
    (["train.loss.output=logit"], ["'logit'", "logits"]),
    (["data.x=ids"], ["found 1 arrays", "ids [N, 6], mask [N, 6]"]),
    (["data.x=[mask, broken]"], ["data.x: found 'mask' in the place of input 'ids'"]),
    (["data.x=[broken, mask]"], ["broken", "at element 0", "whole number"]),
    (["data.x=[beyond, mask]"], ["beyond", "0 to 19", "'ids'"]),
    (["data.x=[long, mask]"], ["found [N, 12], wanted [N, 6]", "'ids'"]),
    (["model.file=fixed.pt2", "data.batch_size=64"], ["found 64, wanted 32", "fixed.pt2"]),
]


def errors(runs):
    for options, words in ERRORS:
        folder = runs.folder()
        before = sorted(folder.iterdir())
        done = runs.run(folder, "text.yaml", *settings(options), wanted=2)
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
        for word in words:
            assert word in done.stderr, f"{options}: found '{done.stderr.strip()}', wanted '{word}' in it"
        assert sorted(folder.iterdir()) == before, "something was created"
    folder = runs.folder()
    for file, note in (("eval.pt2", "as in model.eval()"), ("fixed.pt2", "the last 22 of 150")):
        plan = runs.run(folder, "plan", "text.yaml", "--set", f"model.file={file}").stdout
        assert note in plan, plan
    words = ("plan", "text.yaml", "--format", "json", "--set", "model.file=fixed.pt2", "--set", "model.freeze=backbone")
    plan = json.loads(runs.run(folder, *words).stdout)
    assert [(m["file"], m["batch_size"]) for m in plan["models"]] == [("fixed.pt2", 32)], plan["models"]
    assert plan["models"][0]["inputs"] == ["ids: int64 [N, 6]", "mask: bool [N, 6]"], plan["models"]
    assert [(p["model"], p["frozen"]) for p in plan["partitions"]] == [("fixed.pt2", 16 * 16 + 3 * 16)], plan["partitions"]
    print(f"errors: {len(ERRORS)} mistakes told in one line each, nothing created")


def interrupt(runs, folder, command, at, sent):
    """Signals the run at each line of progress that begins so; it must end resumable."""
    process = subprocess.Popen([runs.binary, *command], cwd=folder, env=runs.environment, text=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    for line in process.stderr:
        if line.startswith(at):
            process.send_signal(sent)
    assert process.wait(300) == 128 + sent, process.returncode


def changes(runs):
    folder = runs.folder()
    command = ["text.yaml", "--set", "train.epochs=50000"]  # none comes to their end
    interrupt(runs, folder, command, "round 3:", signal.SIGINT)
    shutil.copy(folder / "fixed.pt2", folder / "text.pt2")
    for words in (command, ["resume", "text", "--storage", "text.db"]):
        done = runs.run(folder, *words, wanted=2)
        assert "another text.pt2" in done.stderr and "--fresh" in done.stderr, done.stderr
    (folder / "text.pt2").unlink()
    assert "no such file" in runs.run(folder, *command, wanted=2).stderr
    shutil.copy(runs.made / "text.pt2", folder / "text.pt2")
    data = sorted(path for path in folder.iterdir() if path.suffix == ".npz")[0]
    whole = data.read_bytes()
    arrays = dict(np.load(data))
    changed = {name: array.copy() for name, array in arrays.items()}
    changed["y"][0] = (changed["y"][0] + 1) % 3
    np.savez(data, **changed)
    for words in (command, ["resume", "text", "--storage", "text.db"]):
        done = runs.run(folder, *words, wanted=2)
        assert f"other numbers in {data.name}" in done.stderr and "--fresh" in done.stderr, done.stderr
    np.savez_compressed(data, **arrays)  # other bytes, the same numbers
    interrupt(runs, folder, command, "round ", signal.SIGTERM)
    data.write_bytes(whole)
    finished = ["text.yaml", "--set", "study=finished", "--set", "train.epochs=1"]
    report = runs.run(folder, *finished).stdout
    np.savez(data, **changed)
    assert f"other numbers in {data.name}" in runs.run(folder, *finished, wanted=2).stderr
    np.savez_compressed(data, **arrays)
    assert runs.run(folder, *finished).stdout == report
    data.unlink()
    done = runs.run(folder, *finished)
    assert done.stdout == report and f"{data.name}' is gone" in done.stderr, done.stderr
    print("changes: another model file, none, and other data are refused; the same go on")


PARTS = {part.__name__: part for part in (round_trip, evaluations, errors, changes, ranks, stages)}


def main():
    runs = Runs(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
    for name in sys.argv[3:] or PARTS:
        began = time.monotonic()
        PARTS[name](runs)
        print(f"{name}: {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main()
