"""What is tuned: a module, or a function that makes one for each value of the parameters that change its shape."""
from __future__ import annotations

import copy
import fnmatch
import inspect
import itertools
from typing import Any, Callable, Dict, Iterator, List, Mapping, Tuple, Union

import torch
from torch import nn

from .errors import ConfigError
from .space import Distribution
from .torch_state import exclusive

Source = Union[nn.Module, Callable[..., nn.Module]]
Values = Dict[str, Any]


def arguments_of(source: Source, names: Iterator[str]) -> List[str]:
    """Those of `names` that the function takes as arguments; none if the source is a module."""
    if isinstance(source, nn.Module):
        return []
    taken = _signature(source).parameters
    return [name for name in names if name in taken]


def _signature(source: Source) -> inspect.Signature:
    wanted = "wanted a torch.nn.Module, or a class or function that makes one"
    if not callable(source):
        raise ConfigError(f"module: found {source!r}, {wanted}")
    try:
        return inspect.signature(source)
    except ValueError:
        raise ConfigError(f"module: found {source!r}, whose arguments Python does not tell, {wanted}") from None


def variants(source: Source, space: Mapping[str, Any]) -> List[Values]:
    """The arguments that the function is called with: every combination of the values of `space` under their names.

    One empty combination if the source is a module. Throws ConfigError for a parameter that is not a choice of whole
    numbers or words.
    """
    values: Dict[str, List[Any]] = {}
    for name in arguments_of(source, iter(space)):
        given = space[name]
        values[name] = given.keys.get("values", [None]) if isinstance(given, Distribution) else [given]
        if not all(isinstance(value, (int, str)) and not isinstance(value, bool) for value in values[name]):
            raise ConfigError(f"space: {name}: found {given!r}, wanted choice([...]) of whole numbers or words, since it is "
                              "an argument of the function that makes the module: one model is exported for each")
    return [dict(zip(values, combination)) for combination in itertools.product(*values.values())]


def make(source: Source, values: Values, seed: int) -> nn.Module:
    """The module for these values. Weights that a function draws follow from `seed`; the state of random numbers stays."""
    if isinstance(source, nn.Module):
        return source
    name = getattr(source, "__name__", type(source).__name__)
    try:
        _signature(source).bind(**values)
    except TypeError as error:
        raise ConfigError(f"module: {name}: {error}: found {list(values)} among the parameters of space, wanted all arguments "
                          "without a default") from error
    with exclusive(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made = source(**values)
    if not isinstance(made, nn.Module):
        raise ConfigError(f"module: {name}: found {type(made).__name__} as what it returns, wanted a torch.nn.Module")
    return made


def without_values(source: Source) -> Source:
    """The source as it is now, in little memory: a module's state dict has shapes and no values, all else is copied.

    What is done to the module later, such as PEFT's wrapping, which replaces layers in place, does not reach it.
    """
    return source if not isinstance(source, nn.Module) else _copy(source, "meta")


def copy_for(source: Source, params: Mapping[str, Any], seed: int) -> nn.Module:
    """A module of its own, on the CPU, of the shape that a trial with these parameters has. Its weights are to be loaded.

    source: as `without_values` gave it. seed: the study's: a function may draw what no state dict has.
    """
    if isinstance(source, nn.Module):
        return _copy(source, "cpu").cpu()
    return make(source, {name: params[name] for name in arguments_of(source, iter(params))}, seed).cpu()


def set_number(module: nn.Module, path: str, value: float) -> bool:
    """Sets the attributes that `path` names, "act.negative_slope" or with `*`. Returns whether there are any.

    "act.negative_slope@0.01" names those alone that are 0.01. "(model)" is the module itself.
    """
    path, _, before = path.partition("@")
    pattern = path.replace("[", "[[]")
    found = False
    for name, part in module.named_modules(remove_duplicate=False):
        for argument, attribute in _numbers_of(part):
            is_meant = not before or float(before) == getattr(part, attribute)
            if is_meant and fnmatch.fnmatchcase(f"{name or '(model)'}.{argument}", pattern):
                setattr(part, attribute, value)
                found = True
    return found


# Modules of torch whose attribute has another name than the op's argument: argument -> attribute.
_NAMED_OTHERWISE: Dict[type, Dict[str, str]] = {
    nn.MultiheadAttention: {"p": "dropout", "dropout_p": "dropout"},
    nn.PairwiseDistance: {"p": "norm"},
}


def _numbers_of(part: nn.Module) -> List[Tuple[str, str]]:
    """The numbers that are attributes of a module, each by the argument of the op that takes it."""
    numbers = [name for name, value in vars(part).items()
               if isinstance(value, (int, float)) and not isinstance(value, bool)]
    others = [(argument, attribute) for kind, names in _NAMED_OTHERWISE.items() if isinstance(part, kind)
              for argument, attribute in names.items()]
    return [(name, name) for name in numbers] + [pair for pair in others if pair[1] in numbers]


def cast(module: nn.Module, dtype: torch.dtype) -> None:
    """Casts real floating tensors to `dtype`, and complex ones to its precision: `nn.Module.to` drops imaginary parts."""
    for tensor in itertools.chain(module.parameters(), module.buffers()):
        if tensor.is_floating_point():
            _retype(tensor, dtype)
        elif tensor.is_complex():
            _retype(tensor, _complex_with(dtype))


def cast_like(module: nn.Module, weights: Mapping[str, torch.Tensor]) -> None:
    """Gives the module's tensors the types that they were trained in, as far as the study's weights tell them.

    Buffers that are not in a state dict go with those weights that had their type. Complex tensors go with the precision of
    the real ones, since files of weights have complex64 alone.
    """
    state = {name: tensor for name, tensor in module.state_dict(keep_vars=True).items()
             if isinstance(tensor, torch.Tensor) and name in weights}
    trained = {name: weights[name].dtype for name, tensor in state.items() if tensor.is_floating_point()}
    if not trained:
        return
    widest = torch.float64 if torch.float64 in trained.values() else torch.float32
    became = {state[name].dtype: dtype for name, dtype in trained.items()}
    stored = {id(tensor) for tensor in state.values()}
    for tensor in itertools.chain(module.parameters(), module.buffers()):
        if tensor.is_complex():
            _retype(tensor, _complex_with(widest))
        elif tensor.is_floating_point() and id(tensor) not in stored:
            _retype(tensor, became.get(tensor.dtype, widest if widest == torch.float64 else tensor.dtype))
    for name, dtype in trained.items():
        _retype(state[name], dtype)


def _complex_with(dtype: torch.dtype) -> torch.dtype:
    return torch.complex128 if dtype == torch.float64 else torch.complex64


def _retype(tensor: torch.Tensor, dtype: torch.dtype) -> None:
    """In place, so that tensors of two names stay one."""
    if tensor.dtype != dtype:
        tensor.data = tensor.data.to(dtype)


def _copy(module: nn.Module, device: str) -> nn.Module:
    """A copy whose state dict is on `device`, of any values. Tensors of two names stay one."""
    empty = {}
    for tensor in module.state_dict(keep_vars=True).values():
        if isinstance(tensor, nn.Parameter):
            empty[id(tensor)] = nn.Parameter(torch.empty_like(tensor, device=device), tensor.requires_grad)
        elif isinstance(tensor, torch.Tensor):
            empty[id(tensor)] = torch.empty_like(tensor, device=device)
    return copy.deepcopy(module, empty)
