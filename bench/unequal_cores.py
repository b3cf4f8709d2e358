"""Two cores of unlike speed, one for each device, and what a study's store says of them."""

import contextlib
import multiprocessing
import os
import sqlite3


def spin(core):
    os.sched_setaffinity(0, {core})
    while True:
        pass


@contextlib.contextmanager
def load(core, loops):
    """That many busy loops on a core."""
    processes = [multiprocessing.Process(target=spin, args=(core,), daemon=True) for _ in range(loops)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.join()


def node_for_each(cores, folder):
    """Words before a command that has it see each core as a NUMA node, so that each device keeps to a core of its own."""
    (folder / "has_cpu").write_text(f"0-{len(cores) - 1}\n")
    for node, core in enumerate(cores):
        (folder / f"node{node}").mkdir()
        (folder / f"node{node}/cpulist").write_text(f"{core}\n")
    mount = f'mount --bind "{folder}" /sys/devices/system/node && exec "$0" "$@"'
    return ["unshare", "--map-root-user", "--mount", "sh", "-c", mount]


def rows(store, query):
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as db:
        return db.execute(query).fetchall()
    return []
