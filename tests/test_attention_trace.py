"""The arithmetic of one query, by hand and by its laws."""

import math

import numpy as np
import pytest

from attnviz.records.attention_trace import trace_head

OPEN = np.ones(3, dtype=bool)


def floats(*rows: object) -> np.ndarray:
    return np.array(rows if len(rows) > 1 else rows[0], dtype=np.float64)


def by_hand() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores ln 4, 0 and 0 after the division by √4: weights 4, 1 and 1 of 6."""
    query = floats([1, 1, 1, 1])
    keys = floats([2 * math.log(4), 0, 0, 0], [1, -1, 1, -1], [0, 0, 0, 0])
    return query, keys, floats([6, 0, 0, 0], [0, 6, 0, 0], [0, 0, 6, 6])


@pytest.mark.parametrize("factor", [1.0, 10.0, -10.0, 1e3, -1e3, 1e6, -1e6])
def test_large_scores_stay_finite_and_subtracting_the_largest_changes_no_weight(factor: float) -> None:
    query, _, values = by_hand()
    head = trace_head(query * factor, floats([1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1]), values, OPEN)
    assert head.weights == pytest.approx([1 / 3] * 3)
    assert np.isfinite(head.exponentials).all()
    assert head.shift == (0 if abs(factor) <= 10 else pytest.approx(2 * factor))
