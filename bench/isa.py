"""Everyone held to one instruction set: by the environment variables that each program minds, from the table that the
tests use as well, and, where the processor allows it, by what CPUID tells (held.cpp)."""

import os
from pathlib import Path

NATIVE = "native"  # whatever each finds
TABLE = Path(__file__).resolve().parent.parent / "tests" / "instruction_sets.txt"
CPU = Path("/proc/cpuinfo")
HELD = TABLE.parent.parent / "build/release/bin/hfta_bench_held.so"  # bench/held.cpp
# XLA's own names; not in the table, because nothing of the product runs on it.
XLA = {"sse4": "SSE4_2", "avx": "AVX", "avx2": "AVX2", "avx512": "AVX512"}
# What glibc's memcpy and the like must do without, as long as that set is not reached.
GLIBC = {"sse4": "-AVX_Fast_Unaligned_Load,-AVX2,-AVX512F,-AVX512VL", "avx": "-AVX2,-AVX512F,-AVX512VL",
         "avx2": "-AVX512F,-AVX512VL"}


def table() -> dict[str, tuple[str, dict[str, str]]]:
    """By name: the flag that the CPU needs, and the variables."""
    rows = [line.split() for line in TABLE.read_text().splitlines() if line and not line.startswith("#")]
    return {name: (flag, dict(v.split("=", 1) for v in variables)) for name, flag, *variables in rows}


def flags() -> list[str]:
    """Of this CPU."""
    lines = (line.split(":", 1) for line in CPU.read_text().splitlines() if line.startswith("flags"))
    return next((value.split() for _, value in lines), [])


def masks() -> bool:
    """Whether CPUID itself can be held, so that libraries which mind no variable are as well."""
    return "cpuid_fault" in flags() and HELD.exists()


def held_by(isa: str) -> str:
    return "" if isa == NATIVE else "variables and CPUID" if masks() else "variables"


def names() -> list[str]:
    return [*table(), NATIVE]


def check(isa: str) -> None:
    """Raises ValueError where there is no such set, or this CPU lacks it."""
    if isa not in names():
        raise ValueError(f"found '{isa}', wanted one of {', '.join(names())}")
    if isa == NATIVE:
        return
    flag = table()[isa][0]
    if flag not in flags():
        raise ValueError(f"found {isa}, but this CPU has no {flag}")


def held(isa: str, settings: dict[str, str]) -> dict[str, str]:
    """`settings`, environment variables, with those that hold a program to the set."""
    if isa == NATIVE:
        return settings
    joined = settings | table()[isa][1]
    joined["XLA_FLAGS"] = f"{settings.get('XLA_FLAGS', '')} --xla_cpu_max_isa={XLA[isa]}".strip()
    if isa in GLIBC:
        tunables = [*filter(None, [settings.get("GLIBC_TUNABLES", "")]), f"glibc.cpu.hwcaps={GLIBC[isa]}"]
        joined["GLIBC_TUNABLES"] = ":".join(tunables)
    if masks():
        joined |= {"LD_PRELOAD": str(HELD), "HFTA_BENCH_ISA": isa}
    return joined


def without_limits() -> dict[str, str]:
    """This process's environment, without what would hold only some to a set."""
    limits = {variable for _, variables in table().values() for variable in variables}
    return {k: v for k, v in os.environ.items() if k not in limits}
