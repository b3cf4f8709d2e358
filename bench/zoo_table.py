"""Prints the table of docs/performance.md over models that this program was not tuned on (model_zoo.py), from results of
`bench/run --workloads zoo`: .venv-bench/bin/python bench/zoo_table.py bench/results/zoo-1.json
"""

import json
import statistics
import sys
from pathlib import Path
from typing import Any


def row_of(name: str, rows: dict[str, dict[str, Any]]) -> tuple[float, str]:
    def rate(row: dict[str, Any]) -> float:
        return row["samples_per_s"]["median"]

    ours = rows.pop("ours")
    best = max(rows.values(), key=rate)
    ratio = rate(ours) / rate(best)
    note = ours.get("note", "").removeprefix("LibTorch runs ").removesuffix(", for want of a compiler")
    return ratio, (f"| {name} | {rate(best):,.0f} ({best['peer'].removeprefix('torch:')}) | {rate(ours):,.0f} | {ratio:.2f} "
                   f"| {ours['lowering'].split(',')[0]} | {note.replace('aten::', '') or '-'} |")


def main(files: list[str]) -> None:
    by_model: dict[str, dict[str, dict[str, Any]]] = {}
    for file in files:
        for row in json.loads(Path(file).read_text())["results"]:
            by_model.setdefault(row["workload"], {})[row["peer"]] = row
    raced = {name: rows for name, rows in by_model.items() if "ours" in rows and len(rows) > 1}
    doubtful = [name for name, rows in raced.items() if rows["ours"]["check"]["wrong"]]
    rows = [row_of(name, rows) for name, rows in raced.items() if name not in doubtful]
    print("| model | best of PyTorch | hfta-tune | times | way | LibTorch runs |\n|---|---|---|---|---|---|")
    print("\n".join(line for _, line in rows))
    ratios = [ratio for ratio, _ in rows]
    print(f"\n{len(rows)} models: median {statistics.median(ratios):.2f}, least {min(ratios):.2f}; "
          f"{sum(ratio >= 1 for ratio in ratios)} at least as fast.")
    if doubtful:
        print(f"Left out, because their losses could not be compared: {', '.join(doubtful)}.")


if __name__ == "__main__":
    main(sys.argv[1:])
