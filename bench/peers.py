"""Who is raced, and how each is started."""

import json
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import isa

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "bench" / "peers"
sys.path.insert(0, str(SCRIPTS))
from protocol import rates  # noqa: E402

CONVOLUTIONS = {"W2", "W4", "dcgan-g", "dcgan-d", "mobilenet"}
ATTENTION = {"W5", "transformer", "bert"}
RACED = {"W1", "W2", "W3", "W4", "W5", "pointnet-seg", "dcgan-g", "dcgan-d", "mobilenet", "transformer", "bert"}
JAX = {"W1", "W2", "W3", "W4", "W5", "pointnet-seg", "dcgan-g", "dcgan-d", "transformer", "bert"}
SCRIPT_OF = {"torch": "torch_eager", "concurrent": "processes", "jax": "jax_peer", "hfta": "hfta_peer"}

# Freed memory is kept: without it whatever works breadth first pays for page faults at every step.
TUNABLES = ("glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=34359738368:glibc.malloc.top_pad=268435456"
            ":glibc.malloc.hugetlb=1")


@dataclass(frozen=True)
class Contestant:
    family: str  # "torch", "processes", "concurrent", "vmap", "jax", "hfta", "ours", "before"
    variant: str = ""

    @property
    def is_ours(self) -> bool:
        return self.family in ("ours", "before")

    @property
    def name(self) -> str:
        return self.family if self.is_ours and not self.variant else f"{self.family}:{self.variant or 'plain'}"

    @property
    def serial(self) -> bool:
        """Trains one trial, or one a core: its rate is the same at every width."""
        return self.family in ("torch", "processes") or "serial" in self.variant.split("+") and self.family == "jax"


@dataclass(frozen=True)
class Race:
    """What is the same for all who are raced at once."""

    workload: str
    folder: Path
    threads: int
    device: str
    hfta: Path | None = None
    binary: Path = ROOT / "build/release/bin/hfta_bench_step"
    before: Path | None = None
    isa: str = isa.NATIVE  # that everyone is held to

    @property
    def cuda(self) -> bool:
        return self.device.startswith("cuda")


def of_the_zoo(race: Race) -> list[Contestant]:
    """Against models that were not written for this race: PyTorch in all its ways."""
    torch = ["fused", "fused+channels_last", "fused+compiled"]
    beside = [Contestant("before")] if race.before else []
    return [*(Contestant("torch", v) for v in torch), *beside, Contestant("ours")]


def contestants(race: Race) -> list[Contestant]:
    name = race.workload
    if name not in RACED:
        return of_the_zoo(race)
    torch = ["", "fused", "fused+compiled"]
    vmap = ["", "compiled"] if race.cuda else ["", "slots", "compiled"]
    jax = ["serial", ""]
    if name in CONVOLUTIONS:
        torch += ["fused+channels_last"] + ["fused+channels_last+compiled"]
        jax += ["im2col+serial", "im2col", "scan+im2col"]
    if name not in CONVOLUTIONS or race.cuda:  # XLA's convolutions are five times slower inside a loop on a CPU
        jax += ["scan+serial", "scan"]
    if name in ATTENTION:
        torch += ["fused+math"]
        vmap = [f"{v}+math".lstrip("+") for v in vmap]
    if race.cuda:
        torch += ["fused+graphs"] + ["fused+channels_last+graphs"] * (name in CONVOLUTIONS)
        vmap += ["graphs" if name not in ATTENTION else "math+graphs"]
    everyone = [Contestant("torch", v) for v in torch]
    beside = ["fused+channels_last" if name in CONVOLUTIONS else "fused"]
    if race.cuda:
        ways = ["", "+graphs"] + ["+graphs+mps"] * (shutil.which("nvidia-cuda-mps-control") is not None)
        everyone += [Contestant("concurrent", v + way) for v in beside for way in ways]
    elif race.threads > 1:
        everyone += [Contestant("processes", v) for v in sorted({"fused", *beside})]
    everyone += [Contestant("vmap", v) for v in vmap]
    if name in JAX:
        everyone += [Contestant("jax", v) for v in jax]
    if race.hfta:
        everyone += [Contestant("hfta", v) for v in ("", *(["math"] * (name in ATTENTION)))]
    return [*everyone, *([Contestant("before")] if race.before else []), Contestant("ours")]


# What a short race on a GPU is between: those that may win, and start within seconds. Processes side by side do not: on an
# H100 32 of them were not ready after 50 s, and the memory that they took was not there for vmap.
SHORT = ("torch:fused,torch:fused+graphs,torch:fused+channels_last+graphs,vmap:graphs,vmap:math+graphs,jax:plain,jax:scan,"
         "hfta,ours")


def chosen(everyone: list[Contestant], wanted: str) -> list[Contestant]:
    """`wanted`: families and full names, with commas between; "" for all."""
    words = list(filter(None, wanted.split(",")))
    if not words:
        return everyone
    named = [c for c in everyone if c.family in words or c.name in words]
    # Variants that are raced only if asked for.
    known = {c.name for c in everyone} | {c.family for c in everyone}
    return named + [Contestant(*word.split(":", 1)) for word in words if word not in known and ":" in word]


def command(contestant: Contestant, race: Race, width: int) -> list[str]:
    pinned = ["taskset", "-c", "0"] if race.threads == 1 and not race.cuda else []
    if contestant.is_ours:
        binary = race.before if contestant.family == "before" else race.binary
        facts = json.loads((race.folder / "workload.json").read_text())
        return [*pinned, str(binary), "--model", str(race.folder / "model.pt2"), "--data",
                str(race.folder / "data.npz"), "--batch", str(facts["batch"]), "--loss", facts["loss"], "--threads",
                str(race.threads), "--device", race.device, "--rates", ",".join(map(repr, rates(width))),
                "--lowering", contestant.variant or "auto"]
    script = SCRIPT_OF.get(contestant.family, contestant.family)
    line = [*pinned, sys.executable, str(SCRIPTS / f"{script}.py"), "--folder", str(race.folder), "--workload",
            race.workload, "--variant", contestant.variant, "--width", str(width), "--threads", str(race.threads),
            "--device", race.device]
    return line + (["--hfta", str(race.hfta)] if contestant.family == "hfta" else [])


def environment(race: Race, contestant: Contestant) -> dict[str, str]:
    settings = {} if "mps" not in contestant.variant.split("+") else {"CUDA_MPS_PIPE_DIRECTORY": str(mps_folder(race))}
    settings |= {"OMP_NUM_THREADS": str(race.threads), "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    if not contestant.is_ours:  # which sees to its own malloc, as hfta-tune does
        settings["GLIBC_TUNABLES"] = TUNABLES
    if race.cuda:
        settings["JAX_DEFAULT_MATMUL_PRECISION"] = "float32"  # else XLA multiplies in tf32
    else:
        settings["JAX_PLATFORMS"] = "cpu"
        if race.threads == 1:
            settings["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    return {**isa.without_limits(), **isa.held(race.isa, settings)}


def mps_folder(race: Race) -> Path:
    return race.folder.parent / "mps"


@contextmanager
def mps(race: Race, wanted: bool) -> Iterator[None]:
    """NVIDIA's multi-process service, for those peers alone that are told of it."""
    if not wanted:
        yield
        return
    folder = mps_folder(race)
    folder.mkdir(parents=True, exist_ok=True)
    told = {**os.environ, "CUDA_MPS_PIPE_DIRECTORY": str(folder), "CUDA_MPS_LOG_DIRECTORY": str(folder)}
    subprocess.run(["nvidia-cuda-mps-control", "-d"], env=told, check=True)
    try:
        yield
    finally:
        subprocess.run(["nvidia-cuda-mps-control"], env=told, input="quit\n", text=True, check=False)


class Failed(Exception):
    """The peer ended without an answer; its last words."""


class Server:
    """One peer's process."""

    def __init__(self, contestant: Contestant, race: Race, width: int, log: Path) -> None:
        """Starts it, and waits for nothing."""
        self.contestant, self.width, self.log = contestant, width, log
        with log.open("w") as errors:
            self.process = subprocess.Popen(
                command(contestant, race, width), env=environment(race, contestant), text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)

    def wait(self, limit: float) -> None:
        """Until it is ready, but no longer than `limit` seconds."""
        if not select.select([self.process.stdout], [], [], max(0.0, limit))[0]:
            self.process.kill()
            self.process.wait()
            raise Failed(f"not ready after {limit:.0f} s")
        try:
            self.ready = self.answer()
        except Failed:
            self.process.wait()
            raise

    def answer(self) -> dict[str, Any]:
        line = self.process.stdout.readline()
        if not line:
            words = self.log.read_text().strip().splitlines()
            raise Failed(words[-1][:300] if words else f"exit code {self.process.wait()}")
        return json.loads(line)

    def measure(self, seconds: float) -> dict[str, float]:
        print(f"measure {seconds}", file=self.process.stdin, flush=True)
        return self.answer()

    def quit(self) -> dict[str, Any]:
        try:
            print("quit", file=self.process.stdin, flush=True)
            return self.answer()
        except (Failed, BrokenPipeError):
            return {}
        finally:
            with suppress(BrokenPipeError):  # where the peer was told to end otherwise
                self.process.stdin.close()
            self.process.wait()
