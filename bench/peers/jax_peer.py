"""All trials in JAX: jit(vmap(value_and_grad)) with Adam by hand. Variants, joined by `+`: scan (eight steps a call),
im2col (convolutions as matrix products), serial (one trial: what JAX does without fusing)."""

import argparse
import json
import os
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jax_models import LOSSES, MODELS, Ops, Tree
from protocol import Peer, rates, serve

BETA1, BETA2, EPS = 0.9, 0.999, 1e-8
SCANNED = 8


def adam(p: Array, g: Array, m: Array, v: Array, lr: Array, t: Array) -> tuple[Array, Array, Array]:
    m = BETA1 * m + (1 - BETA1) * g
    v = BETA2 * v + (1 - BETA2) * g * g
    correction1 = -jnp.expm1(t * np.log(BETA1))  # 1 - beta^t cancels in float32
    correction2 = -jnp.expm1(t * np.log(BETA2))
    return p - lr / correction1 * m / (jnp.sqrt(v / correction2) + EPS), m, v


class Jax(Peer):
    def __init__(self, args: argparse.Namespace) -> None:
        if args.device.startswith("cuda") and jax.default_backend() != "gpu":
            raise RuntimeError(f"this JAX runs on {jax.default_backend()}; for a GPU install jax[cuda13] into .venv-bench")
        variant = set(filter(None, args.variant.split("+")))
        model, ops = MODELS[args.workload], Ops(im2col="im2col" in variant)
        facts = json.loads((args.folder / "workload.json").read_text())
        loss_of = LOSSES[facts["loss"]]
        weights = dict(np.load(args.folder / "weights.npz"))
        trained = {k: weights.pop(k) for k in facts["parameters"]}
        weights = {k: v for k, v in weights.items() if not k.endswith("num_batches_tracked")}
        written = {k for k in weights if "running" in k}
        fixed = {k: jnp.asarray(v) for k, v in weights.items() if k not in written}

        def one(p: Tree, m: Tree, v: Tree, s: Tree, lr: Array, t: Array, x: Array, y: Array):
            def loss(p: Tree) -> tuple[Array, Tree]:
                buffers = {**s, **fixed}
                value = loss_of(model(ops, p, buffers, x), y)
                return value, {k: buffers[k] for k in s}

            (value, s), g = jax.value_and_grad(loss, has_aux=True)(p)
            new = {k: adam(p[k], g[k], m[k], v[k], lr, t) for k in p}
            p, m, v = ({k: new[k][i] for k in new} for i in range(3))
            return p, m, v, s, value

        across = jax.vmap(one, in_axes=(0, 0, 0, 0, 0, None, None, None))
        lr = jnp.asarray(rates(args.width), jnp.float32)

        def step(carry, batch):
            p, m, v, s, t = carry
            p, m, v, s, value = across(p, m, v, s, lr, t + 1, *batch)
            return (p, m, v, s, t + 1), value

        self.scan = "scan" in variant
        self.stride = SCANNED if self.scan else 1
        whole = (lambda carry, xs: lax.scan(step, carry, xs)) if self.scan else step
        self.step = jax.jit(whole, donate_argnums=0)
        p = {k: jnp.asarray(np.repeat(v[None], args.width, 0)) for k, v in trained.items()}
        s = {k: jnp.asarray(np.repeat(weights[k][None], args.width, 0)) for k in written}
        zeros = [jax.tree.map(jnp.zeros_like, p) for _ in range(2)]
        self.carry = (p, *zeros, s, jnp.zeros((), jnp.float32))
        self.batches = self.load(args, facts)
        self.at = 0

    def load(self, args: argparse.Namespace, facts: dict[str, Any]) -> list[tuple[Array, Array]]:
        data = np.load(args.folder / "data.npz")

        def split(values: np.ndarray) -> np.ndarray:
            kept = values.astype(np.int32) if values.dtype == np.int64 else values
            return kept.reshape(-1, facts["batch"], *values.shape[1:])

        x, y = split(data["x"]), split(data["y"])
        if self.scan:
            order = np.arange(SCANNED) % len(x)
            return [(jnp.asarray(x[order]), jnp.asarray(y[order]))]
        return [(jnp.asarray(a), jnp.asarray(b)) for a, b in zip(x, y)]

    def train(self, steps: int) -> list[Any]:
        losses = []
        for _ in range(steps // self.stride):
            self.carry, value = self.step(self.carry, self.batches[self.at % len(self.batches)])
            self.at += 1
            losses.append(value)
        return losses

    def info(self) -> dict[str, Any]:
        limits = [word.split("=")[1] for word in os.environ.get("XLA_FLAGS", "").split() if "max_isa=" in word]
        return {"runs": f"XLA {limits[-1]} at most" if limits else "XLA"}

    def wait(self) -> None:
        jax.block_until_ready(self.carry)


if __name__ == "__main__":
    serve(Jax)
