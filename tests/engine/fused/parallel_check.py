"""Studies on a device of several processes, some of which are killed, end with the table of one that nothing disturbed.

usage: parallel_check.py HFTA_TUNE SCRATCH_FOLDER [PART ...]

equal    two and three processes find what one device does, in float64 up to rounding, and the same bits each time
killed   a process behind the first is killed, the run ends soon with an error, and the same command goes on
failed   a process behind the first meets an error, which the run ends with, and the same command goes on
first    the first process is killed, the others end, and the same command goes on
stopped  SIGINT to all of them, as a terminal sends it, is a pause
refused  a model with batch norm is refused where batches have to be divided, and the op is named
unequal  processes that have unequal parts of the batches find what one device does, and so again
slots    processes that have slots of their own find the bits that one device does, with batch norm, too; killed as well
stages   processes that have layers of their own find the bits that one device does; killed, stopped, refused, as well
unbound  no process is bound to a processor
chosen   what is fastest is found out, told, remembered, and what a study was begun with stays
"""

import contextlib
import json
import os
import pathlib
import random
import signal
import sqlite3
import subprocess
import sys
import time

from kills_check import read_tables, same_tables
from study_check import wait_stopped

TOLERANCE = 1e-9  # of float64, whatever the ranks
TEXT = """
study: s
storage: s.db
seed: 3
method: random
run_cap: 6
metric: {name: val_loss, goal: minimize}
parameters:
  lr: {min: 0.01, max: 0.1}
  drop: {min: 0.0, max: 0.5}
data: {name: digits, batch_size: 50, validation: 0.2, test: 0.1}
model:
  layers: [{conv2d: [1, 8, 3], padding: 1}, relu, flatten, {dropout: "${drop}"}, {linear: [512, 10]}]
train:
  loss: cross_entropy
  optimizer: {name: sgd, lr: "${lr}", momentum: 0.9}
  clip_norm: 1.0
  epochs: 4
  dtype: float64
array: {divide: batches_evenly}
"""
BATCH_NORM = ("padding: 1}, relu", "padding: 1}, {batch_norm2d: 8}, relu")
# More layers, so that three stages have some each. Gradients of all of them are clipped together.
STAGES = (TEXT.replace(*BATCH_NORM).replace("batches_evenly", "stages")
          .replace("relu, flatten", "relu, {conv2d: [8, 8, 3], padding: 1}, {max_pool2d: 2}, relu, flatten, "
                                    "{linear: [128, 32]}, relu")
          .replace("[512, 10]", "[32, 10]"))
# What it is on one device: by the one executor that runs stages.
WHOLE = STAGES.replace("divide: stages", "divide: auto") + "memory: {policy: recompute}\n"


class Studies:
    def __init__(self, program, scratch):
        self.program, self.scratch, self.count = str(pathlib.Path(program).resolve()), scratch, 0
        scratch.mkdir(parents=True, exist_ok=True)
        self.environment = {**os.environ, "HFTA_CACHE": str(scratch / "cache")}

    def folder(self, text=TEXT):
        self.count += 1
        folder = self.scratch / str(self.count)
        folder.mkdir()
        (folder / "s.yaml").write_text(text)
        return folder

    def start(self, folder, device, *options, **variables):
        return subprocess.Popen([self.program, "s.yaml", "--device", device, *options], cwd=folder,
                                env={**self.environment, **variables}, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True, start_new_session=True)

    def run(self, folder, device, wanted=0, *options, **variables):
        process = self.start(folder, device, *options, **variables)
        told = process.communicate(timeout=300)[1]
        assert process.returncode == wanted, f"exit {process.returncode}, wanted {wanted}: {told}"
        return told

    def tables(self, device, text=TEXT):
        folder = self.folder(text)
        self.run(folder, device)
        return read_tables(folder / "s.db")


def ranks_of(session):
    """The processes of the session that are ranks behind the first."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if b"rank" in words[:2] and os.getsid(int(folder.name)) == session:
                found.append(int(folder.name))
        except (OSError, ValueError):
            continue
    return found


def wait_for(what, seconds=60):
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)
    return found


def kill_unless_ended(victim):
    """A run may be over before the signal is sent: how soon depends on the machine."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(victim, signal.SIGKILL)


def wait_for_round(process):
    for line in process.stderr:
        if line.startswith("round "):
            break


def check_killed_at_a_place(studies, text, device, expected, place="rank-run@3=kill"):
    folder = studies.folder(text)
    told = studies.run(folder, device, 4, HFTA_FAULTS=place)
    assert "was ended by signal 9" in told, told
    studies.run(folder, device)
    same_tables(read_tables(folder / "s.db"), expected)


def start_held(studies, text, device):
    """A study whose first process stands still in the middle until it is continued, however fast the machine is; its
    folder and that process."""
    folder = studies.folder(text)
    process = studies.start(folder, device, HFTA_FAULTS="epoch-ended@3=stop")
    wait_stopped(process)
    return folder, process


def check_stopped(studies, text, device):
    whole = studies.folder(text)
    studies.run(whole, device)
    folder, process = start_held(studies, text, device)
    assert ranks_of(process.pid)
    os.killpg(process.pid, signal.SIGINT)
    os.kill(process.pid, signal.SIGCONT)
    told = process.communicate(timeout=300)[1]
    assert process.returncode == 128 + signal.SIGINT, told
    assert not ranks_of(process.pid)
    studies.run(folder, device)
    same_tables(read_tables(folder / "s.db"), read_tables(whole / "s.db"))


def equal(studies):
    one, two = studies.tables("cpu:1"), studies.tables("cpu:1+cpu:1")
    same_tables(two, one, TOLERANCE)
    same_tables(studies.tables("cpu:1+cpu:1+cpu:1"), one, TOLERANCE)
    same_tables(studies.tables("cpu:1+cpu:1"), two)
    assert two != one, "wanted sums in another order to be seen in some bit"


def killed(studies):
    text, draw = TEXT.replace("epochs: 4", "epochs: 20"), random.Random(5)
    expected = studies.tables("cpu:1+cpu:1+cpu:1", text)
    for place in range(3):
        folder = studies.folder(text)
        process = studies.start(folder, "cpu:1+cpu:1+cpu:1")
        victim = draw.choice(wait_for(lambda: ranks if len(ranks := ranks_of(process.pid)) == 2 else None))
        time.sleep(draw.uniform(0, 0.4))
        kill_unless_ended(victim)
        began = time.monotonic()
        told = process.communicate(timeout=300)[1]
        assert process.returncode in (0, 4), told  # 0: it had ended before
        assert time.monotonic() - began < 60, "a dead rank was waited for"
        assert process.returncode == 0 or "was ended by signal 9" in told, told
        assert not ranks_of(process.pid)
        studies.run(folder, "cpu:1+cpu:1+cpu:1")
        same_tables(read_tables(folder / "s.db"), expected)
    check_killed_at_a_place(studies, text, "cpu:1+cpu:1+cpu:1", expected)


def failed(studies):
    expected = studies.tables("cpu:1+cpu:1")
    folder = studies.folder()
    told = studies.run(folder, "cpu:1+cpu:1", 4, HFTA_FAULTS="rank-run@3=fail")
    assert "rank 1: " in told and "rank-run" in told, told
    studies.run(folder, "cpu:1+cpu:1")
    same_tables(read_tables(folder / "s.db"), expected)


def first(studies):
    expected = studies.tables("cpu:1+cpu:1")
    folder = studies.folder()
    process = studies.start(folder, "cpu:1+cpu:1", HFTA_FAULTS="epoch-cpu:1+cpu:1@3=kill")
    process.communicate(timeout=300)
    assert process.returncode == -signal.SIGKILL
    wait_for(lambda: not ranks_of(process.pid))
    studies.run(folder, "cpu:1+cpu:1")
    same_tables(read_tables(folder / "s.db"), expected)


def stopped(studies):
    check_stopped(studies, TEXT.replace("epochs: 4", "epochs: 12"), "cpu:1+cpu:1")


def refused(studies):
    text = TEXT.replace(*BATCH_NORM)
    told = studies.run(studies.folder(text), "cpu:1+cpu:1", 2)
    assert "aten::batch_norm in layers.1 takes statistics over the whole batch" in told, told


def unequal(studies):
    """The parts are put in the store's place for them, as measured ones differ from run to run."""
    one, text = studies.tables("cpu:1"), TEXT.replace("batches_evenly", "batches")
    folder, again = studies.folder(text), studies.folder(text)
    studies.run(folder, "cpu:1+cpu:1")
    for remembered in (studies.scratch / "cache").glob("*.json"):
        kept = json.loads(remembered.read_text())
        if "ranks" in kept:
            kept["ranks"]["chosen"] = {"of": "batches", "parts": [5, 2]}
            remembered.write_text(json.dumps(kept))
    for place in (folder, again):
        (place / "s.db").unlink(missing_ok=True)
        studies.run(place, "cpu:1+cpu:1")
        assert ranks_stored(place)["chosen"]["parts"] == [5, 2]
    same_tables(read_tables(folder / "s.db"), one, TOLERANCE)
    same_tables(read_tables(folder / "s.db"), read_tables(again / "s.db"))


def choices_stored(folder):
    with contextlib.closing(sqlite3.connect(folder / "s.db")) as db:
        return json.loads(db.execute("SELECT choices_json FROM hfta_arrays").fetchone()[0])["choices"]


def ranks_stored(folder):
    return choices_stored(folder)["ranks"]


def slots(studies):
    text = TEXT.replace("batches_evenly", "slots").replace(*BATCH_NORM)
    one, three = studies.folder(text), studies.folder(text)
    studies.run(one, "cpu:1")
    studies.run(three, "cpu:1+cpu:1+cpu:1")
    assert sum(part > 0 for part in ranks_stored(three)["chosen"]["parts"]) > 1
    same_tables(read_tables(three / "s.db"), read_tables(one / "s.db"))
    check_killed_at_a_place(studies, text, "cpu:1+cpu:1+cpu:1", read_tables(one / "s.db"), "rank-run@2=kill")


def killed_in_stages(studies, device, expected):
    """At a place, and at any moment."""
    check_killed_at_a_place(studies, STAGES, device, expected)
    folder = studies.folder(STAGES)
    process = studies.start(folder, device)
    victim = wait_for(lambda: ranks_of(process.pid))[-1]
    wait_for_round(process)
    kill_unless_ended(victim)
    told = process.communicate(timeout=300)[1]
    assert process.returncode in (0, 4), told  # 0: it had ended before
    assert process.returncode == 0 or "was ended by signal 9" in told, told
    studies.run(folder, device)
    same_tables(read_tables(folder / "s.db"), expected)


def stages_left(studies):
    """A study that goes on without stages, or with more of them, says so."""
    for device, divide in (("cpu:1", "auto"), ("cpu:1+cpu:1+cpu:1", "stages")):
        folder = studies.folder(STAGES)
        studies.run(folder, "cpu:1+cpu:1", 4, HFTA_FAULTS="rank-run@3=kill")
        told = studies.run(folder, device, 0, "--set", f"array.divide={divide}")
        assert "trained in 2 stages before; results from now on agree with it only up to rounding" in told, told


def stages(studies):
    one, two, three = (studies.folder(text) for text in (WHOLE, STAGES, STAGES))
    studies.run(one, "cpu:1")
    studies.run(two, "cpu:1+cpu:1")
    studies.run(three, "cpu:1+cpu:1+cpu:1")
    expected = read_tables(one / "s.db")
    same_tables(read_tables(two / "s.db"), expected)
    same_tables(read_tables(three / "s.db"), expected)
    assert ranks_stored(three)["chosen"] == {"of": "stages", "parts": [1, 1, 1]}
    assert choices_stored(three)["how"] == "not measured"
    killed_in_stages(studies, "cpu:1+cpu:1+cpu:1", expected)
    check_stopped(studies, STAGES.replace("epochs: 4", "epochs: 12"), "cpu:1+cpu:1")
    stages_left(studies)
    told = studies.run(studies.folder(STAGES), "cpu:1", 2)
    assert "array.divide: found stages for the device cpu:1, wanted devices of a part for each stage" in told, told
    narrow = studies.folder(STAGES.replace("float64", "float32\n  precision: bfloat16"))
    told = studies.run(narrow, "cpu:1+cpu:1", 2)
    assert "array.divide: found stages, wanted auto or slots" in told and "bfloat16" in told, told


def unbound(studies):
    """OpenMP binds threads where OMP_PROC_BIND says so, and LIBXSMM sets that."""
    _, process = start_held(studies, TEXT, "cpu:1+cpu:1+cpu:1")
    ranks = ranks_of(process.pid)
    assert len(ranks) == 2, ranks
    for rank in ranks:
        assert os.sched_getaffinity(rank) == os.sched_getaffinity(0)
        for thread in pathlib.Path(f"/proc/{rank}/task").iterdir():
            with contextlib.suppress(ProcessLookupError):  # a thread that has ended since
                assert os.sched_getaffinity(int(thread.name)) == os.sched_getaffinity(0)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=300)


def chosen(studies):
    for remembered in (studies.scratch / "cache").glob("*.json"):
        remembered.unlink()
    folder = studies.folder(TEXT.replace("batches_evenly", "auto"))
    studies.run(folder, "cpu:1+cpu:1", 0, "--set", "train.epochs=2")
    found = ranks_stored(folder)
    report = subprocess.run([studies.program, "report", "--storage", "s.db"], cwd=folder, check=True, text=True,
                            capture_output=True).stdout
    parts = ":".join(map(str, found["chosen"]["parts"]))
    assert f"; {found['chosen']['of']} {parts} over ranks" in report, report
    assert all(plan["tried_seconds"] > 0 for plan in found["plans"]) and len(found["plans"]) >= 2, found
    fastest = min(plan["tried_seconds"] for plan in found["plans"])
    best = [plan for plan in found["plans"] if plan["tried_seconds"] <= 1.03 * fastest]
    assert found["chosen"] == {key: best[0][key] for key in ("of", "parts")}, found
    again = studies.folder(TEXT.replace("batches_evenly", "auto"))
    studies.run(again, "cpu:1+cpu:1", 0, "--set", "train.epochs=2")
    assert ranks_stored(again) == found, "this machine remembers"
    alone = studies.folder()
    studies.run(alone, "cpu:1", 0, "--set", "train.epochs=2")
    assert "ranks" not in choices_stored(alone), "a device without ranks has what ranks share"


PARTS = {part.__name__: part for part in (equal, killed, failed, first, stopped, refused, unequal, slots,
                                                 stages, unbound, chosen)}


def main():
    studies = Studies(sys.argv[1], pathlib.Path(sys.argv[2]) / str(os.getpid()))
    for name in sys.argv[3:] or PARTS:
        began = time.monotonic()
        PARTS[name](studies)
        print(f"{name}: as wanted ({time.monotonic() - began:.1f} s)", flush=True)


if __name__ == "__main__":
    main()
