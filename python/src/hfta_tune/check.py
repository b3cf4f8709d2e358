"""Checks of exports: that what was written computes what the module computes, and that the program can train it."""
from __future__ import annotations

import contextlib
import copy
import pathlib
import tempfile
import warnings
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

import torch
from torch.utils import _pytree as pytree

from . import yaml
from .data import Arrays
from .data_files import write
from .errors import ConfigError, ExportError, ProgramNotFound
from .numeric import to_array
from .program import call
from .tracing import first_lines

if TYPE_CHECKING:
    from .exporting import Exported, Programs, Traceable


def why_fixed(program: "torch.export.ExportedProgram", size: int) -> Optional[str]:
    """Why the graph takes `size` samples only, or does not tell that it gives a result for each; None if the batch is open."""
    signature = program.graph_signature
    # A size that tracing has pinned to a number is still a torch.SymInt, and prints as that number.
    samples = {str(length) for length in _lengths(program, signature.user_inputs) if not str(length).isdigit()}
    if not samples:
        return f"it finds that the module runs with {size} samples only"
    for length in _lengths(program, signature.user_outputs):
        if isinstance(length, torch.SymInt) and str(length) not in samples and length.node.hint == size:
            return f"it finds {length} results, wanted {' or '.join(sorted(samples))}, one for each sample"
    return None


def _lengths(program: "torch.export.ExportedProgram", names: Sequence[Any]) -> List[Any]:
    """The first dimensions of the tensors of these names."""
    values = [node.meta.get("val") for node in program.graph.nodes if node.name in names]
    return [value.shape[0] for value in values if isinstance(value, torch.Tensor) and value.dim()]


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
        with _seeded(0), torch.enable_grad():
            outputs = copy.deepcopy(source.in_training())(*source.args, **source.kwargs)
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
    another batch size where the batch is open. Throws ExportError."""
    if exported.evaluation is not None:
        _compare(programs, exported.evaluation, programs.source.module.eval, "evaluation")
    _compare(programs, exported.path, programs.source.in_training, "training")


def _compare(programs: "Programs", file: pathlib.Path, in_mode: Callable[[], Any], mode: str) -> None:
    inputs = (programs.source.args, programs.source.kwargs)
    try:
        found = _outputs(_read(file), *inputs, seed=0)
    except ExportError:
        raise
    except Exception as error:  # of many types
        raise ExportError(f"the exported graph ({mode}) fails on the example: {error}") from error
    pairs = [(inputs, found, _outputs(copy.deepcopy(in_mode()), *inputs, seed=0))]
    if programs.batch is None:
        pairs.extend(_at_another_size(inputs, file, in_mode))
    for (args, kwargs), found, wanted in pairs:
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


def _at_another_size(inputs: Tuple[Any, Any], file: pathlib.Path,
                     in_mode: Callable[[], Any]) -> List[Tuple[Any, Any, Any]]:
    """Inputs of another size, and what the file and the module give for them: at the first size that both take.

    A graph keeps the conditions that its module has on the size, such as `if n % 2 == 0`, and refuses sizes that have
    another answer. Where it refuses all that are tried here, nothing is compared."""
    size = next(leaf.shape[0] for leaf in pytree.tree_leaves(inputs) if isinstance(leaf, torch.Tensor) and leaf.dim())
    for other in (size - 1, size + 1, size - 2, size + 2, size // 2, 2 * size):
        if other < 2 or other == size:
            continue
        args, kwargs = resized(inputs, size, other)
        with contextlib.suppress(Exception):  # torch's guards throw errors of several types
            found = _outputs(_read(file), args, kwargs, seed=0)
            return [((args, kwargs), found, _outputs(copy.deepcopy(in_mode()), args, kwargs, seed=0))]
    return []


def _read(file: pathlib.Path) -> torch.nn.Module:
    """The file's graph, anew each time: a training graph changes its buffers. Names of weights begin with _STATE."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, about how it reads its archives
        try:
            program = torch.export.load(file)
            _rename(program)
            return program.module()
        except Exception as error:  # of many types
            words = f"torch.export cannot read what it has written: {first_lines(error)}"
            if "set_grad_enabled" in str(error):
                words += ("; wanted a forward without torch.no_grad() or enable_grad() around nothing but weights, "
                          "around each other, or around what changes the module itself")
            raise ExportError(words) from error


_STATE = "state."


def _rename(program: "torch.export.ExportedProgram") -> None:
    """Moves weights, buffers and constants into a part of their own. torch builds a torch.fx.GraphModule of them, whose
    attributes, such as `code` and `graph`, are no names for them."""
    names = {*program.state_dict, *program.constants}
    for spec in (*program.graph_signature.input_specs, *program.graph_signature.output_specs):
        if spec.target in names:
            spec.target = _STATE + spec.target
    for tensors in (program.state_dict, program.constants):
        moved = {_STATE + name: tensor for name, tensor in tensors.items()}
        tensors.clear()
        tensors.update(moved)


def _compare_gradients(read: torch.nn.Module, module: torch.nn.Module, args: Tuple[Any, ...], kwargs: Any) -> None:
    """torch.export traces the forward alone: what a module does to its gradients by itself would be lost in silence."""
    wanted = _gradients(copy.deepcopy(module), args, kwargs)
    found = _gradients(read, args, kwargs)
    if not wanted or found is None:
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
        now = sum((found[_STATE + name] for name in names if _STATE + name in found), torch.zeros_like(grad))
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
    """The gradients of the outputs' sum, each element weighed by a random number. Empty where no output has any; None
    where torch cannot compute them: what cannot be trained the program says itself."""
    parameters = {name: weight for name, weight in module.named_parameters() if weight.requires_grad}
    with _seeded(0), torch.enable_grad():
        terms = _weighed(module, args, kwargs)
        if not terms or not parameters:
            return None if terms is None else {}
        _refuse_reentrant(terms)
        with contextlib.suppress(RuntimeError):
            grads = torch.autograd.grad(sum(terms), list(parameters.values()), allow_unused=True)
            return {name: torch.zeros_like(weight) if grad is None else grad.to_dense()
                    for (name, weight), grad in zip(parameters.items(), grads)}
    return None


def _weighed(module: torch.nn.Module, args: Tuple[Any, ...], kwargs: Any) -> Optional[List[torch.Tensor]]:
    """The sums of those outputs that have gradients; None where the module fails."""
    draws = torch.Generator().manual_seed(1)
    terms = []
    with contextlib.suppress(RuntimeError):
        for output in _tensors_in(module(*args, **kwargs)):
            weights = torch.randn(output.shape, generator=draws, dtype=torch.float64).to(output.dtype)
            if output.requires_grad:
                terms.append((output * weights).sum().real)
        return terms
    return None


def _refuse_reentrant(tensors: List[torch.Tensor]) -> None:
    """Throws ExportError where the tensors were made with a checkpoint whose backward torch.export drops."""
    nodes = [tensor.grad_fn for tensor in tensors]
    seen = set(nodes)
    while nodes:
        node = nodes.pop()
        if node.name() == "CheckpointFunctionBackward":
            raise ExportError("found torch.utils.checkpoint with use_reentrant=True, wanted use_reentrant=False: "
                              "torch.export keeps no gradients through the former")
        later = {after for after, _ in node.next_functions if after is not None} - seen
        seen |= later
        nodes.extend(later)


def _outputs(module: torch.nn.Module, args: Tuple[Any, ...], kwargs: Any, seed: int) -> List[torch.Tensor]:
    """What the module gives, traced with gradients as torch.export traces it: some modules ask for them within forward."""
    with _seeded(seed), torch.enable_grad():
        return [output.detach() for output in _tensors_in(module(*args, **kwargs))]


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
