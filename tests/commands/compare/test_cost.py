"""Costs by hand, counted on torch's own operations, and beside those of other layers."""

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from attnviz.commands.compare.costs import compute_cost
from attnviz.models.attention import MultiHeadAttention


def test_by_hand() -> None:
    """Two tokens of width 3: each of 4 projections is 2 × 3 times 3 × 3, that is 18 products and as many sums."""
    of_one = {"projections": 4 * 2 * 18, "weights": 2 * (2 * 2 * 2 * 3), "memory": 5 * 4 * 4}
    assert compute_cost(np.array([2.0]), 1, 5, 3) == of_one
    of_each = compute_cost(np.array([1.0, 3.0]), 1, 1, 1)
    assert of_each["weights"] == of_each["memory"] == 4 * (1 + 9) / 2
    assert compute_cost(np.array([2.0]), 6, 5, 3) == {name: 6 * each for name, each in of_one.items()}


@pytest.mark.parametrize("n_heads", [1, 2, 8])
def test_as_many_as_torch_counts_with_any_number_of_heads(n_heads: int) -> None:
    attention = MultiHeadAttention(16, n_heads)
    states = torch.zeros(1, 11, 16)
    with FlopCounterMode(display=False) as counter:
        attention(states, states)
    cost = compute_cost(np.array([11.0]), 1, n_heads, 16)
    assert counter.get_total_flops() == cost["projections"] + cost["weights"]
