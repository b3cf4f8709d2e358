"""Exceptions of this package: one for each exit code of the program, and those of the Python side.

The message of an exception that the program caused is the program's own.
"""
from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING, Dict, Iterator, Optional, Type, Union

if TYPE_CHECKING:
    from .study import Study


class HftaError(RuntimeError):
    """Base of all exceptions of this package. `exit_code` is the program's, or None if it did not run."""

    exit_code: Optional[int] = None


class ProgramNotFound(HftaError):
    """The program `hfta-tune` is not where it was looked for."""


class ExportError(HftaError):
    """The module cannot be exported, or its export computes something else than the module."""


class ConfigError(HftaError, ValueError):
    """An argument, a config, a model or data that cannot be used (exit code 2)."""


class StorageError(HftaError):
    """The store or a checkpoint cannot be read or written (exit code 3)."""


class DeviceError(HftaError):
    """A device is absent or failed, or LibTorch cannot be loaded (exit code 4)."""


class InternalError(HftaError):
    """An error of the program's own (exit code 5): please report it."""


class BusyError(HftaError):
    """Another process runs the study (exit code 6)."""


class StoppedError(HftaError):
    """The program was stopped by a signal that did not come from here. The same call resumes the study."""


class NoCompleteTrial(HftaError):
    """The study ended and no trial is COMPLETE (exit code 1). `study` has the trials and why they failed."""

    study: Optional["Study"] = None


_BY_EXIT_CODE: Dict[int, Type[HftaError]] = {
    1: NoCompleteTrial,
    2: ConfigError,
    3: StorageError,
    4: DeviceError,
    5: InternalError,
    6: BusyError,
}


def from_exit(code: int, words: str) -> HftaError:
    """The exception for an exit code other than 0, as `subprocess` gives it (-N: killed by signal N)."""
    number = -code if code < 0 else code - 128
    if code < 0 or number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
        name = signal.Signals(number).name if number in signal.valid_signals() else f"signal {number}"
        error: HftaError = StoppedError(_join(f"hfta-tune was stopped by {name}; the same call resumes the study", words))
    else:
        error = _BY_EXIT_CODE.get(code, InternalError)(words or f"hfta-tune ended with exit code {code}")
    error.exit_code = code
    return error


@contextlib.contextmanager
def writing(path: Union[str, "os.PathLike[str]"]) -> Iterator[None]:
    """Throws StorageError in place of what Python throws where `path` cannot be written."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{os.fspath(path)}: cannot be written: {error.strerror or error}") from error


def _join(first: str, words: str) -> str:
    return f"{first}: {words}" if words else first
