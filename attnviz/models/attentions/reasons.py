"""Why weights are no distributions over the keys, as far as the numbers tell. Knows numbers only."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attnviz.display import format_count
from attnviz.shapes import Weights

EVALUATE = "model.eval() turns dropout off; scores need a softmax over the keys first."
FLOAT32_ERROR = 1e-6
EXACT = 1e-4  # by which a sum of float32 may miss 1
HALF_ROUNDING = 1e-2  # by which a row of half precision may
MAX_ROUNDING = 0.1  # by which one of few decimals may
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
        if (decimals := _count_decimals(weights)) and np.abs(sums - 1).max() < 0.5:
            return f"They look rounded to {format_count(decimals, 'decimals')}: keep more."
        if sums.min() > 0 and _are(float(sums.mean()), sums):
            return f"{EVALUATE} All rows sum to about {sums.mean():.4g}: were weights added up?"
    if (sums < 1 + NEAR).all():
        return f"Rows sum to less than 1: were keys cut off, such as markers? {EVALUATE}"
    return EVALUATE


def _are(number: float, sums: Float[np.ndarray, ...]) -> bool:
    return bool((np.abs(sums - number) <= NEAR * number).all())


def _count_decimals(weights: Float[np.ndarray, ...]) -> int:
    """Count the decimals that all numbers have at most; 0 for more than 4."""
    return next((n for n in range(1, 5) if np.abs(weights.round(n) - weights).max() < FLOAT32_ERROR), 0)


def scale_rounded(weights: Weights) -> tuple[Weights, str]:
    """Divide rows that rounding made miss 1 by their sums, and say it; what half precision rounded is not worth a word.

    Numbers were rounded where all in such rows have few decimals, or no more bits than those of half precision.
    """
    sums = weights.sum(axis=-1, keepdims=True)
    is_off = np.abs(sums - 1) > EXACT
    rows, said = weights[is_off[..., 0]], ""
    if not np.isfinite(rows).all() or not len(rows):
        return weights, ""
    rounding = HALF_ROUNDING if not (rows.view(np.uint32) & 0x1FFF).any() else 0.0
    if decimals := _count_decimals(rows):
        rounding = min(MAX_ROUNDING, 0.5 * 0.1**decimals * rows.shape[-1])
        said = f"Numbers have {format_count(decimals, 'decimals')}: rows are scaled to sum to 1."
    is_scaled = is_off & (np.abs(sums - 1) <= rounding)
    return np.divide(weights, sums, where=is_scaled, out=weights.copy()), said if is_scaled.any() else ""
