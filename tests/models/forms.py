"""More ways to write a model, each a small one: what layers and idioms the models of zoo.py lack."""

import torch
from torch import nn
from torch.nn import functional as F


class WeightNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.utils.parametrizations.weight_norm(nn.Linear(8, 16))
        self.norm, self.head = nn.RMSNorm(16), nn.Linear(16, 5)

    def forward(self, x):
        return self.head(self.norm(F.relu(self.first(x))))


class Sound(nn.Module):
    """One dimension: padding by name, dilation, groups, circular padding."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(3, 8, 5, padding="same", dilation=2), nn.BatchNorm1d(8), nn.LeakyReLU(0.1), nn.MaxPool1d(2),
            nn.Conv1d(8, 8, 3, groups=2, padding_mode="circular", padding=1), nn.Hardswish(), nn.AdaptiveMaxPool1d(3),
            nn.Flatten(), nn.Linear(24, 5))

    def forward(self, x):
        return self.layers(x)


class Volume(nn.Module):
    """Three dimensions, and an instance norm with running statistics."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv3d(1, 4, 3, padding=1), nn.BatchNorm3d(4), nn.ReLU(), nn.MaxPool3d(2),
            nn.ConvTranspose3d(4, 3, 2, stride=2), nn.InstanceNorm3d(3, affine=True, track_running_stats=True),
            nn.AvgPool3d(2), nn.Flatten(), nn.Linear(3 * 64, 5))

    def forward(self, x):
        return self.layers(x)


class PointCloud(nn.Module):
    """Neighbours by distance: cdist, topk, gather."""

    def __init__(self):
        super().__init__()
        self.points = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 16))
        self.head = nn.Linear(16, 5)

    def forward(self, points):
        n, count, _ = points.shape
        nearest = torch.cdist(points, points).topk(4, largest=False).indices.reshape(n, -1, 1).expand(-1, -1, 16)
        grouped = self.points(points).gather(1, nearest).view(n, count, 4, 16)
        return self.head(torch.logsumexp(grouped.max(2).values, 1))


class Cells(nn.Module):
    """Recurrence written out."""

    def __init__(self):
        super().__init__()
        self.lstm, self.gru, self.head = nn.LSTMCell(4, 6), nn.GRUCell(6, 6), nn.Linear(6, 5)

    def forward(self, x):
        h = x.new_zeros(x.shape[0], 6)
        c, g = torch.zeros_like(h), h
        for t in range(x.shape[1]):
            h, c = self.lstm(x[:, t], (h, c))
            g = self.gru(h, g)
        return self.head(g)


class Experts(nn.Module):
    """The two best of three experts: topk, scatter."""

    def __init__(self):
        super().__init__()
        self.gate, self.head = nn.Linear(8, 3), nn.Linear(8, 5)
        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))

    def forward(self, x):
        share = F.softmax(self.gate(x), -1)
        best, which = share.topk(2, -1)
        mask = torch.zeros_like(share).scatter(1, which, best)
        outputs = torch.stack([expert(x) for expert in self.experts], 1)
        return self.head((mask.unsqueeze(-1) * outputs).sum(1))


class Decoder(nn.Module):
    """Attention with extra keys, and a decoder layer under a causal mask."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True, add_bias_kv=True)
        self.decoder = nn.TransformerDecoderLayer(16, 2, 32, 0.0, batch_first=True)
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        y, _ = self.attention(x, x, x)
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], device=x.device).to(x.dtype)
        return self.head(self.decoder(y, x, tgt_mask=mask).mean(1))


class Upsampled(nn.Module):
    """Interpolation, pixel shuffle, unfold, reflection."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 5, 1)
        self.norm, self.shuffle, self.patches = nn.LocalResponseNorm(2), nn.PixelShuffle(2), nn.Unfold(3, padding=1)

    def forward(self, x):
        y = self.norm(F.elu(self.first(x)))
        y = self.shuffle(F.interpolate(y, scale_factor=2, mode="bilinear", align_corners=False))
        z = self.patches(F.pad(x, (1, 1, 1, 1), mode="reflect")).mean((1, 2))
        return self.last(torch.cat([y, y, y, y], 1)).mean((2, 3)) + z[:, None]


class Cached(nn.Module):
    """A cache that begins empty, as language models write it."""

    def __init__(self):
        super().__init__()
        self.key, self.head = nn.Linear(6, 6), nn.Linear(6, 5)

    def forward(self, x):
        cache = torch.tensor([], dtype=x.dtype, device=x.device)
        for part in x.chunk(2, 1):
            cache = torch.cat([cache, self.key(part)], dim=-2)
        return self.head(cache.mean(1))
