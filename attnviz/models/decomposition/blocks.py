"""Layers at work: what each read, what its heads and its MLP wrote, and norms of their sums. Knows torch only.

A norm in the residual stream itself, as in BERT, is linear once its scale is held.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Float64
from torch import Tensor, nn
from torch.nn import functional

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True, eq=False)
class StreamNorm:
    """Layer norm of a sum in the stream: γ (x − mean x) / σ + β at each token."""

    read: Float[Tensor, "token d_model"]
    given: Float[Tensor, "token d_model"]
    weight: Float[Tensor, " d_model"]
    bias: Float[Tensor, " d_model"]
    eps: float

    @classmethod
    def from_operator(cls, args: Sequence[Any], given: Tensor) -> "StreamNorm | None":
        """Return the norm of the states of one text; None of an operator that norms anything else."""
        read, shape, weight, bias, eps = args
        if given.ndim != 3 or len(given) != 1 or len(shape) != 1:
            return None
        weight = read.new_ones(shape) if weight is None else weight.detach()
        bias = read.new_zeros(shape) if bias is None else bias.detach()
        return cls(read.detach()[0], given.detach()[0], weight, bias, eps)

    def lose(self, part: Float[Tensor, "token d_model"]) -> Float[Tensor, "token d_model"]:
        """Return what is missing behind the norm where a part is missing before it, the scale computed anew."""
        # Nothing is held here: the norm is applied to the state and to the state without the part, and β, which both
        # have, falls out of the difference.
        whole, rest = (
            functional.layer_norm(each, each.shape[-1:], self.weight, self.bias, self.eps)
            for each in (self.read, self.read - part)
        )
        return whole - rest

    def pull_back(
        self, gradient: Float64[Tensor, "token d_model"]
    ) -> tuple[Float64[Tensor, "token d_model"], Float64[np.ndarray, " token"]]:
        """Return the gradient before the norm, given that behind it, the scale held; and what β gave at each token."""
        # With σ held, y = γ (x − mean x) / σ + β is linear in x, and its transpose is the same the other way: times γ /
        # σ, then less the mean. β comes of no writer, so what it gives is handed back apart.
        scale = (self.read.cpu().double().var(dim=-1, unbiased=False, keepdim=True) + self.eps).rsqrt()
        scaled = gradient * self.weight.cpu().double() * scale
        return scaled - scaled.mean(dim=-1, keepdim=True), (gradient @ self.bias.cpu().double()).numpy()


class Attention(NamedTuple):
    """What a kernel read and gave. `query` and `key` are in the graph."""

    query: Float[Tensor, "1 head token d_head"]
    key: Float[Tensor, "1 group token d_head"]
    scale: float
    bias: Float[Tensor, "head token token"] | None  # what is added to scores, such as by distance
    value: Float[Tensor, "group token d_value"]
    weights: Float[Tensor, "head token token"]
    attendable: Bool[Tensor, "token token"]
    mixed: Float[Tensor, "head token d_value"]  # weights · value


class OutputProjection(NamedTuple):
    """How what heads give becomes what they write: by a linear layer, `module`."""

    weight: Float[Tensor, "d_model head d_value"]
    bias: Float[Tensor, " d_model"] | None
    module: nn.Module
    written: Float[Tensor, "token d_model"]  # by all heads


@dataclass(frozen=True, eq=False)
class StreamBlock:
    """One layer at work. `state` is what it read, a leaf of the graph that queries and keys are computed in.

    Of a layer that norms its sums, as in BERT, `norms` are that behind the heads and that behind the MLP.
    """

    module: nn.Module
    given: Arguments  # what the module was called with
    state: Float[Tensor, "1 token d_model"]
    attention: Attention
    projection: OutputProjection
    mlp: Float[Tensor, "token d_model"]
    norms: tuple[StreamNorm, StreamNorm] | None = None

    @property
    def n_heads(self) -> int:
        """Count the query heads of the layer."""
        return len(self.attention.mixed)

    def group_of(self, head: int, of: Float[Tensor, "group token d"]) -> int:
        """Return which of the keys or values a head shares with others."""
        return head // (self.n_heads // len(of))

    def write(self, head: int) -> Float[Tensor, "token d_model"]:
        """Return what a head writes into the stream."""
        return self.attention.mixed[head] @ self.projection.weight[:, head].detach().T


def replace_state(given: Arguments, state: Tensor) -> Arguments:
    """Return what a module is called with to read another state."""
    args, kwargs = given
    return ((state, *args[1:]), kwargs) if args else (args, {**kwargs, "hidden_states": state})
