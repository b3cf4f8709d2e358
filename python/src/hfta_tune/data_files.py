"""Writes arrays where a config can name them, and digests what files of data hold."""
from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import shutil
import tempfile
from typing import Any, Sequence

import numpy as np

from .data import Arrays
from .errors import writing

_READ_WHOLE = 512 * 2**20  # bytes of data files that every call may read: about a second


def write(arrays: Arrays, folder: pathlib.Path) -> str:
    """Writes the arrays as .npy files into a folder of `folder` that is named after their content, and returns its name.

    Writes nothing if it is there. The folder appears complete or not at all.
    """
    name = f"data-{digest(arrays)}"
    if not (folder / name).is_dir():
        with writing(folder):
            _write_folder(arrays, folder, name)
    return name


def _write_folder(arrays: Arrays, folder: pathlib.Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    fresh = pathlib.Path(tempfile.mkdtemp(prefix=".data-", dir=folder))
    try:
        for key, array in arrays.all.items():
            np.save(fresh / f"{key}.npy", np.ascontiguousarray(array))
        fresh.chmod(0o755)
        os.rename(fresh, folder / name)
    except OSError:
        if not (folder / name).is_dir():  # else another process was first, with the same content
            raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def digest(arrays: Arrays) -> str:
    """16 hexadecimal digits of names, types, shapes and bytes."""
    content = hashlib.blake2b(digest_size=8)
    for name, array in arrays.all.items():
        content.update(f"{name} {array.dtype.str} {array.shape};".encode())
        content.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return content.hexdigest()


def files_digest(paths: Sequence[pathlib.Path]) -> str:
    """16 hexadecimal digits of what these files, and the files of these folders, hold; none of no paths.

    Of more than _READ_WHOLE bytes at one path, sizes and times of the last change stand for the content.
    """
    content = hashlib.blake2b(digest_size=8)
    for path in paths:
        files = [file for file in (sorted(path.iterdir()) if path.is_dir() else [path]) if file.is_file()]
        whole = sum(file.stat().st_size for file in files) <= _READ_WHOLE
        for file in files:
            about = file.stat()
            content.update(f"{file.name} {about.st_size} {'' if whole else about.st_mtime_ns};".encode())
            if whole:
                _update_with(content, file)
    return content.hexdigest() if paths else ""


def _update_with(content: Any, file: pathlib.Path) -> None:
    with contextlib.suppress(PermissionError), open(file, "rb") as stream:  # the program says what it cannot read
        while block := stream.read(2**20):
            content.update(block)
