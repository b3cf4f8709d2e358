"""Small models, one for each form of export that the importer's tests look at."""

import torch
from torch import nn

BATCH = torch.export.Dim("batch", min=2, max=64)
TIME = torch.export.Dim("time", min=2, max=50)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 4, num_layers=2, dropout=0.5, batch_first=True)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


class Attention(nn.Module):
    """Tied embeddings, two dynamic dimensions, named outputs, and a module that runs twice."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(7, 4, padding_idx=0)
        self.attend = nn.MultiheadAttention(4, 1, batch_first=True)
        self.drop = nn.Dropout(0.25)
        self.head = nn.Linear(4, 7, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        x = self.drop(self.embed(tokens))
        x = self.drop(self.attend(x, x, x, need_weights=False)[0])
        return {"logits": self.head(x), "pooled": (x.mean(1), None)}


class Scopes(nn.Module):
    """Gradients off, and on again within; inputs that are no tensors."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)

    def forward(self, x, scale: float, flag: bool, nothing=None):
        with torch.no_grad():
            y = self.body(x)
            with torch.enable_grad():
                z = self.body(y)
        first, _ = (z * scale).chunk(2, dim=1)
        return first


class Functional(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.norm(x))


class Sizes(nn.Module):
    """Numbers that are computed while the graph runs."""

    def forward(self, x):
        n, t = x.shape[0], x.shape[1]
        windows = x.reshape(n * 2, t // 2, -1)
        return windows.sum(-1), torch.zeros(n, 3) + t / 2


class Storage(nn.Module):
    """Tensors that are not what lies in the file: transposed, expanded, two in one storage, of several types."""

    def __init__(self):
        super().__init__()
        self.turned = nn.Parameter(torch.arange(6.0).reshape(2, 3).t())
        both = torch.arange(8.0)
        self.register_buffer("low", both[:3])
        self.register_buffer("high", both[4:7])
        self.register_buffer("wide", torch.tensor([2.0]).expand(3))
        self.register_buffer("mask", torch.tensor([True, False, True]))
        self.register_buffer("short", torch.tensor([0.5, 1.5, 2.5], dtype=torch.bfloat16))
        self.register_buffer("nothing", torch.zeros(0, 2))

    def forward(self, x):
        x = x + (self.low + self.high + self.wide) * self.mask + self.short
        return x @ self.turned + self.nothing.sum()


class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)
        self.act = nn.PReLU()

    def forward(self, x):
        return self.drop(self.act(x)) + torch.rand_like(x) * torch.inf


class Chooses(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (x,))


class Selects(nn.Module):
    def forward(self, x):
        return x[x[:, 0] > 0]


class Mixed(nn.Module):
    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            return x @ x.t()


class Outer(nn.Module):
    def forward(self, x, y):
        return x @ y


class Writes(nn.Module):
    def forward(self, x):
        return x.add_(1) * 2


class ComplexNumbers(nn.Module):
    """Complex parameters, one of them frozen, a table that belongs to no state dict, and a literal."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 6, dtype=torch.cfloat)
        self.mix = nn.Parameter(torch.randn(6, 50, dtype=torch.cfloat))
        self.gain = nn.Parameter(torch.full((6,), 0.5 + 2j), requires_grad=False)
        self.register_buffer("table", torch.randn(6, dtype=torch.cfloat), persistent=False)

    def forward(self, x):
        z = self.layer(torch.fft.rfft(x)) * self.gain + 0.5j * self.table
        return (z @ self.mix).abs()


class Half(nn.Module):
    """In bfloat16: a table that is looked up and multiplied by, and layers large enough to be kept so."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(256, 64)
        self.body = nn.Linear(64, 256)
        self.back = nn.Linear(256, 64)
        self.norm = nn.Linear(64, 64)
        self.head = nn.Linear(64, 256, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        x = self.back(torch.relu(self.body(self.embed(tokens).mean(1))))
        return self.head(torch.tanh(self.norm(x)))


class Int8Linear(nn.Module):
    """A linear layer with weights of eight bits and a scale for each output, in calls of its own, as torchao's are."""

    def __init__(self, features, out):
        super().__init__()
        self.register_buffer("quantized", torch.randint(-127, 128, (out, features), dtype=torch.int8))
        self.register_buffer("scale", torch.rand(out, 1) / 127)
        self.bias = nn.Parameter(torch.randn(out))

    def forward(self, x):
        rows = x.reshape(-1, x.shape[-1])
        product = torch.mm(rows, self.quantized.t().to(x.dtype)) * self.scale.flatten()
        return product.reshape(*x.shape[:-1], product.shape[-1]) + self.bias


class Gated(nn.Module):
    """One product, and integers that have no part in it."""

    def __init__(self):
        super().__init__()
        self.register_buffer("index", torch.randint(0, 8, (1, 6)))
        self.table = nn.Parameter(torch.randn(8))
        self.gate = nn.Linear(6, 6)

    def forward(self, x):
        return self.gate(x) + self.table[self.index]


class Quantized(nn.Module):
    """Layers of eight bits, one of them called twice, and a module that is none."""

    def __init__(self):
        super().__init__()
        self.up = Int8Linear(4, 6)
        self.mix = Int8Linear(6, 6)
        self.gated = Gated()
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        y = self.mix(torch.relu(self.mix(torch.relu(self.up(x)))))
        return self.head(torch.relu(self.gated(y)).mean(1))


class Outputs(nn.Module):
    """Outputs of all kinds: nothing, a number, two in a tuple, and tensors between them."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)

    def forward(self, x):
        y = self.body(x)
        return None, y.sin(), (y.cos(), y.tan()), 7, y.exp()


def forms():
    """Programs by the names of their archives."""

    def export(model, *args, shapes=None):
        return torch.export.export(model, args, dynamic_shapes=shapes)

    torch.manual_seed(1)
    x = torch.randn(4, 4)
    return {
        "recurrent": export(Recurrent(), torch.randn(4, 5, 3), shapes=({0: BATCH},)),
        "attention": export(Attention(), torch.randint(1, 7, (4, 6)), shapes=({0: BATCH, 1: TIME},)),
        "scopes": export(Scopes(), x, 0.5, True, None, shapes=({0: BATCH}, None, None, None)),
        "functional": export(Functional(), x).run_decompositions(),
        "sizes": export(Sizes(), torch.randn(4, 6, 2), shapes=({0: BATCH, 1: 2 * torch.export.Dim("half", max=20)},)),
        "storage": export(Storage(), torch.randn(4, 3), shapes=({0: BATCH},)),
        "evaluation": export(Noisy().eval(), x, shapes=({0: torch.export.Dim.DYNAMIC},)),
        "control-flow": export(Chooses(), x),
        "selection": export(Selects(), x),
        "autocast": export(Mixed(), x),
        "two-sizes": export(Outer(), torch.randn(3, 4), torch.randn(4, 2)),
        "writes": export(Writes(), x).run_decompositions(),
        "half": export(Half().to(torch.bfloat16), torch.randint(0, 256, (4, 6)), shapes=({0: BATCH},)),
        "quantized": export(Quantized(), torch.randn(4, 5, 4), shapes=({0: BATCH},)),
        "complex": export(ComplexNumbers(), torch.randn(4, 6), shapes=({0: BATCH},)),
        "outputs": export(Outputs(), x, shapes=({0: BATCH},)),
    }
