"""Checks of exports: that what was written computes what the module computes, and that the program can train it."""
from __future__ import annotations

import contextlib
import copy
import pathlib
import tempfile
import warnings
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch
from torch.utils import _pytree as pytree

from . import yaml
from .data import Arrays
from .data_files import write
from .errors import ConfigError, ExportError, ProgramNotFound
from .numeric import to_array
from .program import call

if TYPE_CHECKING:
    from .exporting import Exported, Programs, Traceable


def batch_is_open(program: "torch.export.ExportedProgram") -> bool:
    """Whether some input's first dimension may vary."""
    names = set(program.graph_signature.user_inputs)
    values = [node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder" and node.name in names]
    # A size that tracing has pinned to a number is still a torch.SymInt, and prints as that number.
    return any(isinstance(value, torch.Tensor) and value.dim() and not str(value.shape[0]).isdigit() for value in values)


def resized(tree: Any, size: int, wanted: int) -> Any:
    """`tree` with `wanted` samples in place of `size`: those there are, over and over."""
    def resize(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or not leaf.dim() or leaf.shape[0] != size:
            return leaf
        return leaf[torch.arange(wanted) % size]
    return pytree.tree_map(resize, tree)


def runs(source: "Traceable") -> None:
    """Runs the module on the example, for an error in its own words, before tracing hides them. Throws ExportError.

    Prepares torch for writing what the module takes and gives."""
    name = type(source.module).__name__
    try:
        outputs = _run(copy.deepcopy(source.in_training()), source.args, source.kwargs, seed=0)
    except Exception as error:
        raise ExportError(f"{name} fails on the example: {error}") from error
    if not _tensors_in(outputs):
        raise ExportError(f"{name}.forward: found no tensor in what it returns, wanted at least one")
    _register_named_tuples((source.args, source.kwargs, outputs))


def _register_named_tuples(tree: Any) -> None:
    """Gives the classes of named tuples in `tree` the names that torch.export.save wants, unless they have some."""
    def visit(node: Any) -> bool:
        kind = type(node)
        if isinstance(node, tuple) and hasattr(kind, "_fields") and kind not in pytree.SUPPORTED_SERIALIZED_TYPES:
            pytree._register_namedtuple(kind, serialized_type_name=f"{kind.__module__}.{kind.__qualname__}")
        return False
    pytree.tree_leaves(tree, is_leaf=visit)


def read_back(programs: "Programs", exported: "Exported") -> None:
    """Reads the files and compares what they give for the example with what the module gives, in both modes, and at
    one sample less where the batch is open. Throws ExportError."""
    if exported.evaluation is not None:
        _compare(programs, exported.evaluation, programs.source.module.eval, "evaluation")
    _compare(programs, exported.path, programs.source.in_training, "training")


def _compare(programs: "Programs", file: pathlib.Path, in_mode: Callable[[], Any], mode: str) -> None:
    inputs = (programs.source.args, programs.source.kwargs)
    sizes = [leaf.shape[0] for leaf in pytree.tree_leaves(inputs) if isinstance(leaf, torch.Tensor) and leaf.dim()]
    examples = [inputs]
    if programs.batch is None and sizes[0] > 2:
        examples.append(resized(inputs, sizes[0], sizes[0] - 1))
    for args, kwargs in examples:
        found = _outputs(_read(file), args, kwargs, seed=0)
        wanted = _outputs(copy.deepcopy(in_mode()), args, kwargs, seed=0)
        if _agree(found, wanted):
            continue
        if mode == "training" and not _agree(_outputs(copy.deepcopy(in_mode()), args, kwargs, seed=1), wanted):
            warnings.warn("the training graph draws its random numbers in another order than the module, so that their "
                          "outputs could not be compared", stacklevel=5)
            return
        raise ExportError(f"the exported graph ({mode}) gives other outputs than the module: "
                          f"found {_words(found)}, wanted {_words(wanted)}")
    if mode == "training":
        _compare_gradients(_read(file), in_mode(), *inputs)


def _read(file: pathlib.Path) -> torch.nn.Module:
    """The file's graph, anew each time: a training graph changes its buffers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, about how it reads its archives
        try:
            return torch.export.load(file).module()
        except Exception as error:  # of many types
            words = str(error).strip().splitlines()
            raise ExportError(f"torch.export cannot read what it has written: {words[0] if words else type(error).__name__}; "
                              "wanted a forward without torch.no_grad() or enable_grad() around nothing but weights, around "
                              "each other, or around what changes the module itself") from error


def _compare_gradients(read: torch.nn.Module, module: torch.nn.Module, args: Tuple[Any, ...], kwargs: Any) -> None:
    """torch.export traces the forward alone: what a module does to its gradients by itself would be lost in silence."""
    wanted = _gradients(copy.deepcopy(module), args, kwargs)
    found = _gradients(read, args, kwargs)
    if wanted is None or found is None:
        return
    tied: Dict[int, List[str]] = {}  # which of a weight's names the graph uses is torch's choice
    for name, weight in module.named_parameters(remove_duplicate=False):
        tied.setdefault(id(weight), []).append(name)
    largest = max(_size(grad) for grad in wanted.values())
    other = []
    for names in tied.values():
        grad = wanted.get(names[0])
        if grad is None:
            continue
        now = sum((found[name] for name in names if name in found), torch.zeros_like(grad))
        # Far above rounding, of gradients that are nothing but rounding, too: the bias before a batch norm has such.
        if _size(now - grad) > 1e-2 * _size(grad) + 1e-4 * largest or not torch.equal(now.isnan(), grad.isnan()):
            other.append(names[0])
    if other:
        more = f" and {len(other) - 3} more" if len(other) > 3 else ""
        raise ExportError(f"the exported graph gives other gradients than the module, of {', '.join(other[:3])}{more}: "
                          "torch.export keeps neither the backward of a torch.autograd.Function nor hooks on gradients. With "
                          "detach() both say the same: docs/models.md, 'A backward of your own'")


def _size(tensor: torch.Tensor) -> float:
    """The largest absolute value; 0 of none. NaN counts nothing."""
    return float(tensor.abs().nan_to_num(0.0).max()) if tensor.numel() else 0.0


def _gradients(module: torch.nn.Module, args: Tuple[Any, ...], kwargs: Any) -> Optional[Dict[str, torch.Tensor]]:
    """The gradients of the outputs' sum, each element weighed by a random number. None where it has none: what cannot be
    trained the program says itself."""
    draws = torch.Generator().manual_seed(1)
    parameters = {name: weight for name, weight in module.named_parameters() if weight.requires_grad}
    terms = []
    with _seeded(0), torch.enable_grad(), contextlib.suppress(RuntimeError):
        for output in _tensors_in(module(*args, **kwargs)):
            weights = torch.randn(output.shape, generator=draws, dtype=torch.float64).to(output.dtype)
            if output.requires_grad:
                terms.append((output * weights).sum().real)
        if terms and parameters:
            grads = torch.autograd.grad(sum(terms), list(parameters.values()), allow_unused=True)
            return {name: torch.zeros_like(weight) if grad is None else grad.to_dense()
                    for (name, weight), grad in zip(parameters.items(), grads)}
    return None


def _outputs(module: torch.nn.Module, args: Tuple[Any, ...], kwargs: Any, seed: int) -> List[torch.Tensor]:
    return _tensors_in(_run(module, args, kwargs, seed))


def _run(module: torch.nn.Module, args: Tuple[Any, ...], kwargs: Any, seed: int) -> Any:
    with _seeded(seed), torch.no_grad():
        return module(*args, **kwargs)


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """torch draws from the seed, and goes on afterwards as if nothing had been drawn."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def _tensors_in(tree: Any) -> List[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _agree(found: List[torch.Tensor], wanted: List[torch.Tensor]) -> bool:
    try:
        torch.testing.assert_close(found, wanted, equal_nan=True)
    except AssertionError:
        return False
    return True


def _words(tensors: List[torch.Tensor]) -> str:
    return "[" + ", ".join(f"{tuple(tensor.shape)} {tensor.reshape(-1)[:3].tolist()}..." for tensor in tensors) + "]"


def with_program(exported: "Exported", programs: "Programs") -> None:
    """Lets the program read the files and make one training step (`hfta-tune plan`), with the first output drawn to
    zero: so that an op that it refuses is found here. Throws ExportError with the program's words.

    Does nothing where the program is not found, or where the first output has no batch: a loss, which needs its config.
    """
    inputs = (programs.source.args, programs.source.kwargs)
    tensors = dict(zip(programs.source.inputs, pytree.tree_leaves(inputs)))
    first = next(iter(_outputs(programs.source.module.eval(), *inputs, seed=0)), None)
    samples = pytree.tree_leaves(inputs)[0].shape[0]
    if first is None or not first.is_floating_point() or first.dim() == 0 or first.shape[0] != samples:
        return
    if not all(isinstance(tensor, torch.Tensor) for tensor in tensors.values()):
        return
    try:
        arrays = Arrays({name: to_array(tensor, name) for name, tensor in tensors.items()},
                        {"hfta_y": torch.zeros_like(first).numpy()})
    except ConfigError as error:
        raise ExportError(f"example: {str(error).removeprefix('data: ')}") from error
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        model = {"file": str(exported.path.resolve())}
        if exported.evaluation is not None:
            model["evaluation"] = str(exported.evaluation.resolve())
        config = {
            "method": "grid", "metric": {"name": "train_loss"}, "parameters": {"lr": {"values": [0.0]}}, "model": model,
            "data": {"train": write(arrays, place), "x": list(arrays.inputs), "y": "hfta_y", "batch_size": samples},
            "train": {"epochs": 1, "loss": "mse", "optimizer": {"name": "sgd", "lr": "${lr}"},
                      "dtype": "float64" if first.dtype == torch.float64 else "float32"},
        }
        (place / "check.yaml").write_text(yaml.dump(config), encoding="utf-8")
        try:
            call(["plan", str(place / "check.yaml"), "--device", "cpu"])
        except ProgramNotFound:
            return
        except ConfigError as error:
            raise ExportError(str(error)) from error
