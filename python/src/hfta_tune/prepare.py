"""Writes what a study runs from: model, data and config, each under a name that follows from its content."""
from __future__ import annotations

import contextlib
import os
import pathlib
import re
import tempfile
import types
from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Tuple, Union

import torch
from torch import nn

from . import config as configs
from . import data as datas
from . import exporting, yaml
from .errors import ConfigError
from .program import store_file

Spec = Union[None, str, Mapping[str, Any]]
_EXAMPLES = 4  # samples that a module is exported with


@dataclass(frozen=True)
class Prepared:
    """A study that is ready to run."""

    config: pathlib.Path
    storage: pathlib.Path
    name: str


def prepare(arguments: Mapping[str, Any]) -> Prepared:
    """Writes model, data and config for these arguments of `tune`, all of them, by name."""
    a = types.SimpleNamespace(**arguments)
    store = store_file(a.storage)
    folder = store.with_name(store.name + ".inputs")
    names = datas.Names(exporting.input_names(a.module), a.target, a.features, not _computes_loss(a.loss))
    data_keys, arrays = _write_data(a.data, a.validation, a.test, names, folder)
    method, method_keys = _method(a.method)
    given = {
        "study": a.name, "storage": f"../{store.name}", "seed": a.seed, "method": method, **method_keys,
        "early_stopping": a.early_stopping, "run_cap": a.trials, "metric": {"name": a.metric, "goal": a.goal},
        "model": {}, "data": {**data_keys, "batch_size": a.batch_size},
        "train": {"epochs": a.epochs, "loss": a.loss, "optimizer": a.optimizer},
        "array": {} if a.device is None else {"device": a.device},
    }
    tree = configs.build(a.space, given, a.more, a.config)
    _write_model(a.module, arrays, a.example, tree, folder)
    tree["study"] = tree.get("study") or f"{_word(type(a.module).__name__)}-{configs.fingerprint(tree)}"
    path = folder / f"{_word(tree['study'])}.yaml"
    _write_text(path, yaml.dump(tree))
    return Prepared(path, store, tree["study"])


def _computes_loss(loss: Spec) -> bool:
    return isinstance(loss, Mapping) and "name" not in loss


def _method(method: Spec) -> Tuple[Any, Dict[str, Any]]:
    if not isinstance(method, Mapping):
        return method, {}
    options = dict(method)
    name = options.pop("name", None)
    return name, {name: options} if options else {}


def _write_data(data: Any, validation: Any, test: Any, names: datas.Names,
                folder: pathlib.Path) -> Tuple[Dict[str, Any], Optional[datas.Arrays]]:
    """The config's keys for the data, and the training data where they are not a file already."""
    if isinstance(data, (str, os.PathLike)):
        keys: Dict[str, Any] = {"train": os.path.abspath(data)}
        if names.target is not None:
            keys["target" if re.search(r"[.][ct]sv([.]gz)?$", str(data)) else "y"] = names.target
        if names.features is not None:
            keys["features"] = list(names.features)
        arrays = None
    else:
        arrays = datas.collect(data, names)
        keys = {"train": datas.write(arrays, folder), "x": list(arrays.inputs), **{"y": name for name in arrays.targets}}
    for key, part in (("validation", validation), ("test", test)):
        if part is None:
            continue
        if isinstance(part, (str, os.PathLike)):
            keys[key] = os.path.abspath(part)
        elif isinstance(part, (int, float)):
            keys[key] = part
        else:
            other = datas.collect(part, names)
            if arrays is not None and list(other.all) != list(arrays.all):
                raise ConfigError(f"{key}: found the arrays {list(other.all)}, wanted those of the data, {list(arrays.all)}")
            keys[key] = datas.write(other, folder)
    return keys, arrays


def _write_model(module: nn.Module, arrays: Optional[datas.Arrays], example: Optional[exporting.Example],
                 tree: Dict[str, Any], folder: pathlib.Path) -> None:
    """Exports the module under a name that follows from what it computes, and names the files in `tree`."""
    if example is None:
        if arrays is None:
            raise ConfigError("example: found none, wanted the module's inputs, since the data are a file")
        example = exporting.fitting(module, datas.example_of(arrays, _EXAMPLES))
    dtype = torch.float64 if tree["train"].get("dtype") == "float64" else None
    programs = exporting.export_programs(module, example, dtype=dtype)
    size = tree["data"]["batch_size"]
    if programs.fixed_because is not None and isinstance(size, int) and size != programs.batch:
        programs = exporting.export_programs(module, example, batch=size, dtype=dtype)
    with_weights = tree["model"].get("init") != "fresh"
    stem = f"model-{exporting.digest(programs, with_weights)}"
    evaluated = f"{stem}.eval.pt2"
    if not ((folder / f"{stem}.pt2").exists() and (folder / evaluated).exists()):
        exporting.write(programs, folder / f"{stem}.pt2")
    tree["model"] = {"file": f"{stem}.pt2", "evaluation": evaluated, **tree["model"]}


def _word(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text)


def _write_text(path: pathlib.Path, text: str) -> None:
    """Writes the file complete or not at all, unless it has this text already."""
    with contextlib.suppress(FileNotFoundError):
        if path.read_text(encoding="utf-8") == text:
            return
    handle, fresh = tempfile.mkstemp(prefix=".config-", dir=path.parent)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(fresh, 0o644)
    os.replace(fresh, path)
