"""Costs by hand, and counted on torch's own operations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from attnviz.commands.compare.cost import projection_operations, weight_memory, weight_operations
from attnviz.models.encoder import EncoderConfig, self_attention


def test_by_hand() -> None:
    """Two tokens of width 3: each of 4 projections is 2 × 3 times 3 × 3, that is 18 products and as many sums."""
    two = np.array([2])
    assert projection_operations(two, 3) == 4 * 2 * 18
    assert weight_operations(two, 3) == 2 * (2 * 2 * 2 * 3)
    assert weight_memory(two, 5) == 5 * 4 * 4
    assert weight_operations(np.array([1, 3]), 1) == weight_memory(np.array([1, 3]), 1) == 4 * (1 + 9) / 2  # of each
    assert weight_operations(np.array([100_000]), 65_536) == pytest.approx(4e10 * 65_536)  # overflows nowhere


@pytest.mark.parametrize("n_heads", [1, 2, 8])
def test_as_many_as_torch_counts_with_any_number_of_heads(n_heads: int) -> None:
    attention = self_attention(EncoderConfig(n_words=1, d_model=16, n_heads=n_heads))
    states = torch.zeros(1, 11, 16)
    with FlopCounterMode(display=False) as counter:
        attention(states, states)
    n_tokens = np.array([11])
    assert counter.get_total_flops() == projection_operations(n_tokens, 16) + weight_operations(n_tokens, 16)
