"""The models of bench/models.py as HFTA fuses them: its ops in the place of torch.nn's, and its shapes in the forwards.
Images are [N, B, C, H, W], all else [B, N, ...], as HFTA's ops want them."""

import types
from collections.abc import Callable
from typing import Any

import models
import torch
import torch.nn.functional as F
import torchvision
from hfta.ops import get_hfta_op_for
from torch import Tensor, nn

IMAGES = (models.Cnn, models.ResNet18, models.DcganGenerator, models.DcganDiscriminator,
          torchvision.models.MobileNetV3)


def arguments(m: nn.Module) -> dict[str, Any] | None:
    """With which an op of HFTA's is made like `m`; None for modules that stay."""
    match m:
        case nn.Linear():
            return {"in_features": m.in_features, "out_features": m.out_features, "bias": m.bias is not None}
        case nn.Conv2d() | nn.ConvTranspose2d():
            return {"in_channels": m.in_channels, "out_channels": m.out_channels, "kernel_size": m.kernel_size,
                    "stride": m.stride, "padding": m.padding, "groups": m.groups, "bias": m.bias is not None}
        case nn.BatchNorm1d() | nn.BatchNorm2d():
            return {"num_features": m.num_features, "eps": m.eps, "momentum": m.momentum}
        case nn.LayerNorm():
            return {"normalized_shape": m.normalized_shape, "eps": m.eps}
        case nn.Embedding():
            return {"num_embeddings": m.num_embeddings, "embedding_dim": m.embedding_dim}
        case nn.AdaptiveAvgPool2d():
            return {"output_size": m.output_size}
    return None


def cnn(self: models.Cnn, x: Tensor) -> Tensor:
    for conv in (self.conv1, self.conv2):
        x = F.relu(conv(x))
        x = F.max_pool2d(x.flatten(0, 1), 2).unflatten(0, x.shape[:2])
    return self.fc(x.transpose(0, 1).flatten(2))


def point_norm(self: models.PointNorm, x: Tensor) -> Tensor:
    y = self.linear(x)
    return self.norm(y.flatten(1, -2)).reshape(y.shape)


def stn3d(self: models.Stn3d, x: Tensor) -> Tensor:
    x = F.relu(self.point3(F.relu(self.point2(F.relu(self.point1(x)))))).max(2).values
    x = self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))
    return (x + self.identity).unflatten(-1, (3, 3))


def point_features(self: models.PointFeatures, x: Tensor) -> tuple[Tensor, Tensor]:
    x = torch.bmm(x.flatten(0, 1), self.stn(x).flatten(0, 1)).view(x.shape)
    local = F.relu(self.point1(x))
    return local, self.point3(F.relu(self.point2(local))).max(2).values


def segmentation(self: models.PointNetSegmentation, x: Tensor) -> Tensor:
    local, cloud = self.features(x)
    both = torch.cat([cloud[:, :, None].expand(-1, -1, x.shape[2], -1), local], -1)
    return self.head(F.relu(self.point3(F.relu(self.point2(F.relu(self.point1(both))))))).transpose(2, 3)


def resnet(self: models.ResNet18, x: Tensor) -> Tensor:
    x = F.relu(self.bn1(self.conv1(x)))
    for block in self.blocks:
        x = block(x)
    return self.fc(x.mean((3, 4)).transpose(0, 1))


def attention(self: models.Attention, x: Tensor) -> Tensor:
    b, n, t, width = x.shape
    q, k, v = self.qkv(x).view(b * n, t, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
    y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
    return self.out(y.transpose(1, 2).reshape(b, n, t, width))


def transformer(self: models.TransformerLm, tokens: Tensor) -> Tensor:
    x = self.embedding(tokens) * self.scale + self.places
    for layer in self.layers:
        x = layer(x)
    return self.head(x).transpose(2, 3)


def bert(self: models.Bert, tokens: Tensor) -> Tensor:
    x = self.norm(self.embedding(tokens) + self.places[:, None])
    for layer in self.layers:
        x = layer(x)
    return self.head(x).transpose(2, 3)


def generator(self: models.DcganGenerator, noise: Tensor) -> Tensor:
    return self.layers(noise[..., None, None]).transpose(0, 1)


def discriminator(self: models.DcganDiscriminator, images: Tensor) -> Tensor:
    return self.layers(images).flatten(1).transpose(0, 1)


def mobilenet(self: torchvision.models.MobileNetV3, x: Tensor) -> Tensor:
    return self.classifier(self.avgpool(self.features(x)).flatten(2).transpose(0, 1))


FORWARDS: dict[type[nn.Module], Callable[..., Any]] = {
    models.Cnn: cnn, models.PointNorm: point_norm, models.Stn3d: stn3d, models.PointFeatures: point_features,
    models.PointNetSegmentation: segmentation, models.ResNet18: resnet, models.Attention: attention,
    models.TransformerLm: transformer, models.Bert: bert, models.DcganGenerator: generator,
    models.DcganDiscriminator: discriminator, torchvision.models.MobileNetV3: mobilenet,
}


def fused_op(plain: nn.Module, width: int) -> nn.Module | None:
    made_with = arguments(plain)
    if made_with is None:
        return None
    op = get_hfta_op_for(type(plain), B=width)(**made_with)
    if hasattr(op, "snatch_parameters"):
        for slot in range(width):
            op.snatch_parameters(plain, slot)
    return op


def fuse(module: nn.Module, width: int) -> nn.Module:
    """Changes `module` into an array of so many; every slot with its weights."""
    for name, child in module.named_children():
        module._modules[name] = fused_op(child, width) or fuse(child, width)
    for name, parameter in list(module.named_parameters(recurse=False)):
        setattr(module, name, nn.Parameter(parameter.detach().expand(width, *parameter.shape).clone()))
    if type(module) in FORWARDS:
        module.forward = types.MethodType(FORWARDS[type(module)], module)
    return module


def spread(module: nn.Module, x: Tensor, width: int) -> Tensor:
    """The batch for every slot, where HFTA wants the slots."""
    if isinstance(module, IMAGES):
        return x[:, None].repeat(1, width, *[1] * (x.dim() - 1))
    return x.repeat(width, *[1] * x.dim())
