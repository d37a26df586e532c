"""What keys receive, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from attnviz.measures.concentration import average_received, gini, make_uniform, max_received, query_information
from tests.made import random_maps, record, tokens

ROWS = np.array([[0.5, 0.2, 0.3], [0.1, 0.6, 0.3], [0.0, 0.1, 0.9]])


def test_each_key_receives_the_mean_of_its_column() -> None:
    maps = record(ROWS[None, None])
    assert average_received(maps)[0, 0] == pytest.approx([0.2, 0.3, 0.5])
    assert max_received(maps).values == pytest.approx(0.5)
    assert max_received(maps).bounds == (1 / 3, 1.0)


def test_what_all_keys_receive_is_1_and_padding_receives_nothing() -> None:
    maps = random_maps(n_layers=2, n_heads=3, padding=4)
    by_key = average_received(maps)
    assert by_key.shape == (2, 3, 18)
    assert by_key.sum(axis=-1) == pytest.approx(1)
    assert not by_key[..., 14:].any()


@pytest.mark.parametrize("n", [1, 2, 10])
def test_gini_of_one_key_that_receives_all(n: int) -> None:
    maps = record(np.eye(n)[[0] * n][None, None])
    assert gini(maps).values == pytest.approx((n - 1) / n)
    assert gini(maps).bounds == (0.0, (n - 1) / n)
    assert gini(record(np.roll(np.eye(n), 1, axis=0)[None, None])).values == 0  # each key has one query


def test_query_information_is_the_mutual_information_of_query_and_key() -> None:
    """0 where every row is the same; ln n where each query has a key of its own; else by hand."""
    assert query_information(record(np.tile(ROWS[:1], (3, 1))[None, None])).values == pytest.approx(0, abs=1e-7)
    assert query_information(record(np.eye(4)[None, None])).values == pytest.approx(np.log(4))
    mean = ROWS.mean(axis=0)
    divergences = [sum(p * np.log(p / q) for p, q in zip(row, mean, strict=True) if p) for row in ROWS]
    assert query_information(record(ROWS[None, None])).values == pytest.approx(np.mean(divergences), abs=1e-6)


def test_gini_is_half_the_mean_difference_over_the_mean() -> None:
    shares = [0.2, 0.3, 0.5]
    apart = [abs(a - b) for a in shares for b in shares]
    assert gini(record(ROWS[None, None])).values == pytest.approx(sum(apart) / 9 / (2 / 3))


def test_keys_that_nobody_may_attend_to_are_not_counted() -> None:
    weights = np.zeros((1, 1, 2, 4))
    weights[..., :2] = 0.5
    attendable = np.array([[True, True, False, False]] * 2)
    maps = record(weights, tokens("a", "b"), tokens(*"abcd"), attendable=attendable)
    assert gini(maps).values == 0
    assert max_received(maps).bounds == (0.5, 1.0)


def test_early_keys_of_a_causal_map_receive_more_even_from_uniform_attention() -> None:
    causal = make_uniform(random_maps(["a", "b", "c"], causal=True))
    assert average_received(causal)[0, 0] == pytest.approx([11 / 18, 5 / 18, 2 / 18])
    assert gini(causal).values > 0.3
