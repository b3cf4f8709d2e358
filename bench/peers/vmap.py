"""All trials in one vmap: torch.func.functional_call in the forward, ordinary autograd behind it, Adam by hand with a
rate per slot. Variants, joined by `+`: math (attention written out), compiled (forward with its backward, and Adam, as
two graphs), slots (torch's fused Adam, slot by slot), graphs (the whole step as one CUDA graph)."""

import argparse
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call, vmap

import torch_setup
import workloads
from protocol import Peer, rates, serve

BETA1, BETA2, EPS = 0.9, 0.999, 1e-8


def adam(params: list[Tensor], grads: list[Tensor], first: list[Tensor], second: list[Tensor],
         scaled_rates: list[Tensor], root2: Tensor) -> None:
    """`scaled_rates`: -lr / (1 - beta1^t), shaped to broadcast; `root2`: sqrt(1 - beta2^t)."""
    torch._foreach_lerp_(first, grads, 1 - BETA1)
    torch._foreach_mul_(second, BETA2)
    torch._foreach_addcmul_(second, grads, grads, 1 - BETA2)
    denominators = torch._foreach_sqrt(second)
    torch._foreach_div_(denominators, root2)
    torch._foreach_add_(denominators, EPS)
    updates = torch._foreach_div(first, denominators)
    torch._foreach_mul_(updates, scaled_rates)
    torch._foreach_add_(params, updates)


class Vmap(Peer):
    def __init__(self, args: argparse.Namespace) -> None:
        torch_setup.set_up(args)
        self.device, self.width = args.device, args.width
        variant = set(filter(None, args.variant.split("+")))
        self.math, self.slots = "math" in variant, "slots" in variant
        self.graph: torch.cuda.CUDAGraph | None = None
        self.batches = torch_setup.batches(args)
        model = torch_setup.initial_model(args)
        loss = workloads.LOSSES[workloads.ALL[args.workload].loss]

        def stacked(values: Any) -> dict[str, Tensor]:
            return {k: v.detach().expand(args.width, *v.shape).clone() for k, v in values}

        self.params = {k: v.requires_grad_() for k, v in stacked(model.named_parameters()).items()}
        # A buffer that training leaves alone is the same for all, and stays one.
        written = {k for k, _ in model.named_buffers() if "running" in k or "num_batches" in k}
        shared = {k: v for k, v in model.named_buffers() if k not in written}
        self.buffers = stacked((k, v) for k, v in model.named_buffers() if k in written)

        def one(params: dict[str, Tensor], buffers: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
            return loss(functional_call(model, (params, buffers, shared), (x,)), y)

        self.losses = vmap(one, in_dims=(0, 0, None, None))
        self.adam = adam
        if "compiled" in variant:
            self.losses, self.adam = torch.compile(self.losses), torch.compile(adam)
        values = list(self.params.values())
        self.first = [torch.zeros_like(p) for p in values]
        self.second = [torch.zeros_like(p) for p in values]
        self.rates = torch.tensor(rates(args.width), device=args.device)
        self.at = 0
        self.steps = torch.zeros((), dtype=torch.float64, device=args.device)  # taken, as a graph counts them
        if "graphs" in variant:
            self.capture()

    def capture(self) -> None:
        """Records a step on memory of its own for samples. What the warm-up trained is undone."""
        values = [*self.params.values(), *self.buffers.values(), *self.first, *self.second, self.steps]
        before = [v.detach().clone() for v in values]
        self.x, self.y = (t.clone() for t in self.batches[0])
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side), torch_setup.attention(self.math):
            for _ in range(3):
                self.recorded_step()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph), torch_setup.attention(self.math):
            self.recorded = self.recorded_step()
        with torch.no_grad():
            for value, old in zip(values, before):
                value.copy_(old)
        self.graph = graph

    def recorded_step(self) -> Tensor:
        for p in self.params.values():
            p.grad = None
        loss = self.losses(self.params, self.buffers, self.x, self.y)
        loss.sum().backward()
        with torch.no_grad():
            self.steps += 1
            params = list(self.params.values())
            scaled = (-self.rates / (1 - BETA1**self.steps)).to(self.rates.dtype)
            shaped = [scaled.view(-1, *[1] * (p.dim() - 1)) for p in params]
            root2 = (1 - BETA2**self.steps).sqrt().to(self.rates.dtype)
            self.adam(params, [p.grad for p in params], self.first, self.second, shaped, root2)
        return loss.detach()

    def replayed_step(self, x: Tensor, y: Tensor) -> Tensor:
        self.x.copy_(x)
        self.y.copy_(y)
        self.graph.replay()
        return self.recorded.clone()

    def update(self) -> None:
        if self.slots:
            return self.update_slots()
        params = list(self.params.values())
        scaled = -self.rates / (1 - BETA1**self.at)
        shaped = [scaled.view(-1, *[1] * (p.dim() - 1)) for p in params]
        root2 = torch.tensor((1 - BETA2**self.at) ** 0.5, device=self.device)
        self.adam(params, [p.grad for p in params], self.first, self.second, shaped, root2)

    def update_slots(self) -> None:
        steps = [torch.tensor(float(self.at)) for _ in self.params]
        values = list(self.params.values())
        columns = [values, [p.grad for p in values], self.first, self.second]
        for slot, rate in enumerate(rates(self.width)):
            torch._fused_adam_(*[[t[slot] for t in column] for column in columns], [], steps, lr=rate, beta1=BETA1,
                               beta2=BETA2, weight_decay=0.0, eps=EPS, amsgrad=False, maximize=False)

    def train(self, steps: int) -> list[Any]:
        losses = []
        with torch_setup.attention(self.math):
            for _ in range(steps):
                x, y = self.batches[self.at % len(self.batches)]
                self.at += 1
                if self.graph is not None:
                    losses.append(self.replayed_step(x, y))
                    continue
                for p in self.params.values():
                    p.grad = None
                loss = self.losses(self.params, self.buffers, x, y)
                loss.sum().backward()
                with torch.no_grad():
                    self.update()
                losses.append(loss.detach())
        return losses

    def wait(self) -> None:
        torch_setup.wait(self.device)

    def info(self) -> dict[str, Any]:
        return torch_setup.info(self.device)


if __name__ == "__main__":
    serve(Vmap)
