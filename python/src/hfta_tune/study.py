"""A study that was run: its trials, curves and weights."""
from __future__ import annotations

import functools
import json
import math
import numbers
import os
import sqlite3
import tempfile
import urllib.parse
import warnings
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Tuple, Union

import numpy as np
import torch
from torch import nn

from . import modules
from .errors import ConfigError, HftaError
from .program import call, store_file
from .safetensors import load_with_metadata


@dataclass(frozen=True)
class Trial:
    """One training. States are Optuna's: COMPLETE, PRUNED, FAIL, RUNNING, WAITING."""

    number: int
    state: str
    value: Optional[float]             # of the study's metric; None if there is none
    params: Dict[str, Any]
    epochs: int                        # trained so far
    metrics: Dict[str, float] = field(repr=False)  # of its last epoch; of the best trial also test_*
    duration_s: Optional[float] = field(repr=False, default=None)
    reason: Optional[str] = None       # why it failed
    confusion: Dict[str, List[List[Optional[float]]]] = field(repr=False, default_factory=dict)  # Study.confusion_matrix
    values: Optional[List[float]] = None  # of several objectives one for each; None if there are none


@dataclass(frozen=True)
class Configuration:
    """What the trials of one configuration have come to, in a study with `repeat` or `folds`."""

    index: int                  # from 0, in the order of draws
    value: Optional[float]      # by the study's `rank`; None unless all trials have ended and none was stopped
    mean: Optional[float]       # of the COMPLETE trials, as all that follow
    deviation: Optional[float]  # the standard deviation
    low: Optional[float]        # the ends of the mean's 95 % confidence interval
    high: Optional[float]
    median: Optional[float]
    params: Dict[str, Any]
    trials: List[int] = field(repr=False)  # their numbers


class Study:
    """A study in a store, as it was when this object was made or `refresh` was called last.

    `name`, `storage` (the file), `metric`, `direction` (`minimize` or `maximize`) can be read, `objectives` (these two of
    each objective), and `configurations`, best first, where `repeat` or `folds` was given. Of several objectives `metric`
    is the first, `front` takes the place of `best`, and `hypervolume` says how good it is (None without a front).
    """

    def __init__(self, storage: Union[str, "os.PathLike[str]"], name: Optional[str] = None,
                 module: Optional[modules.Source] = None, seed: int = 0) -> None:
        self.storage = str(store_file(storage))
        self._module = None if module is None else modules.without_values(module)
        self._seed = seed
        self._name = name
        self.refresh()

    def refresh(self) -> None:
        """Reads the study anew; it may be running. Throws StorageError, and ConfigError where there is no such study."""
        report = json.loads(call(["report", *self._here(self._name), "--format", "json"]))
        self.name: str = report["study"]
        self.metric: str = report["metric"]
        self.direction: str = report["direction"]
        self.objectives: List[Tuple[str, str]] = [(entry["metric"], entry["direction"]) for entry in report.get(
            "objectives", [report])]
        front = report.get("front") or {"trials": [], "hypervolume": None}
        self._front: List[int] = front["trials"]
        self.hypervolume: Optional[float] = front["hypervolume"]
        best = report["best"]
        self._best = None if best is None else _trial(best)
        self.trials: List[Trial] = [_trial(entry) for entry in report["trials"]]
        self.configurations: List[Configuration] = [_configuration(entry) for entry in report.get("configurations", [])]

    def _here(self, name: Optional[str]) -> List[str]:
        return [*([] if name is None else [name]), "--storage", self.storage]

    @property
    def best(self) -> Trial:
        """The best COMPLETE trial. Throws HftaError if there is none, as in a study of several objectives."""
        if len(self.objectives) > 1:
            raise HftaError(f"study {self.name}: found {len(self.objectives)} objectives, wanted one: Study.front has the trials "
                            "that no other one is better than")
        if self._best is None:
            raise HftaError(f"study {self.name}: no trial is COMPLETE")
        return self._best

    @property
    def front(self) -> List[Trial]:
        """The COMPLETE trials that no other one is better than, by number: Optuna's `best_trials`.

        Of one objective the best trial, if there is one."""
        if len(self.objectives) == 1:
            return [] if self._best is None else [self._best]
        return [trial for trial in self.trials if trial.number in self._front]

    def best_module(self, number: Optional[int] = None) -> nn.Module:
        """A copy of the module, on the CPU and in evaluation mode, with the weights of the best trial, or of trial `number`.

        The weights are those that the trial's value was measured on. Numbers of the model that the trial had bound are set
        where a module has them as attributes, such as a dropout's rate; of others there is a warning. Throws ConfigError if
        the weights are not kept (`keep=`) or do not fit the module that the study was loaded with, and HftaError if it was
        loaded without one.
        """
        if self._module is None:
            raise HftaError(f"study {self.name}: no module to load weights into: load_study(storage, name, module=...)")
        weights, bound = self._exported(number)
        trial = self.best if number is None else next((trial for trial in self.trials if trial.number == number), None)
        module = modules.copy_for(self._module, trial.params if trial else {}, self._seed)
        modules.cast_like(module, weights)
        try:
            module.load_state_dict(weights, strict=True)
        except RuntimeError as error:
            what = "; ".join(line.strip().rstrip(".") for line in str(error).splitlines()[1:4])
            raise ConfigError(f"study {self.name}: found weights that do not fit the module, {type(module).__name__}, wanted "
                              f"the one that was tuned: {what}") from error
        for path, value in bound.items():
            if not modules.set_number(module, path, value):
                warnings.warn(f"study {self.name}: found no attribute {path} in the module, which keeps the number that it was "
                              f"written with; trial {trial.number if trial else number} had {value:g}", stacklevel=2)
        return module.eval()

    def weights(self, number: Optional[int] = None) -> Dict[str, torch.Tensor]:
        """The state dict of the best trial, or of trial `number`; with `adapters=` these are merged into it."""
        return self._exported(number)[0]

    def _exported(self, number: Optional[int]) -> Tuple[Dict[str, torch.Tensor], Dict[str, float]]:
        """The state dict, and the numbers that were bound, by path."""
        which = _option_of(number)
        with tempfile.TemporaryDirectory(prefix="hfta-tune-") as folder:
            file = os.path.join(folder, "weights.safetensors")
            call(["export", *self._here(self.name), "--output", file, *which])
            weights, metadata = load_with_metadata(file)
        return weights, {key[len("bind."):]: float(value) for key, value in metadata.items() if key.startswith("bind.")}

    def save_adapter(self, folder: Union[str, "os.PathLike[str]"], number: Optional[int] = None) -> str:
        """Writes the adapter of the best trial, or of trial `number`, as a folder that `PeftModel.from_pretrained` takes.

        Returns the folder's path. Throws ConfigError if the study trained no adapters, or if they are not kept (`keep=`).
        """
        which = _option_of(number)
        call(["export", *self._here(self.name), "--format", "peft", "--output", os.fspath(folder), *which])
        self._tell_first_values(os.fspath(folder))
        return os.fspath(folder)

    def _tell_first_values(self, folder: str) -> None:
        """Writes the name of PEFT's first values, "pissa", into the adapter's config: some change the base as it is wrapped.

        Only the module that PEFT wrapped knows them, so a study that was loaded without it does not."""
        configs = getattr(self._module, "peft_config", None) or {}
        named = [first for config in configs.values() if isinstance(first := getattr(config, "init_lora_weights", None), str)]
        if not named:
            return
        file = os.path.join(folder, "adapter_config.json")
        with open(file, encoding="utf-8") as text:
            written = json.load(text)
        with open(file, "w", encoding="utf-8") as text:
            json.dump({**written, "init_lora_weights": named[-1]}, text, indent=2)

    def curves(self) -> Dict[int, Dict[str, List[float]]]:
        """Of each trial by number, each metric's values, one per epoch, from the first. NaN where a value is not finite."""
        curves: Dict[int, Dict[str, List[float]]] = {}
        for line in call(["report", *self._here(self.name), "--format", "events"]).splitlines():
            event = json.loads(line)
            if event["event"] != "epoch_ended":
                continue
            for metric, value in event["metrics"].items():
                values = curves.setdefault(event["trial"], {}).setdefault(metric, [])
                values.extend([math.nan] * (event["epoch"] - 1 - len(values)))
                values.append(math.nan if value is None else value)
        return dict(sorted(curves.items()))

    def confusion_matrix(self, number: Optional[int] = None, of: str = "val") -> "np.ndarray":
        """[C, C] counts by true class (row) and predicted class (column): of the best trial, or of trial `number`.

        They are of the epoch that the trial's value and its kept weights are of. `of`: "val", or, of the best trial of a
        finished study, "test". Throws HftaError where there is none: `confusion_matrix` was not among the metrics.
        """
        _checked(number)
        trial = self.best if number is None else next((trial for trial in self.trials if trial.number == number), None)
        if trial is None:
            raise HftaError(f"study {self.name}: found no trial {number}, wanted 0 to {len(self.trials) - 1}")
        matrices = trial.confusion
        if self._best is not None and trial.number == self._best.number:
            matrices = self._best.confusion  # with that of the test set
        if not matrices:
            raise HftaError(f"study {self.name}: found no confusion matrix of trial {trial.number}, wanted one: "
                            'metrics=["confusion_matrix"] records it')
        if of not in matrices:
            raise HftaError(f"study {self.name}: trial {trial.number} has no confusion matrix '{of}', wanted one of "
                            f"{list(matrices)}")
        counts = np.array([[math.nan if count is None else count for count in row] for row in matrices[of]])
        return counts.astype(np.int64) if np.equal(np.mod(counts, 1), 0).all() else counts

    def dataframe(self) -> Any:
        """The trials as a pandas DataFrame, by number: state, value (of several objectives `values.*`), epochs, duration_s, reason,
        `params.*`, `metrics.*`.

        Throws ImportError where pandas is missing."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("Study.dataframe needs pandas: pip install pandas; Study.trials needs nothing") from error
        rows = [{"number": trial.number, "state": trial.state, **self._values(trial), "epochs": trial.epochs,
                 "duration_s": trial.duration_s, "reason": trial.reason,
                 **{f"params.{name}": value for name, value in trial.params.items()},
                 **{f"metrics.{name}": value for name, value in trial.metrics.items()}} for trial in self.trials]
        return pandas.DataFrame(rows, columns=None if rows else ["number", "state", "value"]).set_index("number")

    def _values(self, trial: Trial) -> Dict[str, Optional[float]]:
        if len(self.objectives) == 1:
            return {"value": trial.value}
        values = trial.values or [None] * len(self.objectives)
        return {f"values.{metric}": value for (metric, _), value in zip(self.objectives, values)}

    def optuna(self) -> Any:
        """The same study as an `optuna.Study`, on the same store: for its plots, importances and dashboard."""
        try:
            import optuna
        except ImportError as error:
            raise ImportError("Study.optuna needs Optuna: pip install optuna; Study.trials needs nothing") from error
        # SQLAlchemy's versions differ in what they decode of a URL, and so the very file is opened here.
        opened = functools.partial(sqlite3.connect, self.storage, check_same_thread=False)
        storage = optuna.storages.RDBStorage("sqlite:///" + urllib.parse.quote(self.storage), {"creator": opened})
        return optuna.load_study(study_name=self.name, storage=storage)

    def __repr__(self) -> str:
        states: Dict[str, int] = {}
        for trial in self.trials:
            states[trial.state] = states.get(trial.state, 0) + 1
        counts = ", ".join(f"{count} {state}" for state, count in states.items())
        best = f", best {self.metric} {self._best.value:.6g} (trial {self._best.number})" if self._best else ""
        best = best or (f", front of {len(self._front)}" if self._front else "")
        return f"Study('{self.name}', {len(self.trials)} trials: {counts}{best})"


def load_study(storage: Union[str, "os.PathLike[str]"], name: Optional[str] = None,
               module: Optional[modules.Source] = None, seed: int = 0) -> Study:
    """A study of a store, which may also be running or made by the program alone.

    name: may be left out if the store has one study. module: what `best_module` copies, or makes it with. seed: what `tune`
    was given, for a function that draws buffers which no state dict has. Throws StorageError and ConfigError.
    """
    return Study(storage, name, module, seed)


def _checked(number: Optional[int]) -> Optional[int]:
    """A trial's number as it was given. Throws ConfigError for what is none."""
    if number is not None and (isinstance(number, bool) or not isinstance(number, numbers.Integral)):
        raise ConfigError(f"number: found {number!r}, wanted a trial's number, a whole one, or None for the best trial")
    return number


def _option_of(number: Optional[int]) -> List[str]:
    """The program's option for a trial, or for the best one."""
    return [] if _checked(number) is None else ["--trial", str(number)]


def _configuration(entry: Dict[str, Any]) -> Configuration:
    numbers = {key: entry[key] for key in ("value", "mean", "deviation", "low", "high", "median", "params", "trials")}
    return Configuration(entry["configuration"], **numbers)


def _trial(entry: Dict[str, Any]) -> Trial:
    return Trial(entry["number"], entry["state"], entry["value"], entry["params"], entry["epochs"],
                 {name: math.nan if value is None else value for name, value in entry["metrics"].items()},
                 entry.get("duration_s"), entry.get("reason"), entry.get("confusion_matrix", {}), entry.get("values"))
