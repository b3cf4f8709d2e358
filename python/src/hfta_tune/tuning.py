"""Tunes a module: exports it, writes data and config, and runs the study."""
from __future__ import annotations

import inspect
import json
import os
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Union

import torch

from .config_file import restore
from .errors import NoCompleteTrial
from .examples import Example
from .modules import Source
from .prepare import Prepared, Spec, prepare
from .program import call
from .progress import Event, Progress, listener
from .run import run_study
from .study import Study, load_study

Column = Union[str, int]
Device = Union[None, str, torch.device, Sequence[Union[str, torch.device]]]


def tune(module: Source, data: Any, space: Optional[Mapping[str, Any]] = None, *, loss: Spec = None,
         metric: Union[None, str, Sequence[str]] = None, goal: Union[None, str, Sequence[str]] = None, epochs: Optional[int] = 10, batch_size: Any = 32,
         optimizer: Spec = None, phases: Optional[Sequence[Mapping[str, Any]]] = None, method: Spec = None, trials: Optional[int] = None, early_stopping: Spec = None,
         repeat: Optional[int] = None, folds: Union[None, int, Mapping[str, Any]] = None, rank: Optional[str] = None,
         storage: Union[str, "os.PathLike[str]"] = "hfta-tune.db", name: Optional[str] = None,
         device: Device = None, validation: Any = 0.2, test: Any = None, seed: int = 0,
         target: Optional[Column] = None, features: Union[None, Column, Sequence[Column]] = None, example: Optional[Example] = None,
         config: Optional[Mapping[str, Any]] = None, progress: Progress = None, **more: Any) -> Study:
    """Runs a study of `trials` trainings of `module`, and returns it when it is finished.

    The same call resumes a study that was stopped or killed, and returns a finished one at once; with more `trials` it
    goes on. What was trained in between is the same, to the bit, as without the interruption.

    module: what is trained. It is exported (`export`), not changed. Trials begin with its weights; with init="fresh"
      each with new ones. A function or class that makes the module is called with
      those parameters of `space` that are its arguments: `tune(Net, data, {"width": choice([64, 128]), ...})`.
    data: (x, y), a dict of arrays, a map-style dataset or a DataFrame (with target=); or a path that a config can name.
    space: parameters by name. One that is not referred to as "${name}" stands where its name says: with a dot in it, it
      is a number of the model ("drop.p"); `batch_size`, `label_smoothing`, `clip_norm`, `freeze` and a few more stand in
      their own places; any other is an option of the optimizer. Distributions may also stand where a value does:
      optimizer={"name": "adamw", "lr": log_uniform(1e-4, 1e-1)}.
    loss: the name of a loss or a map of its options; {"output": "loss"} for a loss that the module computes.
    optimizer: a name, or a map of the name and numbers; adam unless told.
    phases: in place of both, steps that each batch makes in turn (a GAN's): maps {"loss": "d_loss", "params": "netD",
      "optimizer": {"name": "adam", "lr": 2e-4}, "every": 1} of outputs, which the module computes, and parameters.
    metric, goal: `val_loss` unless told (`train_loss` without validation); names that end in accuracy, r2 and the like
      are maximized unless told. A list of metrics is several objectives (`Study.front`), for which `goal` may be a list,
      too, and `method` one that takes them: "nsga2", "auto", `random` or `grid`. "parameters": how many a trial trains.
    method, early_stopping: a name, or a map of the name and options: {"name": "hyperband", "eta": 3}. The method is
      `random` unless told, `grid` if `space` has a `grid(...)`; `auto` chooses by space, trials and width.
    trials: in all; 20 unless told, or what `grid` and `hyperband` come to. With `repeat` or `folds`: configurations.
    repeat, folds, rank: each configuration is trained under so many seeds, and on so many folds of the data (a number, or a map
      with count, stratified, groups: the array or column of `data` whose equal numbers stay in one fold, or these numbers),
      and ranked by `rank`: mean, lower or median. See `Study.configurations`.
    storage: the SQLite file. Beside it lie `<storage>.inputs` (model, data, config: named by their content, written once)
      and `<storage>.hfta` (the program's).
    name: of the study; unless told it follows from all that may not change while it goes on: module, data, space. A name that
      another study has is refused: with another one, or none, a new study begins.
    validation, test: a fraction of the data, or data of the same kind; None for none. With folds, each validates on one.
    target, features: the array or column of targets, and columns of inputs, or one, where `data` has names.
    example: the module's inputs for the export, if the first samples of the data will not do.
    config: merged into the config last: every key of docs/config.md but `storage` can be given there.
    progress: None prints lines; False prints nothing; a callable gets each event (docs/events.md) as a dict.
    more: schedule, clip_norm, dtype, precision, metrics, freeze, bind, init, adapters, shuffle, order, drop_last, width,
      threads, cache, refill, lend, keep, select: as in a config.

    Ctrl-C stops the program, which stores everything first, and raises KeyboardInterrupt. Throws ExportError, ConfigError
    and the other exceptions of `errors`, with the program's own words; NoCompleteTrial if every trial failed.
    """
    arguments = dict(locals())
    prepared = prepare(arguments)
    try:
        _run(prepared, listener(progress))
    except NoCompleteTrial as error:
        error.study = load_study(prepared.storage, prepared.name, module, seed)
        failed = [f"trial {trial.number}: {trial.reason}" for trial in error.study.trials if trial.reason]
        error.args = ("; ".join([f"study {prepared.name}: no trial is COMPLETE", *failed[:5]]),)
        raise
    return load_study(prepared.storage, prepared.name, module, seed)


def _run(prepared: Prepared, listen: Callable[[Event], None]) -> None:
    """Runs the study. The config of one that is there already becomes this call's only if the program runs it."""
    began = []

    def on_event(event: Event) -> None:
        if event.get("event") == "run_started":
            began.append(event)
        listen(event)
    try:
        run_study([str(prepared.config.path)], on_event)
    except BaseException:
        if not began:
            restore(prepared.config, prepared.storage, prepared.name)
        raise


def plan(module: Source, data: Any, space: Optional[Mapping[str, Any]] = None, **arguments: Any) -> Dict[str, Any]:
    """What `tune` would run with the same arguments, as `hfta-tune plan --format json` has it, without training.

    Writes model, data and config, as `tune` does, and makes one training step as a trial; a study's config that is there
    stays. Throws what `tune` throws.
    """
    bound = inspect.signature(tune).bind(module, data, space, **arguments)
    bound.apply_defaults()
    prepared = prepare(bound.arguments)
    try:
        return json.loads(call(["plan", str(prepared.config.path), "--format", "json"]))
    finally:
        restore(prepared.config, prepared.storage, prepared.name)
