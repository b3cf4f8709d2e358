"""Examples of a module's inputs: how they are bound to forward's arguments, and one made of the data."""
from __future__ import annotations

import copy
import inspect
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple, Union

import torch
from torch import nn
from torch.utils import _pytree as pytree

from .errors import ExportError

Example = Union[torch.Tensor, Tuple[Any, ...], Mapping[str, Any]]


def arguments(example: Example, dtype: Optional[torch.dtype]) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    """What forward is called with: tensors on the CPU, floating ones of `dtype` unless it is None."""
    def cast(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        value = value.detach().cpu()
        return value.to(dtype) if dtype is not None and value.is_floating_point() else value

    if isinstance(example, Mapping):
        return (), {str(name): pytree.tree_map(cast, value) for name, value in example.items()}
    parts = example if isinstance(example, (tuple, list)) else (example,)
    return tuple(pytree.tree_map(cast, part) for part in parts), {}


def bound(module: nn.Module, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Dict[str, Any]:
    """The values of forward's arguments by name. Throws ExportError where they do not fit."""
    try:
        return dict(_signature(module).bind(*args, **kwargs).arguments)
    except TypeError as error:
        raise ExportError(f"example: does not fit {type(module).__name__}.forward: {error}") from error


def names_in(arguments: Dict[str, Any]) -> Iterator[str]:
    """The inputs' names among arguments that were bound."""
    for name, value in arguments.items():
        if isinstance(value, tuple):  # of *args
            yield from (f"{name}_{i}" for i, _ in enumerate(value))
        elif isinstance(value, dict):
            yield from value
        else:
            yield name


def input_names(module: nn.Module) -> Tuple[str, ...]:
    """The arguments of the module's forward that have names of their own. Throws ExportError for TorchScript."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return tuple(name for name, parameter in _signature(module).parameters.items() if parameter.kind in kinds)


def _signature(module: nn.Module) -> inspect.Signature:
    try:
        return inspect.signature(module.forward)
    except ValueError as error:
        raise ExportError(f"found {type(module).__name__}, wanted a module of Python code: {error}") from error


def fitting(module: nn.Module, samples: Mapping[str, torch.Tensor]) -> Example:
    """An example for `export` out of samples by name: named arguments if forward has all these names, else in order.

    Floating samples get the type of the module's parameters. Integers become int64, or that type if the module takes that
    and no integers (images of bytes). If it takes neither, bytes count as images and others as integers, so that what the
    module says of them is about what is wrong.
    """
    weights = [weight.dtype for weight in module.parameters() if weight.is_floating_point()]
    floating = weights[0] if weights else torch.float32
    names = input_names(module)
    whole = [value.dtype for value in samples.values() if not value.is_floating_point() and value.dtype != torch.bool]

    def as_example(integers: torch.dtype) -> Example:
        cast = {name: value if value.dtype == torch.bool else value.to(floating if value.is_floating_point() else integers)
                for name, value in samples.items()}
        return cast if len(cast) > 1 and all(name in names for name in cast) else tuple(cast.values())

    integers, floats = as_example(torch.int64), as_example(floating)
    if not whole or _runs(module, integers):
        return integers
    return floats if torch.uint8 in whole or _runs(module, floats) else integers


def _runs(module: nn.Module, example: Example) -> bool:
    own = copy.deepcopy(module).cpu().eval()
    args, kwargs = arguments(example, None)
    try:
        with torch.no_grad():
            own(*args, **kwargs)
    except Exception:  # of any type: the export says it again
        return False
    return True


def misfit(module: nn.Module, example: Example) -> Optional[str]:
    """Why forward cannot be called with the example, in Python's words; None if it can."""
    args, kwargs = arguments(example, None)
    try:
        _signature(module).bind(*args, **kwargs)
    except TypeError as error:
        return str(error)
    return None
