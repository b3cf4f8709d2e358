"""Finds the program `hfta-tune` and calls its commands that end soon (report, export, plan)."""
from __future__ import annotations

import importlib.metadata
import json
import os
import pathlib
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from typing import List, Optional, Sequence, Union

from .errors import ConfigError, ProgramNotFound, from_exit

# What the program's errors advise, and what does the same here.
_ARGUMENTS = {
    "choose another name (study: ...) or --fresh": "choose another name=",
    "--fresh starts": "a call with another name= starts",
    "--trial: found": "number: found",
}


def find_program() -> str:
    """Path of the program: $HFTA_TUNE, else on PATH, else in a build folder of the checkout that this package was
    installed from (the build that was linked last).

    Throws ProgramNotFound, which says where it was looked for.
    """
    named = os.environ.get("HFTA_TUNE")
    if named:
        found = shutil.which(named)
        if not found:
            raise ProgramNotFound(f"HFTA_TUNE: found '{named}', wanted the path of the program hfta-tune")
        return found
    found = shutil.which("hfta-tune")
    if found:
        return found
    checkout = _checkout()
    built = _built(checkout) if checkout else []
    if built:
        return str(built[0])
    places = f"and {checkout}/build has none (scripts/quickstart builds one)" if checkout else "and no checkout is known"
    raise ProgramNotFound(f"the program hfta-tune was not found: HFTA_TUNE is not set, it is not on PATH, {places}")


def _built(checkout: pathlib.Path) -> List[pathlib.Path]:
    programs = [path for path in checkout.glob("build/*/bin/hfta-tune") if os.access(path, os.X_OK)]
    return sorted(programs, key=lambda path: path.stat().st_mtime, reverse=True)


def _checkout() -> Optional[pathlib.Path]:
    """The checkout that holds this file, or that pip says it installed this package from."""
    places = [pathlib.Path(__file__).resolve().parents[3]]
    try:
        origin = importlib.metadata.distribution("hfta-tune").read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:
        origin = None
    url = json.loads(origin).get("url", "") if origin else ""
    if url.startswith("file:"):
        places.append(pathlib.Path(urllib.request.url2pathname(urllib.parse.urlsplit(url).path)).parent)
    return next((place for place in places if (place / "engine").is_dir() and (place / "python").is_dir()), None)


def call(arguments: Sequence[str]) -> str:
    """Runs `hfta-tune ARGUMENTS` to its end and returns its standard output. Throws the exception of its exit code."""
    done = subprocess.run([find_program(), *arguments], capture_output=True, text=True, encoding="utf-8", errors="replace")
    if done.returncode != 0:
        raise from_exit(done.returncode, words_of(done.stderr.splitlines()))
    return done.stdout


def words_of(lines: Sequence[str]) -> str:
    """The error among lines of the program's standard error: those from the last one that begins with its name on.

    Where it advises an option that a call from Python has not, the argument stands that does the same."""
    said = [index for index, line in enumerate(lines) if line.startswith("hfta-tune: ")]
    if not said:
        return "\n".join(lines[-5:]).strip()
    words = "\n".join(lines[said[-1]:])[len("hfta-tune: "):].strip()
    for option, argument in _ARGUMENTS.items():
        words = words.replace(option, argument)
    return words


def store_file(storage: Union[str, "os.PathLike[str]"]) -> pathlib.Path:
    """The path of a store, given as a path or as `sqlite:///path`."""
    text = os.fspath(storage)
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", text)
    if scheme and scheme[1] != "sqlite":
        raise ConfigError(f"storage: found '{scheme[0]}...', wanted a file's path or sqlite:///PATH: a study is in an SQLite file")
    path = pathlib.Path(text[len("sqlite:///"):] if text.startswith("sqlite:///") else text)
    return path.absolute()
