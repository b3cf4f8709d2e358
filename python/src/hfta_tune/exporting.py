"""Exports a module as the two graphs that the program reads: the one that trains and the one that evaluates."""
from __future__ import annotations

import contextlib
import copy
import dataclasses
import hashlib
import os
import pathlib
import tempfile
import warnings
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

import torch
from torch import nn
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from . import check, examples, modules, tracing
from .errors import ExportError, writing
from .examples import Example
from .torch_state import exclusive

Batch = Union[None, int, Any]  # Any: a torch.export.Dim


@dataclass(frozen=True)
class Exported:
    """Model files, and what a config has to know of them."""

    path: pathlib.Path
    evaluation: Optional[pathlib.Path]
    inputs: Tuple[str, ...]          # arguments of forward, in the order of the example
    batch: Optional[int]             # the only batch size that the training graph takes; None: any
    fixed_because: Optional[str]     # why it is fixed though an open one was wanted


def export(module: nn.Module, example: Example, path: Union[str, "os.PathLike[str]"] = "model.pt2", batch: Batch = None,
           evaluation: bool = True, dtype: Optional[torch.dtype] = None) -> Exported:
    """Writes `path`, the graph that trains, and beside it `<path's stem>.eval.pt2`, the graph that evaluates.

    example: a tensor, a tuple of positional arguments or a dict of named ones, each with the batch as its first
      dimension, of two samples or more; or the example that `batch` cuts to size.
    batch: None leaves the batch size open (`batch_size` is free); if torch.export cannot, the example's size is kept
      and a warning says why. An int fixes it. A torch.export.Dim bounds it.
    evaluation: whether the second graph is written.
    dtype: what floating parameters, buffers and inputs are cast to first, and complex ones to its precision; None leaves them.

    A module in training mode is exported with the mode that each submodule is in: a frozen backbone in eval() stays so.
    A module that is in evaluation mode as a whole is exported after train(). The module itself is not changed: a copy
    on the CPU is exported. The files are read back, run on the example, and compared with the module, in both modes; where
    the program is found, it makes one training step. Throws ExportError, and writes nothing then.
    """
    programs = export_programs(module, example, batch, evaluation, dtype)
    return write(programs, pathlib.Path(path), check.with_program)


@dataclass(frozen=True)
class Traceable:
    """A copy of a module, and the example that it is traced with."""

    module: nn.Module
    args: Tuple[Any, ...]
    kwargs: Dict[str, Any]
    modes: Dict[nn.Module, bool]     # of the copy, in training
    inputs: Tuple[str, ...]

    def in_training(self) -> nn.Module:
        """The module with each part in the mode that it is trained in."""
        for part, mode in self.modes.items():
            part.training = mode
        return self.module


@dataclass(frozen=True)
class Programs:
    """Both exports in memory, and what they were made from."""

    source: Traceable
    training: ExportedProgram
    evaluation: Optional[ExportedProgram]
    batch: Optional[int]             # as in Exported
    fixed_because: Optional[str]


def export_programs(module: nn.Module, example: Example, batch: Batch = None, evaluation: bool = True,
                    dtype: Optional[torch.dtype] = None) -> Programs:
    """Both exports of a copy of the module. Throws ExportError."""
    with exclusive():
        own = _own_copy(module, dtype)
        modes = {part: part.training for part in own.modules()}
        args, kwargs = examples.arguments(example, dtype)
        size = _batch_size(args, kwargs)
        if isinstance(batch, int):
            (args, kwargs), size = check.resized((args, kwargs), size, batch), batch
        bound = examples.bound(own, args, kwargs)
        source = Traceable(own, args, kwargs, modes, tuple(kwargs or examples.names_in(bound)))
        check.runs(source)
        try:
            return _exported(source, bound, size, batch, evaluation)
        except ExportError as error:
            place = tracing.derivative_at(source)
            if place is None:
                raise
            raise ExportError(f"torch.export cannot export {_name(own)}: {place}: found derivatives inside forward "
                              "(torch.autograd.grad, torch.func.grad), wanted none: finite differences can be exported "
                              "(docs/models.md, 'Not possible')") from error


def _own_copy(module: nn.Module, dtype: Optional[torch.dtype]) -> nn.Module:
    if not isinstance(module, nn.Module):
        raise ExportError(f"module: found {type(module).__name__}, wanted a torch.nn.Module")
    hooked = [name for name, weight in module.named_parameters() if weight._backward_hooks]
    if hooked:  # a copy would lose them as well
        raise ExportError(f"{_name(module)}: found a hook on the gradient of {hooked[0]}, wanted none: an export has no hooks")
    try:
        own = copy.deepcopy(module).cpu()
    except Exception as error:
        raise ExportError(f"{_name(module)} cannot be copied: {error}") from error
    if not module.training:
        own.train()
    if dtype is not None:
        modules.cast(own, dtype)
    own.zero_grad(set_to_none=True)
    return own


def write(programs: Programs, path: pathlib.Path,
          further_check: Callable[[Exported, Programs], None] = lambda exported, programs: None) -> Exported:
    """Writes the files, each complete or not at all, after they have been read back and compared with the module, and
    `further_check` of them has not thrown."""
    beside = path.with_name(f"{path.stem}.eval{path.suffix}") if programs.evaluation is not None else None
    with exclusive(), writing(path), contextlib.ExitStack() as stack:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=".export-", dir=path.parent)))
        tried = Exported(fresh / path.name, beside and fresh / beside.name, programs.source.inputs, programs.batch,
                         programs.fixed_because)
        _save(programs.training, tried.path)
        if programs.evaluation is not None and tried.evaluation is not None:
            _save(programs.evaluation, tried.evaluation)
        check.read_back(programs, tried)
        further_check(tried, programs)
        if beside is not None and tried.evaluation is not None:
            os.replace(tried.evaluation, beside)
        os.replace(tried.path, path)
    return dataclasses.replace(tried, path=path, evaluation=beside)


def _save(program: ExportedProgram, path: pathlib.Path) -> None:
    _mend_blocks(program.graph_module)
    try:
        torch.export.save(program, path)
    except OSError:
        raise
    except Exception as error:
        raise ExportError(f"torch.export cannot write what it exported: {tracing.first_lines(error)}") from error


def _mend_blocks(module: torch.fx.GraphModule) -> None:
    """Blocks under no_grad() that give nothing back: torch writes them, and cannot read the file.

    One that writes into tensors gives back what it wrote last; any other is removed."""
    for node in list(module.graph.nodes):
        if node.op != "call_function" or node.target is not torch.ops.higher_order.wrap_with_set_grad_enabled:
            continue
        holder = node.args[1]
        block = getattr(module, holder.target)
        _mend_blocks(block)
        *_, output = block.graph.nodes
        if output.args[0]:
            continue
        written = [inner for inner in block.graph.nodes if inner.op == "call_function" and _writes(inner.target)]
        if written:
            output.args = ((written[-1],),)
            block.recompile()
            node.meta["val"] = (written[-1].meta.get("val"),)
        else:
            module.graph.erase_node(node)
            if not holder.users:
                module.graph.erase_node(holder)
    module.recompile()


def _writes(target: Any) -> bool:
    return bool(getattr(getattr(target, "_schema", None), "is_mutable", True))


def digest(programs: Programs, with_weights: bool = True) -> str:
    """16 hexadecimal digits of what the exports compute. Files differ from one export to the next, this does not.

    with_weights: whether values of trained parameters count; shapes and the values of the rest always do.
    """
    content = hashlib.blake2b(f"batch {programs.batch};".encode(), digest_size=8)
    for program in filter(None, (programs.training, programs.evaluation)):
        content.update(program.graph_module.code.encode())
        content.update(repr(program.graph_signature.user_outputs).encode())
        content.update(repr(program.module_call_graph[0].signature.out_spec).encode())
        content.update(repr(sorted(map(str, program.range_constraints.values()))).encode())
        content.update(repr(_input_forms(program)).encode())
    parameters = programs.source.module.named_parameters(remove_duplicate=False)
    trained = {("state", name) for name, weight in parameters if weight.requires_grad}
    for place, tensor in sorted(_tensors(programs).items()):
        form = f"{getattr(tensor, 'dtype', '')} {tuple(getattr(tensor, 'shape', ()))}"
        content.update(f"{' '.join(place)} {form} {place in trained};".encode())
        if isinstance(tensor, torch.Tensor) and (with_weights or place not in trained):
            content.update(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return content.hexdigest()


def _input_forms(program: ExportedProgram) -> List[Tuple[str, ...]]:
    """Name, type and shape of each input that is not a weight. The graph's code does not have them."""
    names = set(program.graph_signature.user_inputs)
    inputs = [node for node in program.graph.nodes if node.op == "placeholder" and node.name in names]
    values = [(node.name, node.meta.get("val")) for node in inputs]
    return [(name, str(value.dtype), str(tuple(value.shape))) if isinstance(value, torch.Tensor) else (name, repr(value))
            for name, value in values]


def _tensors(programs: Programs) -> Dict[Tuple[str, str], Any]:
    """The state dict and the constants of each graph, by where they belong and name: both graphs use the same names."""
    evaluation = programs.evaluation.constants if programs.evaluation is not None else {}
    parts = {"state": programs.source.module.state_dict(keep_vars=True), "training": programs.training.constants,
             "evaluation": evaluation}
    return {(part, name): tensor for part, tensors in parts.items() for name, tensor in tensors.items()}


def _name(module: nn.Module) -> str:
    return type(module).__name__


def _batch_size(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> int:
    sizes = [leaf.shape[0] for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor) and leaf.dim()]
    if not sizes:
        raise ExportError("example: found no tensor with a dimension, wanted inputs with the batch first")
    return sizes[0]


def _exported(source: Traceable, bound: Dict[str, Any], size: int, batch: Batch, evaluation: bool) -> Programs:
    """Both graphs with an open batch where that is wanted and possible, at the example's batch otherwise."""
    def traced(dim: Any, fixed: Optional[int] = None, because: Optional[str] = None) -> Programs:
        shapes = None if dim is None else pytree.tree_map(
            lambda leaf: {0: dim} if isinstance(leaf, torch.Tensor) and leaf.dim() and leaf.shape[0] == size else None, bound)
        training = tracing.trace(source.in_training(), source, shapes)
        eval_graph = tracing.trace(source.module.eval(), source, shapes) if evaluation else None
        return Programs(source, training, eval_graph, fixed, because)

    if isinstance(batch, int):
        return traced(None, batch)
    reason = "the example has one sample, and an open batch wants two or more" if size < 2 else ""
    for dim in [] if reason else [batch] if batch is not None else [torch.export.Dim("batch"), torch.export.Dim.AUTO]:
        try:
            found = traced(dim)
            fixed = check.why_fixed(found.training, size)
            if fixed is None:
                return found
            reason = reason or fixed
        except ExportError as error:
            reason = reason or str(error)
    found = traced(None, size, reason)  # what this throws is not about the batch
    warnings.warn(f"the batch size is fixed at {size}, since torch.export cannot leave it open: {reason}", stacklevel=4)
    return found
