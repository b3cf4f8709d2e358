#!/usr/bin/env python3
"""Runs what pages say, as it is written there: pages_check.py HFTA_TUNE FOLDER [models|pytorch ...]

models   docs/models.md: fenced blocks are files, named by their first line, or commands
pytorch  examples/pytorch/README.md: indented lines are commands
"""
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


def models(binary, folder, environment):
    environment["PATH"] = os.pathsep.join([str(binary.parent), str(pathlib.Path(sys.executable).parent), environment["PATH"]])
    page = (ROOT / "docs" / "models.md").read_text()
    files, commands = [], []
    for language, block in re.findall(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        if language == "sh":
            for command in block.splitlines():
                run(command, folder, environment)
                commands.append(command)
        else:
            name = re.match(r"# (\S+)\n", block).group(1)
            (folder / name).write_text(block)
            files.append(name)
    assert len(files) >= 8 and len(commands) >= 11, f"found {files} and {commands}"
    for name, study in (("report.json", "net"), ("tagger.json", "tagger")):
        report = json.loads((folder / name).read_text())
        assert report["study"] == study and report["counts"] == {"COMPLETE": len(report["trials"])}, report


def pytorch(binary, folder, environment):
    place = folder / "examples" / "pytorch"
    shutil.copytree(ROOT / "examples" / "pytorch", place, ignore=shutil.ignore_patterns("*.pt2", "*.npz", "*.db*", "*.json"))
    (folder / "data").symlink_to(ROOT / "data")
    page = (place / "README.md").read_text()
    commands = re.findall(r"^    (\S.*)$", page, re.MULTILINE)
    outputs = [run(command.replace("../../build/release/bin/hfta-tune", str(binary))
                   .replace("../../.venv/bin/python", sys.executable), place, environment) for command in commands]
    assert len(commands) == 6 and "reported loss" in outputs[-1], f"found {commands}"


def main():
    binary, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    for name in sys.argv[3:] or ("models", "pytorch"):
        place = folder / name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        environment = {**os.environ, "HFTA_CACHE": str(place / "cache")}
        {"models": models, "pytorch": pytorch}[name](binary, place, environment)
        print(f"{name}: the page's commands ran")


if __name__ == "__main__":
    main()
