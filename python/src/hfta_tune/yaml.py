"""Writes a config as YAML. It need not be read here: the program reads it."""
from __future__ import annotations

import json
import re
from typing import Any, List

_PLAIN = re.compile(r"[A-Za-z_./][A-Za-z0-9_./-]*")
_RESERVED = {"null", "true", "false"}


def dump(tree: Any) -> str:
    """`tree`, made of dicts with text keys, lists, text, numbers, booleans and None, as a YAML document.

    Maps of maps are written line by line, what lies within them in braces. NumPy's and torch's numbers count as numbers.
    Throws TypeError for anything else.
    """
    return "\n".join(_block(tree, "")) + "\n"


def _block(tree: dict, indent: str) -> List[str]:
    lines = []
    for key, value in tree.items():
        if isinstance(value, dict) and any(isinstance(inner, (dict, list)) for inner in value.values()):
            lines.append(f"{indent}{_word(str(key))}:")
            lines.extend(_block(value, indent + "  "))
        else:
            lines.append(f"{indent}{_word(str(key))}: {_flow(value)}")
    return lines


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_word(str(key))}: {_flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_flow(inner) for inner in value) + "]"
    if hasattr(value, "item") and not isinstance(value, str):
        value = value.item()
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return repr(value)
    if isinstance(value, float):  # 1e-05 is a word to readers of YAML 1.1
        text = repr(value)
        return text if "." in text else text.replace("e", ".0e")
    if isinstance(value, str):
        return _word(value)
    raise TypeError(f"a config: found {value!r} of type {type(value).__name__}, wanted numbers, text, lists and dicts")


def _word(text: str) -> str:
    """Plain where YAML cannot mistake it for something else, in double quotes otherwise."""
    if _PLAIN.fullmatch(text) and text.lower() not in _RESERVED and not re.fullmatch(r"[.](inf|nan)|[.\d]+", text.lower()):
        return text
    return json.dumps(text, ensure_ascii=False)
