"""Checks cases one after another, and says of each whether something is wrong with it."""

import time
from typing import Callable, Iterable

import torch


def check_each(names: Iterable[str], check: Callable[[str], list[str]]) -> int:
    """`check(name)`: what is wrong. The exit status."""
    torch.set_num_threads(1)
    count, failed, began = 0, 0, time.monotonic()
    for name in names:
        try:
            wrong = check(name)
        except Exception as error:
            wrong = [f"{type(error).__name__}: {str(error)[:600]}"]
        count += 1
        failed += bool(wrong)
        print(f"{'FAILED' if wrong else 'ok    '} {name}", *wrong, sep="\n    ", flush=True)
    print(f"{count} models, {failed} failed, {time.monotonic() - began:.0f} s")
    return 1 if failed else 0
