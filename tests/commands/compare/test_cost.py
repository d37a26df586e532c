"""Costs by hand, counted on torch's own operations, and beside those of other layers."""

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from attnviz.commands.compare.costs import compute_cost, theory_blocks
from attnviz.models.attention import MultiHeadAttention
from attnviz.report import Note, Table


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


# --- Self-attention beside other layers, by hand ---


# Tokens and the width of a kernel, and how many layers see all: 3 ** 5 = 243 needs 5 layers, and not 6 by rounding.
CONTIGUOUS = {(1, 3): 1, (2, 3): 1, (3, 3): 1, (4, 3): 2, (5, 3): 2, (100, 2): 99, (100, 101): 1}
DILATED = {(1, 3): 1, (2, 3): 1, (3, 3): 1, (4, 3): 2, (9, 3): 2, (10, 3): 3, (243, 3): 5, (1024, 2): 10, (1025, 2): 11}


@pytest.mark.parametrize(("name", "layers"), [("convolutional", CONTIGUOUS), ("dilated conv.", DILATED)])
def test_each_layer_of_kernels_sees_k_minus_1_tokens_further_or_dilated_k_times_as_far(
    name: str, layers: dict[tuple[int, int], int]
) -> None:
    tables = {(n, k): theory_blocks(n, 8, k)[0] for n, k in layers}
    listed = {sizes: of.rows for sizes, of in tables.items() if isinstance(of, Table)}
    found = {sizes: str(row[-1]) for sizes, rows in listed.items() for row in rows if row[0] == name}
    assert {sizes: int(path.split(": ")[1]) for sizes, path in found.items()} == layers


def test_the_table_for_a_text() -> None:
    table, *notes = theory_blocks(n=200, d=32, k=3)
    assert isinstance(table, Table)
    rows = {str(row[0]): row[1:] for row in table.rows}
    assert rows["self-attention"] == ("O(n² · d): 1.28 M", "O(1): 1", "O(1): 1")
    assert rows["recurrent"] == ("O(n · d²): 205 k", "O(n): 200", "O(n): 200")
    assert rows["convolutional"] == ("O(k · n · d²): 614 k", "O(1): 1", "O(n / k): 100")
    assert rows["dilated conv."] == ("O(k · n · d²): 614 k", "O(1): 1", "O(log_k n): 5")
    said = " ".join(note.text for note in notes if isinstance(note, Note))
    assert "here n = 200 and d = 32, so it takes more operations than a recurrent layer" in said
    assert "819 k here" in said  # 4 · 200 · 32²


@pytest.mark.parametrize(("n", "words"), [(8, "fewer operations than"), (32, "as many operations, but")])
def test_who_is_cheaper_depends_on_n_and_d(n: int, words: str) -> None:
    _, *notes = theory_blocks(n=n, d=32, k=3)
    assert any(isinstance(note, Note) and words in note.text for note in notes)
