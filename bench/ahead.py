"""Prints how far hfta-tune is ahead of the best peer, each at its best width, from what bench/run measured.

    bench/ahead.py bench/results/native-1.json bench/results/avx2-1.json ...

A line for each workload and file: samples per second of both, medians, and their quotient. "Alone": one trial of
hfta-tune on all threads over one of as many PyTorch processes, each of which trains a trial.
"""

import argparse
import json
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def speed(row: Row) -> float:
    return row["samples_per_s"]["median"]


def is_ours(row: Row) -> bool:
    return row["peer"] == "ours"


def line_of(workload: str, rows: list[Row]) -> str:
    ours = max(filter(is_ours, rows), key=speed)
    peer = max((row for row in rows if not is_ours(row)), key=speed)
    alone = [speed(row) for row in rows if is_ours(row) and row["width"] == 1]
    processes = [speed(row) for row in rows if row["peer"].startswith("processes") and row["threads"] > 1]
    cells = [workload, ours["isa"], str(ours["threads"]), f"{speed(ours):,.0f} (B={ours['width']})",
             f"{speed(peer):,.0f} ({peer['peer']}, B={peer['width']})", f"**{speed(ours) / speed(peer):.2f}**",
             f"{alone[0] / max(processes):.2f}" if alone and processes else ""]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="+")
    print("| workload | instructions | threads | hfta-tune | best peer | times | alone |\n|---|---|---|---|---|---|---|")
    for path in parser.parse_args().results:
        rows = [row for row in json.loads(path.read_text())["results"] if "samples_per_s" in row]
        for workload in dict.fromkeys(row["workload"] for row in rows):
            print(line_of(workload, [row for row in rows if row["workload"] == workload]))


if __name__ == "__main__":
    main()
