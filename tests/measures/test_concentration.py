"""What keys receive, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from attnviz.measures.concentration import average_received, make_uniform, query_information
from tests.made import random_maps, record, tokens

ROWS = np.array([[0.5, 0.2, 0.3], [0.1, 0.6, 0.3], [0.0, 0.1, 0.9]])


def test_what_all_keys_receive_is_1_and_padding_receives_nothing() -> None:
    maps = random_maps(n_layers=2, n_heads=3, padding=4)
    by_key = average_received(maps)
    assert by_key.shape == (2, 3, 18)
    assert by_key.sum(axis=-1) == pytest.approx(1)
    assert not by_key[..., 14:].any()


def test_query_information_is_the_mutual_information_of_query_and_key() -> None:
    """0 where every row is the same; ln n where each query has a key of its own; else by hand."""
    assert query_information(record(np.tile(ROWS[:1], (3, 1))[None, None])).values == pytest.approx(0, abs=1e-7)
    assert query_information(record(np.eye(4)[None, None])).values == pytest.approx(np.log(4))
    mean = ROWS.mean(axis=0)
    divergences = [sum(p * np.log(p / q) for p, q in zip(row, mean, strict=True) if p) for row in ROWS]
    assert query_information(record(ROWS[None, None])).values == pytest.approx(np.mean(divergences), abs=1e-6)


def test_keys_that_nobody_may_attend_to_are_not_counted() -> None:
    weights = np.zeros((1, 1, 2, 4))
    weights[..., :2] = 0.5
    attendable = np.array([[True, True, False, False]] * 2)
    maps = record(weights, tokens("a", "b"), tokens(*"abcd"), attendable=attendable)
    assert query_information(maps).bounds == (0.0, np.log(2))


def test_early_keys_of_a_causal_map_receive_more_even_from_uniform_attention() -> None:
    causal = make_uniform(random_maps(["a", "b", "c"], causal=True))
    assert average_received(causal)[0, 0] == pytest.approx([11 / 18, 5 / 18, 2 / 18])
