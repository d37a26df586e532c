"""A model's own pass over a text, opened at one layer, and worked out again for one query without torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import cast

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor, nn

from attnviz.errors import ExecutionError
from attnviz.models.attention import AttentionOutput, DotAttention, PositionBias
from attnviz.models.device import enough_memory
from attnviz.records import Provenance, Tokens
from attnviz.records.attention_trace import AttentionTrace, Projection, VerifiedTrace, trace_head

TOLERANCE = 1e-4  # of the largest component: float32 comes far closer, and a step done wrongly does not


@dataclass(frozen=True)
class LayerPlace:
    """Which layer of a model, counted from 0."""

    layer: int
    n_layers: int
    normed: bool  # whether its attention gets normed states


@dataclass(frozen=True, eq=False)
class LayerPass:
    """What attention got and gave in one layer of a forward pass."""

    attention: nn.Module
    states: Float[Tensor, "token d_model"]  # that it got
    attended: AttentionOutput  # that it gave
    attendable: Bool[Tensor, "query key"]


def run_to_layer(
    attention: nn.Module, run: Callable[[], Iterable[object]], layer: int, attendable: Bool[Tensor, "query key"]
) -> LayerPass:
    """`run` the layers, one after the other, up to this one, and keep what its `attention` got and gave."""
    seen: list[tuple[Tensor, AttentionOutput]] = []

    def look(_: nn.Module, given: tuple[Tensor, ...], attended: AttentionOutput) -> None:
        seen.append((given[0], attended))

    with attention.register_forward_hook(look), enough_memory(), torch.inference_mode():
        for _ in islice(run(), layer + 1):
            pass
    ((states, attended),) = seen
    return LayerPass(attention, states, attended, attendable)


def check_arithmetic(
    made: LayerPass, tokens: Tokens, query: int, provenance: Provenance, of: LayerPlace
) -> VerifiedTrace:
    """Work out one query from the states that attention got, and hold it against what attention gave.

    Raises ExecutionError where the two do not come to the same.
    """
    weights = made.attended.weights
    assert weights is not None
    states = made.states.cpu().double().numpy()
    worked = work_through(made.attention, tokens, query, states, made.attendable[query].numpy(), len(weights))
    model_output = made.attended.output[query].cpu().double().numpy()
    model_weights = weights[:, query].cpu().double().numpy()
    error = float(np.abs(worked.output - model_output).max())
    weights_error = float(np.abs(np.stack([head.weights for head in worked.heads]) - model_weights).max())
    allowed = TOLERANCE * float(np.abs(model_output).max())
    if not (error <= allowed and weights_error <= TOLERANCE):  # written so that NaN is wrong too
        raise ExecutionError(
            f"the arithmetic does not give what layer {of.layer} of the model gives: the output is off by {error:.3g}, "
            f"the weights by {weights_error:.3g}; allowed are {allowed:.3g} and {TOLERANCE:g}"
        )
    return VerifiedTrace(
        trace=worked,
        provenance=provenance,
        layer=of.layer,
        n_layers=of.n_layers,
        normed=of.normed,
        model_output=model_output,
        error=error,
        weights_error=weights_error,
        allowed=allowed,
    )


def work_through(
    attention: nn.Module,
    tokens: Tokens,
    query: int,
    states: Float64[np.ndarray, "token d_model"],
    attendable: Bool[np.ndarray, " token"],
    n_heads: int,
) -> AttentionTrace:
    """The same attention from its parameters alone, in float64 and head by head."""
    if isinstance(attention, DotAttention):
        return AttentionTrace(
            tokens, query, attendable, states, (trace_head(states[query], states, states, attendable),), None
        )
    queries, keys, values = (
        np.split(states @ of.matrix + of.bias, n_heads, axis=1)
        for of in (projection(cast(nn.Linear, getattr(attention, name))) for name in ("query", "key", "value"))
    )
    heads = tuple(
        trace_head(of_queries[query], of_keys, of_values, attendable, bias)
        for of_queries, of_keys, of_values, bias in zip(
            queries, keys, values, _position_biases(attention, query, len(states), n_heads), strict=True
        )
    )
    return AttentionTrace(tokens, query, attendable, states, heads, projection(cast(nn.Linear, attention.output)))


def _position_biases(
    attention: nn.Module, query: int, n_keys: int, n_heads: int
) -> list[Float64[np.ndarray, " key"]] | list[None]:
    """What each head adds to the scores of this query, looked up by distance; None for each without such a bias."""
    position = attention.position
    if not isinstance(position, PositionBias):
        return [None] * n_heads
    farthest = position.max_distance
    distances = np.clip(np.arange(n_keys) - query, -farthest, farthest)
    return list(position.bias.detach().cpu().double().numpy()[:, distances + farthest])


def projection(linear: nn.Linear) -> Projection:
    """torch keeps the matrix the other way round."""
    matrix, bias = linear.weight.detach().cpu().double().numpy().T, linear.bias.detach().cpu().double().numpy()
    return Projection(matrix, bias)
