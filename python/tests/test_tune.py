"""Whole studies: models of several kinds, and that the best module gives the value that the study reports."""
import unittest

import numpy as np
import torch
from support import SPACE, Case, bert, ht, net, points, tune
from torch import nn
from torch.nn import functional as F


class Forecast(nn.Module):
    """The next value of a series from its last ones, as a table has them: one column per lag."""

    def __init__(self, hidden=8):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, lags):
        return self.head(self.lstm(lags.unsqueeze(-1))[0][:, -1])


def windows(count=180, lags=6):
    series = np.sin(np.arange(count + lags) / 5).astype(np.float32)
    rows = np.stack([series[i:i + lags + 1] for i in range(count)])
    return rows[:, :lags], rows[:, lags:]


class FixedBatch(nn.Module):
    """Works at any batch size, but in a way that makes torch.export fix it."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        return self.head(x) + sum(row.mean() for row in x.detach()) * 0


class Turned(nn.Module):
    """Turns pairs of numbers, as rotary position embeddings do: by complex numbers, which may be in the state dict."""

    def __init__(self, persistent=False):
        super().__init__()
        torch.manual_seed(0)
        self.into = nn.Linear(6, 8)
        self.head = nn.Linear(8, 3)
        self.register_buffer("turns", torch.polar(torch.ones(4), torch.arange(4) * 0.7 + 0.3), persistent=persistent)

    def forward(self, x):
        pairs = torch.view_as_complex(self.into(x).reshape(-1, 4, 2))
        return self.head(torch.view_as_real(pairs * self.turns).flatten(1))


class OnNarrowBase(nn.Module):
    """A head in float32 on a frozen base in bfloat16."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.base = nn.Linear(6, 8).to(torch.bfloat16).requires_grad_(False)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(torch.relu(self.base(x.to(torch.bfloat16))).float())


class Mixing(nn.Module):
    """A product with a matrix that is not in the state dict."""

    def __init__(self):
        super().__init__()
        self.register_buffer("matrix", torch.eye(6) + 0.5, persistent=False)

    def forward(self, x):
        return x @ self.matrix


class Squeezed(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, lags):
        return self.inner(lags).squeeze(-1)


def rows_of(rows):
    """A map-style dataset, as the package datasets has them: rows are dicts."""
    class Rows(torch.utils.data.Dataset):
        def __len__(self):
            return len(rows)

        def __getitem__(self, index):
            return rows[index]
    return Rows()


class Models(Case):
    def check(self, study, loss, inputs, targets):
        """The best module's loss on the validation data is the study's, to 1e-5."""
        module = study.best_module()
        self.assertFalse(any(part.training for part in module.modules()))
        with torch.no_grad():
            value = loss(module(*inputs) if isinstance(inputs, tuple) else module(**inputs), targets).item()
        self.assertAlmostEqual(value, study.best.metrics["val_loss"], delta=1e-5 * max(1, abs(value)))

    def test_a_classifier(self):
        validation = points(60, seed=2)
        module = net()
        before = {name: value.clone() for name, value in module.state_dict().items()}
        study = tune(self.folder, module, space=SPACE, metric="val_accuracy", validation=validation, test=points(30, seed=3))
        self.check(study, F.cross_entropy, validation[:1], validation[1])
        self.assertEqual((study.metric, study.direction, len(study.trials)), ("val_accuracy", "maximize", 4))
        self.assertEqual(set(study.best.params), set(SPACE))
        self.assertIn("test_accuracy", study.best.metrics)
        accuracy = (study.best_module()(validation[0]).argmax(1) == validation[1]).float().mean().item()
        self.assertAlmostEqual(accuracy, study.best.value, delta=1e-6)
        for name, value in module.state_dict().items():
            self.assertTrue(torch.equal(value, before[name]), name)

    def test_a_module_that_changes_after_the_study(self):
        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.into = nn.Linear(6, 6, bias=False)
                self.out = nn.Linear(6, 6, bias=False)
                self.out.weight = self.into.weight
                self.head = nn.Linear(6, 3)
                self.register_buffer("scale", torch.full((6,), 0.5), persistent=False)

            def forward(self, x):
                return self.head(self.out(torch.tanh(self.into(x * self.scale))))

        validation, module = points(60, seed=2), Tied()
        study = tune(self.folder, module, space={"lr": ht.grid([0.01, 0.03])}, trials=None, validation=validation, epochs=1)
        module.head = nn.Identity()  # as libraries do that put adapters around layers
        module.scale.zero_()
        self.check(study, F.cross_entropy, validation[:1], validation[1])
        best = study.best_module()
        self.assertIs(best.into.weight, best.out.weight)
        self.assertIsNot(best.into.weight, study.best_module().into.weight)

    def test_torchvision(self):
        torchvision = self.need("torchvision")
        torch.manual_seed(0)
        module = torchvision.models.resnet18(num_classes=2)
        images = torch.randn(24, 3, 32, 32, generator=torch.Generator().manual_seed(0))
        data = torch.utils.data.TensorDataset(images, (images.mean((1, 2, 3)) > 0).long())
        train, validation = (torch.utils.data.Subset(data, part) for part in (range(16), range(16, 24)))
        study = tune(self.folder, module, train, {"lr": ht.log_uniform(1e-3, 1e-2)}, optimizer="sgd", trials=2, epochs=1,
                     batch_size=8, validation=validation)
        self.check(study, F.cross_entropy, (images[16:],), data.tensors[1][16:])

    def test_lstm_on_arrays(self):
        x, y = windows()
        study = tune(self.folder, Forecast(), (x[:140], y[:140]), {"lr": ht.log_uniform(1e-3, 1e-1)}, loss="mse",
                     validation=(x[140:], y[140:]))
        self.check(study, F.mse_loss, (torch.from_numpy(x[140:]),), torch.from_numpy(y[140:]))

    def test_lstm_on_a_dataframe(self):
        pandas = self.need("pandas")
        x, y = windows()
        frame = pandas.DataFrame(np.concatenate([x, y], 1), columns=[*(f"lag{i}" for i in range(6)), "next"])
        torch.manual_seed(0)
        study = tune(self.folder, Squeezed(Forecast()), frame[:140], {"lr": ht.log_uniform(1e-3, 1e-1)}, loss="mse",
                     validation=frame[140:], target="next")
        self.check(study, F.mse_loss, (torch.from_numpy(x[140:]),), torch.from_numpy(y[140:, 0]))
        data = study.dataframe()
        self.assertEqual(list(data.index), [0, 1, 2, 3])
        self.assertEqual(data["params.lr"][study.best.number], study.best.params["lr"])

    def test_types_of_a_dataframe(self):
        pandas = self.need("pandas")
        numbers = np.arange(80).reshape(40, 2) % 7
        embedding = nn.Sequential(nn.Embedding(7, 4), nn.Flatten(), nn.Linear(8, 2))
        linear = nn.Sequential(nn.Linear(2, 2))
        for label, module, columns, dtype in [
            ("integers as indices", embedding, numbers, "float32"), ("indices in float64", embedding, numbers, "float64"),
            ("integers as numbers", linear, numbers, "float32"), ("float64 as float32", linear, numbers / 7, "float32"),
            ("flags", linear, numbers > 3, "float32"), ("small steps in float64", linear, numbers * 2.0**-24 + 1, "float64"),
        ]:
            with self.subTest(label):
                frame = pandas.DataFrame({"a": columns[:, 0], "b": columns[:, 1], "y": numbers[:, 0] % 2})
                study = tune(self.folder, module, frame[:30], {"lr": ht.uniform(0.01, 0.1)}, target="y", dtype=dtype,
                             validation=frame[30:], trials=1, epochs=1)
                x = torch.from_numpy(columns[30:])
                x = x if module is embedding else x.to(getattr(torch, dtype))
                self.check(study, F.cross_entropy, (x,), torch.from_numpy(numbers[30:, 0] % 2))

    def test_hugging_face(self):
        module = bert(self.need("transformers"), layers=2)
        ids = torch.randint(1, 50, (120, 10), generator=torch.Generator().manual_seed(0))
        mask = torch.ones_like(ids)
        mask[::3, 7:] = 0
        rows = [{"input_ids": ids[i], "attention_mask": mask[i], "labels": int(ids[i, 0] % 3)} for i in range(120)]
        study = tune(self.folder, module, rows_of(rows[:90]), {"lr": ht.log_uniform(1e-4, 1e-2)}, optimizer="adamw", trials=2,
                     loss={"name": "cross_entropy", "output": "logits"}, target="labels", validation=rows_of(rows[90:]))
        self.check(study, lambda out, targets: F.cross_entropy(out.logits, targets),
                   {"input_ids": ids[90:], "attention_mask": mask[90:]}, ids[90:, 0] % 3)

    def test_bytes_and_float64(self):
        images = (np.arange(80 * 16) % 251).astype(np.uint8).reshape(80, 1, 4, 4)
        module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, 2))
        study = tune(self.folder, module, (images[:60], images[:60, 0, 0, 0] % 2), {"lr": ht.log_uniform(1e-5, 1e-3)},
                     validation=(images[60:], images[60:, 0, 0, 0] % 2), dtype="float64", metric="val_loss")
        self.assertEqual({value.dtype for value in study.best_module().state_dict().values()}, {torch.float64})
        self.check(study, F.cross_entropy, (torch.from_numpy(images[60:]).double(),),
                   torch.from_numpy(images[60:, 0, 0, 0] % 2).long())

    def test_complex_buffers(self):
        validation = points(60, seed=2)
        for dtype in ("float32", "float64"):
            with self.subTest(dtype):
                study = tune(self.folder, Turned(), space={"lr": ht.uniform(0.01, 0.1)}, validation=validation, dtype=dtype)
                module = study.best_module()
                self.assertEqual(module.turns.dtype, {"float32": torch.complex64, "float64": torch.complex128}[dtype])
                self.assertGreater(module.turns.imag.abs().min(), 0.1)
                self.check(study, F.cross_entropy, (validation[0].to(module.head.weight.dtype),), validation[1])

    def test_complex_weights_are_read(self):
        validation = points(60, seed=2)
        module = Turned(persistent=True)
        for dtype in ("float32", "float64"):
            with self.subTest(dtype):
                study = tune(self.folder, module, space={"lr": ht.uniform(0.01, 0.1)}, validation=validation, dtype=dtype)
                torch.testing.assert_close(study.weights()["turns"], module.turns)
                x = validation[0].to(study.weights()["head.weight"].dtype)
                self.check(study, F.cross_entropy, (x,), validation[1])

    def test_complex_numbers_are_trained_as_they_are_in_float64(self):
        validation = points(60, seed=2)
        studies = [tune(self.folder, Turned(), space={"lr": ht.uniform(0.01, 0.1)}, trials=1, epochs=1, validation=validation,
                        dtype=dtype) for dtype in ("float32", "float64")]
        self.assertAlmostEqual(studies[0].best.value, studies[1].best.value, delta=1e-4)

    def test_a_frozen_base_in_bfloat16(self):
        validation = points(60, seed=2)
        study = tune(self.folder, OnNarrowBase(), space={"lr": ht.uniform(0.01, 0.1)}, validation=validation)
        module = study.best_module()
        self.assertEqual((module.base.weight.dtype, module.head.weight.dtype), (torch.bfloat16, torch.float32))
        with torch.no_grad():  # the program computes in float32 what this module rounds to bfloat16
            self.assertAlmostEqual(F.cross_entropy(module(validation[0]), validation[1]).item(), study.best.value, delta=1e-2)

    def test_a_module_in_float64_that_is_trained_in_float32(self):
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(6, 6), Mixing(), nn.Linear(6, 3)).double()
        validation = points(60, seed=2)
        study = tune(self.folder, module, space={"lr": ht.uniform(0.01, 0.1)}, validation=validation)
        self.check(study, F.cross_entropy, validation[:1], validation[1])

    def test_a_fixed_batch(self):
        validation = points(40, seed=2)
        with self.assertWarnsRegex(UserWarning, "fixed at 4"):
            study = tune(self.folder, FixedBatch(), space={"lr": ht.uniform(0.01, 0.1)}, validation=validation, batch_size=20)
        self.check(study, F.cross_entropy, validation[:1], validation[1])


if __name__ == "__main__":
    unittest.main()
