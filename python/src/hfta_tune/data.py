"""Brings data of any usual kind into arrays by name."""
from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Optional, Sequence

import numpy as np
import torch

from . import frames
from .errors import ConfigError
from .numeric import to_array

_LONGEST_NAME = 200  # bytes, so that a file can have it and an extension
_USUAL_TARGETS = ("y", "labels", "label", "target")


@dataclass(frozen=True)
class Arrays:
    """Samples: the model's inputs and the targets by name, each with the samples in its first dimension."""

    inputs: Dict[str, np.ndarray]
    targets: Dict[str, np.ndarray]  # one at most; none where the model computes its loss
    groups: Dict[str, np.ndarray] = field(default_factory=dict)  # one at most: which samples stay in one fold

    @property
    def samples(self) -> Dict[str, np.ndarray]:
        return {**self.inputs, **self.targets}

    @property
    def all(self) -> Dict[str, np.ndarray]:
        return {**self.samples, **self.groups}

    def in_order_of(self, other: Arrays) -> Arrays:
        """The same arrays as `other` has them, by name: the order counts in `digest`, and in no other way."""
        return Arrays({name: self.samples[name] for name in other.inputs},
                      {name: self.samples[name] for name in other.targets})

    def __len__(self) -> int:
        return len(next(iter(self.inputs.values())))


@dataclass(frozen=True)
class Names:
    """How the arrays of data are told apart."""

    inputs: Sequence[str]            # arguments of the module's forward, in order
    target: Any = None               # the array or column of targets, where the caller named it
    features: Optional[Sequence[Any]] = None  # columns of a table
    with_targets: bool = True        # False: the model computes its loss, targets may be among its inputs
    groups: Optional[str] = None     # the array or column of numbers that folds keep together


def with_features_of(names: Names, data: Any) -> Names:
    """With all columns of a DataFrame but targets and groups, unless the caller named some.

    For data beside it: its columns are theirs, wherever they stand in it."""
    if not frames.is_frame(data) or names.features is not None:
        return names
    others = (str(names.target), names.groups)
    return replace(names, features=[column for column in data.columns if str(column) not in others])


def collect(data: Any, names: Names) -> Arrays:
    """`data` as arrays: (x, y), a dict, a map-style dataset or a pandas DataFrame (README.md has the forms).

    A dataset is read once, in order: random augmentation is drawn once. Throws ConfigError, which says what was found.
    """
    if frames.is_frame(data):
        x, y = frames.arrays_of(data, names.target, with_features_of(names, data).features)
        inputs = {_input_name(names, 0): x}
        groups = {names.groups: to_array(data[column], str(column)) for column in data.columns if str(column) == names.groups}
        arrays = Arrays(inputs, {_target_name(inputs, names): y}, groups)
    elif isinstance(data, dict):
        arrays = _from_dict(data, names)
    elif isinstance(data, (tuple, list)):
        arrays = _from_pair(data, names)
    elif isinstance(data, (torch.Tensor, np.ndarray)):
        arrays = Arrays({_input_name(names, 0): to_array(data, "x")}, {})
    elif isinstance(data, torch.utils.data.DataLoader):
        raise ConfigError("data: found a DataLoader, wanted its dataset (and batch_size=...)")
    elif isinstance(data, torch.utils.data.IterableDataset):
        raise ConfigError("data: found an IterableDataset, wanted a map-style dataset (with __len__ and __getitem__)")
    elif hasattr(data, "__getitem__") and hasattr(data, "__len__"):
        arrays = _from_dataset(data, names)
    else:
        raise ConfigError(f"data: found {type(data).__name__}, wanted (x, y), a dict of arrays, a map-style dataset or a "
                          "DataFrame")
    _check(arrays, names)
    return arrays


def _check(arrays: Arrays, names: Names) -> None:
    if not arrays.inputs:
        raise ConfigError("data: found no inputs, wanted at least one array beside the targets")
    if names.with_targets and not arrays.targets:
        raise ConfigError(f"data: found no targets among {list(arrays.inputs)}, wanted them as y of (x, y) or as the array "
                          "that target= names")
    # The program takes "t.npy" for the file's name, and then it cannot be told from the array "t".
    unfit = [name for name in arrays.all if "/" in name or "\0" in name or name.startswith(".") or
             name.lower().endswith(".npy") or len(name.encode("utf-8", "replace")) > _LONGEST_NAME]
    if unfit:
        raise ConfigError(f"data: found the names {unfit}, wanted names that files can have, without .npy")
    lengths = {name: array.shape[0] if array.ndim else None for name, array in arrays.all.items()}
    if len(set(lengths.values())) != 1 or None in lengths.values() or 0 in lengths.values():
        raise ConfigError(f"data: found arrays of these lengths, wanted one length above 0: {lengths}")


def _input_name(names: Names, position: int) -> str:
    return names.inputs[position] if position < len(names.inputs) else f"x{position}"


def _target_name(inputs: Dict[str, Any], names: Names) -> str:
    target = None if names.target is None else str(names.target)
    return next(name for name in (target, "y", "target", "targets") if name and name not in inputs)


def _from_pair(data: Sequence[Any], names: Names) -> Arrays:
    if len(data) != 2:
        raise ConfigError(f"data: found {len(data)} parts, wanted (x, y); several inputs are ((x1, x2), y) or a dict")
    x, y = data
    groups = {}
    if isinstance(x, dict):
        inputs = {str(name): to_array(value, name) for name, value in x.items()}
        groups = {name: inputs.pop(name) for name in list(inputs) if name == names.groups}
    else:
        several = isinstance(x, (tuple, list)) and len(x) > 0 and hasattr(x[0], "shape") and not _are_rows(x, y, names)
        parts = x if several else (x,)
        inputs = {_input_name(names, i): to_array(part, _input_name(names, i)) for i, part in enumerate(parts)}
    return Arrays(inputs, {} if y is None else {_target_name(inputs, names): to_array(y, "y")}, groups)


def _are_rows(x: Sequence[Any], y: Any, names: Names) -> bool:
    """Whether a list of arrays is one input, of one array per sample, rather than one array per input as a tuple is."""
    if isinstance(x, tuple):
        return False
    too_many = len(x) > max(len(names.inputs), 1)
    if not hasattr(y, "__len__") or getattr(y, "ndim", 1) == 0:
        return too_many
    if all(np.shape(part)[:1] == (len(y),) for part in x):
        return too_many and len(x) == len(y)
    return too_many or len(x) == len(y)


def _from_dict(data: Dict[Any, Any], names: Names) -> Arrays:
    arrays = {str(name): to_array(value, str(name)) for name, value in data.items()}
    groups = {name: arrays.pop(name) for name in list(arrays) if name == names.groups}
    target = _target_among(arrays, names)
    inputs = {name: array for name, array in arrays.items() if name != target}
    return Arrays(inputs, {} if target is None else {target: arrays[target]}, groups)


def _target_among(arrays: Dict[str, Any], names: Names) -> Optional[str]:
    if names.target is not None:
        if str(names.target) not in arrays:
            raise ConfigError(f"target: found '{names.target}', wanted one of {list(arrays)}")
        return str(names.target)
    others = [name for name in arrays if name not in names.inputs]
    if len(others) == 1:
        return others[0]
    usual = [name for name in _USUAL_TARGETS if name in (others or arrays)]
    return usual[0] if usual and (others or names.with_targets) else None


def _from_dataset(dataset: Any, names: Names) -> Arrays:
    rows = _tensors(dataset)
    if rows is not None:
        return _from_tuple(rows, names)
    items = [dataset[index] for index in range(len(dataset))]
    if not items:
        raise ConfigError("data: found a dataset of no samples")
    if isinstance(items[0], dict):
        return _from_dict({name: _stack([item[name] for item in items], str(name)) for name in items[0]}, names)
    if not isinstance(items[0], (tuple, list)):
        return _from_tuple([_stack(items, "x")], names)
    if len(items[0]) == 2 and isinstance(items[0][0], dict):
        inputs = {name: _stack([item[0][name] for item in items], str(name)) for name in items[0][0]}
        return _from_pair((inputs, _stack([item[1] for item in items], "y")), names)
    return _from_tuple([_stack([item[i] for item in items], f"part {i}") for i in range(len(items[0]))], names)


def _from_tuple(parts: Sequence[Any], names: Names) -> Arrays:
    """Inputs in order and, behind them, the targets where there are any."""
    if len(parts) == 1 or (not names.with_targets and len(parts) <= len(names.inputs)):
        return _from_pair((tuple(parts), None), names)
    return _from_pair((tuple(parts[:-1]), parts[-1]), names)


def _tensors(dataset: Any) -> Optional[List[torch.Tensor]]:
    """The tensors of a TensorDataset, or of a subset of one, without reading sample by sample; None for others."""
    if type(dataset) is torch.utils.data.TensorDataset:
        return list(dataset.tensors)
    if type(dataset) is torch.utils.data.Subset:
        whole = _tensors(dataset.dataset)
        return whole if whole is None else [tensor[list(dataset.indices)] for tensor in whole]
    return None


def _stack(values: List[Any], name: str) -> np.ndarray:
    try:
        return np.stack([to_array(value, name) for value in values])
    except ConfigError as error:
        advice = " (of a dataset, such as transform=ToTensor() gives)" if str(error).endswith("wanted numbers") else ""
        raise ConfigError(f"{error}{advice}") from None
    except ValueError as error:
        shapes = sorted({tuple(np.shape(value)) for value in values})[:3]
        raise ConfigError(f"data: {name}: found samples of shapes {shapes}, wanted one shape") from error


def example_of(arrays: Arrays, count: int) -> Dict[str, torch.Tensor]:
    """The inputs of the first `count` samples, or of as many as there are, as tensors of their own."""
    return {name: torch.from_numpy(np.array(array[:count], array.dtype.newbyteorder("="))) for name, array in arrays.inputs.items()}
