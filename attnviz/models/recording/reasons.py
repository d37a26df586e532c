"""Why weights are no distributions over the keys, as far as the numbers tell. Knows numbers only."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attnviz.display import format_count
from attnviz.shapes import Weights

EVALUATE = "model.eval() turns dropout off; scores need a softmax over the keys first."
FLOAT32_ERROR = 1e-6
NEAR = 1e-2  # by which a sum that says what numbers are may miss it, relative to it


def find_reason(weights: Weights) -> str:
    """Return the likeliest reason, and what to do, in a sentence."""
    if np.isnan(weights).any():
        return "It holds NaN, as softmax gives where every key of a query is masked: leave such queries out."
    with np.errstate(over="ignore", invalid="ignore"):
        sums = weights.sum(axis=-1, dtype=np.float64)
        if (weights <= 0).all() and _are(1.0, np.exp(weights).sum(axis=-1, dtype=np.float64)):
            return "They look like log probabilities: take exp of them."
        if (weights < 0).any() or not np.isfinite(weights).all():
            return "They look like scores before softmax: take softmax over the keys first."
        if _are(1.0, weights.sum(axis=-2, dtype=np.float64)):
            return "Columns sum to 1, so the axes look transposed: the last one is the keys."
        if _are(100.0, sums):
            return "They look like percent: divide them by 100."
        if ((weights == 0) | (weights == 1)).all():
            return "They are all 0 or 1, like a mask."
        if not sums.all() and _are(1.0, sums[sums != 0]):
            return "Some queries have no weight at all, such as padding or masked ones: leave them out."
        for decimals in (1, 2, 3):
            exact = np.abs(np.round(weights, decimals) - weights).max() < FLOAT32_ERROR
            if exact and _are(1.0, sums, 0.1**decimals * weights.shape[-1]):
                many = format_count(decimals, "decimals")
                return f"They look rounded to {many}: keep more, or divide each row by its sum."
        if sums.min() > 0 and _are(float(sums.mean()), sums):
            return f"{EVALUATE} All rows sum to about {sums.mean():.4g}: were weights added up?"
    if (sums < 1 + NEAR).all():
        return f"Rows sum to less than 1: were keys cut off, such as markers? {EVALUATE}"
    return EVALUATE


def _are(number: float, sums: Float[np.ndarray, ...], near: float = NEAR) -> bool:
    return bool((np.abs(sums - number) <= near * number).all())
