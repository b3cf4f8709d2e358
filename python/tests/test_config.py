"""The search space and the config: what calls mean, as tables of cases."""
import unittest

import numpy as np
import torch
from support import ht, tune

from hfta_tune import config, yaml
from hfta_tune.errors import ConfigError


def build(space=None, more=None, over=None, **train):
    given = {"study": None, "method": train.pop("method", None), "folds": train.pop("folds", None),
             "run_cap": train.pop("trials", None),
             "metric": {"name": train.pop("metric", None), "goal": None}, "model": {},
             "data": {"train": "d", "validation": train.pop("validation", 0.2), "batch_size": train.pop("batch_size", 8)},
             "train": {"epochs": 2, "loss": "mse", "optimizer": "adam", **train}, "array": {}}
    return config.build(space, given, more or {}, over)


class Distributions(unittest.TestCase):
    def test_keys(self):
        between = {"min": 1, "max": 9}
        for made, wanted in [
            (ht.uniform(1, 9), {"distribution": "uniform", **between}),
            (ht.uniform(1, 9, q=2), {"distribution": "q_uniform", **between, "q": 2}),
            (ht.log_uniform(1, 9), {"distribution": "log_uniform_values", **between}),
            (ht.log_uniform(1, 9, q=2), {"distribution": "q_log_uniform_values", **between, "q": 2}),
            (ht.inv_log_uniform(1, 9), {"distribution": "inv_log_uniform_values", **between}),
            (ht.int_(1, 9), {"distribution": "int_uniform", **between}),
            (ht.int_(1, 9, q=4), {"distribution": "q_uniform", **between, "q": 4}),
            (ht.normal(0, 2), {"distribution": "normal", "mu": 0, "sigma": 2}),
            (ht.normal(0, 2, q=1), {"distribution": "q_normal", "mu": 0, "sigma": 2, "q": 1}),
            (ht.log_normal(), {"distribution": "log_normal", "mu": 0, "sigma": 1}),
            (ht.log_normal(q=3), {"distribution": "q_log_normal", "mu": 0, "sigma": 1, "q": 3}),
            (ht.choice(["a", None]), {"values": ["a", None]}),
            (ht.choice([1, 2], [0.25, 0.75]), {"values": [1, 2], "probabilities": [0.25, 0.75]}),
            (ht.grid((1, 2)), {"values": [1, 2]}),
        ]:
            with self.subTest(wanted):
                self.assertEqual(build({"lr": made})["parameters"], {"lr": wanted})

    def test_plain_values(self):
        for value, wanted in [(0.1, {"value": 0.1}), ("a", {"value": "a"}), (np.float64(0.5), {"value": 0.5}),
                              ([1, 2], {"values": [1, 2]}), ({"min": 0, "max": 1.5}, {"min": 0, "max": 1.5})]:
            with self.subTest(value):
                self.assertEqual(build({"lr": value})["parameters"]["lr"], wanted)


    def test_a_pair_that_may_be_a_range_is_refused(self):
        for value in [(1e-3, 1e-1), (0, 0.5), (0.5, 1), (np.float32(0.25), np.float64(0.5))]:
            with self.subTest(value), self.assertRaisesRegex(
                    ConfigError, r"^parameters.lr: found the pair \(.*\), wanted ht.uniform\(.*\) or ht.log_uniform\(.*\) for all "
                                 r"numbers between, or ht.choice\(\[.*\]\) for these two"):
                build({"lr": value})
        for value in [[1e-3, 1e-1], (16, 32), (0.1, 0.2, 0.3), ("a", "b"), (True, False), (0.5,)]:
            with self.subTest(value):
                self.assertEqual(build({"lr": value})["parameters"]["lr"], {"values": list(value)})

    def test_devices_and_types(self):
        for value, wanted in [(torch.device("cpu"), "cpu"), (torch.device("cuda", 1), "cuda:1"),
                              ([torch.device("cpu"), "cuda:0"], ["cpu", "cuda:0"])]:
            with self.subTest(wanted):
                self.assertEqual(build({"lr": 1}, over={"array": {"device": value}})["array"]["device"], wanted)
        self.assertEqual(build({"lr": 1}, more={"dtype": torch.float64})["train"]["dtype"], "float64")


class Places(unittest.TestCase):
    def test_where_a_name_alone_stands(self):
        for name, get in [
            ("lr", lambda tree: tree["train"]["optimizer"]["lr"]),
            ("weight_decay", lambda tree: tree["train"]["optimizer"]["weight_decay"]),
            ("optimizer", lambda tree: tree["train"]["optimizer"]["name"]),
            ("loss", lambda tree: tree["train"]["loss"]["name"]),
            ("label_smoothing", lambda tree: tree["train"]["loss"]["label_smoothing"]),
            ("schedule", lambda tree: tree["train"]["schedule"]["name"]),
            ("clip_norm", lambda tree: tree["train"]["clip_norm"]),
            ("seed", lambda tree: tree["train"]["seed"]),
            ("batch_size", lambda tree: tree["data"]["batch_size"]),
            ("freeze", lambda tree: tree["model"]["freeze"]),
            ("drop.p", lambda tree: tree["model"]["bind"]["drop.p"]),
            ("*.drop.p", lambda tree: tree["model"]["bind"]["*.drop.p"]),
        ]:
            with self.subTest(name):
                self.assertEqual(get(build({name: ht.uniform(0, 1)})), "${" + name + "}")

    def test_a_word_becomes_a_map(self):
        self.assertEqual(build({"lr": ht.uniform(0, 1)})["train"]["optimizer"], {"name": "adam", "lr": "${lr}"})

    def test_references_stay(self):
        tree = build({"rate": ht.uniform(0, 1)}, optimizer={"name": "sgd", "lr": "${rate}"})
        self.assertEqual(tree["train"]["optimizer"], {"name": "sgd", "lr": "${rate}"})
        tree = build({"fold": ht.grid([0, 1])}, over={"data": {"train": "fold-${fold}.npz"}})
        self.assertEqual(tree["train"]["optimizer"], "adam")

    def test_inline(self):
        tree = build(optimizer={"name": "adamw", "lr": ht.log_uniform(1e-4, 1), "betas": [ht.uniform(0.8, 0.95), 0.999]},
                     batch_size=ht.choice([8, 16]), more={"bind": {"drop.p": ht.uniform(0, 0.5)}})
        self.assertEqual(tree["train"]["optimizer"], {"name": "adamw", "lr": "${lr}", "betas": ["${betas.0}", 0.999]})
        self.assertEqual(tree["data"]["batch_size"], "${batch_size}")
        self.assertEqual(tree["model"]["bind"], {"drop.p": "${drop.p}"})
        self.assertEqual(sorted(tree["parameters"]), ["batch_size", "betas.0", "drop.p", "lr"])

    def test_inline_in_groups(self):
        groups = [{"params": ["*.bias", "*norm*"], "weight_decay": 0, "betas": [ht.uniform(0.8, 0.95), 0.999]},
                  {"params": "head", "lr": ht.log_uniform(1e-4, 1)}, {"params": "stem", "lr_scale": "${scale}"}]
        tree = build({"scale": ht.choice([0.1, 1])}, optimizer={"name": "adamw", "lr": ht.log_uniform(1e-4, 1), "groups": groups})
        self.assertEqual(tree["train"]["optimizer"], {"name": "adamw", "lr": "${lr}", "groups": [
            {"params": ["*.bias", "*norm*"], "weight_decay": 0, "betas": ["${groups.0.betas.0}", 0.999]},
            {"params": "head", "lr": "${groups.1.lr}"}, {"params": "stem", "lr_scale": "${scale}"}]})
        self.assertEqual(sorted(tree["parameters"]), ["groups.0.betas.0", "groups.1.lr", "lr", "scale"])
        self.assertEqual(build({"lr": 1}, optimizer={"name": "sgd", "groups": groups[:0]})["train"]["optimizer"],
                         {"name": "sgd", "lr": "${lr}", "groups": []})

    def test_inline_name_of_an_optimizer(self):
        tree = build(optimizer={"name": ht.choice(["sgd", "adam"]), "lr": 0.1})
        self.assertEqual(tree["train"]["optimizer"], {"name": "${optimizer}", "lr": 0.1})

    def test_one_object_is_one_parameter(self):
        rate = ht.uniform(0, 1)
        tree = build(more={"bind": {"a.p": rate, "b.p": rate}})
        self.assertEqual(tree["model"]["bind"], {"a.p": "${a.p}", "b.p": "${a.p}"})
        self.assertEqual(list(tree["parameters"]), ["a.p"])
        tree = build({"p": rate}, more={"bind": {"a.p": rate}})
        self.assertEqual((tree["model"]["bind"], list(tree["parameters"])), ({"a.p": "${p}"}, ["p"]))

    def test_equal_names_are_told_apart(self):
        tree = build({"eps": ht.uniform(0, 1)}, optimizer={"name": "adam", "eps": ht.uniform(0, 2)}, clip_norm="${eps}")
        self.assertEqual(tree["train"]["optimizer"]["eps"], "${optimizer.eps}")
        self.assertEqual(sorted(tree["parameters"]), ["eps", "optimizer.eps"])
        tree = build(optimizer={"name": "sgd", "gamma": ht.uniform(0, 1)}, schedule={"name": "step", "gamma": ht.uniform(0, 1)})
        self.assertEqual(sorted(tree["parameters"]), ["optimizer.gamma", "schedule.gamma"])


class Defaults(unittest.TestCase):
    def test_method_and_trials(self):
        for space, given, wanted in [
            ({"lr": ht.uniform(0, 1)}, {}, ("random", config.DEFAULT_TRIALS)),
            ({"lr": ht.grid([1, 2])}, {}, ("grid", None)),
            ({"lr": ht.grid([1, 2])}, {"method": "tpe"}, ("tpe", config.DEFAULT_TRIALS)),
            ({"lr": ht.uniform(0, 1)}, {"method": "hyperband"}, ("hyperband", None)),
            ({"lr": ht.uniform(0, 1)}, {"trials": 3}, ("random", 3)),
            ({"lr": ht.uniform(0, 1)}, {"method": "auto"}, ("auto", config.DEFAULT_TRIALS)),
            ({}, {"optimizer": {"name": "sgd", "lr": ht.grid([1, 2])}}, ("grid", None)),
        ]:
            with self.subTest(wanted):
                tree = build(space, **given)
                self.assertEqual((tree["method"], tree.get("run_cap")), wanted)

    def test_metric(self):
        for given, wanted in [({}, {"name": "val_loss", "goal": "minimize"}),
                              ({"validation": None}, {"name": "train_loss", "goal": "minimize"}),
                              ({"validation": None, "folds": 3}, {"name": "val_loss", "goal": "minimize"}),
                              ({"validation": None, "folds": {"count": 3}}, {"name": "val_loss", "goal": "minimize"}),
                              ({"validation": None, "folds": 1}, {"name": "train_loss", "goal": "minimize"}),
                              ({"validation": None, "folds": {"count": 1}}, {"name": "train_loss", "goal": "minimize"}),
                              ({"metric": "val_accuracy"}, {"name": "val_accuracy", "goal": "maximize"}),
                              ({"metric": "val_mae"}, {"name": "val_mae", "goal": "minimize"})]:
            with self.subTest(given):
                self.assertEqual(build({"lr": 1}, **given)["metric"], wanted)

    def test_several_metrics(self):
        both = [{"name": "val_accuracy", "goal": "maximize"}, {"name": "parameters", "goal": "minimize"}]
        self.assertEqual(build({"lr": 1}, metric=["val_accuracy", "parameters"])["metric"], both)
        self.assertEqual(build({"lr": 1}, over={"metric": [{"name": "val_accuracy"}, {"name": "parameters"}]})["metric"], both)
        self.assertEqual(build({"lr": 1}, metric=["val_accuracy"])["metric"], both[0])
        told = build({"lr": 1}, over={"metric": {"name": ["val_mine", "parameters"], "goal": ["maximize", "minimize"]}})
        self.assertEqual([one["goal"] for one in told["metric"]], ["maximize", "minimize"])
        for name, goal in [([], None), (["val_loss", "parameters"], ["minimize"])]:
            with self.assertRaisesRegex(ConfigError, "goal: found"):
                build({"lr": 1}, over={"metric": {"name": name, "goal": goal}})


class Escape(unittest.TestCase):
    def test_config_is_merged_last(self):
        tree = build({"lr": 1}, over={"train": {"epochs": 9, "optimizer": {"name": "sgd"}}, "tpe": {"candidates": 3},
                                      "parameters": {"momentum": ht.uniform(0, 1)}})
        self.assertEqual(tree["train"]["epochs"], 9)
        self.assertEqual(tree["train"]["optimizer"], {"name": "sgd", "lr": "${lr}", "momentum": "${momentum}"})
        self.assertEqual(tree["tpe"], {"candidates": 3})
        self.assertEqual(tree["parameters"]["momentum"], {"distribution": "uniform", "min": 0, "max": 1})

    def test_further_arguments(self):
        tree = build({"lr": 1}, more={"schedule": "cosine", "freeze": "stem.*", "width": 4, "keep": 2, "select": "best",
                                      "drop_last": True, "init": None})
        self.assertEqual((tree["train"]["schedule"], tree["model"]["freeze"], tree["array"]["width"], tree["keep"],
                          tree["metric"]["select"], tree["data"]["drop_last"]), ("cosine", "stem.*", 4, 2, "best", True))
        self.assertNotIn("init", tree["model"])

    def test_an_unknown_argument_names_near_ones(self):
        with self.assertRaisesRegex(ConfigError, "found the argument 'scheduler'.*near: schedule.*config="):
            build({"lr": 1}, more={"scheduler": "cosine"})
        for found, wanted in [("epoch", "epochs"), ("batchsize", "batch_size"), ("seeds", "seed"), ("freze", "freeze")]:
            with self.subTest(found), self.assertRaisesRegex(ConfigError, f"found the argument '{found}'.*near: [a-z, ]*{wanted}"):
                tune(".", **{found: 3})


class Fingerprints(unittest.TestCase):
    def test_objects_are_refused_by_the_argument(self):
        class FloatDistribution:
            pass

        def mse_loss():
            pass

        for make, place, found in [
            (lambda: build(loss=FloatDistribution()), "train.loss", "FloatDistribution"),
            (lambda: build(loss=mse_loss), "train.loss", "mse_loss"),
            (lambda: build(optimizer=FloatDistribution), "train.optimizer", "FloatDistribution"),
            (lambda: build(optimizer={"name": "adam", "lr": object()}), "train.optimizer.lr", "object"),
            (lambda: build({"lr": FloatDistribution()}), "parameters.lr", "FloatDistribution"),
            (lambda: build({"lr": ht.choice([1, object()])}), "parameters.lr.values.1", "object"),
            (lambda: build(over={"log": mse_loss}), "log", "mse_loss"),
        ]:
            with self.subTest(place), self.assertRaisesRegex(ConfigError, rf"^{place}.*: found {found}, wanted "):
                make()

    def test_what_may_change_does_not_count(self):
        tree = build({"lr": ht.uniform(0, 1)})
        for change, same in [({"run_cap": 99}, True), ({"array": {"width": 3}}, True), ({"study": "a"}, True),
                             ({"seed": 3}, False), ({"parameters": {"lr": {"value": 1}}}, False)]:
            with self.subTest(change):
                self.assertEqual(config.fingerprint({**tree, **change}) == config.fingerprint(tree), same)


class Yaml(unittest.TestCase):
    def test_reads_back(self):
        try:
            import yaml as reader
        except ImportError:
            self.skipTest("the package PyYAML is not installed")
        words = ["plain", "", "null", "True", "no: way", "1.5", "1e-3", "-1", "${lr}", "*.drop.p", "a b", "it's", '"', "#", "é",
                 "-", "--", "~", ".inf", "0x10"]
        for value in [*words, [1, [2.5, None]], True, False, None, 0, -3, 1e-05, 1e22, {"a": {"b": []}}]:
            with self.subTest(repr(value)):
                tree = {"key": value, "inner": {"list": [value]}}
                read = reader.safe_load(yaml.dump(tree))
                self.assertEqual(str(read), str(tree))

    def test_refuses_other_types(self):
        with self.assertRaisesRegex(TypeError, "found .* of type object"):
            yaml.dump({"a": object()})


if __name__ == "__main__":
    unittest.main()
