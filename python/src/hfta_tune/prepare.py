"""Writes what a study runs from: model, data and config, each under a name that follows from its content."""
from __future__ import annotations

import hashlib
import numbers
import os
import pathlib
import re
import types
from dataclasses import dataclass, replace
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np
import torch
from torch import nn

from . import config as configs
from . import config_file, data_files, examples, exporting, frames, modules, yaml
from . import data as datas
from .errors import ConfigError
from .numeric import to_array
from .program import store_file

Spec = Union[None, str, Mapping[str, Any]]
_EXAMPLES = 4  # samples that a module is exported with
_LONGEST_CLASS = 180  # letters of its name, in that of a study
_GROUPS = "groups"  # the array's name where the caller gave none
_DEFAULT_VALIDATION = 0.2  # tune's, which folds take the place of


@dataclass(frozen=True)
class Prepared:
    """A study that is ready to run."""

    config: config_file.ConfigFile
    storage: pathlib.Path
    name: str


def prepare(arguments: Mapping[str, Any]) -> Prepared:
    """Writes model, data and config for these arguments of `tune`, all of them, by name."""
    a = types.SimpleNamespace(**arguments)
    _refuse_what_cannot_be_read_back(a.name, a.config or {})
    configs.refuse_unknown(a.more, [name for name in arguments if name != "more"])
    if not isinstance(a.space or {}, Mapping):
        raise ConfigError(f"space: found {type(a.space).__name__}, wanted a dict of parameters by name")
    store = store_file(a.storage)
    folder = store.with_name(store.name + ".inputs")
    variants = modules.variants(a.module, a.space or {})
    first = modules.make(a.module, variants[0], a.seed)
    folds, groups = _groups_apart(a.folds)
    names = datas.Names(examples.input_names(first), a.target, frames.column_names(a.features),
                        not _computes_loss(a.loss, a.phases), _groups_of(folds) if groups is None else None)
    by_folds = configs.cuts_folds(folds) and isinstance(a.validation, float) and a.validation == _DEFAULT_VALIDATION
    data_keys, arrays = _write_data(a.data, None if by_folds else a.validation, a.test, names, groups, folder)
    method, method_keys = _method(a.method)
    given = {
        "study": a.name, "storage": f"../{store.name}", "seed": a.seed, "method": method, **method_keys,
        "early_stopping": a.early_stopping, "repeat": a.repeat, "folds": folds, "rank": a.rank,
        "run_cap": a.trials, "metric": {"name": a.metric, "goal": a.goal},
        "model": {"file": _file_of(variants[0])}, "data": {**data_keys, "batch_size": a.batch_size},
        "train": {"epochs": a.epochs, **_minimized(a.loss, a.optimizer, a.phases)},
        "array": {} if a.device is None else {"device": a.device},
    }
    tree = configs.build(a.space, given, a.more, a.config)
    if tree["model"]["file"] == _file_of(variants[0]):
        _write_models(a, variants, arrays, tree, folder)
    if not tree.get("study"):
        files = data_files.files_digest(_data_files(tree["data"], folder))
        tree["study"] = f"{_class_word(first)}-{configs.fingerprint(tree, files)}"
    config = config_file.write(folder / f"{config_file.stem_of(tree['study'])}.yaml", yaml.dump(tree))
    return Prepared(config, store, tree["study"])


def _refuse_what_cannot_be_read_back(name: Optional[str], config: Mapping[str, Any]) -> None:
    """The program would run such a study, and all its trainings would be done before it is missed."""
    if "storage" in config:
        raise ConfigError(f"config: found storage: {config['storage']!r}, wanted the store as the argument storage=")
    config_file.check_name(name, config)


def _computes_loss(loss: Spec, phases: Optional[Sequence[Any]]) -> bool:
    return phases is not None or (isinstance(loss, Mapping) and "name" not in loss)


def _minimized(loss: Spec, optimizer: Spec, phases: Optional[Sequence[Any]]) -> Dict[str, Any]:
    if phases is not None:
        if loss is not None or optimizer is not None:
            raise ConfigError("tune: found phases beside loss or optimizer, wanted one or the other: each phase has its own")
        return {"phases": phases}
    if loss is None:
        raise ConfigError('tune: found no loss, wanted one: loss="cross_entropy", say, or phases')
    return {"loss": loss, "optimizer": optimizer or "adam"}


def _method(method: Spec) -> Tuple[Any, Dict[str, Any]]:
    if not isinstance(method, Mapping):
        return method, {}
    options = dict(method)
    name = options.pop("name", None)
    return name, {name: options} if options else {}


def _groups_of(folds: Any) -> Any:
    return folds.get("groups") if isinstance(folds, Mapping) else None


def _groups_apart(folds: Any) -> Tuple[Any, Optional[np.ndarray]]:
    """`folds` with its groups by name, and their numbers where they were given in place of a name."""
    groups = _groups_of(folds)
    if groups is None or isinstance(groups, str):
        return folds, None
    return {**folds, "groups": _GROUPS}, to_array(groups, "folds.groups")


def _write_data(data: Any, validation: Any, test: Any, names: datas.Names, groups: Optional[np.ndarray],
                folder: pathlib.Path) -> Tuple[Dict[str, Any], Optional[datas.Arrays]]:
    """The config's keys for the data, and the training data where they are not a file already."""
    if isinstance(data, (str, os.PathLike)):
        keys: Dict[str, Any] = {"train": os.path.abspath(data)}
        if names.target is not None:
            keys["target" if re.search(r"[.][ct]sv([.]gz)?$", str(data), re.IGNORECASE) else "y"] = names.target
        if names.features is not None:
            keys["features"] = list(names.features)
        arrays = None
    else:
        arrays = datas.collect(data, names)
        if groups is not None:
            arrays = _with_groups(arrays, groups)
        if names.groups is not None and not arrays.groups:
            raise ConfigError(f"folds.groups: found '{names.groups}', wanted the name of an array or column of the data, or the "
                              "numbers themselves")
        keys = {"train": data_files.write(arrays, folder), "x": list(arrays.inputs), **{"y": name for name in arrays.targets}}
    for key, part in (("validation", validation), ("test", test)):
        if part is None:
            continue
        if isinstance(part, (str, os.PathLike)):
            keys[key] = os.path.abspath(part)
        elif isinstance(part, numbers.Real):  # also NumPy's
            keys[key] = part
        else:
            other = datas.collect(part, datas.with_features_of(names, data))
            if arrays is not None and set(other.samples) != set(arrays.samples):
                raise ConfigError(f"{key}: found the arrays {list(other.samples)}, wanted those of the data, "
                                  f"{list(arrays.samples)}")
            other = other if arrays is None else other.in_order_of(arrays)
            keys[key] = data_files.write(other, folder)
    return keys, arrays


def _with_groups(arrays: datas.Arrays, groups: np.ndarray) -> datas.Arrays:
    if groups.shape != (len(arrays),):
        raise ConfigError(f"folds.groups: found the shape {tuple(groups.shape)}, wanted one number for each of {len(arrays)} "
                          "samples")
    if _GROUPS in arrays.samples:
        raise ConfigError(f"folds.groups: found an array '{_GROUPS}' among the data, wanted its name or another one for it")
    return replace(arrays, groups={_GROUPS: groups})


def _data_files(keys: Mapping[str, Any], folder: pathlib.Path) -> List[pathlib.Path]:
    """The files and folders that a config in `folder` names as data, but those that are named after their content."""
    named = [folder / keys[key] for key in ("train", "validation", "test") if isinstance(keys.get(key), str)]
    files = [path for path in named if path.parent != folder]
    targets = keys.get("y")  # of an .npy file: a file beside it
    beside = [path.parent / targets for path in files] if isinstance(targets, str) else []
    return [path for path in [*files, *beside] if path.exists()]


def _file_of(variant: modules.Values) -> str:
    """A model's file as the config names it, below the folder of its models: it has `${name}` where variants differ."""
    return ".".join(["model", *(f"{name}-${{{name}}}" for name in variant)]) + ".pt2"


def _write_models(a: types.SimpleNamespace, variants: List[modules.Values], arrays: Optional[datas.Arrays],
                  tree: Dict[str, Any], folder: pathlib.Path) -> None:
    """Exports each variant into a folder whose name follows from what they compute, and names the files in `tree`."""
    exported = [_programs(modules.make(a.module, variant, a.seed), arrays, a.example, tree) for variant in variants]
    with_weights = tree["model"].get("init") != "fresh" or "freeze" in tree["model"]
    digests = [exporting.digest(programs, with_weights) for programs in exported]
    place = "model-" + hashlib.blake2b(repr([variants, digests]).encode(), digest_size=8).hexdigest()
    for variant, programs in zip(variants, exported):
        file = folder / place / _file_of(variant).replace("${", "{").format(**variant)
        if not (file.exists() and file.with_suffix(".eval.pt2").exists()):
            exporting.write(programs, file)
    pattern = f"{place}/{_file_of(variants[0])}"
    tree["model"] = {**tree["model"], "file": pattern, "evaluation": tree["model"].get("evaluation", pattern[:-3] + "eval.pt2")}


def _programs(module: nn.Module, arrays: Optional[datas.Arrays], example: Optional[exporting.Example],
              tree: Dict[str, Any]) -> exporting.Programs:
    """The module's exports, with an open batch or that of the study."""
    if example is None:
        if arrays is None:
            raise ConfigError("example: found none, wanted the module's inputs, since the data are a file")
        example = _first_samples(module, arrays, tree)
    dtype = torch.float64 if tree["train"].get("dtype") == "float64" else None
    programs = exporting.export_programs(module, example, dtype=dtype)
    size = tree["data"]["batch_size"]
    if programs.fixed_because is not None and isinstance(size, int) and size != programs.batch:
        programs = exporting.export_programs(module, example, batch=size, dtype=dtype)
    return programs


def _first_samples(module: nn.Module, arrays: datas.Arrays, tree: Dict[str, Any]) -> exporting.Example:
    example = examples.fitting(module, datas.example_of(arrays, _EXAMPLES))
    misfit = examples.misfit(module, example)
    if misfit is None:
        return example
    wanted = list(examples.input_names(module))
    by_name = "{" + ", ".join(f"'{name}': ..." for name in wanted) + "}"
    computes = _computes_loss(tree["train"].get("loss"), tree["train"].get("phases"))
    advice = f"; the module computes its loss, so that its targets are inputs, too: data={by_name}" if computes else ""
    raise ConfigError(f"data: found the inputs {list(arrays.inputs)}, wanted those of {type(module).__name__}.forward, {wanted}: "
                      f"{misfit}{advice}")


def _class_word(module: nn.Module) -> str:
    """Its class as the beginning of a study's name, which may not be '-': that is what other letters become."""
    return config_file.word_of(type(module).__name__)[:_LONGEST_CLASS].lstrip("-") or "study"
