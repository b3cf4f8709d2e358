"""Studies that are killed, stopped and taken over from end with the tables of one that nothing disturbed.

usage: kills_check.py HFTA_TUNE SCRATCH_FOLDER [one|several|places|signals|twice|caches|hung ...] [--studies N]

one       a study is killed again and again
several   N studies are killed once each, at any moment
places    a process dies at every place where it writes
signals   SIGTERM and SIGINT inside long epochs
twice     while another program locks the store a stop waits for it; a second signal does not
caches    every life finds an empty cache
hung      a process stands still, another takes over, the first one wakes up
policies  a study is killed under each policy of memory; its table is that of one that keeps all
copies    a population whose worst go on from copies is killed again and again, and where it writes copies
"""

import argparse
import collections
import contextlib
import itertools
import json
import pathlib
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import threading
import time

from study_check import CONV, Runs, study, wait_stopped

KEEP = 3
# Of one thread: threads that wait for each other make times on a busy machine meaningless.
OPTIONS = ("--set", f"keep={KEEP}", "--set", "array.threads=1")
# Many steps of a wide layer: an epoch is long beside starting up.
LONG_EPOCHS = (*OPTIONS, "--set", "data.batch_size=1", "--set", "run_cap=3", "--set", "hyperband.max_epochs=3",
               "--set", "train.epochs=3", "--set", "parameters.hidden={values: [2048, 3072]}")
POPULATION = (*OPTIONS, "--set", "run_cap=16")  # method: pbt
STARTS = ("hfta-tune: running study", "hfta-tune: going on with study")
EXPECTED_LINES = (*STARTS, "round ", "measuring how to run on ", "in an epoch on ", "testing on ", "hfta-tune: stopping after this", "hfta-tune: stopped after")
LENDING = " of idle devices as well"  # which depends on how long epochs took
WAITS = "hfta-tune: another program locks the store"
BETWEEN_PAGES = 0.15  # seconds; what a page holds is told within milliseconds, and pages come 0.2 s apart

TABLES = {
    "trials": "SELECT number, state, value, value_type, draw, reason, exact_json FROM trials"
              " LEFT JOIN trial_values USING (trial_id) LEFT JOIN hfta_trials USING (trial_id) ORDER BY number",
    "parameters": "SELECT number, param_name, param_value, distribution_json FROM trials JOIN trial_params"
                  " USING (trial_id) ORDER BY 1, 2",
    "epochs": "SELECT number, epoch, name, m.value, m.value_type FROM trials JOIN hfta_epoch_metrics m"
              " USING (trial_id) ORDER BY 1, 2, 3",
    "intermediate values": "SELECT number, step, intermediate_value, intermediate_value_type FROM trials"
                           " JOIN trial_intermediate_values USING (trial_id) ORDER BY 1, 2",
    "copies": "SELECT number, key, value_json FROM trials JOIN trial_system_attributes USING (trial_id)"
              " WHERE key LIKE 'hfta:copy:%' ORDER BY 1, 2",
    "test metrics": "SELECT number, name, m.value, m.value_type FROM trials JOIN hfta_test_metrics m"
                    " USING (trial_id) ORDER BY 1, 2",
}


def read_tables(store):
    with contextlib.closing(sqlite3.connect(store)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []
        return {name: database.execute(query).fetchall() for name, query in TABLES.items()}


def same_tables(found, expected, tolerance=0):
    """Equal in every row; floating-point numbers within the relative tolerance (0: bit for bit)."""
    def close(x, y):
        if x == y or not (isinstance(x, float) and isinstance(y, float)):
            return x == y
        return abs(x - y) <= tolerance * max(abs(x), abs(y))

    for name, rows in expected.items():
        assert len(found[name]) == len(rows), f"{name}: found {len(found[name])} rows, wanted {len(rows)}"
        for a, b in zip(found[name], rows):
            assert all(map(close, a, b)), f"{name}: found {a}, wanted {b}"


class Life:
    """One process at work on a study, and the lines that it tells with the times at which it told them."""

    def __init__(self, process):
        self.process, self.lines, self.began = process, [], time.monotonic()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            self.lines.append((time.monotonic(), line.rstrip("\n")))

    def wait_for(self, words, seconds=300):
        """Until a line begins with one of the words; None if the process ends without, else when that was."""
        deadline = time.monotonic() + seconds
        while True:
            ended = self.process.poll() is not None
            if ended:
                self.reader.join()
            for when, line in self.lines:
                if line.startswith(words):
                    return when
            if ended:
                return None
            assert time.monotonic() < deadline, f"nothing begins with {words} in {self.lines}"
            time.sleep(0.002)

    def send(self, how):
        if self.process.poll() is None:
            self.process.send_signal(how)

    def end(self, seconds=300, remarks=False):
        """The exit status. Unless remarks are wanted, there must be none."""
        code = self.process.wait(seconds)
        self.reader.join()
        self.process.stdout.close()
        assert remarks or not self.remarks(), self.remarks()
        return code

    def remarks(self):
        """What it told beyond what every run tells."""
        cut = self.process.returncode == -signal.SIGKILL  # the last line may be
        lines = [line for _, line in (self.lines[:-1] if cut else self.lines) if line]
        return [line for line in lines if not line.startswith(EXPECTED_LINES) and not line.endswith(LENDING)]

    def has_written_more_than(self, epochs):
        """It has told of more epochs than that, and of a round after all that belongs to that one was written. A life
        that trains again what is recorded has nothing new to write, until a state is due."""
        told = [(when, int(count[1])) for when, line in self.lines
                if line.startswith("round ") and (count := re.search(r"(\d+) trial-epochs", line))]
        return any(count > epochs and later - when > BETWEEN_PAGES for (when, count), (later, _) in zip(told, told[1:]))


class World(Runs):
    def __init__(self, binary, scratch):
        super().__init__(binary, scratch)
        self.lives, self.references = [], {}

    def undisturbed(self, options=OPTIONS):
        if options not in self.references:
            self.references[options] = Undisturbed(self, options)
        return self.references[options]

    def life(self, folder, options=OPTIONS, **variables):
        shared = self.environment
        self.environment = {**shared, **variables}
        try:
            life = Life(self.start(folder, *options))
        finally:
            self.environment = shared
        self.lives.append(life)
        return life

    def end_all(self):
        for life in self.lives:
            life.send(signal.SIGKILL)
            life.process.wait()


def has_arrays(database):
    """No: the process ended before it had made its tables."""
    query = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'hfta_arrays'"
    return database.execute(query).fetchone() == (1,)


def partitions_in(store):
    """Of the arrays so far; also while a process writes."""
    if not store.exists():
        return set()
    with contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True, timeout=30)) as database:
        if not has_arrays(database):
            return set()
        return {name for name, in database.execute("SELECT DISTINCT partition FROM hfta_arrays")}


class Left:
    """What a process left behind. Read from a copy: what is left of a transaction is the next process's to undo."""

    def __init__(self, folder):
        self.tables = {name: [] for name in TABLES}
        with tempfile.TemporaryDirectory() as copy:
            for file in folder.glob("s.db*"):
                if file.is_file():
                    shutil.copy(file, copy)
            store = pathlib.Path(copy) / "s.db"
            if store.exists() and store.stat().st_size > 0:
                self.read(store)
        self.files = collections.defaultdict(list)  # (folder, trial): epochs and names, latest first
        for kind in ("running", "finished", "copied"):
            for file in (folder / "s.db.hfta/s" / kind).glob("*"):
                if match := re.fullmatch(r"trial-(\d+)\.epoch-(\d+)\.\d+\.[0-9a-f]{16}\.safetensors", file.name):
                    self.files[kind, int(match[1])].append((int(match[2]), file.name))
        for names in self.files.values():
            names.sort(reverse=True)

    def read(self, store):
        with contextlib.closing(sqlite3.connect(store)) as database:
            if not has_arrays(database):
                return
        self.tables = read_tables(store)

    def check(self):
        """No state is ahead of the store, and no COMPLETE trial without the weights that are to be kept."""
        recorded = collections.Counter()
        for number, epoch, *_ in self.tables["epochs"]:
            recorded[number] = max(recorded[number], epoch)
        for (kind, number), names in self.files.items():
            if kind == "running":
                assert names[0][0] <= recorded[number], f"trial {number}: {names[0]}, recorded {recorded[number]}"
        for number in self.best():
            assert self.files.get(("finished", number)), f"trial {number} is COMPLETE without its weights"

    def best(self):
        complete = sorted((value, number) for number, state, value, *_ in self.tables["trials"] if state == "COMPLETE")
        return [number for _, number in complete[:KEEP]]

    def done(self):
        return sum(state != "RUNNING" for _, state, *_ in self.tables["trials"])

    def is_beyond(self, earlier):
        """More rows, or a later state of some trial."""
        return (len(self.tables["epochs"]) > len(earlier.tables["epochs"]) or self.done() > earlier.done() or
                any(kind == "running" and names[0][0] > earlier.files.get((kind, number), [(0, "")])[0][0]
                    for (kind, number), names in self.files.items()))


class Undisturbed:
    """A study from its start to its end in one life: what the disturbed ones are compared with."""

    def __init__(self, world, options):
        self.text, self.options = study(CONV, "sgd", "float32"), options
        if options is POPULATION:
            self.text, changed = re.subn(r"method: hyperband\nhyperband: .*", "method: pbt\npbt: {population: 8}", self.text)
            assert changed == 1, self.text
        self.folder = world.folder(self.text)
        life = world.life(self.folder, options)
        assert (start := life.wait_for(STARTS)), life.lines
        assert life.end() == 0, life.lines
        now = time.monotonic()
        self.seconds, self.seconds_with_start = now - start, now - life.began
        # What a stop takes at most, where it neither waits for anybody nor for an epoch's end. A machine that is slow
        # or busy shows that by how long a program takes to start.
        self.prompt = 2 + 2 * (start - life.began)
        self.tables = read_tables(self.folder / "s.db")
        self.files = self.list(self.folder)
        best = Left(self.folder).best()
        assert len(best) == KEEP or options is LONG_EPOCHS
        assert sorted(int(re.search(r"trial-(\d+)", name)[1]) for name in self.files) == sorted(best), self.files
        assert all(name.startswith("s/finished/") for name in self.files), self.files

    @staticmethod
    def list(folder):
        """All files beside the store; the names of weights hold their checksums."""
        beside = folder / "s.db.hfta"
        assert {file.name for file in folder.iterdir()} == {"study.yaml", "s.db", "s.db.hfta"}, list(folder.iterdir())
        return sorted(str(file.relative_to(beside)) for file in beside.rglob("*") if file.is_file())

    def check(self, folder):
        same_tables(read_tables(folder / "s.db"), self.tables)
        assert self.list(folder) == self.files, f"found {self.list(folder)}, wanted {self.files}"

    def finish(self, world, folder, **variables):
        life = world.life(folder, self.options, **variables)
        assert life.end() == 0, life.lines
        self.check(folder)


def kill(world, expected, folder, before, seconds, **variables):
    """A life that is killed so long after training began; what it left, or None if it reached the study's end."""
    life = world.life(folder, expected.options, **variables)
    if life.wait_for(STARTS):
        time.sleep(seconds)
    life.send(signal.SIGKILL)
    code = life.end()
    if code == 0:
        return None
    assert code == -signal.SIGKILL, f"exit {code}: {life.lines}"
    left = Left(folder)
    left.check()
    recorded = len({(number, epoch) for number, epoch, *_ in before.tables["epochs"]})
    assert left.is_beyond(before) or not life.has_written_more_than(recorded), f"a life has not got on: {life.lines}"
    return left


def one(world, arguments):
    expected = world.undisturbed()
    moments = random.Random(1)
    share, kills = 8, 0
    while kills < 5:  # again where the machine has become that much faster
        assert share < 1000, f"a study ends after {kills} kills"
        folder = world.folder(expected.text)
        left, kills, longest = Left(folder), 0, expected.seconds / share
        while left := kill(world, expected, folder, left, moments.uniform(0, longest / 4 if kills % 4 == 3 else longest)):
            kills += 1
            longest *= 1.05
            assert kills < 80, "no life reaches the end"
        expected.check(folder)
        share *= 2
    return f"a study killed {kills} times"


def several(world, arguments):
    expected = world.undisturbed()
    moments = random.Random(2)
    for i in range(arguments.studies):
        folder = world.folder(expected.text)
        life = world.life(folder, expected.options)
        # One part of the time each, so that every part of the way is met.
        time.sleep((i + moments.random()) / arguments.studies * expected.seconds_with_start)
        life.send(signal.SIGKILL)
        assert life.end() in (0, -signal.SIGKILL), life.lines
        Left(folder).check()
        expected.finish(world, folder)
    return f"{arguments.studies} studies killed once"


# A study draws all its trials at once, and five of them become COMPLETE.
PLACES = ["trials-added", "in-transaction", "committed", "epoch-cpu", "epoch-ended", "file-written", "file-synced",
          "file-renamed", "folder-synced", "state-saved", "files-removed", "weights-saved"]
LATER = {"trials-added": None, "in-transaction": 3, "committed": 3, "weights-saved": 3}  # all others: 5


def die_at(world, expected, folder, place, times):
    """A life that dies when it is at the place for that time. Returns its folder: another one where the study had no
    such way to go any more. What comes within a fifth of a second is written at once: the faster the machine, the less
    often a study is at such a place, and the earlier time at which it dies then is the second one, if need be."""
    for number in range(times, min(times, 2) - 1, -1):
        for _ in range(2):
            code = world.life(folder, expected.options, HFTA_FAULTS=f"{place}@{number}=kill").end()
            if code != 0:
                assert code == -signal.SIGKILL, f"{place}@{number}: exit {code}"
                Left(folder).check()
                return folder
            expected.check(folder)
            folder = world.folder(expected.text)
    raise AssertionError(f"{place}: a whole study is not there {min(times, 2)} times")


def places(world, arguments):
    expected = world.undisturbed()
    for later in (False, True):
        folder = world.folder(expected.text)
        for place in PLACES:
            time_of_death = LATER.get(place, 5) if later else 1
            if time_of_death is not None:
                folder = die_at(world, expected, folder, place, time_of_death)
        expected.finish(world, folder)
    return f"a death at each of {len(PLACES)} places, the first and a later time"


def stop(life, how, folder, prompt):
    """Asks a process inside an epoch to stop; what it left, or None where it had come to the end."""
    life.send(how)
    sent = time.monotonic()
    code = life.end()
    took = time.monotonic() - sent
    if code == 0:
        return None
    assert code == 128 + how, f"exit {code}: {life.lines}"
    assert took < prompt, f"{how.name}: ended after {took:.1f} s, wanted less than {prompt:.1f} s"
    assert "hfta-tune resume 's' --storage" in life.lines[-1][1], life.lines
    return Left(folder)


def stopped_to_the_end(world, expected, epoch):
    """Stops a study again and again inside its epochs, of some `epoch` seconds each, until it has ended; how often, and
    how often within an epoch that was begun."""
    folder = world.folder(expected.text)
    left, stops, inside = Left(folder), 0, 0
    moments, patience = random.Random(3), 1.0
    while True:
        before = left
        life = world.life(folder, expected.options)
        assert life.wait_for(STARTS), life.lines
        time.sleep(moments.uniform(0.3, 1) * epoch * patience)
        left = stop(life, (signal.SIGTERM, signal.SIGINT)[stops % 2], folder, expected.prompt)
        if left is None:
            break
        if left.files == before.files:  # on a busy machine a life may be over before its first step
            patience *= 1.5
            assert patience < 50, "lives do not get on"
            continue
        stops += 1
        inside += len(left.tables["epochs"]) == len(before.tables["epochs"])
        assert stops < 60, "no life reaches the end"
    expected.check(folder)
    return stops, inside


def signals(world, arguments):
    expected = world.undisturbed(LONG_EPOCHS)
    share, inside = 5, 0  # an epoch's of what all of them take
    while inside < 2:  # again where the machine has become that much faster
        assert share < 50, f"{inside} of {stops} stops were inside an epoch"
        stops, inside = stopped_to_the_end(world, expected, expected.seconds / share)
        share *= 2
    for i in range(5):  # before training, or while lowering is measured
        folder = world.folder(expected.text)
        life = world.life(folder, expected.options, HFTA_CACHE=str(folder / "cache"))
        time.sleep(0.3 * i * (expected.seconds_with_start - expected.seconds))
        life.send(signal.SIGTERM)
        sent = time.monotonic()
        assert life.end() in (128 + signal.SIGTERM, -signal.SIGTERM), life.lines
        assert time.monotonic() - sent < expected.prompt, life.lines
    return f"{stops} times stopped, {inside} of them within the epoch that was begun"


def twice(world, arguments):
    expected = world.undisturbed()
    for how in (signal.SIGTERM, signal.SIGINT):
        folder = world.folder(expected.text)
        life = world.life(folder, expected.options)
        assert life.wait_for("round "), life.lines
        with contextlib.closing(sqlite3.connect(folder / "s.db", isolation_level=None, timeout=60)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert life.wait_for(WAITS), life.lines
            life.send(how)
            time.sleep(0.5)
            assert life.process.poll() is None, f"did not wait: {life.lines}"
            life.send(how)
            sent = time.monotonic()
            code = life.end(remarks=True)
            took = time.monotonic() - sent  # it would have waited for ten seconds from the first signal on
            assert code == 128 + how and took < 5, f"exit {code}, {took:.1f} s"
            other.execute("ROLLBACK")
        Left(folder).check()
        expected.finish(world, folder)
    return "a second signal ends at once"


def with_partitions(world, expected, partitions):
    """The folder of a study that was killed as soon as it had arrays of all partitions."""
    for commits in itertools.count(1):
        folder = world.folder(expected.text)
        life = world.life(folder, expected.options, HFTA_FAULTS=f"committed@{commits}=kill")
        assert life.end() == -signal.SIGKILL, f"after {commits} commits: {life.lines}"
        if partitions_in(folder / "s.db") == partitions:
            return folder


def caches(world, arguments):
    """What is measured anew may come out otherwise: how arrays ran is known from the store."""
    expected = world.undisturbed()
    partitions = partitions_in(expected.folder / "s.db")
    share, lives = 6, 0
    while lives < 2:  # again where the machine has become that much faster
        assert share < 1000, f"{lives} lives with an empty cache"
        folder = with_partitions(world, expected, partitions)
        left, lives = Left(folder), 0
        while left := kill(world, expected, folder, left, expected.seconds / share,
                           HFTA_CACHE=str(world.scratch / f"cache{share}-{lives}")):
            lives += 1
            assert lives < 40, "no life reaches the end"
        expected.check(folder)
        share *= 2
    return f"{lives} lives with an empty cache"


def take_over(world, expected, folder, first):
    """Stops `first` and starts another; again if it was stopped with the store's lock in its hands."""
    while True:
        first.send(signal.SIGSTOP)
        second = world.life(folder, expected.options)
        if second.wait_for(STARTS):
            return second
        code = second.end(remarks=True)
        assert code == 3 and "locked" in second.lines[-1][1], f"exit {code}: {second.lines}"
        first.send(signal.SIGCONT)
        time.sleep(0.05)


def hung(world, arguments):
    expected = world.undisturbed()
    for wakes_early in (True, False):
        folder = world.folder(expected.text)
        first = world.life(folder, expected.options, HFTA_FAULTS="committed@2=stop")
        wait_stopped(first.process)
        second = take_over(world, expected, folder, first)
        if wakes_early:
            first.send(signal.SIGCONT)
        assert second.end() == 0, second.lines
        expected.check(folder)
        first.send(signal.SIGCONT)
        code = first.end(remarks=True)
        assert code == 6 and len(first.remarks()) == 1, f"exit {code}: {first.lines}"
        expected.check(folder)
    return "a process that stood still is followed, and ends when it wakes up"


def copies(world, arguments):
    expected = world.undisturbed(POPULATION)
    assert len(expected.tables["copies"]) > 10, expected.tables["copies"]
    moments = random.Random(4)
    folder = world.folder(expected.text)
    left, kills, longest = Left(folder), 0, expected.seconds / 6
    while left := kill(world, expected, folder, left, moments.uniform(0, longest)):
        kills += 1
        longest *= 1.05
        assert kills < 80, "no life reaches the end"
    expected.check(folder)
    folder = world.folder(expected.text)
    for place, times in (("copy-saved", 1), ("copy-saved", 2), ("committed", 2), ("files-removed", 3), ("copy-saved", 3),
                         ("state-saved", 2)):
        folder = die_at(world, expected, folder, place, times)
    expected.finish(world, folder)
    return f"a population of {len(expected.tables['copies'])} copies killed {kills} times, and 6 where it writes"


def policies(world, arguments):
    """All under limits that only compiled slots fit: what another executor computes agrees but for rounding."""
    own = (*OPTIONS, "--set", "array.width=4", "--set", "data.batch_size=256")
    planned = subprocess.run([world.binary, "plan", world.folder(study(CONV, "sgd", "float32")) / "study.yaml",
                              *own, "--format", "json"], env=world.environment, check=True, text=True,
                             stdout=subprocess.PIPE)
    ways = [partition["memory"]["ways"] for partition in json.loads(planned.stdout)["partitions"]]
    whole = max(4 * way[0]["bytes_per_slot"] + way[0]["bytes_per_arena"] for way in ways)
    least = max(4 * way[-1]["bytes_per_slot"] + way[-1]["bytes_per_arena"] for way in ways)
    assert least < whole, ways
    tables, kills = None, 0
    for policy, limit in (("keep", whole), ("recompute", whole), ("auto", least)):
        options = (*own, "--set", f"memory.policy={policy}", "--set", f"memory.limit={limit}")
        expected = world.undisturbed(options)
        with contextlib.closing(sqlite3.connect(expected.folder / "s.db")) as database:
            ran = [json.loads(choices)["lowering"] for choices, in database.execute("SELECT choices_json FROM hfta_arrays")]
        assert all(way.startswith("compiled") for way in ran), ran
        assert any("recompute" in way for way in ran) == (policy != "keep"), ran
        tables = tables or expected.tables
        same_tables(expected.tables, tables)
        folder = world.folder(expected.text)
        left, moments = Left(folder), random.Random(5)
        while left := kill(world, expected, folder, left, moments.uniform(0.2, 0.6) * expected.seconds):
            kills += 1
            assert kills < 80, "no life reaches the end"
        expected.check(folder)
    assert kills >= 3, kills
    return f"three policies, killed {kills} times"


PARTS = {part.__name__: part for part in (one, several, places, signals, twice, caches, hung, policies, copies)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary", type=pathlib.Path)
    parser.add_argument("scratch", type=pathlib.Path)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("--studies", type=int, default=8)
    arguments = parser.parse_args()
    world = World(arguments.binary, arguments.scratch)
    try:
        for name in arguments.parts or PARTS:
            began = time.monotonic()
            told = PARTS[name](world, arguments)
            print(f"{name}: {told}: the same table bit for bit ({time.monotonic() - began:.1f} s)", flush=True)
    finally:
        world.end_all()


if __name__ == "__main__":
    main()
