"""Builds the config of a study: what `tune` is told, as the tree that is written as YAML (docs/config.md)."""
from __future__ import annotations

import difflib
import hashlib
import json
import numbers
import re
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import torch

from .errors import ConfigError
from .space import Distribution

Tree = Dict[str, Any]
Place = Tuple[Any, ...]  # keys of maps, and positions in lists

# Where an argument of `tune` beyond its named ones stands in a config.
_ARGUMENTS: Dict[str, Place] = {
    **{key: (key,) for key in ("keep", "memory")},
    **{key: ("metric", key) for key in ("select",)},
    **{key: ("model", key) for key in ("freeze", "bind", "init", "adapters")},
    **{key: ("data", key) for key in ("shuffle", "order", "drop_last")},
    **{key: ("train", key) for key in ("schedule", "clip_norm", "accumulate", "dtype", "precision", "metrics")},
    **{key: ("array", key) for key in ("width", "threads", "cache", "refill", "lend")},
}

# Where a parameter of `space` stands that no other value refers to; any other name is an option of the optimizer, or,
# with a dot in it, a number of the model.
_PARAMETERS: Dict[str, Place] = {
    "batch_size": ("data", "batch_size"),
    "order": ("data", "order"),
    "loss": ("train", "loss", "name"),
    "label_smoothing": ("train", "loss", "label_smoothing"),
    "optimizer": ("train", "optimizer", "name"),
    "schedule": ("train", "schedule", "name"),
    "clip_norm": ("train", "clip_norm"),
    "accumulate": ("train", "accumulate"),
    "seed": ("train", "seed"),
    "freeze": ("model", "freeze"),
    "init": ("model", "init"),
}

_MAY_CHANGE = ("study", "storage", "run_cap", "array", "memory")  # between two runs of a study
_LARGER_IS_BETTER = tuple(f"val_{name}" for name in (
    "accuracy", "top_", "precision", "recall", "f1", "mean_iou", "balanced_accuracy", "auroc", "average_precision", "r2"))
_NEED_A_CAP = ("auto", "random", "sobol", "tpe", "gp", "bayes", "cmaes", "evolution", "nsga2", "pbt")
DEFAULT_TRIALS = 20


def build(space: Optional[Mapping[str, Any]], given: Tree, more: Tree, config: Optional[Tree]) -> Tree:
    """The config's tree.

    given: the tree so far: what `tune` knows of model, data and training, where a map may be a word.
    more: further arguments of `tune` by name.
    config: merged into the tree at the end, map by map; its values win.
    Throws ConfigError for an argument that is not known.
    """
    refuse_unknown(more)
    tree = json_like(given)
    for name, value in more.items():
        if value is not None:
            _put(tree, _ARGUMENTS[name], json_like(value))
    _merge(tree, json_like(config or {}))
    space = {**(space or {}), **tree.pop("parameters", {})}
    drawn = [*space.values(), *(leaf for _, leaf in _leaves(tree))]
    parameters = {str(name): _keys(str(name), value) for name, value in space.items()}
    _place_unused(tree, parameters, space)
    _name_inline(tree, parameters, space)
    tree["parameters"] = parameters
    _refuse_objects(tree)
    _fill_in(tree, gridded=any(isinstance(value, Distribution) and value.gridded for value in drawn))
    return tree


def refuse_unknown(more: Tree, named: Sequence[str] = ()) -> None:
    """Throws ConfigError for further arguments of `tune` that there are not, which may be misspellings of its `named` ones."""
    for name in more:
        if name not in _ARGUMENTS:
            near = difflib.get_close_matches(name, [*named, *_ARGUMENTS], n=3)
            hint = f"; near: {', '.join(near)}" if near else ""
            raise ConfigError(f"tune: found the argument '{name}', wanted one of {', '.join(_ARGUMENTS)}{hint}; any other "
                              "key of a config goes into config={...}")


_NAMED = {
    "loss": '"cross_entropy" or {"name": "cross_entropy", "label_smoothing": 0.1}; a loss of your own is an output of the module',
    "metrics": '["accuracy", "f1"]; a metric of your own is an output of the module',
    "optimizer": '"sgd" or {"name": "adamw", "weight_decay": 0.01}',
    "schedule": '"cosine" or {"name": "cosine", "warmup": 2}',
}


def _refuse_objects(tree: Tree) -> None:
    """Objects and functions of PyTorch's or Optuna's, which many would try first."""
    for place, leaf in _leaves(tree):
        if leaf is None or isinstance(leaf, (str, bool, int, float)):
            continue
        found = getattr(leaf, "__name__", type(leaf).__name__)
        wanted = "numbers, text, lists and dicts"
        if place[0] == "parameters":
            wanted = "a distribution, such as ht.uniform(0, 1) or ht.choice([1, 2])"
        elif place[0] == "train":
            wanted = f"a name and numbers, such as {_NAMED.get(place[1] if len(place) > 1 else '', _NAMED['optimizer'])}"
        raise ConfigError(f"{'.'.join(map(str, place))}: found {found}, wanted {wanted}")


def fingerprint(tree: Tree, files: str = "") -> str:
    """8 hexadecimal digits of all that may not change while a study goes on.

    files: of the content of files that the tree names by their paths.
    """
    fixed = {key: value for key, value in tree.items() if key not in _MAY_CHANGE}
    return hashlib.blake2b(json.dumps(fixed, sort_keys=True).encode() + files.encode(), digest_size=4).hexdigest()


def cuts_folds(folds: Any) -> bool:
    """Whether trials validate on folds of the data. One fold is none."""
    count = folds.get("count") if isinstance(folds, Mapping) else folds
    return count is not None and count != 1


def json_like(value: Any) -> Any:
    """`value` with dicts and lists of its own, plain numbers in place of NumPy's and torch's, and names of devices and types."""
    if isinstance(value, Mapping):
        return {str(key): json_like(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_like(inner) for inner in value]
    if isinstance(value, (torch.device, torch.dtype)):
        return str(value).removeprefix("torch.")
    if hasattr(value, "tolist"):
        return json_like(value.tolist())
    return value


def _keys(name: str, value: Any) -> Tree:
    """A parameter's map in the config. A plain value is a constant, a list a choice; a map is passed on."""
    if isinstance(value, Distribution):
        return json_like(value.keys)
    if isinstance(value, Mapping):
        return json_like(value)
    if _may_be_a_range(value):
        low, high = json_like(value)
        raise ConfigError(f"parameters.{name}: found the pair ({low}, {high}), wanted ht.uniform({low}, {high}) or "
                          f"ht.log_uniform({low}, {high}) for all numbers between, or ht.choice([{low}, {high}]) for these two")
    if isinstance(value, (list, tuple)):
        return {"values": json_like(value)}
    return {"value": json_like(value)}


def _may_be_a_range(value: Any) -> bool:
    """A tuple of two real numbers is how other tools write a range."""
    numbers_only = isinstance(value, tuple) and all(isinstance(end, numbers.Real) for end in value)
    return numbers_only and len(value) == 2 and not all(isinstance(end, numbers.Integral) for end in value)


def _put(tree: Tree, place: Place, value: Any) -> None:
    """Sets the value at `place`; a word on the way becomes the map `{name: word}`."""
    for key in place[:-1]:
        inner = tree.get(key)
        if not isinstance(inner, dict):
            tree[key] = inner = {} if inner is None else {"name": inner}
        tree = inner
    tree[place[-1]] = value


def _merge(tree: Tree, over: Tree) -> None:
    for key, value in over.items():
        if isinstance(value, dict) and isinstance(tree.get(key), dict):
            _merge(tree[key], value)
        else:
            tree[key] = value


def _leaves(tree: Any, place: Place = ()) -> Iterator[Tuple[Place, Any]]:
    if isinstance(tree, (dict, list)):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from _leaves(value, (*place, key))
    else:
        yield place, tree


def _place_unused(tree: Tree, parameters: Tree, space: Mapping[str, Any]) -> None:
    """Puts `${name}` where a parameter belongs by its name, if nothing refers to it."""
    leaves = list(_leaves(tree))
    used = {name for _, leaf in leaves if isinstance(leaf, str) for name in re.findall(r"\$\{([^}]*)\}", leaf)}
    held = {id(leaf) for _, leaf in leaves if isinstance(leaf, Distribution)}
    for name in parameters:
        if name in used or id(space.get(name)) in held:
            continue
        place = ("model", "bind", name) if "." in name else _PARAMETERS.get(name, ("train", "optimizer", name))
        _put(tree, place, "${" + name + "}")


def _name_inline(tree: Tree, parameters: Tree, space: Mapping[str, Any]) -> None:
    """Puts `${name}` in place of distributions that stand where values do, and the distributions among the parameters."""
    names = {id(value): str(name) for name, value in space.items() if isinstance(value, Distribution)}
    inline = [(place, leaf) for place, leaf in _leaves(tree) if isinstance(leaf, Distribution)]
    short = [_short_name(place) for place, leaf in {id(leaf): (place, leaf) for place, leaf in reversed(inline)}.values()
             if id(leaf) not in names]
    for place, distribution in inline:
        if id(distribution) not in names:
            name = _short_name(place)
            if short.count(name) > 1 or name in parameters:
                name = ".".join(map(str, place[1:]))
            names[id(distribution)] = name
            parameters[name] = _keys(name, distribution)
        _at(tree, place[:-1])[place[-1]] = "${" + names[id(distribution)] + "}"


def _short_name(place: Place) -> str:
    """`lr`, `betas.0`; `loss` for its name; in a list of maps also which of them: `groups.1.lr`."""
    if place[-1] == "name" and len(place) > 1 and isinstance(place[-2], str):
        return place[-2]
    words = [index for index, key in enumerate(place) if isinstance(key, str)]
    first = next((index for index in words[:-1] if isinstance(place[index + 1], int)), words[-1])
    return ".".join(map(str, place[first:]))


def _at(tree: Any, place: Place) -> Any:
    for key in place:
        tree = tree[key]
    return tree


def _metrics(metric: Any) -> List[Tree]:
    """The objectives: a map with one name and goal, or with a list of names and perhaps of goals; or a list of maps."""
    if isinstance(metric, list):
        return metric
    if not isinstance(metric.get("name"), list):
        return [metric]
    names, goals = metric["name"], metric.get("goal")
    goals = goals if isinstance(goals, list) else [goals] * len(names)
    if not names or len(goals) != len(names):
        raise ConfigError(f"tune: goal: found {len(goals)} goals, wanted one for each of {len(names)} metrics")
    return [{**metric, "name": name, "goal": goal} for name, goal in zip(names, goals)]


def _fill_in_metric(metric: Tree, tree: Tree) -> None:
    if metric.get("name") is None:
        validated = tree["data"].get("validation") is not None or cuts_folds(tree.get("folds"))
        metric["name"] = "val_loss" if validated else "train_loss"
    formulas = tree["train"].get("metrics")
    known = not isinstance(formulas, dict) or str(metric["name"]).removeprefix("val_") not in formulas
    if metric.get("goal") is None and known:
        metric["goal"] = "maximize" if str(metric["name"]).startswith(_LARGER_IS_BETTER) else "minimize"
    for key in [key for key, value in metric.items() if value is None]:
        del metric[key]


def _fill_in(tree: Tree, gridded: bool) -> None:
    """Defaults that the program does not have: the method of a grid, how many trials, what the metric's goal is."""
    if tree.get("method") is None:
        tree["method"] = "grid" if gridded else "random"
    if tree.get("run_cap") is None and tree["method"] in _NEED_A_CAP:
        tree["run_cap"] = DEFAULT_TRIALS
    metrics = _metrics(tree.get("metric") or {})
    for metric in metrics:
        _fill_in_metric(metric, tree)
    tree["metric"] = metrics if len(metrics) > 1 else metrics[0]
    for key in [key for key, value in tree.items() if value is None]:
        del tree[key]
