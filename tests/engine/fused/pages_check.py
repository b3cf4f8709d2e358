#!/usr/bin/env python3
"""Runs what pages say, as it is written there: pages_check.py HFTA_TUNE FOLDER [PAGE...]

models      docs/models.md: fenced blocks are files, named by their first line, or commands
pytorch     examples/pytorch/README.md: indented lines are commands
comparison  docs/comparison.md: as models
recipes     docs/recipes.md: each section has one block of Python, which makes `study`
finetuning  docs/finetuning.md: the same of the sections that have one, with the adapter back in PEFT as `tuned`
"""
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]


def run(command, folder, environment):
    done = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    print(f"$ {command}\n{done.stdout}{done.stderr}", end="")
    assert done.returncode == 0, f"'{command}' ended with exit code {done.returncode}"
    return done.stdout


def run_blocks(page, binary, folder, environment):
    """Writes a page's files and runs its commands, in order."""
    environment["PATH"] = os.pathsep.join([str(binary.parent), str(pathlib.Path(sys.executable).parent), environment["PATH"]])
    files, commands = 0, 0
    for language, block in re.findall(r"^```(\w+)\n(.*?)^```$", (ROOT / "docs" / page).read_text(), re.MULTILINE | re.DOTALL):
        if language == "sh":
            for command in block.splitlines():
                run(command, folder, environment)
                commands += 1
        else:
            (folder / re.match(r"# (\S+)\n", block).group(1)).write_text(block)
            files += 1
    assert files >= 4 and commands >= 6, f"{page}: found {files} files and {commands} commands"


def check_complete(binary, folder, study, store):
    found = json.loads(run(f"'{binary}' report {study} --storage {store} --format json", folder, os.environ))
    assert found["counts"] == {"COMPLETE": len(found["trials"])}, found["counts"]


def models(binary, folder, environment):
    run_blocks("models.md", binary, folder, environment)
    for study in ("net", "tagger"):
        check_complete(binary, folder, study, f"{study}.db")


def comparison(binary, folder, environment):
    if importlib.util.find_spec("optuna") is None:
        print("skipped, the package optuna is not installed")
        return
    environment.update(HFTA_TUNE=str(binary), PYTHONPATH=str(ROOT / "python" / "src"))
    run_blocks("comparison.md", binary, folder, environment)
    check_complete(binary, folder, "sweep", "sweep.db")


def pytorch(binary, folder, environment):
    place = folder / "examples" / "pytorch"
    shutil.copytree(ROOT / "examples" / "pytorch", place, ignore=shutil.ignore_patterns("*.pt2", "*.npz", "*.db*", "*.json"))
    (folder / "data").symlink_to(ROOT / "data")
    page = (place / "README.md").read_text()
    commands = re.findall(r"^    (\S.*)$", page, re.MULTILINE)
    outputs = [run(command.replace("../../build/release/bin/hfta-tune", str(binary))
                   .replace("../../.venv/bin/python", sys.executable), place, environment) for command in commands]
    assert len(commands) == 6 and "reported loss" in outputs[-1], f"found {commands}"


# What a recipe's best trial has to reach, by its section: (at least, at most).
RECIPES = {
    "A loss of your own": (-3, 0),
    "Augmentation inside the graph": (0.8, 1),
    "Batches larger than memory": (0, 1.05),  # without learning 1
    "Two networks against each other": (0.2, 1.4),
    "Seeds": (0.8, 1),
    "Folds": (0.75, 1),
    "Fine-tuning a Hugging Face model": (0, 0.75),
    "Time series": (0.05, 0.4),
    "Several inputs": (0.65, 1),
    "Class imbalance": (0.75, 1),
    "Quantile regression": (0, 0.2),
}


def run_recipe(title, code, folder):
    folder.mkdir()
    os.chdir(folder)
    space = {}
    exec(compile(code, f"<{title}>", "exec"), space)
    study, (least, most) = space["study"], RECIPES[title]
    print(f"{title}: {study.metric} {study.best.value:.4f}")
    assert {trial.state for trial in study.trials} == {"COMPLETE"}, f"{title}: found {study.trials}"
    assert least <= study.best.value <= most, f"{title}: found {study.best.value}, wanted {least} to {most}"


def recipes(binary, folder, environment):
    os.environ.update(environment, HFTA_TUNE=str(binary))
    sys.path.insert(0, str(ROOT / "python" / "src"))
    begin, *parts = re.split(r"^## (.*)$", (ROOT / "docs" / "recipes.md").read_text(), flags=re.MULTILINE)
    python = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    (imports,) = python.findall(begin)
    assert parts[::2] == list(RECIPES), f"found {parts[::2]}"
    for i, (title, text) in enumerate(zip(parts[::2], parts[1::2])):
        (code,) = python.findall(text)
        assert len(code.splitlines()) <= 25, f"{title}: a recipe has 25 lines at most"
        if "transformers" in code and importlib.util.find_spec("transformers") is None:
            print(f"{title}: skipped, the package transformers is not installed")
            continue
        run_recipe(title, imports + code, folder / str(i))


# What the best trial of a section reaches at most: well below what a model that knows nothing has.
FINE_TUNINGS = {"A classifier of texts": 0.6, "A causal language model": 2.5, "An image classifier": 0.6,
                "A base in 16 or 8 bits": 2.5}
UNMERGED = "A base in 16 or 8 bits"  # into quantized weights nothing can be merged


def run_finetuning(title, code, folder):
    import torch

    folder.mkdir()
    os.chdir(folder)
    space = {}
    exec(compile(code, f"<{title}>", "exec"), space)
    study, tuned, data = space["study"], space["tuned"].eval(), space.get("data")
    print(f"{title}: {study.metric} {study.best.value:.4f}")
    assert {trial.state for trial in study.trials} <= {"COMPLETE", "PRUNED"}, f"{title}: found {study.trials}"
    assert study.best.value <= FINE_TUNINGS[title], f"{title}: found {study.best.value}, wanted {FINE_TUNINGS[title]} at most"
    data = data or {"pixel_values": space["images"], "labels": space["labels"]}
    with torch.no_grad():
        found = tuned(**data)
        assert found.loss <= FINE_TUNINGS[title], f"{title}: found a loss of {found.loss} of the adapter in PEFT"
        if title == UNMERGED:
            return
        wanted = study.best_module()(**data)
    off = (found.logits - wanted.logits).abs().max().item()
    assert off <= 1e-5, f"{title}: logits of the adapter and of the merged weights are {off} apart"


def finetuning(binary, folder, environment):
    missing = [name for name in ("transformers", "peft", "torchao") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"skipped, the package {missing[0]} is not installed")
        return
    os.environ.update(environment, HFTA_TUNE=str(binary))
    sys.path.insert(0, str(ROOT / "python" / "src"))
    begin, *parts = re.split(r"^## (.*)$", (ROOT / "docs" / "finetuning.md").read_text(), flags=re.MULTILINE)
    python = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    (imports,) = python.findall(begin)
    sections = [(title, *python.findall(text)) for title, text in zip(parts[::2], parts[1::2]) if python.search(text)]
    assert [title for title, _ in sections] == list(FINE_TUNINGS), f"found {[title for title, *_ in sections]}"
    for i, (title, code) in enumerate(sections):
        run_finetuning(title, imports + code, folder / str(i))


PAGES = {"models": models, "pytorch": pytorch, "comparison": comparison, "recipes": recipes,
         "finetuning": finetuning}


def main():
    binary, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    for name in sys.argv[3:] or PAGES:
        place = folder / name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        environment = {**os.environ, "HFTA_CACHE": str(place / "cache")}
        PAGES[name](binary, place, environment)
        print(f"{name}: the page's commands ran")


if __name__ == "__main__":
    main()
