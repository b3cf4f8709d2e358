"""What `export` writes: modes, batches, inputs by name; and that the module stays as it is."""
import io
import sys
import unittest
import warnings
from contextlib import redirect_stderr, suppress

import torch
import torch.utils.checkpoint
from support import Case, ht, net
from torch import nn

from hfta_tune import exporting


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
        self.norm = nn.BatchNorm1d(4)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.norm(self.backbone(x)))


class Pair(nn.Module):
    """Two inputs, one of them optional, and outputs by name."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(9, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, ids, mask=None, scale: float = 1.0):
        weight = torch.ones_like(ids, dtype=torch.float32) if mask is None else mask.float()
        return {"logits": self.head((self.words(ids) * weight.unsqueeze(-1)).mean(1)) * scale, "weight": weight.sum(1)}


class FourOnly(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(3, 2)

    def forward(self, x):
        return self.head(x) + x.reshape(4, 3).mean()


class Halves(nn.Module):
    """Does `what` with its inputs, and with the number of samples."""

    def __init__(self, what):
        super().__init__()
        self.head, self.what = nn.Linear(6, 2), what

    def forward(self, x):
        return self.head(self.what(x, x.shape[0]))


class Taken(nn.Module):
    """Has a weight, a part and a buffer of names that torch.fx.GraphModule has, too."""

    def __init__(self):
        super().__init__()
        self.graph, self.meta = nn.Linear(6, 4), nn.Parameter(torch.ones(4))
        self.register_buffer("code", torch.ones(6))
        self.register_buffer("print_readable", torch.ones(6), persistent=False)
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        return self.norm(self.graph(x * self.code + self.print_readable)) * self.meta


class Gaussian(nn.Module):
    """The likelihood of its first input under a distribution that it learns."""

    def __init__(self, prior=None):
        super().__init__()
        self.head, self.prior = nn.Linear(6, 2), prior

    def forward(self, x):
        mean, spread = self.head(x).unbind(1)
        found = torch.distributions.Normal(mean, nn.functional.softplus(spread)).log_prob(x[:, 0])
        return found if self.prior is None else found + self.prior.log_prob(mean)


class Random(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(3, 2)

    def forward(self, x):
        return self.head(x + torch.randn_like(x)) if self.training else self.head(x)


def ids(count=4):
    return torch.arange(count * 5).reshape(count, 5) % 9


def state(module):
    return ({name: value.clone() for name, value in module.state_dict().items()},
            [part.training for part in module.modules()], [weight.requires_grad for weight in module.parameters()])


def code(module, example, **arguments):
    programs = exporting.export_programs(module, example, **arguments)
    return programs.training.graph_module.code, programs.evaluation.graph_module.code


class Modes(Case):
    def test_a_part_in_eval_stays_in_eval(self):
        module = Backbone().train()
        module.backbone.eval()
        training, evaluation = code(module, torch.randn(4, 6))
        self.assertEqual((training.count(", True, 0.1, 1e-05"), training.count(", False, 0.1, 1e-05")), (1, 1))
        self.assertEqual((evaluation.count(", True, 0.1, 1e-05"), evaluation.count(", False, 0.1, 1e-05")), (0, 2))
        self.assertNotIn("dropout.default(batch_norm, 0.5, True)", training)

    def test_a_module_in_eval_is_trained_as_a_whole(self):
        training, _ = code(Backbone().eval(), torch.randn(4, 6))
        self.assertEqual((training.count(", True, 0.1, 1e-05"), training.count(", False, 0.1, 1e-05")), (2, 0))

    def test_the_module_stays_as_it_is(self):
        for module, mode in [(Backbone(), True), (Backbone(), False), (nn.LSTM(6, 3, 2, dropout=0.1), True)]:
            module.train(mode)
            example = torch.randn(4, 6) if isinstance(module, Backbone) else torch.randn(4, 5, 6)
            before, random = state(module), torch.random.get_rng_state()
            ht.export(module, example, self.folder / "m.pt2")
            after = state(module)
            with self.subTest(type(module).__name__):
                for name, value in before[0].items():
                    self.assertTrue(torch.equal(value, after[0][name]), name)
                self.assertEqual(before[1:], after[1:])
                self.assertTrue(torch.equal(random, torch.random.get_rng_state()))
                module(example)  # still a module of real tensors
                self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["m.eval.pt2", "m.pt2"])


class Batches(Case):
    def test_table(self):
        x = torch.randn(4, 6)
        for label, module, example, arguments, batch, inputs in [
            ("a tensor", net(), x, {}, None, ("x",)),
            ("a tuple", net(), (x,), {}, None, ("x",)),
            ("a dict", net(), {"x": x}, {}, None, ("x",)),
            ("one of the inputs", Pair(), {"ids": ids()}, {}, None, ("ids",)),
            ("both, in another order", Pair(), {"mask": ids() > 2, "ids": ids()}, {}, None, ("mask", "ids")),
            ("both by position", Pair(), (ids(), ids() > 2), {}, None, ("ids", "mask")),
            ("fixed", net(), x, {"batch": 7}, 7, ("x",)),
            ("bounded", net(), x, {"batch": torch.export.Dim("batch", max=64)}, None, ("x",)),
            ("no evaluation", net(), x, {"evaluation": False}, None, ("x",)),
            ("float64", net(), x, {"dtype": torch.float64}, None, ("x",)),
            ("random", Random(), torch.randn(4, 3), {}, None, ("x",)),
            ("a condition on the batch", Halves(lambda x, n: x * 2 if n % 2 == 0 else x), x, {}, None, ("x",)),
            ("halves", Halves(lambda x, n: torch.cat([part - part.mean() for part in x.chunk(2)])), x, {}, None, ("x",)),
            ("no other batch near", Halves(lambda x, n: x * 2 if n % 40 == 4 else x), x, {}, None, ("x",)),
            ("names that torch.fx has", Taken(), x, {}, None, ("x",)),
            ("a distribution", Gaussian(torch.distributions.Normal(0.0, 1.0)), x, {}, None, ("x",)),
        ]:
            with self.subTest(label), warnings.catch_warnings():
                warnings.simplefilter("error")
                found = ht.export(module, example, self.folder / "m.pt2", **arguments)
                self.assertEqual(found.batch, batch)
                self.assertEqual(set(found.inputs), set(inputs))
                self.assertEqual(found.evaluation is None, label == "no evaluation")
                program = torch.export.load(found.path)
                sizes = [node.meta["val"].shape[0] for node in program.graph.nodes if node.name in inputs]
                self.assertEqual({isinstance(size, int) for size in sizes}, {batch is not None})
                if label == "float64":
                    self.assertEqual({weight.dtype for weight in program.state_dict.values()}, {torch.float64})

    def test_a_batch_that_must_be_fixed(self):
        for label, module, example, reason in [
            ("the module's own", FourOnly(), torch.randn(4, 3), "specialized it to be a constant"),
            ("one sample", net(), torch.randn(1, 6), "one sample"),
            ("pairs", Halves(lambda x, n: x.view(2, -1, 6).flip(0).reshape(-1, 6)), torch.randn(4, 6), "Constraints violated"),
            ("pairs, joined", Halves(lambda x, n: torch.cat(x.view(2, -1, 6).unbind())), torch.randn(4, 6), "satisfy"),
        ]:
            with self.subTest(label), self.assertWarnsRegex(UserWarning, f"fixed at {len(example)}.*{reason}"):
                found = ht.export(module, example, self.folder / "m.pt2")
            self.assertEqual(found.batch, len(example))

    def test_refused(self):
        ht.export(net(), torch.randn(4, 6), self.folder / "m.pt2")
        before = {path.name: path.read_bytes() for path in self.folder.iterdir()}
        for label, module, example, words in [
            ("TorchScript", torch.jit.script(nn.Linear(6, 3)), torch.randn(4, 6), "wanted a module of Python code"),
            ("no tensor", net(), {"x": 3}, "found no tensor"),
            ("other arguments", net(), {"z": torch.randn(4, 6)}, "does not fit Net.forward"),
            ("shapes", net(), torch.randn(4, 7), "Net fails on the example: mat1 and mat2"),
            ("an op that the program refuses", Sparse(), torch.randn(4, 3), "to_sparse"),
            ("a condition on values", Halves(lambda x, n: x * 2 if x.sum() > 0 else x), torch.randn(4, 6),
             r"test_export.py:\d+ .*found a condition or a size that depends on the values of tensors, wanted none: torch.where"),
            ("a size of values", Halves(lambda x, n: x.repeat(int(x.sum()), 1)), torch.ones(4, 6),
             r"test_export.py:\d+ .*found a condition or a size that depends"),
            ("a check in torch", Halves(lambda x, n: nn.functional.gaussian_nll_loss(x, x, x.exp(), reduction="none")),
             torch.randn(4, 6), r"test_export.py:\d+ .*in torch.nn.functional.gaussian_nll_loss that depends .* formula"),
            ("a distribution's check", Gaussian(torch.distributions.Normal(0.0, 1.0, validate_args=True)), torch.randn(4, 6),
             r"test_export.py:\d+ .*found a distribution that checks .*validate_args=True"),
            ("derivatives", Slope(), torch.randn(4, 6), r"test_export.py:\d+ .*found derivatives inside forward"),
            ("torch.func", Slope(lambda f, x: torch.func.grad(f)(x)), torch.randn(4, 6),
             r"test_export.py:\d+ .*found derivatives inside forward"),
            ("a reentrant checkpoint", Halves(checkpointed), torch.randn(4, 6), "checkpoint with use_reentrant=True, wanted"),
        ]:
            with self.subTest(label), self.assertRaisesRegex(ht.ExportError, words), redirect_stderr(io.StringIO()) as printed:
                ht.export(module, example, self.folder / "m.pt2")
            self.assertEqual({path.name: path.read_bytes() for path in self.folder.iterdir()}, before)
            self.assertNotIn("torch.ops.aten", printed.getvalue())

    def test_the_default_of_distributions_stays(self):
        for export in (lambda: ht.export(Gaussian(), torch.randn(4, 6), self.folder / "m.pt2"),
                       lambda: ht.export(Sparse(), torch.randn(4, 3), self.folder / "m.pt2")):
            with suppress(ht.ExportError):
                export()
            self.assertTrue(torch.distributions.Normal._validate_args)

    def test_what_a_module_prints_stays(self):
        module = Halves(lambda x, n: print("printed", file=sys.stderr) or x)
        with redirect_stderr(io.StringIO()) as printed:
            exporting.export_programs(module, torch.randn(4, 6))
        self.assertGreaterEqual(printed.getvalue().count("printed"), 2)


def derivative(function, x):
    x = x.detach().requires_grad_()
    return torch.autograd.grad(function(x), x, create_graph=True)[0]


class Slope(nn.Module):
    """How fast what it learns changes with its inputs."""

    def __init__(self, derivative=derivative):
        super().__init__()
        self.head, self.derivative = nn.Linear(6, 1), derivative

    def forward(self, x):
        return self.derivative(lambda x: self.head(x).tanh().sum(), x)


def checkpointed(x, n):
    return torch.utils.checkpoint.checkpoint(torch.tanh, x * torch.ones(6, requires_grad=True), use_reentrant=True)


class Sparse(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(3, 2)

    def forward(self, x):
        return self.head(x.to_sparse().to_dense())


class Scaled(nn.Module):
    """Scales its outputs, but only when it does not train."""

    def __init__(self, factor):
        super().__init__()
        torch.manual_seed(0)
        self.head = nn.Linear(6, 2)
        self.factor = factor

    def forward(self, x):
        z = self.head(x)
        return z if self.training else z * torch.tensor([self.factor, self.factor])


class Digests(unittest.TestCase):
    def test_what_counts(self):
        x = torch.randn(4, 6)
        def digest(module, weights=True, example=x):
            return exporting.digest(exporting.export_programs(module, example), weights)
        deeper, frozen = net(), net()
        deeper.drop.p = 0.4
        frozen.hidden.weight.requires_grad = False
        self.assertEqual(digest(net()), digest(net()))
        self.assertEqual(digest(net(0), False), digest(net(1), False))
        others = [digest(net()), digest(net(1)), digest(deeper), digest(frozen), digest(net(classes=4)), digest(net(), False)]
        self.assertEqual(len(set(others)), len(others))

    def test_constants_of_the_evaluation_graph_count(self):
        digests = [exporting.digest(exporting.export_programs(Scaled(factor), torch.randn(4, 6))) for factor in (1.0, 50.0, 1.0)]
        self.assertEqual(digests[0], digests[2])
        self.assertNotEqual(digests[0], digests[1])

    def test_shapes_and_types_of_inputs_count(self):
        pooled = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2, 2))
        words = nn.Embedding(9, 4)
        for label, module, examples, batches in [
            ("shape", pooled, (torch.zeros(4, 1, 8, 8), torch.zeros(4, 1, 16, 16)), (None, None)),
            ("type", words, (torch.zeros(4, 5, dtype=torch.int64), torch.zeros(4, 5, dtype=torch.int32)), (None, None)),
            ("batch", pooled, (torch.zeros(4, 1, 8, 8),) * 2, (None, 4)),
        ]:
            with self.subTest(label):
                digests = [exporting.digest(exporting.export_programs(module, example, batch))
                           for example, batch in zip(examples, batches)]
                self.assertNotEqual(*digests)


class Quiet(nn.Module):
    """Does `what` under torch.no_grad(); nobody reads what comes of it, but a buffer may be written."""

    def __init__(self, what):
        super().__init__()
        self.hidden, self.what = nn.Linear(6, 3), what
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        y = self.hidden(x)
        with torch.no_grad():
            self.what(self, y)
        return y


class QuietBlocks(Case):
    def test_blocks_under_no_grad_that_nobody_reads(self):
        cases = {"nothing": lambda m, y: None, "unread": lambda m, y: y.softmax(1).amax(1).mean(),
                 "a weight": lambda m, y: m.hidden.weight, "written": lambda m, y: m.seen.add_(y.mean())}
        for name, what in cases.items():
            with self.subTest(name):
                file = self.folder / f"{name}.pt2"
                ht.export(Quiet(what), torch.randn(4, 6), file)
                graph = torch.export.load(file).module()
                graph(torch.ones(4, 6))
                self.assertEqual(bool(graph.seen), name == "written")


class Differences(Case):
    def test_an_export_that_computes_something_else_is_refused(self):
        class Counts(nn.Module):
            calls = 0

            def forward(self, x):
                Counts.calls += 1
                return x * Counts.calls

        with self.assertRaisesRegex(ht.ExportError, "gives other outputs than the module: found"):
            ht.export(Counts(), torch.randn(4, 3), self.folder / "m.pt2")
        self.assertEqual(list(self.folder.iterdir()), [])


class Spike(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x > 0).to(x.dtype)

    @staticmethod
    def backward(ctx, grad):
        return grad / (1 + ctx.saved_tensors[0].abs()) ** 2


class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -grad


class Square(torch.autograd.Function):
    """Its backward is that of its forward."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return 2 * ctx.saved_tensors[0] * grad


def doubled(x):
    if x.requires_grad:
        x.register_hook(lambda grad: 2 * grad)
    return x


class Between(nn.Module):
    """Two layers with something between them, whose weights are tied."""

    def __init__(self, between):
        super().__init__()
        self.a = nn.Linear(3, 3)
        self.b = nn.Linear(3, 3)
        self.b.weight = self.a.weight
        self.drop = nn.Dropout(0.3)
        self.norm = nn.BatchNorm1d(3)
        self.between = between

    def forward(self, x):
        return self.b(self.norm(self.drop(self.between(self.a(x)))))


class OwnBackwards(Case):
    def test_a_backward_that_an_export_loses_is_refused(self):
        for label, between in [("surrogate", Spike.apply), ("reversal", Reversed.apply), ("hook", doubled)]:
            with self.subTest(label), self.assertRaisesRegex(ht.ExportError, "other gradients than the module, of a.weight.*detach"):
                ht.export(Between(between), torch.randn(8, 3), self.folder / "m.pt2")
        module = Between(torch.tanh)
        module.norm.register_full_backward_hook(lambda part, ins, outs: tuple(grad * 3 for grad in ins))
        with self.assertRaisesRegex(ht.ExportError, "other gradients"):
            ht.export(module, torch.randn(8, 3), self.folder / "m.pt2")
        module = Between(torch.tanh)
        module.a.bias.register_hook(lambda grad: 0 * grad)
        with self.assertRaisesRegex(ht.ExportError, "found a hook on the gradient of a.bias"):
            ht.export(module, torch.randn(8, 3), self.folder / "m.pt2")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_the_same_by_detach_and_a_backward_that_is_the_right_one(self):
        for label, between in [("straight-through", lambda x: x + ((x > 0).to(x.dtype) - x).detach()),
                               ("reversal", lambda x: 2 * x.detach() - x), ("square", Square.apply)]:
            with self.subTest(label):
                ht.export(Between(between), torch.randn(8, 3), self.folder / "m.pt2")
        words = nn.Sequential(nn.Embedding(9, 4, sparse=True), nn.Flatten(), nn.Linear(20, 2))
        ht.export(words, ids(), self.folder / "words.pt2")


if __name__ == "__main__":
    unittest.main()
