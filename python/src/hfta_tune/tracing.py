"""torch.export.export, and what it refuses in words about the module."""
from __future__ import annotations

import contextlib
import copy
import io
import logging
import pathlib
import sys
import traceback
import warnings
from typing import TYPE_CHECKING, Any, Iterator, Optional

import torch
from torch.distributions import Distribution
from torch.export import ExportedProgram
from torch.overrides import TorchFunctionMode

from .errors import ExportError

if TYPE_CHECKING:
    from .exporting import Traceable

_TORCH = pathlib.Path(torch.__file__).parent
_OWN = pathlib.Path(__file__).parent


def trace(module: torch.nn.Module, source: "Traceable", shapes: Any) -> ExportedProgram:
    """torch.export.export of the module as it stands, on a copy of its own: tracing leaves marks on some modules.

    The argument checks of torch.distributions are left out of the graph. Throws ExportError."""
    traced = copy.deepcopy(module)
    try:
        with _quiet(), _distributions_unchecked():
            return torch.export.export(traced, source.args, source.kwargs, dynamic_shapes=shapes)
    except Exception as error:
        words = _of_values(error) if "data-dependent" in str(error) else first_lines(error)
        raise ExportError(f"torch.export cannot export {type(module).__name__}: {words}") from error


def first_lines(error: Exception) -> str:
    """What torch says, without its advice on logging, and each line once."""
    lines = [line.split(" For more information")[0].strip(" -") for line in str(error).splitlines()]
    return " ".join(list(dict.fromkeys(filter(None, lines)))[:3])[:400] or type(error).__name__


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without torch's warnings, and without the graph that it prints where an export fails. All other prints stay."""
    log = logging.getLogger("torch.fx.experimental.symbolic_shapes")
    printed, dump = io.StringIO(), ""
    log.addFilter(_is_no_warning)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(printed):
            warnings.simplefilter("ignore")
            yield
    except Exception as error:
        dump = getattr(error, "partial_fx_graph", dump)
        raise
    finally:
        log.removeFilter(_is_no_warning)
        sys.stderr.write(printed.getvalue().replace(f"{dump}\n", "") if dump else printed.getvalue())


def _is_no_warning(record: logging.LogRecord) -> bool:
    return record.levelno != logging.WARNING


@contextlib.contextmanager
def _distributions_unchecked() -> Iterator[None]:
    """torch.distributions checks the values of its arguments, and no graph has values to check. By default only: what
    was made with validate_args=True stays."""
    before = Distribution._validate_args
    Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        Distribution.set_default_validate_args(before)


def _of_values(error: Exception) -> str:
    """The words for a forward that reads values of tensors, as `if (x > 0).any():` does, there or within torch."""
    frames = list(traceback.extract_tb(error.__traceback__))
    own = [index for index, frame in enumerate(frames) if _is_users(frame)]
    place = f"{_words(frames[own[-1]])}: " if own else ""
    within = frames[own[-1] + 1:] if own else frames
    if any(_is_in(frame, _TORCH / "distributions") for frame in within):
        return (f"{place}found a distribution that checks the values of its arguments, which a graph cannot do, "
                "wanted one without validate_args=True")
    functions = [frame.name for frame in within if _is_in(frame, _TORCH / "nn" / "functional.py")]
    if functions:
        return (f"{place}found a condition or a size in torch.nn.functional.{functions[-1]} that depends on the values "
                "of tensors, wanted none: write the function's formula instead, without its checks")
    return (f"{place}found a condition or a size that depends on the values of tensors, wanted none: torch.where "
            "chooses between values, and checks of values can be left out")


def derivative_at(source: "Traceable") -> Optional[str]:
    """The line that asks for derivatives within forward; None where there is none. Runs the module."""
    seen = _Derivatives()
    with contextlib.suppress(Exception), torch.random.fork_rng(devices=[]), torch.enable_grad(), seen:
        copy.deepcopy(source.in_training())(*source.args, **source.kwargs)
    return seen.place


class _Derivatives(TorchFunctionMode):
    """Notes where a derivative is asked for first. What torch.func has asks for it by one of these, too."""

    def __init__(self) -> None:
        super().__init__()
        self.place: Optional[str] = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        asks = func in (torch.autograd.grad, torch.Tensor.backward) or getattr(func, "__name__", "") == "_make_dual"
        if asks and self.place is None:
            own = [frame for frame in traceback.extract_stack() if _is_users(frame)]
            self.place = _words(own[-1]) if own else "forward"
        return func(*args, **(kwargs or {}))


def _is_users(frame: traceback.FrameSummary) -> bool:
    return not _is_in(frame, _TORCH) and not _is_in(frame, _OWN)


def _is_in(frame: traceback.FrameSummary, place: pathlib.Path) -> bool:
    path = pathlib.Path(frame.filename)
    return path == place or place in path.parents


def _words(frame: traceback.FrameSummary) -> str:
    return f"{frame.filename}:{frame.lineno}" + (f" ({frame.line})" if frame.line else "")
