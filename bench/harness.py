"""Races hfta-tune's arrays against everyone else: bench/README.md says how it measures."""

import argparse
import hashlib
import json
import math
import os
import platform
import re
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import isa
from check import beyond, check
from peers import RACED, ROOT, SHORT, Contestant, Failed, Race, Server, chosen, contestants, mps

WORK = ROOT / "build" / "bench"
DEFAULT_WIDTHS = {"W3": "1,4,8", "W4": "1,4,8"}
FAR_BEHIND = 0.5  # of the fastest one's rate
CORES = os.cpu_count() or 1
OTHERS = 0.05  # of all cores' time, that other processes and machines may take in a window
PAUSE = 1.0  # seconds


@dataclass
class Entry:
    """What is known of one contestant at one width."""

    server: Server
    facts: dict[str, Any]
    rounds: list[dict[str, float]] = field(default_factory=list)

    def as_json(self, race: Race, batch: int, width: int) -> dict[str, Any]:
        contestant = self.server.contestant
        # One thread's own time is what the wall clock would show on an idle machine.
        clock = "cpu_s" if race.threads == 1 and not race.cuda else "wall_s"
        rate = [self.server.width * batch * r["steps"] / r[clock] for r in self.rounds]
        return {
            "workload": race.workload, "width": width, "peer": contestant.name, "serial": contestant.serial,
            "trials": self.server.width, "threads": race.threads, "device": race.device, "isa": race.isa,
            "held_by": isa.held_by(race.isa), "samples_per_s": {"median": statistics.median(rate), "min": min(rate), "max": max(rate)},
            "ms_per_step": 1e3 * statistics.median(r[clock] / r["steps"] for r in self.rounds),
            "clock": clock, "others": statistics.median(r["others"] for r in self.rounds), "rounds": self.rounds,
            **self.facts,
        }


def prepared(race: Race) -> dict[str, Any]:
    """The workload's facts; its files are written where the code that makes them has changed."""
    sources = b"".join((ROOT / "bench" / name).read_bytes() for name in ("models.py", "workloads.py", "model_zoo.py"))
    stamp = hashlib.sha256(sources).hexdigest()
    noted = race.folder / "stamp"
    if not noted.exists() or noted.read_text() != stamp:
        say(f"{race.workload}: preparing")
        for old in race.folder.glob("reference*.json"):
            old.unlink()
        subprocess.run([sys.executable, str(ROOT / "bench" / "workloads.py"), str(race.folder.parent), race.workload],
                       check=True)
        noted.write_text(stamp)
    return json.loads((race.folder / "workload.json").read_text())


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def available_memory() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))


def why_not(race: Race, width: int, why: str, **facts: str) -> dict[str, Any]:
    return {"workload": race.workload, "width": width, "isa": race.isa, **facts, "why": why}


def launched(contestant: Contestant, race: Race, width: int) -> Server:
    return Server(contestant, race, width, race.folder / f"{contestant.name.replace(':', '-')}.log")


@contextmanager
def started(contestant: Contestant, race: Race, width: int, limit: float, skipped: list[dict[str, Any]],
            server: Server | None = None) -> Iterator[Entry | None]:
    """The peer at work, or None and why in `skipped`. `server`: one that was launched before."""
    begin = time.monotonic()
    try:
        server = server or launched(contestant, race, width)
        server.wait(limit)
        if beyond(race.isa, runs := server.ready.get("runs", "")):
            server.quit()
            raise Failed(f"held to {race.isa}, it runs {runs}")
    except Failed as failure:
        say(f"  {contestant.name}: {failure}")
        skipped.append(why_not(race, width, str(failure), peer=contestant.name))
        yield None
        return
    facts = {k: v for k, v in server.ready.items() if k != "losses"}
    verdict = check(race, server.width, server.ready["losses"])
    facts |= {"ready_s": time.monotonic() - begin, "check": verdict.as_json()}
    say(f"  {contestant.name} is ready after {facts['ready_s']:.1f} s, losses within {verdict.first:.1e}"
        + (" WRONG" if verdict.wrong else ""))
    entry = Entry(server, facts)
    try:
        yield entry
    finally:
        facts |= server.quit()


class Memory:
    """Keeps from starting what would not fit, by what it took at the width before."""

    def __init__(self) -> None:
        self.per_slot: dict[str, float] = {}

    def fits(self, contestant: Contestant, width: int) -> bool:
        return 1.3 * self.per_slot.get(contestant.name, 0) * width < available_memory()

    def note(self, entry: Entry, width: int) -> None:
        self.per_slot[entry.server.contestant.name] = entry.facts.get("rss_peak", 0) / width


def busy_seconds() -> float:
    """Of all cores and processes, since the machine started; what a hypervisor gave to other machines as well."""
    cpu = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _, _, irq, softirq, steal, *_ = map(int, cpu)
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def undisturbed(entry: Entry, args: argparse.Namespace) -> dict[str, float]:
    """One window. If others took more than a little of the machine meanwhile, it is tried again; the least disturbed
    counts."""
    tries: list[dict[str, float]] = []
    while len(tries) < args.tries:
        before = busy_seconds()
        result = entry.server.measure(args.window)
        result["others"] = max(0.0, (busy_seconds() - before - result["cpu_s"]) / result["wall_s"] / CORES)
        tries.append(result)
        if result["others"] < OTHERS or result["wall_s"] > 4 * args.window:
            break
        time.sleep(PAUSE)
    return min(tries, key=lambda r: r["others"])


def in_turn(entries: list[Entry], args: argparse.Namespace) -> None:
    """The first round finds everyone's pace and is not counted. Who is far behind, and cannot even take one step in the
    window, is then measured once."""
    paces = [entry.server.measure(args.window) for entry in entries]
    rates = [e.server.width * p["steps"] / p["wall_s"] for e, p in zip(entries, paces)]
    for r in range(args.rounds):
        for entry, pace, rate in zip(entries, paces, rates):
            if r == 0 or pace["wall_s"] < 4 * args.window or rate > FAR_BEHIND * max(rates):
                entry.rounds.append(undisturbed(entry, args))


def enter_all(stack: ExitStack, some: list[tuple[Contestant, int]], race: Race, args: argparse.Namespace,
              results: dict[str, Any]) -> list[Entry]:
    """Those of (contestant, trials) that get ready: one after another, or, where the GPU does the work, at once."""
    servers = [launched(c, race, trials) if race.cuda else None for c, trials in some]
    entries = [stack.enter_context(started(c, race, trials, min(args.limit, args.deadline - time.monotonic()),
                                           results["skipped"], server))
               for (c, trials), server in zip(some, servers)]
    return [e for e in entries if e]


def race_widths(race: Race, widths: list[int], args: argparse.Namespace, results: dict[str, Any]) -> None:
    if time.monotonic() > args.deadline:
        say(f"{race.workload}: no time is left")
        results["skipped"] += [why_not(race, width, "no time was left") for width in widths]
        return
    facts = prepared(race)
    everyone = []
    for c in chosen(contestants(race), args.peers):
        if c.family == "jax" and race.isa != isa.NATIVE and not isa.masks():
            why = "XLA's libraries look at the CPU alone, and CPUID cannot be held here"
            results["skipped"] += [why_not(race, width, why, peer=c.name) for width in widths]
        else:
            everyone.append(c)
    memory = Memory()
    with ExitStack() as for_all:
        for_all.enter_context(mps(race, any("mps" in c.variant.split("+") for c in everyone)))
        alone = [(c, race.threads if c.family == "processes" else 1) for c in everyone if c.serial]
        serial = enter_all(for_all, alone, race, args, results)
        for width in widths:
            if time.monotonic() > args.deadline:
                say(f"{race.workload}, {width} wide: no time is left")
                results["skipped"].append(why_not(race, width, "no time was left"))
                continue
            say(f"{race.workload}, {width} wide:")
            with ExitStack() as here:
                entries = [Entry(e.server, dict(e.facts)) for e in serial]
                together = [c for c in everyone if not c.serial]
                for c in (c for c in together if not memory.fits(c, width)):
                    say(f"  {c.name}: too little memory")
                    results["skipped"].append(why_not(race, width, "too little memory", peer=c.name))
                entries += enter_all(here, [(c, width) for c in together if memory.fits(c, width)], race, args, results)
                in_turn(entries, args)
            for entry in entries:
                if not entry.server.contestant.serial:
                    memory.note(entry, width)
                results["results"].append(entry.as_json(race, facts["batch"], width))
            args.output.write_text(json.dumps(results, indent=1))
            show(results["results"][-len(entries):])


def show(rows: list[dict[str, Any]]) -> None:
    print(f"{'workload':9}{'B':>4} {'peer':34}{'samples/s':>12}{'min':>12}{'max':>12}{'ms/step':>10}{'RSS MiB':>9}")
    for row in sorted(rows, key=lambda r: -r["samples_per_s"]["median"]):
        rate = row["samples_per_s"]
        print(f"{row['workload']:9}{row['width']:>4} {row['peer']:34}{rate['median']:>12,.0f}{rate['min']:>12,.0f}"
              f"{rate['max']:>12,.0f}{row['ms_per_step']:>10.3f}{row['rss'] / 2**20:>9.0f}"
              + f"  {row.get('runs', '')}  {row.get('lowering', '')}" + ("  WRONG" if row["check"]["wrong"] else "")
              + (f"  {row['others']:.0%} to others" if row["others"] > OTHERS else ""), flush=True)


def machine() -> dict[str, Any]:
    model = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.machine())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"cpu": model, "cores": CORES, "memory_bytes": memory, "kernel": platform.release(),
            "python": platform.python_version(), "load_before": os.getloadavg()[0]}


def gpu() -> dict[str, Any]:
    """Of the first one, as the driver names it; nothing where there is none."""
    try:
        line = subprocess.run(["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"],
                              text=True, capture_output=True, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return {}
    name, memory, driver = (word.strip() for word in line.split(","))
    return {"gpu": name, "gpu_memory": memory, "driver": driver}


def commit() -> str:
    noted = ROOT / "COMMIT"  # where this was carried without its repository
    if noted.exists():
        return noted.read_text().strip()

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(ROOT), *words], text=True, capture_output=True).stdout.strip()

    # Results and what is drawn of them change while they are measured.
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!bench/results", ":!docs")
    return git("describe", "--always") + ("-dirty" if changed else "")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/run", description=__doc__)
    parser.add_argument("--workloads", default="W1,W2,W3,W4,W5", help="by name; bench/workloads.py has them, and zoo those of bench/model_zoo.py")
    parser.add_argument("--peers", default="", help="families (torch, vmap, ours, ...) or full names (jax:scan)")
    parser.add_argument("--widths", default="", help="1,4,8,16,32 by default, 1,4,8 for W3 and W4")
    parser.add_argument("--threads", type=int, default=1, help="cores; on a GPU chunks of ours that run side by side")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--isa", default=isa.NATIVE,
                        help=f"the instruction set that everyone is held to: {', '.join(isa.names())}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--window", type=float, default=0.4, help="seconds that each is measured in a round")
    parser.add_argument("--tries", type=int, default=5, help="for a window in which others used the machine")
    parser.add_argument("--short", action="store_true", help="with --device cuda: only who may win, and starts quickly")
    parser.add_argument("--seconds", type=float, default=math.inf, help="after which no other width is begun")
    parser.add_argument("--limit", type=float, default=600, help="seconds in which a peer has to be ready")
    parser.add_argument("--hfta", type=Path, help="a clone of UofT-EcoSystem/hfta; without it HFTA is not raced")
    parser.add_argument("--binary", type=Path, default=Race.binary, help="hfta_bench_step")
    parser.add_argument("--before", type=Path, help="hfta_bench_step of an earlier commit, raced as `before`")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--add", action="store_true", help="keep what the output has of other workloads and widths")
    args = parser.parse_args()
    try:
        isa.check(args.isa)
    except ValueError as error:
        parser.error(f"--isa: {error}")
    args.deadline = time.monotonic() + args.seconds
    if args.short:
        args.peers = args.peers or SHORT
    if args.output is None:
        name = re.sub("[^a-z0-9]+", "-", gpu().get("gpu", "cuda").lower()) if args.device != "cpu" else "cpu"
        held = "" if args.isa == isa.NATIVE else f"-{args.isa}"
        args.output = ROOT / "bench" / "results" / f"{name}-{args.threads}{held}.json"
    return args


def names_of(words: str) -> list[str]:
    """Workloads by name, `zoo` being all of model_zoo.py."""
    names: list[str] = []
    for word in words.split(","):
        if word == "zoo":
            import model_zoo

            names += model_zoo.ALL
        else:
            names.append(word)
    return names


def settings(args: argparse.Namespace) -> dict[str, str]:
    """As they were asked for, without where things lie on this machine."""
    return {k: str(v) for k, v in vars(args).items() if not isinstance(v, Path) and k != "deadline"}


def isa_of(row: dict[str, Any]) -> str:
    """That the row was measured under; rows from before there was a choice say nothing."""
    return row.get("isa", isa.NATIVE)


def before(args: argparse.Namespace, plan: dict[str, list[int]]) -> dict[str, Any]:
    """What the output has of workloads and widths that are not raced now, or under another instruction set; nothing
    unless it is asked for."""
    if not args.add or not args.output.exists():
        return {"runs": [], "results": [], "skipped": []}
    results = json.loads(args.output.read_text())
    for kind in ("results", "skipped"):
        results[kind] = [row for row in results[kind]
                         if row["width"] not in plan.get(row["workload"], []) or isa_of(row) != args.isa]
    return results


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # peers are told to quit
    args = parsed()
    args.output.parent.mkdir(parents=True, exist_ok=True)
    plan = {workload: [int(w) for w in (args.widths or DEFAULT_WIDTHS.get(workload, "1,4,8,16,32" if workload in RACED else "4")).split(",")]
            for workload in names_of(args.workloads)}
    results = before(args, plan)
    results["runs"].append({
        "machine": machine() | (gpu() if args.device != "cpu" else {}), "commit": commit(),
        "began": time.strftime("%Y-%m-%d %H:%M:%S"), "settings": settings(args),
    })
    for workload, widths in plan.items():
        race = Race(workload, WORK / workload, args.threads, args.device, args.hfta, args.binary, args.before, args.isa)
        race_widths(race, widths, args, results)
        args.output.write_text(json.dumps(results, indent=1))  # also where there was no time for any


if __name__ == "__main__":
    main()
