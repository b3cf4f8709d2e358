"""The models of bench/models.py in JAX, one trial each: parameters under the module's own names, to be vmapped.

`Ops` says how convolutions are done. A model is called as model(p, s, x): parameters, buffers, inputs; it returns the
output and the buffers that training wrote."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array, lax

Tree = dict[str, Array]


@dataclass(frozen=True)
class Ops:
    im2col: bool = False  # convolutions as patches times a matrix; pooling by reshaping

    def conv(self, x: Array, w: Array, stride: int = 1, pad: int = 1) -> Array:
        """x [N, C, H, W], w [O, C, k, k]"""
        if not self.im2col:
            return lax.conv_general_dilated(x, w, (stride, stride), [(pad, pad)] * 2,
                                            dimension_numbers=("NCHW", "OIHW", "NCHW"))
        size = w.shape[-1]
        out = (x.shape[2] + 2 * pad - size) // stride + 1
        padded = jnp.pad(x.transpose(0, 2, 3, 1), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
        span = (out - 1) * stride + 1
        patches = jnp.concatenate([padded[:, i : i + span : stride, j : j + span : stride]
                                   for i in range(size) for j in range(size)], -1)
        y = patches @ w.transpose(2, 3, 1, 0).reshape(-1, w.shape[0])
        return y.transpose(0, 3, 1, 2)

    def max_pool(self, x: Array) -> Array:
        """2x2"""
        if not self.im2col:
            return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
        n, c, h, w = x.shape
        return x.reshape(n, c, h // 2, 2, w // 2, 2).max((3, 5))


def linear(p: Tree, name: str, x: Array) -> Array:
    return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]


def batch_norm(p: Tree, s: Tree, name: str, x: Array) -> Array:
    """Over dimension 1, in training; writes its running statistics into s."""
    axes = tuple(i for i in range(x.ndim) if i != 1)
    shape = (1, -1) + (1,) * (x.ndim - 2)
    mean = x.mean(axes)
    var = jnp.square(x - mean.reshape(shape)).mean(axes)
    n = x.size // x.shape[1]
    s[f"{name}.running_mean"] = 0.9 * s[f"{name}.running_mean"] + 0.1 * lax.stop_gradient(mean)
    s[f"{name}.running_var"] = 0.9 * s[f"{name}.running_var"] + 0.1 * lax.stop_gradient(var) * (n / (n - 1))
    scale = p[f"{name}.weight"] * lax.rsqrt(var + 1e-5)
    return (x - mean.reshape(shape)) * scale.reshape(shape) + p[f"{name}.bias"].reshape(shape)


def layer_norm(p: Tree, name: str, x: Array) -> Array:
    mean = x.mean(-1, keepdims=True)
    var = jnp.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(var + 1e-5) * p[f"{name}.weight"] + p[f"{name}.bias"]


def mlp(ops: Ops, p: Tree, s: Tree, x: Array) -> Array:
    return linear(p, "fc3", jax.nn.relu(linear(p, "fc2", jax.nn.relu(linear(p, "fc1", x)))))


def cnn(ops: Ops, p: Tree, s: Tree, x: Array) -> Array:
    for name in ("conv1", "conv2"):
        x = ops.max_pool(jax.nn.relu(ops.conv(x, p[f"{name}.weight"]) + p[f"{name}.bias"][:, None, None]))
    return linear(p, "fc", x.reshape(x.shape[0], -1))


def point(p: Tree, s: Tree, name: str, x: Array) -> Array:
    y = linear(p, f"{name}.linear", x)
    return batch_norm(p, s, f"{name}.norm", y.reshape(-1, y.shape[-1])).reshape(y.shape)


def points(p: Tree, s: Tree, prefix: str, names: tuple[str, ...], x: Array) -> Array:
    for name in names:
        x = jax.nn.relu(point(p, s, prefix + name, x))
    return x


def point_features(p: Tree, s: Tree, x: Array) -> tuple[Array, Array]:
    y = points(p, s, "features.stn.", ("point1", "point2", "point3"), x).max(1)
    y = linear(p, "features.stn.fc3", points(p, s, "features.stn.", ("fc1", "fc2"), y))
    x = jnp.matmul(x, (y + s["features.stn.identity"]).reshape(-1, 3, 3))
    local = points(p, s, "features.", ("point1",), x)
    return local, point(p, s, "features.point3", points(p, s, "features.", ("point2",), local)).max(1)


def pointnet(ops: Ops, p: Tree, s: Tree, x: Array) -> Array:
    return linear(p, "fc3", points(p, s, "", ("fc1", "fc2"), point_features(p, s, x)[1]))


def pointnet_segmentation(ops: Ops, p: Tree, s: Tree, x: Array) -> Array:
    local, cloud = point_features(p, s, x)
    spread = jnp.broadcast_to(cloud[:, None], (*local.shape[:2], cloud.shape[-1]))
    y = points(p, s, "", ("point1", "point2", "point3"), jnp.concatenate([spread, local], -1))
    return linear(p, "head", y).transpose(0, 2, 1)


def resnet(ops: Ops, p: Tree, s: Tree, x: Array) -> Array:
    x = jax.nn.relu(batch_norm(p, s, "bn1", ops.conv(x, p["conv1.weight"])))
    for i in range(8):
        name, stride = f"blocks.{i}", 2 if i in (2, 4, 6) else 1
        y = jax.nn.relu(batch_norm(p, s, f"{name}.bn1", ops.conv(x, p[f"{name}.conv1.weight"], stride)))
        y = batch_norm(p, s, f"{name}.bn2", ops.conv(y, p[f"{name}.conv2.weight"]))
        if f"{name}.down.0.weight" in p:
            x = batch_norm(p, s, f"{name}.down.1", ops.conv(x, p[f"{name}.down.0.weight"], stride, 0))
        x = jax.nn.relu(x + y)
    return linear(p, "fc", x.mean((2, 3)))


def encoder_layer(p: Tree, name: str, x: Array, heads: int, causal: bool, act: Callable[[Array], Array]) -> Array:
    n, t, width = x.shape
    qkv = linear(p, f"{name}.attention.qkv", x).reshape(n, t, 3, heads, width // heads).transpose(2, 0, 3, 1, 4)
    scores = qkv[0] @ qkv[1].swapaxes(-1, -2) / math.sqrt(width // heads)
    if causal:
        scores = jnp.where(jnp.tril(jnp.ones((t, t), bool)), scores, -jnp.inf)
    y = (jax.nn.softmax(scores) @ qkv[2]).transpose(0, 2, 1, 3).reshape(n, t, width)
    x = layer_norm(p, f"{name}.norm1", x + linear(p, f"{name}.attention.out", y))
    return layer_norm(p, f"{name}.norm2", x + linear(p, f"{name}.fc2", act(linear(p, f"{name}.fc1", x))))


def transformer(heads: int) -> Callable[[Ops, Tree, Tree, Array], Array]:
    def model(ops: Ops, p: Tree, s: Tree, x: Array) -> Array:
        x = p["embedding.weight"][x] * math.sqrt(p["embedding.weight"].shape[1]) + s["places"]
        for i in range(2):
            x = encoder_layer(p, f"layers.{i}", x, heads, True, jax.nn.relu)
        return linear(p, "head", x).transpose(0, 2, 1)

    return model


def bert(ops: Ops, p: Tree, s: Tree, x: Array) -> Array:
    x = layer_norm(p, "norm", p["embedding.weight"][x] + p["places"])
    for i in range(2):
        x = encoder_layer(p, f"layers.{i}", x, 4, False, lambda v: jax.nn.gelu(v, approximate=False))
    return linear(p, "head", x).transpose(0, 2, 1)


def discriminator(ops: Ops, p: Tree, s: Tree, x: Array) -> Array:
    def leaky(v: Array) -> Array:
        return jax.nn.leaky_relu(v, 0.2)

    x = leaky(ops.conv(x, p["layers.0.weight"], 2))
    for at in (2, 5, 8):
        x = leaky(batch_norm(p, s, f"layers.{at + 1}", ops.conv(x, p[f"layers.{at}.weight"], 2)))
    return ops.conv(x, p["layers.11.weight"], 1, 0).reshape(-1)


def transposed(x: Array, w: Array, stride: int, pad: int) -> Array:
    """torch's conv_transpose2d; w [C, O, k, k]"""
    edge = w.shape[-1] - 1 - pad
    return lax.conv_general_dilated(x, jnp.flip(w, (2, 3)), (1, 1), [(edge, edge)] * 2, lhs_dilation=(stride, stride),
                                    dimension_numbers=("NCHW", "IOHW", "NCHW"))


def generator(ops: Ops, p: Tree, s: Tree, x: Array) -> Array:
    x = transposed(x[:, :, None, None], p["layers.0.weight"], 1, 0)
    for at in (3, 6, 9, 12):
        x = transposed(jax.nn.relu(batch_norm(p, s, f"layers.{at - 2}", x)), p[f"layers.{at}.weight"], 2, 1)
    return jnp.tanh(x)


MODELS: dict[str, Callable[[Ops, Tree, Tree, Array], Array]] = {
    "W1": mlp, "W2": cnn, "W3": pointnet, "W4": resnet, "W5": transformer(4), "pointnet-seg": pointnet_segmentation,
    "dcgan-g": generator, "dcgan-d": discriminator, "transformer": transformer(2), "bert": bert,
}


def cross_entropy(y: Array, target: Array) -> Array:
    """y [N, C, ...], target [N, ...]"""
    picked = jnp.take_along_axis(y, target[:, None], 1).squeeze(1)
    return (jax.nn.logsumexp(y, axis=1) - picked).mean()


LOSSES: dict[str, Callable[[Array, Array], Array]] = {
    "cross_entropy": cross_entropy,
    "mse": lambda y, target: jnp.square(y - target).mean(),
    "bce_with_logits": lambda y, target: (jax.nn.softplus(y) - y * target).mean(),
}
