"""The arithmetic of one query, by hand and by its laws."""

import math

import numpy as np
import pytest

from attnviz.records.attention_trace import AttentionTrace, Projection, trace_head
from tests.made import tokens

OPEN = np.ones(3, dtype=bool)


def floats(*rows: object) -> np.ndarray:
    return np.array(rows if len(rows) > 1 else rows[0], dtype=np.float64)


def by_hand() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores ln 4, 0 and 0 after the division by √4: weights 4, 1 and 1 of 6."""
    query = floats([1, 1, 1, 1])
    keys = floats([2 * math.log(4), 0, 0, 0], [1, -1, 1, -1], [0, 0, 0, 0])
    return query, keys, floats([6, 0, 0, 0], [0, 6, 0, 0], [0, 0, 6, 6])


def test_every_step_by_hand() -> None:
    head = trace_head(*by_hand(), OPEN)
    assert head.d_head == 4
    assert head.scores == pytest.approx([2 * math.log(4), 0, 0])
    assert head.scaled == pytest.approx([math.log(4), 0, 0])
    assert head.exponentials == pytest.approx([4, 1, 1])
    assert head.weights == pytest.approx([4 / 6, 1 / 6, 1 / 6])
    assert head.weighted == pytest.approx(floats([4, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1]))
    assert head.output == pytest.approx([4, 1, 1, 1])


def test_a_masked_key_has_a_score_and_no_weight() -> None:
    head = trace_head(*by_hand(), np.array([False, True, True]))
    assert head.scores == pytest.approx([2 * math.log(4), 0, 0])
    assert head.exponentials == pytest.approx([0, 1, 1])
    assert head.weights == pytest.approx([0, 0.5, 0.5])
    assert head.output == pytest.approx([0, 3, 3, 3])
    assert head.shift == 0  # a masked score is not the largest


@pytest.mark.parametrize("factor", [1.0, 10.0, -10.0, 1e3, -1e3, 1e6, -1e6])
def test_large_scores_stay_finite_and_subtracting_the_largest_changes_no_weight(factor: float) -> None:
    query, _, values = by_hand()
    head = trace_head(query * factor, floats([1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1]), values, OPEN)
    assert head.weights == pytest.approx([1 / 3] * 3)
    assert np.isfinite(head.exponentials).all()
    assert head.shift == (0 if abs(factor) <= 10 else pytest.approx(2 * factor))


def test_heads_side_by_side_then_projected() -> None:
    head = trace_head(*by_hand(), OPEN)
    states = np.zeros((3, 8))
    alone = AttentionTrace(tokens("a", "b", "c"), 0, OPEN, states, (head, head), None)
    assert alone.concatenated == pytest.approx([4, 1, 1, 1, 4, 1, 1, 1])
    assert alone.output == pytest.approx(alone.concatenated)
    projection = Projection(np.eye(8)[:, :2] * 2, floats([10, 20]))
    projected = AttentionTrace(tokens("a", "b", "c"), 0, OPEN, states, (head, head), projection)
    assert projected.output == pytest.approx([18, 22])
