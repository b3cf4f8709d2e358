"""Tensors, arrays and lists of numbers as NumPy arrays."""
from __future__ import annotations

from typing import Any, Sequence

import numpy as np
import torch

from .errors import ConfigError

_WIDEST = 8  # bytes of a number that files of data may have


def to_array(value: Any, name: str) -> np.ndarray:
    """A tensor, an array or a list of numbers as an array on the CPU; bfloat16, which NumPy lacks, as float32.

    Throws ConfigError for anything else, and for masked values, which are missing ones."""
    if isinstance(value, torch.Tensor):
        array = _of_tensor(value, name)
    elif isinstance(value, (list, tuple)):
        array = _of_list(value, name)
    else:
        array = _of_array(value, name)
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > _WIDEST:
        raise ConfigError(f"data: {name}: found {type(value).__name__} of type {array.dtype}, wanted numbers"
                          + (" of 8 bytes or fewer" if array.dtype.kind == "f" else ""))
    return array


def _of_tensor(tensor: torch.Tensor, name: str) -> np.ndarray:
    """The other kinds of tensors have no numbers, or none that NumPy knows."""
    forms = {"nested": tensor.is_nested, "quantized": tensor.is_quantized, "meta": tensor.device.type == "meta",
             "sparse": not tensor.is_nested and tensor.layout is not torch.strided}
    found = next((form for form, is_so in forms.items() if is_so), None)
    if found is not None:
        raise ConfigError(f"data: {name}: found a {found} tensor, wanted a dense one of numbers")
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
    try:
        return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
    except (TypeError, RuntimeError):
        raise ConfigError(f"data: {name}: found a tensor of type {str(tensor.dtype)[len('torch.'):]}, wanted numbers that "
                          "NumPy knows, such as float32") from None


def _of_list(values: Sequence[Any], name: str) -> np.ndarray:
    parts = values
    if any(isinstance(part, (torch.Tensor, np.ma.MaskedArray)) for part in values):
        parts = [to_array(part, name) for part in values]
    try:
        return _of_array(parts, name)
    except ConfigError:  # a ValueError, too
        raise
    except ValueError as error:  # rows of several lengths
        lengths = sorted({len(part) if hasattr(part, "__len__") else 1 for part in parts})
        found = f"rows of lengths {lengths[:3]}" if len(lengths) > 1 else f"{type(values).__name__}: {error}"
        raise ConfigError(f"data: {name}: found {found}, wanted rows of one shape") from error


def _of_array(value: Any, name: str) -> np.ndarray:
    if isinstance(value, np.ma.MaskedArray):
        count = int(np.ma.count_masked(value))
        if count:
            raise ConfigError(f"data: {name}: found {count} masked values, wanted none")
    try:
        return np.asarray(value)
    except (TypeError, RuntimeError) as error:
        raise ConfigError(f"data: {name}: found {type(value).__name__}, wanted numbers: {error}") from error
