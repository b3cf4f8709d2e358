#!/usr/bin/env python3
"""Where a step's time goes on a GPU, kernel by kernel, from traces that hfta_bench_step --trace wrote.

bench/kernels.py TRACE.json...: for each, kernels and microseconds a step, those that take most first. Several chunks of
slots run at once: a step of one chunk counts as a step, and what kernels take together may be more than the time spanned.
"""

import json
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

WORK = {"kernel", "gpu_memcpy", "gpu_memset"}
OPTIMIZER = "step_kernel"  # a step ends with one, or with several in a row
SHOWN = 40


def short(name: str) -> str:
    """A kernel's name without what is the same in many."""
    name = re.sub(r"hfta::fusion::(cuda::)?(\(anonymous namespace\)::)?", "", name)
    return re.sub(r"at::(native|cuda)::|void ", "", name)


def steps_in(events: list[dict[str, Any]]) -> int:
    """Runs of the optimizer's kernels on a stream, on which one chunk steps at a time."""
    steps, before = 0, {}
    for event in sorted(events, key=lambda e: e["ts"]):
        stream, is_optimizer = event.get("args", {}).get("stream"), OPTIMIZER in event["name"]
        steps += is_optimizer and not before.get(stream, False)
        before[stream] = is_optimizer
    return max(1, steps)


def show(path: Path) -> None:
    events: list[dict[str, Any]] = [e for e in json.loads(path.read_text())["traceEvents"] if e.get("cat") in WORK]
    if not events:
        raise SystemExit(f"{path}: found no kernels; wanted a trace of hfta_bench_step --device cuda --trace")
    steps = steps_in(events)
    span = max(e["ts"] + e["dur"] for e in events) - min(e["ts"] for e in events)
    taken: dict[str, list[float]] = defaultdict(list)
    for event in events:
        taken[short(event["name"])].append(event["dur"])
    print(f"{path.name}: {len(events) / steps:.1f} kernels and copies a step, {sum(map(sum, taken.values())) / steps:.1f} us of "
          f"them in {span / steps:.1f} us, {steps} steps")
    for name, times in sorted(taken.items(), key=lambda entry: -sum(entry[1]))[:SHOWN]:
        print(f"{sum(times) / steps:9.1f} us {len(times) / steps:6.1f} x {sum(times) / len(times):8.2f}  {name[:100]}")


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__.strip())
        raise SystemExit(0 if len(sys.argv) > 1 else 2)
    for path in sys.argv[1:]:
        show(Path(path))


if __name__ == "__main__":
    main()
