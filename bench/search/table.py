#!/usr/bin/env python3
"""One table of what hfta_bench_search and optuna_regret.py measured, and how the two compare.

    table.py OURS.json OPTUNA.json

Regret: the median over seeds, with its quartiles. A cell is a function, a number of evaluations and a size of batches.
"""
import json
import math
import pathlib
import statistics
import sys

LEAST = 1e-12  # regrets below are as good as none: a geometric mean knows no zero


def quantile(values, share):
    values = sorted(values)
    at = share * (len(values) - 1)
    low = math.floor(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (at - low)


def medians(result):
    """{(function, batch, mark): {sampler: values of all seeds}}"""
    cells = {}
    for key, runs in result["regret"].items():
        function, sampler, batch = key.split("/")
        for i, mark in enumerate(result["marks"]):
            cells.setdefault((function, int(batch), mark), {})[sampler] = [run[i] for run in runs]
    return cells


def regret_table(programs):
    marks = programs[0]["marks"]
    rows = ["| function | at once | sampler | " + " | ".join(f"after {mark}" for mark in marks) + " |",
            "|---|---|---|" + "---|" * len(marks)]
    keys = [(key.split("/")[0], int(key.split("/")[2])) for key in programs[0]["regret"]]
    for function, batch in dict.fromkeys(sorted(keys)):
        for program in programs:
            cells = medians(program)
            for sampler in cells[function, batch, marks[0]]:
                words = []
                for mark in marks:
                    values = cells.get((function, batch, mark), {}).get(sampler)
                    low, middle, high = (quantile(values, share) for share in (.25, .5, .75))
                    words.append(f"{middle:.2g} [{low:.1g}, {high:.1g}]")
                rows.append(f"| {function} | {batch} | {program['program']} `{sampler}` | " + " | ".join(words) + " |")
    return "\n".join(rows)


def time_table(programs):
    """Milliseconds of one ask, the worst over the functions."""
    sizes = sorted({int(key.split("/")[2]) for key in programs[0]["milliseconds"]})
    rows = ["| sampler | " + " | ".join(f"{size} trials" for size in sizes) + " |", "|---|" + "---|" * len(sizes)]
    for program in programs:
        worst = {}
        for key, took in program["milliseconds"].items():
            _, sampler, size = key.split("/")
            worst[sampler, int(size)] = max(took, worst.get((sampler, int(size)), 0))
        for sampler in dict.fromkeys(name for name, _ in worst):
            cells = " | ".join(f"{worst[sampler, size]:.2g}" for size in sizes)
            rows.append(f"| {program['program']} `{sampler}` | {cells} |")
    return "\n".join(rows)


def geometric_means(program):
    """{sampler: geometric mean of its medians over all cells}"""
    logs = {}
    for values in medians(program).values():
        for sampler, runs in values.items():
            logs.setdefault(sampler, []).append(math.log(max(statistics.median(runs), LEAST)))
    most = max(map(len, logs.values()))
    return {sampler: math.exp(sum(all_) / len(all_)) for sampler, all_ in logs.items() if len(all_) == most}


def verdicts(ours, theirs):
    lines = []
    mine, other = medians(ours), medians(theirs)
    beyond = [cell for cell in mine if "tpe" in mine[cell] and "tpe" in other.get(cell, {}) and
              statistics.median(mine[cell]["tpe"]) > quantile(other[cell]["tpe"], .75)]
    lines.append("TPE: our median is beyond the 75th percentile of Optuna's in " +
                 (", ".join("%s, %d at once, after %d" % cell for cell in beyond) or "no cell"))
    for program in (ours, theirs):
        means = sorted(geometric_means(program).items(), key=lambda item: item[1])
        lines.append(f"{program['program']}, geometric mean of all cells: " +
                     ", ".join(f"{sampler} {mean:.2g}" for sampler, mean in means))
    slower = [key for key, took in ours["milliseconds"].items()
              if took >= theirs["milliseconds"].get(key.replace("/sobol/", "/qmc/"), math.inf)]
    lines.append("Slower per ask than the sampler of that name in Optuna: " + (", ".join(slower) or "none"))
    return "\n".join(lines)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    programs = [json.loads(pathlib.Path(name).read_text()) for name in sys.argv[1:]]
    print(regret_table(programs), time_table(programs), verdicts(*programs), sep="\n\n")


if __name__ == "__main__":
    main()
