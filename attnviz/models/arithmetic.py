"""A model's own pass over a text, opened at one layer, and worked out again for one query without torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import cast

import numpy as np
import torch
from jaxtyping import Bool, Float64
from torch import Tensor, nn

from attnviz.errors import ExecutionError
from attnviz.models.attention import AttentionOutput, DotAttention, PositionBias
from attnviz.models.device import enough_memory
from attnviz.records import Provenance, Tokens
from attnviz.records.attention_trace import AttentionTrace, Projection, VerifiedTrace, trace_head

TOLERANCE = 1e-4  # of the largest component: float32 comes far closer, and a step done wrongly does not


def run_to_layer(
    attention: nn.Module, run: Callable[[], Iterable[object]], layer: int
) -> tuple[Float64[np.ndarray, "token d_model"], AttentionOutput]:
    """Run the layers by `run`, one after the other, up to this one; return what its `attention` got and gave."""
    seen: list[tuple[Tensor, AttentionOutput]] = []

    def look(_: nn.Module, given: tuple[Tensor, ...], attended: AttentionOutput) -> None:
        seen.append((given[0], attended))

    with attention.register_forward_hook(look), enough_memory(), torch.inference_mode():
        for _ in islice(run(), layer + 1):
            pass
    ((states, attended),) = seen
    return states.cpu().double().numpy(), attended


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


def check_arithmetic(
    worked: AttentionTrace,
    attended: AttentionOutput,
    provenance: Provenance,
    layer: int,
    n_layers: int,
    *,
    normed: bool,
) -> VerifiedTrace:
    """Hold what was worked out for a query against what attention gave.

    Raises ExecutionError where the two do not come to the same.
    """
    assert attended.weights is not None
    model_output = attended.output[worked.query].cpu().double().numpy()
    model_weights = attended.weights[:, worked.query].cpu().double().numpy()
    error = float(np.abs(worked.output - model_output).max())
    weights_error = float(np.abs(np.stack([head.weights for head in worked.heads]) - model_weights).max())
    allowed = TOLERANCE * float(np.abs(model_output).max())
    if not (error <= allowed and weights_error <= TOLERANCE):  # written so that NaN is wrong too
        raise ExecutionError(
            f"the arithmetic does not give what layer {layer} of the model gives: the output is off by {error:.3g}, "
            f"the weights by {weights_error:.3g}; allowed are {allowed:.3g} and {TOLERANCE:g}"
        )
    return VerifiedTrace(worked, provenance, layer, n_layers, normed, model_output, error, weights_error, allowed)


def projection(linear: nn.Linear) -> Projection:
    """Read a linear layer, whose matrix torch keeps the other way round."""
    matrix, bias = linear.weight.detach().cpu().double().numpy().T, linear.bias.detach().cpu().double().numpy()
    return Projection(matrix, bias)
