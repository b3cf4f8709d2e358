"""Layers of images [N, C, H, W] for nets.py: name -> what makes one by a random.Random."""

import torch
from torch import nn
from torch.nn import functional as F

from modules import Function, checkpointed, with_layer, without_gradient
from ops import CHANNELS, SIDE


def batch_norm_2d(r):
    return nn.BatchNorm2d(CHANNELS, affine=r.random() < 0.75, track_running_stats=r.random() < 0.75,
                          momentum=r.choice([0.1, 0.4]))


def instance_norm(r):
    return nn.InstanceNorm2d(CHANNELS, affine=r.random() < 0.5, track_running_stats=r.random() < 0.3)


def squeezed(x, layer):
    return x * torch.sigmoid(layer(x.mean((2, 3))))[:, :, None, None]


def smaller_and_back(x):
    return F.interpolate(F.adaptive_max_pool2d(x, 2), size=(SIDE, SIDE), mode="bilinear")


def with_grid(mode, corners):
    """Sampled where an affine map of each image says."""
    def run(x, layer):
        theta = torch.eye(2, 3).to(x.dtype) + 0.1 * layer(x.mean((2, 3))).tanh().view(-1, 2, 3)
        grid = F.affine_grid(theta, list(x.shape), align_corners=corners)
        return F.grid_sample(x, grid, mode=mode, padding_mode="border" if corners else "zeros", align_corners=corners)
    return lambda r: Function(run, nn.Linear(CHANNELS, 6))


def unpooled(x):
    y, where = F.max_pool2d(x, 2, return_indices=True)
    return F.max_unpool2d(y.sin(), where, 2) + x * 0.3


def folded(x):
    columns = F.unfold(x, 3, padding=1)
    return F.fold(columns * columns.sigmoid(), (SIDE, SIDE), 3, padding=1) * 0.2


def shuffled(x, layer):
    return F.pixel_shuffle(layer(F.pixel_unshuffle(x, 2)), 2)


def patches(x, layer):
    y = x.unfold(2, 2, 2).unfold(3, 2, 2).permute(0, 2, 3, 1, 4, 5).flatten(3)
    return layer(y).view(-1, 2, 2, CHANNELS, 2, 2).permute(0, 3, 1, 4, 2, 5).reshape(x.shape)


def back_to_size(function, mode="nearest"):
    return lambda r: Function(lambda x: F.interpolate(function(x), size=SIDE, mode=mode))


def resized(mode, **options):
    return back_to_size(lambda x: F.interpolate(x, size=(3, 5), mode=mode, **options), "bilinear")


def conv_and_back(r):
    """Strided, dilated, in groups, its height other than its width; a transposed one behind it."""
    there = nn.Conv2d(CHANNELS, 6, (3, 2), stride=2, padding=(1, 0), groups=r.choice([1, 3]), bias=r.random() < 0.5)
    back = nn.ConvTranspose2d(6, CHANNELS, 3, stride=2, padding=1, output_padding=1, groups=r.choice([1, 3]))
    return Function(lambda x, there, back: back(F.relu(there(x))), there, back)


def reused(x, layer):
    """One filter at two dilations, and its own transposed."""
    y = F.conv2d(x, layer.weight, layer.bias, padding=1) + F.conv2d(x, layer.weight, padding=2, dilation=2)
    return F.conv_transpose2d(y, layer.weight, padding=1)


def standardized(x, layer):
    """A filter without its mean and of one scale."""
    w = layer.weight
    middle, scale = w.mean((1, 2, 3), keepdim=True), w.std((1, 2, 3), keepdim=True)
    return F.conv2d(x, (w - middle) / (scale + 0.1), layer.bias, padding=1)


def attended(x, layer):
    """Over places."""
    places = x.flatten(2).mT
    return x + layer(places, places, places)[0].mT.view_as(x)


def a_conv(size=3, **options):
    return lambda r: nn.Conv2d(CHANNELS, CHANNELS, size, **options)


def padded_otherwise(r):
    return nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, padding_mode=r.choice(["circular", "reflect", "replicate"]))


def instance_norm_1d(r):
    return nn.InstanceNorm1d(CHANNELS, affine=r.random() < 0.5, track_running_stats=r.random() < 0.5)


IMAGES = {
    "convolution": lambda r: nn.Conv2d(CHANNELS, CHANNELS, r.choice([1, 3]), padding="same", bias=r.random() < 0.6),
    "depthwise": a_conv(padding=1, groups=CHANNELS), "dilated": a_conv((1, 3), padding=(0, 2), dilation=2),
    "padded otherwise": padded_otherwise, "conv and back": conv_and_back,
    "transposed convolution": lambda r: nn.ConvTranspose2d(CHANNELS, CHANNELS, 3, padding=1),
    "transposed in groups": lambda r: nn.ConvTranspose2d(CHANNELS, CHANNELS, 3, padding=1, groups=3),
    "reused": with_layer(reused, a_conv()), "standardized": with_layer(standardized, a_conv()),
    "weight norm": lambda r: nn.utils.parametrizations.weight_norm(nn.Conv2d(CHANNELS, CHANNELS, 1)),
    "volume": with_layer(lambda x, layer: layer(x.unsqueeze(1)).squeeze(1), lambda r: nn.Conv3d(1, 1, 3, padding=1)),
    "channels last": with_layer(lambda x, layer: layer(x.contiguous(memory_format=torch.channels_last)),
                                a_conv(padding=1)),
    "shuffled": with_layer(shuffled, lambda r: nn.Conv2d(12, 12, 1)),
    "patches": with_layer(patches, lambda r: nn.Linear(12, 12)), "folded": lambda r: Function(folded),
    "batch norm": batch_norm_2d, "batch norm without gradient": without_gradient(batch_norm_2d),
    "batch norm, relu": lambda r: nn.Sequential(batch_norm_2d(r), nn.ReLU(inplace=r.random() < 0.5)),
    "group norm": lambda r: nn.GroupNorm(r.choice([1, 3]), CHANNELS), "instance norm": instance_norm,
    "instance norm 1d": with_layer(lambda x, layer: layer(x.flatten(2)).view_as(x), instance_norm_1d),
    "layer norm": lambda r: nn.LayerNorm([CHANNELS, SIDE, SIDE]),
    "layer norm of rows": lambda r: nn.LayerNorm([SIDE, SIDE], bias=r.random() < 0.5),
    "norm of channels": with_layer(lambda x, layer: layer(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2),
                                   lambda r: nn.LayerNorm(CHANNELS)),
    "response norm": lambda r: nn.LocalResponseNorm(2, alpha=0.1), "prelu": lambda r: nn.PReLU(CHANNELS),
    "dropout2d": lambda r: nn.Dropout2d(0.0), "squeeze": with_layer(squeezed, lambda r: nn.Linear(CHANNELS, CHANNELS)),
    "attention": with_layer(attended, lambda r: nn.MultiheadAttention(CHANNELS, 1, batch_first=True)),
    "checkpoint": checkpointed(lambda r: nn.Sequential(nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1), nn.ReLU())),
    "max pool": lambda r: nn.MaxPool2d(3, 1, 1), "unpooled": lambda r: Function(unpooled),
    "average pool": lambda r: nn.AvgPool2d(3, 1, 1, count_include_pad=r.random() < 0.5),
    "max pool, ceil": back_to_size(lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True)),
    "average pool, ceil": back_to_size(lambda x: F.avg_pool2d(x, 3, 2, ceil_mode=True, divisor_override=2)),
    "lp_pool": back_to_size(lambda x: F.lp_pool2d(x + 2, 2, 2)),
    "adaptive": back_to_size(lambda x: F.adaptive_avg_pool2d(x, (2, 3))),
    "adaptive with indices": lambda r: Function(lambda x: x * F.adaptive_max_pool2d(x, 1, return_indices=True)[0]),
    "upsampled": lambda r: Function(lambda x: F.interpolate(F.avg_pool2d(x, 2), scale_factor=2, mode="nearest")),
    "reflected": lambda r: Function(lambda x: F.pad(x[:, :, 1:, 1:], (1, 0, 1, 0), mode="reflect")),
    "replicated": lambda r: Function(lambda x: F.pad(x, (1, 0, 0, 1), mode="replicate")[:, :, 1:, :-1]),
    "channel shuffle": lambda r: Function(lambda x: torch.channel_shuffle(x.repeat(1, 2, 1, 1), 2)[:, 1:4]),
    "bilinear": lambda r: Function(smaller_and_back), "bicubic": resized("bicubic"), "area": resized("area"),
    "smooth": resized("bilinear", antialias=True), "corners": resized("bilinear", align_corners=True),
    "nearest": resized("nearest"), "exact": resized("nearest-exact"), "grid": with_grid("bilinear", False),
    "grid with corners": with_grid("bilinear", True), "bicubic grid": with_grid("bicubic", False),
}
