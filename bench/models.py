"""The models that are raced, as plain PyTorch modules without dropout."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Mlp(nn.Module):
    def __init__(self, inputs: int = 64, hidden: tuple[int, int] = (128, 64), classes: int = 10) -> None:
        super().__init__()
        self.fc1 = nn.Linear(inputs, hidden[0])
        self.fc2 = nn.Linear(hidden[0], hidden[1])
        self.fc3 = nn.Linear(hidden[1], classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


class Cnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc = nn.Linear(32 * 7 * 7, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(x.flatten(1))


class PointNorm(nn.Module):
    """A 1x1 convolution over points, [N, P, in] -> [N, P, out], and its batch norm."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.norm = nn.BatchNorm1d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(x)
        return self.norm(y.flatten(0, -2)).view(y.shape)


class Stn3d(nn.Module):
    """A 3x3 transform for every cloud."""

    def __init__(self) -> None:
        super().__init__()
        self.point1, self.point2, self.point3 = PointNorm(3, 64), PointNorm(64, 128), PointNorm(128, 1024)
        self.fc1, self.fc2, self.fc3 = PointNorm(1024, 512), PointNorm(512, 256), nn.Linear(256, 9)
        self.register_buffer("identity", torch.eye(3).flatten())

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.point3(F.relu(self.point2(F.relu(self.point1(x)))))).max(1).values
        x = self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))
        return (x + self.identity).view(-1, 3, 3)


class PointFeatures(nn.Module):
    """Per-point features [N, P, 64] and those of the whole cloud [N, 1024]."""

    def __init__(self) -> None:
        super().__init__()
        self.stn = Stn3d()
        self.point1, self.point2, self.point3 = PointNorm(3, 64), PointNorm(64, 128), PointNorm(128, 1024)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        local = F.relu(self.point1(torch.bmm(x, self.stn(x))))
        return local, self.point3(F.relu(self.point2(local))).max(1).values


class PointNetClassifier(nn.Module):
    def __init__(self, classes: int = 16) -> None:
        super().__init__()
        self.features = PointFeatures()
        self.fc1, self.fc2, self.fc3 = PointNorm(1024, 512), PointNorm(512, 256), nn.Linear(256, classes)

    def forward(self, x: Tensor) -> Tensor:
        _, cloud = self.features(x)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(cloud)))))


class PointNetSegmentation(nn.Module):
    """[N, P, 3] -> [N, parts, P]"""

    def __init__(self, parts: int = 4) -> None:
        super().__init__()
        self.features = PointFeatures()
        self.point1, self.point2, self.point3 = PointNorm(1088, 512), PointNorm(512, 256), PointNorm(256, 128)
        self.head = nn.Linear(128, parts)

    def forward(self, x: Tensor) -> Tensor:
        local, cloud = self.features(x)
        both = torch.cat([cloud[:, None].expand(-1, x.shape[1], -1), local], -1)
        return self.head(F.relu(self.point3(F.relu(self.point2(F.relu(self.point1(both))))))).transpose(1, 2)


class BasicBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.down = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.down = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + self.down(x))


class ResNet18(nn.Module):
    """For 32x32 images: a 3x3 stem and no max pooling."""

    WIDTHS = (64, 64, 128, 256, 512)

    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.blocks = nn.ModuleList()
        for i, (inputs, outputs) in enumerate(zip(self.WIDTHS, self.WIDTHS[1:])):
            self.blocks.append(BasicBlock(inputs, outputs, 1 if i == 0 else 2))
            self.blocks.append(BasicBlock(outputs, outputs, 1))
        self.fc = nn.Linear(512, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.bn1(self.conv1(x)))
        for block in self.blocks:
            x = block(x)
        return self.fc(x.mean((2, 3)))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        n, t, width = x.shape
        q, k, v = self.qkv(x).view(n, t, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(n, t, width))


class EncoderLayer(nn.Module):
    """Post-norm."""

    def __init__(self, width: int, heads: int, inner: int, causal: bool, gelu: bool) -> None:
        super().__init__()
        self.attention = Attention(width, heads, causal)
        self.fc1, self.fc2 = nn.Linear(width, inner), nn.Linear(inner, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.activation = F.gelu if gelu else F.relu

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.fc2(self.activation(self.fc1(x))))


def waves(length: int, width: int) -> Tensor:
    """The sines and cosines of "Attention is all you need"."""
    place = torch.arange(length)[:, None]
    frequency = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
    return torch.stack([torch.sin(place * frequency), torch.cos(place * frequency)], -1).flatten(1)


class TransformerLm(nn.Module):
    """A causal language model: tokens [N, T] -> [N, V, T]."""

    def __init__(self, vocabulary: int, width: int, heads: int, inner: int, length: int, layers: int = 2) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.register_buffer("places", waves(length, width))
        self.layers = nn.ModuleList(EncoderLayer(width, heads, inner, True, False) for _ in range(layers))
        self.head = nn.Linear(width, vocabulary)
        self.scale = math.sqrt(width)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens) * self.scale + self.places
        for layer in self.layers:
            x = layer(x)
        return self.head(x).transpose(1, 2)


class Bert(nn.Module):
    """A masked language model's encoder: tokens [N, T] -> [N, V, T]."""

    def __init__(self, vocabulary: int, width: int, heads: int, length: int, layers: int = 2) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.places = nn.Parameter(torch.empty(length, width))
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList(EncoderLayer(width, heads, 4 * width, False, True) for _ in range(layers))
        self.head = nn.Linear(width, vocabulary)
        nn.init.normal_(self.embedding.weight, std=0.02)
        nn.init.normal_(self.places, std=0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.norm(self.embedding(tokens) + self.places)
        for layer in self.layers:
            x = layer(x)
        return self.head(x).transpose(1, 2)


class DcganGenerator(nn.Module):
    """Noise [N, 100] -> images [N, 3, 64, 64]."""

    WIDTHS = (512, 256, 128, 64)

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.ConvTranspose2d(100, 512, 4, 1, 0, bias=False), nn.BatchNorm2d(512), nn.ReLU()]
        for inputs, outputs in zip(self.WIDTHS, self.WIDTHS[1:]):
            layers += [nn.ConvTranspose2d(inputs, outputs, 4, 2, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
        self.layers = nn.Sequential(*layers, nn.ConvTranspose2d(64, 3, 4, 2, 1, bias=False), nn.Tanh())

    def forward(self, noise: Tensor) -> Tensor:
        return self.layers(noise[:, :, None, None])


class DcganDiscriminator(nn.Module):
    """Images [N, 3, 64, 64] -> [N], before the sigmoid."""

    WIDTHS = (64, 128, 256, 512)

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, 64, 4, 2, 1, bias=False), nn.LeakyReLU(0.2)]
        for inputs, outputs in zip(self.WIDTHS, self.WIDTHS[1:]):
            layers += [nn.Conv2d(inputs, outputs, 4, 2, 1, bias=False), nn.BatchNorm2d(outputs), nn.LeakyReLU(0.2)]
        self.layers = nn.Sequential(*layers, nn.Conv2d(512, 1, 4, bias=False))

    def forward(self, images: Tensor) -> Tensor:
        return self.layers(images).flatten()


def mobilenet() -> nn.Module:
    import torchvision

    return torchvision.models.mobilenet_v3_large(num_classes=10, dropout=0.0)
