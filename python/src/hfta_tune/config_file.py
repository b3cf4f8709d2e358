"""The file that a study's config lies in: its name, and that it has what the study was run from."""
from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import re
import tempfile
from dataclasses import dataclass
from typing import Any, Mapping, Optional

from .errors import ConfigError, HftaError, writing
from .program import call

_MOST_BYTES = 200  # that the program takes for a study's name
_LONGEST_WORD = 100  # of a name that is no word, as the program cuts the name of its folder


@dataclass(frozen=True)
class ConfigFile:
    """A config that was written, and what the file had before."""

    path: pathlib.Path
    text: str
    before: Optional[str]  # None: there was no file


def check_name(name: Optional[str], config: Mapping[str, Any]) -> None:
    """Throws ConfigError for a name that the program, or its commands, would not take, before anything is written."""
    study = config.get("study", name)
    if study is None:
        return
    if not isinstance(study, str):
        raise ConfigError(f"name: found {study!r} of type {type(study).__name__}, wanted text")
    if "\0" in study:
        raise ConfigError(f"name: found {study!r}, wanted text without NUL")
    if study.startswith("-"):
        raise ConfigError(f"name: found {study!r}, wanted one that does not begin with '-', as options of the program do")
    try:
        size = len(study.encode("utf-8"))
    except UnicodeEncodeError:
        raise ConfigError(f"name: found {study!r}, wanted text that UTF-8 has") from None
    if size > _MOST_BYTES:
        raise ConfigError(f"name: found '{study[:60]}...' of {size} bytes, wanted 1 to {_MOST_BYTES}")


def word_of(text: str) -> str:
    """`text` with '-' in place of all that is not a letter or digit of ASCII, '_', '.' or '-'."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text)


def stem_of(study: str) -> str:
    """The name of a study's files: its own, or where that has other signs, a word like it and 16 digits that tell it apart."""
    word = word_of(study)
    if word == study:
        return word
    return f"{word[:_LONGEST_WORD]}-{hashlib.blake2b(study.encode(), digest_size=8).hexdigest()}"


def write(path: pathlib.Path, text: str) -> ConfigFile:
    """Writes the file complete or not at all, unless it has this text already."""
    before = None
    with contextlib.suppress(FileNotFoundError):
        before = path.read_text(encoding="utf-8")
    if before != text:
        with writing(path):
            _replace(path, text)
    return ConfigFile(path, text, before)


def restore(file: ConfigFile, storage: pathlib.Path, study: str) -> None:
    """Gives the file of a study that is in the store what it had before: a call that did not run must not change it.

    A file that was refused and belongs to no study stays, since the error names its lines.
    """
    if file.before is None or file.before == file.text or not storage.exists():
        return
    with contextlib.suppress(HftaError, OSError):
        call(["report", study, "--storage", str(storage), "--format", "json"])  # throws where there is no such study
        if file.path.read_text(encoding="utf-8") == file.text:  # else another call has written it meanwhile
            _replace(file.path, file.before)


def _replace(path: pathlib.Path, text: str) -> None:
    handle, fresh = tempfile.mkstemp(prefix=".config-", dir=path.parent)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(fresh, 0o644)
    os.replace(fresh, path)
