"""Tables by hand: the strongest pair, and the top keys of each query."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.measures.measured import measured
from attnviz.views.tables import heads_table, top_table
from tests.made import cross_maps, random_maps, record, tokens, uniform_maps

BY_HAND = record(np.array([[[[0.2, 0.5, 0.3], [0.1, 0.1, 0.8], [0.4, 0.2, 0.4]]]]), tokens("a", "b", "c"))


def test_heads_by_hand() -> None:
    table = heads_table(BY_HAND, measured(BY_HAND), [0], [0])
    assert [(c.header, c.unit) for c in table.columns] == [
        ("layer", ""),
        ("head", ""),
        ("entropy", "nats"),
        ("effective keys", "keys"),
        ("distance", "tokens"),
        ("peak", "share"),
        ("strongest pair", ""),
        ("weight", ""),
    ]
    ((layer, head, entropy, _, distance, peak, pair, weight),) = table.rows
    assert (layer, head, pair) == (0, 0, "1 b → 2 c")
    assert weight == pytest.approx(0.8)
    assert entropy == pytest.approx((1.0296530 + 0.6390319 + 1.0549202) / 3)
    assert distance == pytest.approx((1.1 + 0.9 + 1.0) / 3)
    assert peak == pytest.approx((0.5 + 0.8 + 0.4) / 3)


def test_of_equal_pairs_the_earliest_is_the_strongest() -> None:
    assert heads_table(uniform_maps(3), (), [0], [0]).rows[0][2] == "0 t0 → 0 t0"


def test_the_strongest_pair_of_a_causal_map_is_one_that_had_a_choice() -> None:
    weights = np.array([[[[1, 0, 0], [0.7, 0.3, 0], [0.2, 0.2, 0.6]]]])
    causal = np.tri(3, dtype=bool)
    assert heads_table(record(weights, attendable=causal), (), [0], [0]).rows[0][2] == "1 t1 → 0 t0"
    assert heads_table(uniform_maps(1), (), [0], [0]).rows[0][2] == "0 t0 → 0 t0"


def test_the_strongest_pair_is_never_one_of_padding() -> None:
    weights = np.array([[[[0.6, 0.4, 0], [0.5, 0.5, 0], [1, 0, 0]]]])
    attendable = np.array([[1, 1, 0]] * 3, dtype=bool)
    assert heads_table(record(weights, attendable=attendable), (), [0], [0]).rows[0][2] == "0 t0 → 0 t0"


def test_cross_attention_has_no_distance() -> None:
    maps = cross_maps()
    assert "distance" not in [c.header for c in heads_table(maps, measured(maps), [0], [0]).columns]
    assert top_table(maps, 0, 0, 1).rows[0][1] == "q0"
    assert str(top_table(maps, 0, 0, 1).rows[0][2]).split()[1].startswith("k")


def test_top_keys_by_hand() -> None:
    table = top_table(BY_HAND, 0, 0, 2)
    assert table.name == "layer-0-head-0-top"
    assert [row[:3] + row[4:5] for row in table.rows] == [
        (0, "a", "1 b", "2 c"),
        (1, "b", "2 c", "0 a"),  # of equal weights the earlier key
        (2, "c", "0 a", "2 c"),
    ]
    assert table.rows[1][3::2] == pytest.approx((0.8, 0.1))


def test_forbidden_keys_are_never_listed() -> None:
    maps = random_maps(("a", "b", "c"), causal=True, padding=1)
    table = top_table(maps, 0, 0, 9)
    assert len(table.columns) == 2 + 2 * 4  # no more columns than keys
    for query, row in enumerate(table.rows):
        listed = [int(str(cell).split()[0]) for cell in row[2::2] if cell]
        assert sorted(listed) == list(range(query + 1))
        assert row[2 + 2 * len(listed) :] == ("",) * (2 * (4 - len(listed)))


def test_padding_asks_nothing() -> None:
    assert [row[0] for row in top_table(random_maps(("a", "b"), padding=3), 0, 0, 1).rows] == [0, 1]


@given(st.integers(1, 8), st.integers(0, 99), st.integers(1, 10), st.booleans())
def test_against_sorting_everything(n: int, seed: int, k: int, causal: bool) -> None:
    maps = random_maps([f"t{i}" for i in range(n)], seed=seed, causal=causal)
    weights = np.round(maps.weights, 1)  # ties, on purpose
    weights[..., 0] += 1 - weights.sum(axis=-1)
    tied = record(
        np.clip(weights, 0, None) / np.clip(weights, 0, None).sum(axis=-1, keepdims=True),
        attendable=maps.attendable[0],
    )
    for query, row in enumerate(top_table(tied, 0, 1, k).rows):
        allowed = [key for key in range(n) if maps.attendable[0, query, key]]
        best = sorted(allowed, key=lambda key: (-tied.weights[0, 1, query, key], key))[:k]
        assert [cell for cell in row[2::2] if cell] == [f"{key} t{key}" for key in best]
