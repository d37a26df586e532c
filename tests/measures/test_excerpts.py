"""Single rows of attention, by hand: which aims most, and what is kept of it."""

from __future__ import annotations

import numpy as np
import pytest

from attnviz.measures.notable import choose_shown, find_strongest, read_row
from tests.made import record, tokens

RESTS = np.array([True, False, False, False])


def test_the_strongest_row_gives_one_key_the_most_bits_beyond_an_equal_share() -> None:
    """w log₂(w n): of .5 among 4 keys .5 bits, of .7 among 4 keys 1.04."""
    rows = [[0.25, 0.25, 0.25, 0.25], [0.1, 0.5, 0.2, 0.2], [0.1, 0.1, 0.1, 0.7], [0.97, 0.01, 0.01, 0.01]]
    maps = record(np.array([[rows]]), tokens("the", "film", "was", "good"))
    strengths, queries = find_strongest(maps, 0, RESTS)
    assert queries.tolist() == [2]
    assert strengths == pytest.approx([0.7 * np.log2(0.7 * 4)], abs=1e-6)


def test_rows_that_rest_are_weaker_than_any_other_the_least_resting_first() -> None:
    resting = [[0.97, 0.01, 0.01, 0.01], [0.6, 0.2, 0.1, 0.1], [0.9, 0.05, 0.05, 0.0], [0.97, 0.01, 0.01, 0.01]]
    spread = [[0.97, 0.01, 0.01, 0.01]] * 3 + [[0.24, 0.26, 0.25, 0.25]]
    maps = record(np.array([[resting, spread]]), tokens("the", "film", "was", "good"))
    strengths, queries = find_strongest(maps, 0, RESTS)
    assert queries.tolist() == [1, 3]
    assert strengths == pytest.approx([-0.6, 0.26 * np.log2(0.26 * 4)], abs=1e-6)


def test_a_row_is_cut_to_what_stands_around_its_query_and_its_key() -> None:
    n = 60
    weights = np.full((1, 1, n, n), 0.5 / (n - 1))
    weights[..., 5] = 0.5
    row = read_row(record(weights, tokens(*map(str, range(n)))), 0, 0, 40, np.arange(n) == 0)
    assert row["keys"] == choose_shown(40, 5, n) == [*range(2, 9), *range(24, 45)]
    assert row["weights"][3] == pytest.approx(0.5)
    assert (row["n_keys"], row["to_first"]) == (n, pytest.approx(0.5 / (n - 1)))
    entropy = -0.5 * np.log(0.5) - 0.5 * np.log(0.5 / (n - 1))
    assert row["effective_keys"] == pytest.approx(np.exp(entropy), rel=1e-4)
