"""What all peers that run on PyTorch have in common."""

import argparse
import contextlib
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import workloads  # noqa: E402


def set_up(args: argparse.Namespace) -> None:
    torch.set_num_threads(args.threads)
    torch.set_flush_denormal(True)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = False  # float32 is what everyone is raced in


def initial_model(args: argparse.Namespace) -> nn.Module:
    """With the weights that everyone starts from."""
    return workloads.build(args.workload).to(args.device)


def batches(args: argparse.Namespace) -> list[tuple[Tensor, Tensor]]:
    return [(x.to(args.device), y.to(args.device)) for x, y in workloads.load_data(args.workload, args.folder)]


def attention(written_out: bool) -> contextlib.AbstractContextManager:
    """Attention as matrix products and a softmax, or as torch chooses."""
    return sdpa_kernel(SDPBackend.MATH) if written_out else contextlib.nullcontext()


def wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def info(device: str) -> dict[str, Any]:
    if device.startswith("cuda"):
        return {"device_bytes": torch.cuda.max_memory_allocated()}
    return {"runs": f"ATen {torch.backends.cpu.get_cpu_capability()}"}
