"""What attention costs, from its sizes. Knows numbers only.

One head of width d and h heads of width d/h take the same operations; only the maps are h times as many.

A multiplication and an addition are two operations. Softmax, biases and everything that is not attention are left out.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

FLOAT32 = 4  # bytes


def projection_operations(n_tokens: Int[np.ndarray, " text"], d_model: int) -> float:
    """8 n d²: queries, keys, values and the output, n × d times d × d each. As many with one head. Mean of texts."""
    return float((8.0 * n_tokens * d_model**2).mean())


def weight_operations(n_tokens: Int[np.ndarray, " text"], d_model: int) -> float:
    """4 n² d: the scores q kᵀ and the sums of values, 2 n² d_head for each head and each of both. Mean over texts."""
    return float((4.0 * n_tokens.astype(np.float64) ** 2 * d_model).mean())


def weight_memory(n_tokens: Int[np.ndarray, " text"], n_heads: int) -> float:
    """4 h n² bytes: a map of n × n weights for each head, in float32. Mean over texts."""
    return float((FLOAT32 * n_heads * n_tokens.astype(np.float64) ** 2).mean())
