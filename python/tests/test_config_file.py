"""The file of a study's config: one for each name, and the study's own whatever is refused."""
import subprocess
import threading
import unittest

from support import Case, ht, net, points, tune

from hfta_tune import config_file, program


class Names(Case):
    def test_one_file_for_each_name(self):
        for name, wanted in [("plain", "plain"), ("a-b_c.1", "a-b_c.1"), (".x", ".x"), ("x" * 200, "x" * 200),
                             ("a b", r"a-b-[0-9a-f]{16}"), ("实验一", r"--[0-9a-f]{16}"), ("a/b", r"a-b-[0-9a-f]{16}"),
                             ("é" * 100, r"--[0-9a-f]{16}"), ("x" * 150 + " ", r"x{100}-[0-9a-f]{16}")]:
            with self.subTest(name):
                self.assertRegex(config_file.stem_of(name), f"^{wanted}$")
        names = ["a b", "a-b", "a/b", "a  b", "实验一", "实验二", "-", "é"]
        self.assertEqual(len({config_file.stem_of(name) for name in names}), len(names))

    def test_studies_whose_names_differ_in_signs(self):
        threads = [threading.Thread(target=tune, args=(self.folder,), kwargs=dict(name=name, seed=seed, epochs=1, trials=1))
                   for seed, name in enumerate(["实验一", "实验二", "a b", "a-b"])]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for seed, name in enumerate(["实验一", "实验二", "a b", "a-b"]):
            text = (self.folder / "study.db.inputs" / f"{config_file.stem_of(name)}.yaml").read_text(encoding="utf-8")
            self.assertIn(name, text.splitlines()[0])
            self.assertIn(f"seed: {seed}\n", text)
            self.assertEqual(len(ht.load_study(self.folder / "study.db", name).trials), 1)

    def test_refused(self):
        for name, words in [("x" * 300, r"name: found 'x{60}...' of 300 bytes, wanted 1 to 200"), ("é" * 101, "of 202 bytes"),
                            (3, "name: found 3 of type int, wanted text"), ("\ud800", "wanted text that UTF-8 has")]:
            for change in ({"name": name}, {"config": {"study": name}}):
                with self.subTest(words), self.assertRaisesRegex(ht.ConfigError, words):
                    tune(self.folder, **change)
                self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_class_with_a_long_name(self):
        named = type("N" * 250, (type(net()),), {})
        self.assertRegex(tune(self.folder, named(), trials=1, epochs=1, init="fresh").name, "^N{180}-[0-9a-f]{8}$")


class Refused(Case):
    """A call that does not run leaves the config of the study of its name as it was."""

    def setUp(self):
        super().setUp()
        tune(self.folder, name="s", trials=1, epochs=1)
        self.file = self.folder / "study.db.inputs" / "s.yaml"
        self.before = self.file.read_text()

    def test_a_call_that_the_program_refuses(self):
        x, y = points()
        for label, change in [("data", {"data": (x + 1, y)}), ("settings", {"seed": 5}),
                              ("a word", {"optimizer": "sdg"})]:
            with self.subTest(label), self.assertRaises(ht.ConfigError) as caught:
                tune(self.folder, **{"name": "s", "trials": 1, "epochs": 1, **change})
            self.assertNotIn("--fresh", str(caught.exception))
            if label != "a word":
                self.assertIn("another name= starts a new one beside it", str(caught.exception))
            self.assertEqual(self.file.read_text(), self.before)
        done = subprocess.run([ht.find_program(), str(self.file)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_plan(self):
        ht.plan(net(), points(), {"lr": ht.uniform(0, 1)}, loss="cross_entropy", storage=self.folder / "study.db", name="s")
        self.assertEqual(self.file.read_text(), self.before)

    def test_a_call_that_runs(self):
        tune(self.folder, name="s", trials=2, epochs=1)
        self.assertIn("run_cap: 2", self.file.read_text())

    def test_a_config_of_no_study_stays(self):
        for optimizer in ("sdg", "adm"):
            with self.assertRaisesRegex(ht.ConfigError, "other.yaml"):
                tune(self.folder, name="other", optimizer=optimizer)
            self.assertIn(optimizer, (self.file.parent / "other.yaml").read_text())


class Words(unittest.TestCase):
    def test_advice(self):
        for said, wanted in [
            ("s.yaml: a; --fresh starts a new one beside it", "s.yaml: a; a call with another name= starts a new one beside it"),
            ("s.yaml: a; --fresh starts a new study beside it", "s.yaml: a; a call with another name= starts a new study beside it"),
            ("study 's': b; choose another name (study: ...) or --fresh", "study 's': b; choose another name="),
            ("train: found a, wanted b", "train: found a, wanted b"),
        ]:
            with self.subTest(said):
                self.assertEqual(program.words_of(["warning: c", f"hfta-tune: {said}"]), wanted)


class Writing(Case):
    def test_a_place_that_cannot_be_written(self):
        (self.folder / "file").write_text("")
        for label, act in [("a study", lambda: tune(self.folder / "file")),
                           ("an export", lambda: ht.export(net(), points()[0][:4], self.folder / "file" / "m.pt2"))]:
            with self.subTest(label), self.assertRaisesRegex(ht.StorageError, "file.*: cannot be written: "):
                act()


if __name__ == "__main__":
    unittest.main()
