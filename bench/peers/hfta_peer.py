"""All trials in HFTA: its fused ops and its Adam with a rate per slot; --hfta names a clone of UofT-EcoSystem/hfta.
Variant: math (attention written out)."""

import argparse
import sys
from typing import Any

import torch

import torch_setup
import workloads
from protocol import Peer, rates, serve


class Hfta(Peer):
    def __init__(self, args: argparse.Namespace) -> None:
        torch_setup.set_up(args)
        sys.path.insert(0, str(args.hfta))
        import hfta_models
        from hfta.optim import get_hfta_optim_for

        self.device, self.math, width = args.device, args.variant == "math", args.width
        plain = torch_setup.initial_model(args)
        self.loss = workloads.LOSSES[workloads.ALL[args.workload].loss]
        self.model = hfta_models.fuse(plain, width).to(args.device)
        self.optimizer = get_hfta_optim_for(torch.optim.Adam, B=width)(self.model.parameters(), lr=rates(width))
        # Inputs are repeated once and not at every step, which is to HFTA's advantage.
        self.batches = [(hfta_models.spread(self.model, x, width), y.repeat(width, *[1] * (y.dim() - 1)))
                        for x, y in torch_setup.batches(args)]
        self.width = width
        self.at = 0

    def train(self, steps: int) -> list[Any]:
        losses = []
        with torch_setup.attention(self.math):
            for _ in range(steps):
                x, y = self.batches[self.at % len(self.batches)]
                self.at += 1
                self.optimizer.zero_grad()
                each = self.loss(self.model(x).flatten(0, 1), y, reduction="none")
                loss = each.view(self.width, -1).mean(1)
                loss.sum().backward()
                self.optimizer.step()
                losses.append(loss.detach())
        return losses

    def wait(self) -> None:
        torch_setup.wait(self.device)

    def info(self) -> dict[str, Any]:
        return torch_setup.info(self.device)


if __name__ == "__main__":
    serve(Hfta)
