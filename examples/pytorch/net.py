"""The model: an ordinary PyTorch module."""
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2))
        self.body = nn.Sequential(nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(2))
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(128, 10)

    def forward(self, images):
        return self.head(self.drop(self.body(self.stem(images)).flatten(1)))
