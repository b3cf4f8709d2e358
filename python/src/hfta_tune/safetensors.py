"""Reads the weights that `hfta-tune export` writes, without the package of that name."""
from __future__ import annotations

import json
import os
from typing import Dict, Tuple, Union

import torch

from .errors import HftaError

_DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
    "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
    "C64": torch.complex64,
}


def load_file(path: Union[str, "os.PathLike[str]"]) -> Dict[str, torch.Tensor]:
    """The tensors of a .safetensors file by name, on the CPU. Throws HftaError for a type that is not known."""
    return load_with_metadata(path)[0]


def load_with_metadata(path: Union[str, "os.PathLike[str]"]) -> Tuple[Dict[str, torch.Tensor], Dict[str, str]]:
    """As `load_file`, and what the file says of itself."""
    with open(path, "rb") as file:
        data = bytearray(file.read())
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + length].decode("utf-8"))
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        if entry["dtype"] not in _DTYPES:
            raise HftaError(f"{path}: {name}: found the type {entry['dtype']}, wanted one of {', '.join(_DTYPES)}")
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        dtype = _DTYPES[entry["dtype"]]
        flat = torch.frombuffer(data[begin:end], dtype=dtype) if end > begin else torch.empty(0, dtype=dtype)
        tensors[name] = flat.reshape(entry["shape"])
    return tensors, metadata
