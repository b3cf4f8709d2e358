"""Plain trials beside each other: one torch_eager.py per thread (or per slot on a GPU), started and measured at once.
A step is one of all of them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from protocol import arguments, rates, tell


def start(args: Any, rate: float, threads: int) -> subprocess.Popen[str]:
    script = Path(__file__).with_name("torch_eager.py")
    variant = "+".join(word for word in args.variant.split("+") if word != "mps")  # whose service is in the environment
    return subprocess.Popen(
        [sys.executable, str(script), "--folder", str(args.folder), "--workload", args.workload, "--variant",
         variant, "--threads", str(threads), "--device", args.device, "--rate", str(rate)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ask(children: list[subprocess.Popen[str]], line: str) -> list[dict[str, Any]]:
    for child in children:
        print(line, file=child.stdin, flush=True)
    return answers(children)


def answers(children: list[subprocess.Popen[str]]) -> list[dict[str, Any]]:
    return [json.loads(child.stdout.readline()) for child in children]


def main() -> None:
    args = arguments()
    children = [start(args, rate, max(1, args.threads // args.width)) for rate in rates(args.width)]
    ready = answers(children)
    tell({"first_step_s": max(r["first_step_s"] for r in ready),
          "losses": [[step[0] for step in steps] for steps in zip(*(r["losses"] for r in ready))],
          "rss_start": 0, "rss": sum(r["rss"] for r in ready), "runs": ready[0].get("runs", "")})
    for line in sys.stdin:
        if line.split()[0] == "quit":
            break
        results = ask(children, line.strip())
        # Their windows end a little apart: each one's own rate counts.
        steps = sum(r["steps"] / r["wall_s"] for r in results) / len(results)
        wall = max(r["wall_s"] for r in results)
        tell({"steps": steps * wall, "wall_s": wall, "cpu_s": sum(r["cpu_s"] for r in results)})
    ends = ask(children, "quit")
    for child in children:
        child.wait()
    tell({"rss_peak": sum(r["rss_peak"] for r in ends)})


if __name__ == "__main__":
    main()
