"""Exports a module twice: name.pt2, the graph that trains, and name.eval.pt2, the graph that evaluates."""
import torch


def export_both(model, example, name):
    """`model` as it is to be trained; `example`: its inputs, a tuple of tensors with the batch first."""
    shapes = tuple({0: torch.export.Dim("batch")} for _ in example)
    modes = {module: module.training for module in model.modules()}
    torch.export.save(torch.export.export(model, example, dynamic_shapes=shapes), f"{name}.pt2")
    torch.export.save(torch.export.export(model.eval(), example, dynamic_shapes=shapes), f"{name}.eval.pt2")
    for module, training in modes.items():  # parts that were frozen by eval() stay so
        module.training = training
