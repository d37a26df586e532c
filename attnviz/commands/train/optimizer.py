"""The optimizer of both stages of training. Knows torch and position biases."""

from collections.abc import Iterable

import torch
from torch import nn

from attnviz.models.attention import PositionBias

POSITION_RATE = 10.0  # × the learning rate: a bias has to reach about 5 before one neighbour outweighs 127 other keys
BETAS = (0.9, 0.98)  # the second as in Vaswani et al. 2017: gradients of rare words are forgotten sooner
WEIGHT_DECAY = 0.01  # of matrices; vectors and biases have none
WARM_UP = 0.06  # share of the steps in which the learning rate rises
MAX_NORM = 1.0  # of the gradient


class Optimizer:
    """AdamW with clipped gradients, whose learning rate rises and falls over `n_steps`.

    A parameter without a gradient, such as the bias of positions after pretraining, stays as it is.
    """

    def __init__(self, modules: Iterable[nn.Module], learning_rate: float, n_steps: int) -> None:
        self.n_steps = n_steps
        inner = [module for each in modules for module in each.modules()]
        of_positions = {id(each.bias): each.bias for each in inner if isinstance(each, PositionBias)}
        rest = {id(p): p for each in inner for p in each.parameters(recurse=False) if id(p) not in of_positions}
        groups = [
            {"params": [p for p in rest.values() if p.dim() > 1], "weight_decay": WEIGHT_DECAY},
            {"params": [p for p in rest.values() if p.dim() == 1], "weight_decay": 0.0},
            {"params": [*of_positions.values()], "weight_decay": 0.0, "lr": learning_rate * POSITION_RATE},
        ]
        self.adamw = torch.optim.AdamW(groups, lr=learning_rate, betas=BETAS)
        for group in self.adamw.param_groups:
            group["initial_lr"] = group["lr"]

    def step(self, loss: torch.Tensor, number: int) -> None:
        """Change every parameter against its gradient of `loss`. `number` counts from 0."""
        for group in self.adamw.param_groups:
            group["lr"] = group["initial_lr"] * compute_rate(number, self.n_steps)
        self.adamw.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        parameters = [parameter for group in self.adamw.param_groups for parameter in group["params"]]
        nn.utils.clip_grad_norm_(parameters, MAX_NORM)
        self.adamw.step()


def compute_rate(step: int, n_steps: int) -> float:
    """Return the share of the learning rate at a step: a linear rise, then a linear fall to 0."""
    return min(1.0, (step + 1) / max(1.0, WARM_UP * n_steps), 1 - step / n_steps)
