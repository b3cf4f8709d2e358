"""The search space: distributions, in the words of the config's `parameters` (docs/config.md)."""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Union

Number = Union[int, float]


class Distribution:
    """What a parameter is drawn from. Made by the functions below.

    An object is one parameter: used in two places, both get the same value. `keys` is its map in the config; `gridded`
    is whether it asks for `method: grid`.
    """

    def __init__(self, keys: Dict[str, Any], gridded: bool = False) -> None:
        self.keys = {key: value for key, value in keys.items() if value is not None}
        self.gridded = gridded

    def __repr__(self) -> str:
        inside = ", ".join(f"{key}: {value}" for key, value in self.keys.items())
        return f"Distribution({inside})"


def uniform(min: Number, max: Number, q: Optional[Number] = None) -> Distribution:
    """Real numbers from `min` to `max`, all equally likely; with `q` rounded to its multiples."""
    return _between("q_uniform" if q is not None else "uniform", min, max, q)


def log_uniform(min: Number, max: Number, q: Optional[Number] = None) -> Distribution:
    """Real numbers from `min` to `max`, whose logarithms are equally likely; with `q` rounded to its multiples.

    The bounds are values, as in the config's `log_uniform_values`.
    """
    return _between("q_log_uniform_values" if q is not None else "log_uniform_values", min, max, q)


def inv_log_uniform(min: Number, max: Number) -> Distribution:
    """Real numbers from `min` to `max`, spread as the config's `inv_log_uniform_values`: for rates close to 1."""
    return _between("inv_log_uniform_values", min, max)


def int_(min: int, max: int, q: Optional[int] = None) -> Distribution:
    """Whole numbers from `min` to `max`, both included; with `q` only its multiples."""
    return _between("q_uniform" if q is not None else "int_uniform", min, max, q)


def normal(mu: Number = 0, sigma: Number = 1, q: Optional[Number] = None) -> Distribution:
    """Normal numbers of mean `mu` and standard deviation `sigma`; with `q` rounded to its multiples."""
    return Distribution({"distribution": "q_normal" if q is not None else "normal", "mu": mu, "sigma": sigma, "q": q})


def log_normal(mu: Number = 0, sigma: Number = 1, q: Optional[Number] = None) -> Distribution:
    """Numbers whose logarithms are normal, of mean `mu` and deviation `sigma`; with `q` rounded to its multiples."""
    name = "q_log_normal" if q is not None else "log_normal"
    return Distribution({"distribution": name, "mu": mu, "sigma": sigma, "q": q})


def choice(values: Sequence[Any], probabilities: Optional[Sequence[float]] = None) -> Distribution:
    """One of `values`: numbers, words, booleans or None; all equally likely unless `probabilities` says otherwise."""
    chances: Optional[List[float]] = None if probabilities is None else list(probabilities)
    return Distribution({"values": list(values), "probabilities": chances})


def grid(values: Sequence[Any]) -> Distribution:
    """Each of `values`: as `choice`, and the study's method is `grid` unless `tune` is told another."""
    return Distribution({"values": list(values)}, gridded=True)


def _between(name: str, low: Number, high: Number, q: Optional[Number] = None) -> Distribution:
    return Distribution({"distribution": name, "min": low, "max": high, "q": q})
