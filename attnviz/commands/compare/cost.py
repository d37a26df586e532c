"""What attention costs, from its sizes. Knows numbers only.

One head of width d and h heads of width d/h take the same operations; only the maps are h times as many.

A multiplication and an addition are two operations. Softmax, biases and everything that is not attention are left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

FLOAT32 = 4  # bytes


class Cost(NamedTuple):
    """What one forward pass of attention takes, all layers together; means over the texts."""

    projections: float | None  # floating-point operations of queries, keys, values and output; None: not known
    weights: float  # floating-point operations of scores and weighted sums
    memory: float  # bytes of the weights in float32


def compute_cost(n_tokens: Float64[np.ndarray, " text"], n_layers: int, n_heads: int, d_model: int) -> Cost:
    """Return 8 n d², 4 n² d and 4 h n² bytes for each layer, as means over the texts.

    Queries, keys, values and the output are n × d times d × d each, as many with one head. Scores q kᵀ and sums of
    values are 2 n² d_head for each head and each of both. A map of n × n weights for each head is in float32.
    """
    n, square = float(n_tokens.mean()), float((n_tokens**2).mean())
    return Cost(n_layers * 8 * n * d_model**2, n_layers * 4 * square * d_model, n_layers * FLOAT32 * n_heads * square)
