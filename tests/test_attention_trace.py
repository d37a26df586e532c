"""The arithmetic of one query where numbers are large: what it gives elsewhere is what the model gives."""

import numpy as np
import pytest

from attnviz.records.attention_trace import trace_head


@pytest.mark.parametrize("factor", [1.0, -10.0, 1e3, -1e6])
def test_large_scores_stay_finite_and_subtracting_the_largest_changes_no_weight(factor: float) -> None:
    head = trace_head(np.full(4, factor), np.ones((3, 4)), np.eye(3, 4), np.ones(3, dtype=bool))
    assert head.weights == pytest.approx([1 / 3] * 3)
    assert np.isfinite(head.exponentials).all()
    assert head.shift == (0 if abs(factor) <= 10 else pytest.approx(2 * factor))
