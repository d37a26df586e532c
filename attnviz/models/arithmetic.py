"""One query of a layer, worked out again from what its attention got and its parameters, without torch."""

from typing import cast

import numpy as np
from jaxtyping import Bool, Float64
from torch import nn

from attnviz.models.attention import DotAttention, PositionBias
from attnviz.records import Tokens
from attnviz.records.attention_trace import AttentionTrace, Projection, trace_head

TOLERANCE = 1e-4  # of the largest component: float32 comes far closer, and a step done wrongly does not


def work_through(
    attention: nn.Module,
    tokens: Tokens,
    query: int,
    states: Float64[np.ndarray, "token d_model"],
    attendable: Bool[np.ndarray, " token"],
    n_heads: int,
) -> AttentionTrace:
    """Work out one query from the states that attention got and its parameters, in float64 and head by head."""
    if isinstance(attention, DotAttention):
        only = trace_head(states[query], states, states, attendable)
        return AttentionTrace(tokens, query, attendable, states, (only,), None)
    queries, keys, values = (
        np.split(states @ of.matrix + of.bias, n_heads, axis=1)
        for of in (projection(cast(nn.Linear, getattr(attention, name))) for name in ("query", "key", "value"))
    )
    biases: list[Float64[np.ndarray, " key"]] | list[None] = [None] * n_heads
    if isinstance(attention.position, PositionBias):  # what each head adds to the scores of this query, by distance
        farthest = attention.position.max_distance
        distances = np.clip(np.arange(len(states)) - query, -farthest, farthest)
        biases = list(attention.position.bias.detach().cpu().double().numpy()[:, distances + farthest])
    heads = tuple(
        trace_head(of_queries[query], of_keys, of_values, attendable, bias)
        for of_queries, of_keys, of_values, bias in zip(queries, keys, values, biases, strict=True)
    )
    return AttentionTrace(tokens, query, attendable, states, heads, projection(cast(nn.Linear, attention.output)))


def projection(linear: nn.Linear) -> Projection:
    """Read a linear layer, whose matrix torch keeps the other way round."""
    matrix, bias = linear.weight.detach().cpu().double().numpy().T, linear.bias.detach().cpu().double().numpy()
    return Projection(matrix, bias)
