"""How the program is found, run and stopped: with the real program, and with fake ones that misbehave."""
import os
import signal
import time
import unittest
import unittest.mock

from support import Case, alive, ht, points, table, tune

from hfta_tune import program, progress, run

# So many that a fast machine, too, has most of them before it when the first ones are told, a fifth of a second later.
EPOCHS = 2000

# Prints the program's process id, then breaks off in the middle of the study by what is put in for {end}.
BREAK_OFF = """
import signal, threading
def seen(event, epochs=[]):
    if event["event"] == "epoch_ended":
        epochs.append(event)
        if len(epochs) == 7:
            children = open(f"/proc/self/task/{threading.get_native_id()}/children").read()
            print(children.split()[0], flush=True)
            {end}
try:
    tune(".", epochs={epochs}, progress=seen)
except KeyboardInterrupt:
    print("interrupted", flush=True)
""".replace("{epochs}", str(EPOCHS))


class Interruptions(Case):
    """A study that is broken off is gone on with by the same call, and ends in the same table to the bit."""

    def undisturbed(self):
        (self.folder / "other").mkdir()
        return table(tune(self.folder / "other", epochs=EPOCHS))

    def wait_for_end_of(self, pid):
        deadline = time.monotonic() + 60
        while alive(pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertFalse(alive(pid), "the program runs on")

    def test_kill_of_python(self):
        broken = self.start(BREAK_OFF.replace("{end}", "os.kill(os.getpid(), signal.SIGKILL)"))
        out, err = broken.communicate(timeout=300)
        self.assertEqual(broken.returncode, -signal.SIGKILL, err)
        study = tune(self.folder, epochs=EPOCHS)  # at once: the program may still be about to end
        self.assertEqual(table(study), self.undisturbed())
        self.wait_for_end_of(int(out.split()[0]))

    def test_ctrl_c(self):
        broken = self.start(BREAK_OFF.replace("{end}", "os.kill(os.getpid(), signal.SIGINT)"))
        out, err = broken.communicate(timeout=300)
        self.assertEqual((broken.returncode, out.split()[1:]), (0, ["interrupted"]), err)
        self.assertFalse(alive(int(out.split()[0])))
        events = []
        study = tune(self.folder, epochs=EPOCHS, progress=events.append)
        self.assertTrue(events[0]["resumed"])
        self.assertIn("epoch_ended", {event["event"] for event in events})  # or it had ended before
        self.assertEqual(table(study), self.undisturbed())

    def test_an_exception_of_the_callback_stops_the_program(self):
        def raising(event):
            if event["event"] == "epoch_ended":
                raise ZeroDivisionError
        with self.assertRaises(ZeroDivisionError):
            tune(self.folder, epochs=EPOCHS, progress=raising)
        self.assertEqual(table(tune(self.folder, epochs=EPOCHS)), self.undisturbed())

    def test_a_second_ctrl_c_kills(self):
        self.fake_program("""
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda *_: open("asked", "w").close())
print(json.dumps({"event": "note", "text": str(os.getpid())}), flush=True)
while True:
    time.sleep(0.1)""")
        stubborn = self.start("""
from hfta_tune.run import run_study
try:
    run_study([], lambda event: print(event["text"], flush=True))
except KeyboardInterrupt:
    print("interrupted", flush=True)
""")
        pid = int(stubborn.stdout.readline())
        stubborn.send_signal(signal.SIGINT)
        deadline = time.monotonic() + 60
        while not (self.folder / "asked").exists():
            self.assertLess(time.monotonic(), deadline, "the program is not asked to stop")
            time.sleep(0.05)
        time.sleep(1)  # what waits for the program goes on waiting
        self.assertTrue(alive(pid) and stubborn.poll() is None)
        stubborn.send_signal(signal.SIGINT)
        out, err = stubborn.communicate(timeout=300)
        self.assertEqual(out.split(), ["interrupted"], err)
        self.assertFalse(alive(pid))


class Errors(Case):
    def test_exit_codes(self):
        for code, kind, words in [
            (1, ht.NoCompleteTrial, "no trial"), (2, ht.ConfigError, "a.yaml:3: train: found x, wanted y"),
            (3, ht.StorageError, "locked"), (4, ht.DeviceError, "no CUDA"), (5, ht.InternalError, "bug"),
            (6, ht.BusyError, "process 3 on host"), (9, ht.InternalError, "?"), (143, ht.StoppedError, "stopped by SIGTERM"),
            (138, ht.StoppedError, "SIGUSR1"), (-9, ht.StoppedError, "stopped by SIGKILL"),
        ]:
            end = f"sys.exit({code})" if code > 0 else f"os.kill(os.getpid(), {-code})"
            self.fake_program(f"print('warning: x\\nhfta-tune: {words}', file=sys.stderr, flush=True)\n{end}")
            for label, act in [("run", lambda: run.run_study([], lambda event: None, patience_s=0)),
                               ("call", lambda: program.call(["report"]))]:
                with self.subTest(code=code, label=label), self.assertRaises(kind) as caught:
                    act()
                self.assertIn(words, str(caught.exception))
                self.assertNotIn("warning", str(caught.exception))
                self.assertEqual(caught.exception.exit_code, code)
                self.assertIsInstance(caught.exception, ht.HftaError)

    def test_a_study_that_is_busy_for_a_moment(self):
        self.fake_program("""import pathlib
seen = pathlib.Path(__file__ + '.count')
seen.write_text(seen.read_text() + 'x' if seen.exists() else 'x')
sys.exit(6 if len(seen.read_text()) < 3 else 0)""")
        events = []
        run.run_study([], events.append, patience_s=60)
        self.assertEqual([event["event"] for event in events], ["note"])
        self.assertIn("waiting for the study", events[0]["text"])

    def test_words_of_the_real_program(self):
        for label, arguments, kind, words in [
            ("an optimizer", {"optimizer": {"name": "sdg", "lr": 0.1}, "space": {"drop.p": ht.uniform(0, 1)}}, ht.ConfigError,
             "train.optimizer.name: found 'sdg', wanted one of sgd"),
            ("a parameter", {"space": {"lrr": ht.uniform(0, 1)}}, ht.ConfigError, "lrr"),
            ("a bound", {"space": {"lr": ht.log_uniform(0, 1)}}, ht.ConfigError, "lr"),
            ("a place in the model", {"space": {"drop.q": ht.uniform(0, 1)}}, ht.ConfigError, "drop.p"),
            ("a metric", {"metric": "val_f7"}, ht.ConfigError, "val_f7"),
            ("a loss", {"loss": "nlll"}, ht.ConfigError, "cross_entropy"),
            ("a device", {"device": "cuda:7"}, ht.DeviceError, "cuda:7"),
            ("labels", {"data": (points()[0], points()[1] + 7)}, ht.ConfigError, "data"),
        ]:
            with self.subTest(label), self.assertRaises(kind) as caught:
                tune(self.folder, **arguments)
            self.assertIn(words, str(caught.exception))

    def test_no_store(self):
        with self.assertRaises(ht.StorageError):
            (self.folder / "study.db").write_text("not a database, but long enough to be looked at" * 30)
            tune(self.folder)

    def test_every_trial_fails(self):
        with self.assertRaisesRegex(ht.NoCompleteTrial, "no trial is COMPLETE; trial 0: ") as caught:
            tune(self.folder, space={"lr": ht.uniform(1e30, 1e31)}, optimizer="sgd", trials=2)
        self.assertEqual({trial.state for trial in caught.exception.study.trials}, {"FAIL"})


class Finding(Case):
    def test_the_order(self):
        self.fake_program("")
        named = os.environ["HFTA_TUNE"]
        self.assertEqual(ht.find_program(), named)
        on_path = self.folder / "bin" / "hfta-tune"
        on_path.parent.mkdir()
        on_path.symlink_to(named)
        with unittest.mock.patch.dict(os.environ, {"PATH": str(on_path.parent)}):
            self.assertEqual(ht.find_program(), named)
            del os.environ["HFTA_TUNE"]
            self.assertEqual(ht.find_program(), str(on_path))

    def test_not_found(self):
        with unittest.mock.patch.dict(os.environ, {"HFTA_TUNE": "/nowhere/hfta-tune"}):
            with self.assertRaisesRegex(ht.ProgramNotFound, "HFTA_TUNE: found '/nowhere/hfta-tune'"):
                ht.find_program()
        nothing_built = unittest.mock.patch.object(program, "_built", return_value=[])
        with unittest.mock.patch.dict(os.environ, {"PATH": "/nowhere"}), nothing_built:
            os.environ.pop("HFTA_TUNE", None)
            with self.assertRaisesRegex(ht.ProgramNotFound, "HFTA_TUNE is not set, it is not on PATH"):
                ht.find_program()

    def test_a_build_folder_of_the_checkout(self):
        for preset in ("release", "dev"):
            (self.folder / "build" / preset / "bin").mkdir(parents=True)
            built = self.folder / "build" / preset / "bin" / "hfta-tune"
            built.touch(mode=0o755)
            os.utime(built, (1, 1) if preset == "dev" else (9, 9))
        self.assertEqual([path.parts[-3] for path in program._built(self.folder)], ["release", "dev"])


class Lines(unittest.TestCase):
    def test_lines(self):
        import io
        stream, now = io.StringIO(), [0.0]
        lines = progress.Lines(stream, lambda: now[0])
        best = {"trial": 3, "epoch": 2, "value": 0.91234, "params": {"lr": 0.0123456, "freeze": None}}
        status = {"event": "status", "trials": 9, "complete": 1, "pruned": 2, "failed": 1, "running": 4,
                  "epochs_per_second": 2.0, "epochs_left": 30, "best": best}
        for second, event in [
            (0, {"event": "run_started", "study": "s", "storage": "s.db", "metric": "val_accuracy", "direction": "maximize",
                 "devices": ["cpu"], "resumed": False}),
            (1, status),  # too early
            (3, status),
            (4, {**status, "event": "epoch_ended"}),
            (5, {"event": "trial_ended", "trial": 7, "state": "FAIL", "value": None, "reason": "diverged"}),
            (5, {"event": "trial_ended", "trial": 8, "state": "COMPLETE", "value": 1.0, "reason": None}),
            (6, {"event": "note", "text": "care"}),
            (600, {**status, "best": None, "trials": None, "epochs_left": None}),
            (620, status),  # after ten minutes, half a minute between lines
            (7260, {"event": "run_ended", "finished": True, "best": best}),
        ]:
            now[0] = second
            lines(event)
        self.assertEqual(stream.getvalue().splitlines(), [
            "study s begins on cpu: maximize val_accuracy (s.db)",
            "  4/9 trials done, 4 running | best val_accuracy 0.9123 (trial 3: lr=0.01235 freeze=None) | 2 trial-epochs/s, "
            "15.0 s left",
            "  trial 7 failed: diverged",
            "  note: care",
            "  4 trials done, 4 running | 2 trial-epochs/s",
            "  finished after 2 h 01 min: best val_accuracy 0.9123 (trial 3: lr=0.01235 freeze=None)",
        ])


if __name__ == "__main__":
    unittest.main()
