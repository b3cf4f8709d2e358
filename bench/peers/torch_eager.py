"""One trial in plain PyTorch. Variants, joined by `+`: fused (Adam in one call), channels_last, math (attention written
out), compiled (torch.compile), graphs (the step as a CUDA graph)."""

import argparse
from typing import Any

import torch
from torch import Tensor

import torch_setup
import workloads
from protocol import Peer, rates, serve


def channels_last(t: Tensor) -> Tensor:
    return t.contiguous(memory_format=torch.channels_last) if t.dim() == 4 else t


class Eager(Peer):
    def __init__(self, args: argparse.Namespace) -> None:
        torch_setup.set_up(args)
        self.device = args.device
        variant = set(filter(None, args.variant.split("+")))
        unknown = variant - {"fused", "channels_last", "math", "compiled", "graphs"}
        if unknown:
            raise ValueError(f"unknown variants {unknown}")
        self.math = "math" in variant
        self.loss = workloads.LOSSES[workloads.ALL[args.workload].loss]
        self.batches = torch_setup.batches(args)
        self.model = torch_setup.initial_model(args)
        if "channels_last" in variant:
            self.model = self.model.to(memory_format=torch.channels_last)
            self.batches = [(channels_last(x), channels_last(y)) for x, y in self.batches]
        graphs = "graphs" in variant
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=args.rate or rates(1)[0],
                                          fused="fused" in variant, capturable=graphs)
        if "compiled" in variant:
            self.model = torch.compile(self.model)
        self.at = 0
        self.graph_step = Replayed(self) if graphs else None

    def step(self, x: Tensor, y: Tensor) -> Tensor:
        self.optimizer.zero_grad()
        loss = self.loss(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def train(self, steps: int) -> list[Any]:
        take = self.graph_step or self.step
        losses = []
        with torch_setup.attention(self.math):
            for _ in range(steps):
                losses.append(take(*self.batches[self.at % len(self.batches)])[None])
                self.at += 1
        return losses

    def wait(self) -> None:
        torch_setup.wait(self.device)

    def info(self) -> dict[str, Any]:
        return torch_setup.info(self.device)


class Replayed:
    """A step recorded once and replayed. What the recording's warm-up trained is undone."""

    def __init__(self, peer: Eager) -> None:
        self.x, self.y = (t.clone() for t in peer.batches[0])
        weights = {k: v.clone() for k, v in peer.model.state_dict().items()}
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                peer.step(self.x, self.y)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.loss = peer.step(self.x, self.y)
        peer.model.load_state_dict(weights)
        with torch.no_grad():
            for state in peer.optimizer.state.values():
                for value in state.values():
                    value.zero_()

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        self.x.copy_(x)
        self.y.copy_(y)
        self.graph.replay()
        return self.loss.clone()


if __name__ == "__main__":
    serve(Eager)
