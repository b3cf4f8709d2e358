"""What torch has one of in a process: tracing, the random numbers, the filter of warnings. One thread at a time uses it."""
from __future__ import annotations

import contextlib
import threading
from typing import Iterator

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

# Of the module, and not of an object: the state that it guards is torch's own, and torch is in a process once.
_LOCK = threading.RLock()
_guard_made = False


@contextlib.contextmanager
def exclusive() -> Iterator[None]:
    """While this thread exports, or draws random numbers from a seed, other threads of the package wait."""
    with _LOCK:
        _make_device_guard()
        yield


def _make_device_guard() -> None:
    """Lets a thread that never ends be the first one that traces.

    Where torch was built for CUDA and finds no device, the first FakeTensorMode of a process makes a substitute for CUDA's
    device guard. c10::impl::ensureCUDADeviceGuardSet keeps it in a thread_local, and a pointer to it for all threads: when
    that thread has ended, the next export crashes Python. The main thread ends last, so that it needs no other.
    """
    global _guard_made
    if _guard_made:
        return
    if threading.current_thread() is threading.main_thread():
        _enter()
    else:
        made = threading.Event()
        threading.Thread(target=_enter_and_stay, args=(made,), name="hfta-tune-device-guard", daemon=True).start()
        made.wait()
    _guard_made = True


def _enter() -> None:
    with FakeTensorMode():
        torch.empty(0)


def _enter_and_stay(made: threading.Event) -> None:
    try:
        _enter()
    finally:
        made.set()
    threading.Event().wait()
