"""What the tests share: the package from this checkout, models, data, and scripts run in a process of their own."""
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PACKAGE = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PACKAGE / "src"))
os.environ.setdefault("HFTA_CACHE", "")  # what one test measures must not change another

import torch  # noqa: E402
from torch import nn  # noqa: E402

import hfta_tune as ht  # noqa: E402


class Net(nn.Module):
    """A small classifier with a dropout."""

    def __init__(self, inputs=6, classes=3):
        super().__init__()
        self.hidden = nn.Linear(inputs, 12)
        self.drop = nn.Dropout(0.3)
        self.head = nn.Linear(12, classes)

    def forward(self, x):
        return self.head(self.drop(torch.relu(self.hidden(x))))


def net(seed=0, **sizes):
    torch.manual_seed(seed)
    return Net(**sizes)


def bert(transformers, layers):
    """A tiny BERT that classifies sequences of at most 16 of 50 tokens into 3 classes."""
    torch.manual_seed(0)
    config = transformers.BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=layers, num_attention_heads=2,
                                     intermediate_size=32, max_position_embeddings=16, num_labels=3)
    return transformers.BertForSequenceClassification(config)


def points(count=240, inputs=6, classes=3, seed=1):
    """Points and the index of the largest of their first numbers."""
    x = torch.randn(count, inputs, generator=torch.Generator().manual_seed(seed))
    return x, x[:, :classes].argmax(1)


SPACE = {"lr": ht.log_uniform(1e-3, 1e-1), "drop.p": ht.uniform(0.0, 0.5)}


def tune(folder, module=None, data=None, space=None, **arguments):
    """A short silent study of `Net`."""
    defaults = dict(loss="cross_entropy", epochs=3, trials=4, storage=pathlib.Path(folder) / "study.db", progress=False)
    return ht.tune(net() if module is None else module, points() if data is None else data,
                   SPACE if space is None else space, **{**defaults, **arguments})


def table(study):
    """All that a study found, but not when."""
    trials = [[t.number, t.state, t.value, t.params, t.epochs, t.metrics, t.reason] for t in study.trials]
    return json.loads(json.dumps([trials, sorted(study.curves().items())]))


class Case(unittest.TestCase):
    """A test with a folder of its own, `self.folder`."""

    def setUp(self):
        place = tempfile.TemporaryDirectory(prefix="hfta-tune-test-")
        self.addCleanup(place.cleanup)
        self.folder = pathlib.Path(place.name)

    def need(self, module):
        """Skips the test where a Python package is missing."""
        try:
            return __import__(module)
        except ImportError:
            self.skipTest(f"the package {module} is not installed")

    def start(self, code, **environment):
        """Starts Python on `code`, which may use what this file has, in `self.folder`."""
        begin = f"import sys; sys.path.insert(0, {str(PACKAGE / 'tests')!r})\nfrom support import *\n"
        return subprocess.Popen([sys.executable, "-c", begin + code], cwd=self.folder, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})

    def fake_program(self, code):
        """A program that does what `code` says, in place of hfta-tune, while the test runs."""
        path = self.folder / "fake-hfta-tune"
        path.write_text(f"#!{sys.executable}\nimport json, os, signal, sys, time\n{code}\n")
        path.chmod(0o755)
        before = os.environ.get("HFTA_TUNE")
        os.environ["HFTA_TUNE"] = str(path)
        self.addCleanup(lambda: os.environ.pop("HFTA_TUNE") if before is None else os.environ.update(HFTA_TUNE=before))


def alive(pid):
    with contextlib.suppress(FileNotFoundError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False
