"""Studies on several devices, and on devices that fail, end with the table of one that trained undisturbed on one.

usage: devices_check.py HFTA_TUNE SCRATCH_FOLDER [two|lost|narrower|gone|full|lent ...]

two       the CPU as two devices
lost      one of two devices fails, the other goes on
narrower  memory runs out, arrays become narrower
gone      the only device fails, the run ends, and the same command goes on
full      the same with a full disk
lent      one of two devices has nothing to do and lends its thread, in float32; the study is killed on the way
"""

import contextlib
import pathlib
import signal
import sqlite3
import sys
import time

from kills_check import LENDING, World, read_tables, same_tables
from study_check import CONV, study

TOLERANCE = 1e-9  # of float64, whatever the widths and devices
ONE = ("--set", "data.batch_size=32", "--set", "array.threads=1")
TWO = (*ONE, "--device", "cpu,cpu")


class Devices:
    def __init__(self, world):
        self.world, self.text = world, study(CONV, "sgd", "float64")
        self.expected = read_tables(self.run(ONE)[0] / "s.db")

    def run(self, options, folder=None, text=None, wanted=0, **variables):
        """The study's folder, and what a run tells beyond what every run does."""
        folder = folder or self.world.folder(text or self.text)
        life = self.world.life(folder, options, **variables)
        code = life.end(remarks=True)
        self.lends = any(line.endswith(LENDING) for _, line in life.lines)
        assert code == wanted, f"exit {code}, wanted {wanted}: {life.lines}"
        return folder, life.remarks()

    def check(self, folder):
        same_tables(read_tables(folder / "s.db"), self.expected, TOLERANCE)

    @staticmethod
    def rounds(folder):
        """Of each round its device, the array's width and its partition, in the order in which they ended."""
        with contextlib.closing(sqlite3.connect(folder / "s.db")) as database:
            return database.execute("SELECT device, r.width, partition FROM hfta_rounds r JOIN hfta_arrays USING (study_id, array)"
                                    " ORDER BY round").fetchall()


def one_line(remarks, *words):
    assert len(remarks) == 1, f"told {remarks}"
    for word in words:
        assert word in remarks[0], f"told '{remarks[0]}', wanted '{word}' in it"


def two(devices):
    in_config = devices.text + "array: {device: [cpu, cpu]}\n"
    for options, text in ((TWO, devices.text), (ONE, in_config)):
        folder, remarks = devices.run(options, text=text)
        assert not remarks, remarks
        devices.check(folder)
        assert {device for device, *_ in devices.rounds(folder)} == {"cpu:0", "cpu:1"}, devices.rounds(folder)


def lost(devices):
    folder, remarks = devices.run(TWO, HFTA_FAULTS="epoch-cpu:1@4=fail")
    one_line(remarks, "epoch-cpu:1", "go on on the other devices")
    devices.check(folder)
    used = [device for device, *_ in devices.rounds(folder)]
    # An epoch that was begun twice, as the other device had less to do meanwhile, is a round only once.
    assert 1 <= used.count("cpu:1") <= 3 and used[-1] == "cpu:0", used


def narrower(devices):
    folder, remarks = devices.run(TWO, HFTA_FAULTS="epoch-cpu:1@3=memory")
    one_line(remarks, "epoch-cpu:1", "going on with arrays of")
    devices.check(folder)
    words = remarks[0].split()
    after, before = int(words[words.index("slots") - 1]), int(words[-1])
    rounds = [(partition, width) for device, width, partition in devices.rounds(folder) if device == "cpu:1"]
    failed = rounds[2][0]  # a limit is of one partition; which others the device trains then depends on the other device
    widths = [width for partition, width in rounds[2:] if partition == failed]
    assert max(widths) <= after < before, (remarks, rounds)


def gone(devices):
    folder, remarks = devices.run(ONE, wanted=4, HFTA_FAULTS="epoch-cpu@3=fail")
    one_line(remarks, "epoch-cpu")
    devices.run(ONE, folder)
    devices.check(folder)


def full(devices):
    folder, remarks = devices.run(ONE, wanted=3, HFTA_FAULTS="file-written@6=full")
    one_line(remarks, "file-written")
    devices.run(ONE, folder)
    devices.check(folder)
    assert not list(folder.rglob("*.tmp*")) and not list(folder.rglob("running/*"))


def lent(devices):
    options = ("--set", "run_cap=1", "--set", "train.epochs=40")
    hyperband = "method: hyperband\nhyperband: {min_epochs: 1, max_epochs: 9, eta: 3}\n"
    text = study(CONV, "sgd", "float32")
    assert hyperband in text
    text = text.replace(hyperband, "method: random\n")
    expected, _ = devices.run((*options, "--device", "cpu:1"), text=text)
    folder, _ = devices.run((*options, "--device", "cpu:1,cpu:1"), text=text, wanted=-signal.SIGKILL,
                            HFTA_FAULTS="epoch-on-lent-threads@2=kill")  # that it lends may not be told by then
    devices.run((*options, "--device", "cpu:1,cpu:1"), folder)
    assert devices.lends
    same_tables(read_tables(folder / "s.db"), read_tables(expected / "s.db"))


PARTS = {part.__name__: part for part in (two, lost, narrower, gone, full, lent)}


def main():
    world = World(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
    try:
        devices = Devices(world)
        for name in sys.argv[3:] or PARTS:
            began = time.monotonic()
            PARTS[name](devices)
            tolerance = 0 if name == "lent" else TOLERANCE
            print(f"{name}: the same table within {tolerance} ({time.monotonic() - began:.1f} s)", flush=True)
    finally:
        world.end_all()


if __name__ == "__main__":
    main()
