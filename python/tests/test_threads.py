"""Threads: calls in several at once, and in one that ends before the next. Each in a process of its own."""
import unittest

import torch
from support import Case, ht, net

ENDED = """
import threading
def run(seed):
    print(tune(".", epochs=1, trials=1, seed=seed).trials[0].state, flush=True)
def refused():
    try:
        tune(".", data=(points()[0], points()[1][:3]))
    except ht.ConfigError:
        pass
def in_a_thread(seed):
    thread = threading.Thread(target=run, args=(seed,))
    thread.start()
    thread.join()
{calls}
"""

AT_ONCE = """
import threading
errors = []
nets = [net(seed) for seed in range(6)]  # torch's random numbers are the process's: a thread that draws would get others'
def run(seed):
    try:
        tune(".", nets[seed], epochs=1, trials=1, seed=seed, name=f"s{seed}")
        ht.export(nets[seed], points()[0][:4], f"{seed}.pt2")
    except BaseException as error:
        errors.append(error)
for round in range(2):
    threads = [threading.Thread(target=run, args=(3 * round + i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print(errors)
"""


class Threads(Case):
    def finished(self, code):
        process = self.start(code)
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, err)
        return out.split()

    def test_a_thread_that_has_ended(self):
        for label, calls in [("then the main thread", "in_a_thread(1); run(2)"),
                             ("then another thread", "in_a_thread(1); in_a_thread(2)"),
                             ("after the main thread", "run(1); in_a_thread(2); run(3)"),
                             ("after a refusal in the main thread", "refused(); in_a_thread(1); in_a_thread(2)")]:
            with self.subTest(label):
                self.assertEqual(set(self.finished(ENDED.replace("{calls}", calls))), {"COMPLETE"})

    def test_at_once(self):
        self.assertEqual(self.finished(AT_ONCE), ["[]"])
        for seed in range(6):
            found = ht.load_study(self.folder / "study.db", f"s{seed}")
            self.assertEqual([trial.state for trial in found.trials], ["COMPLETE"])
            read = torch.export.load(self.folder / f"{seed}.pt2").state_dict["head.weight"]
            self.assertTrue(torch.equal(read, net(seed).head.weight))


if __name__ == "__main__":
    unittest.main()
