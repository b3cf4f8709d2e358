"""The numbers of a pandas DataFrame. pandas itself is not imported."""
from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

from .errors import ConfigError
from .numeric import to_array


def is_frame(data: Any) -> bool:
    return type(data).__name__ == "DataFrame" and type(data).__module__.split(".")[0] == "pandas"


def column_names(features: Any) -> Optional[List[Any]]:
    """What `features=` of `tune` means: a list of names, or one name."""
    if features is None:
        return None
    return [features] if isinstance(features, str) or not hasattr(features, "__iter__") else list(features)


def arrays_of(frame: Any, target: Any, features: Optional[Sequence[Any]]) -> Tuple[np.ndarray, np.ndarray]:
    """The features as one array, in the smallest type that holds all, and the targets.

    Columns are named by their text. `features`: all but the target unless given."""
    names = [str(column) for column in frame.columns]
    target_name = str(target)
    if target is None or target_name not in names:
        raise ConfigError(f"target: found {target!r}, wanted a column of the DataFrame: {names}")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"data: found the columns {twice} more than once, wanted a name for each column")
    chosen = _features(names, target_name, features)
    columns = {name: frame.iloc[:, names.index(name)] for name in [*chosen, target_name]}
    for name, column in columns.items():
        _check_column(name, column)
    together = _of_one_type([_numbers(columns[name]) for name in chosen])
    return to_array(np.stack(together, axis=1), "features"), to_array(_numbers(columns[target_name]), target_name)


def _features(names: Sequence[str], target: str, features: Optional[Sequence[Any]]) -> List[str]:
    chosen = [name for name in names if name != target] if features is None else [str(name) for name in features]
    missing = [name for name in chosen if name not in names]
    if missing:
        raise ConfigError(f"features: found {missing}, wanted columns of the DataFrame: {list(names)}")
    if target in chosen:
        raise ConfigError(f"features: found the target '{target}' among the features")
    for name in chosen:
        if chosen.count(name) > 1:
            raise ConfigError(f"features: found the feature '{name}' twice")
    if not chosen:
        raise ConfigError(f"features: found none, wanted a column beside the target '{target}'")
    return chosen


def _check_column(name: str, column: Any) -> None:
    if column.dtype.kind not in "biuf":
        raise ConfigError(f"data: column '{name}': found {column.dtype}, wanted numbers; encode it first, for example with "
                          "pandas.get_dummies or .cat.codes")
    if column.isna().any():
        raise ConfigError(f"data: column '{name}': found {int(column.isna().sum())} missing values, wanted none")


def _numbers(column: Any) -> np.ndarray:
    """A column's numbers. pandas may give those of its own types, such as Int64, as objects."""
    values = np.asarray(column)
    return np.array(values.tolist()) if values.dtype.kind == "O" else values


def _of_one_type(columns: List[np.ndarray]) -> List[np.ndarray]:
    """The columns in the smallest type that holds all their numbers. Flags alone become 0 and 1, as layers take no flags."""
    together = np.result_type(*columns)
    return [column.astype(np.uint8 if together == np.bool_ else together) for column in columns]
