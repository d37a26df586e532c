"""What keys receive, what queries tell of them, and attention through all layers, by hand."""

import numpy as np
import pytest

from attnviz.errors import InvalidOption
from attnviz.measures.concentration import average_received, entropy, make_uniform, query_information
from attnviz.measures.weighing import rollout
from tests.made import cross_maps, random_maps, record, tokens

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


# --- Attention rollout and uniform attention, by hand ---


def test_rollout_by_hand() -> None:
    first = np.array([[0.0, 1.0], [0.0, 1.0]])  # with the residual half: [[.5, .5], [0, 1]]
    second = np.array([[1.0, 0.0], [1.0, 0.0]])  # [[1, 0], [.5, .5]]
    assert rollout(record(np.stack([first, second])[:, None])).tolist() == [[0.5, 0.5], [0.25, 0.75]]
    heads = np.array([[[1, 0], [1, 0]], [[0, 1], [1, 0]]])
    assert rollout(record(heads[None])).tolist() == [[0.75, 0.25], [0.5, 0.5]]  # of the mean of the heads
    with pytest.raises(InvalidOption, match="rollout needs self-attention"):
        rollout(cross_maps())


def test_rows_of_a_rollout_sum_to_1_and_stay_causal() -> None:
    maps = random_maps(n_layers=6, n_heads=2, causal=True)
    rolled = rollout(record(maps.weights * np.float32(1.0009), attendable=maps.attendable[0]))
    assert rolled.sum(axis=-1) == pytest.approx(1, abs=1e-12)
    assert not np.triu(rolled, k=1).any()


def test_uniform_attention_goes_wherever_it_may() -> None:
    maps = random_maps(["a", "b", "c"], n_layers=2, n_heads=3, causal=True, padding=1)
    null = make_uniform(maps)
    assert null.weights.shape == (1, 1, 4, 4)
    assert null.weights[0, 0, :3] == pytest.approx(np.array([[1, 0, 0, 0], [1 / 2] * 2 + [0, 0], [1 / 3] * 3 + [0]]))
    assert null.queries is maps.queries
    assert null.self_attention
    assert np.array_equal(null.attendable[0], maps.attendable[0])
    assert entropy(null).values == pytest.approx(np.log([1, 2, 3]).mean())
    made_by = null.provenance
    assert (made_by.model, made_by.revision, made_by.trained, made_by.settings) == ("uniform", "no weights", False, ())
    assert make_uniform(cross_maps(3, 5)).weights == pytest.approx(1 / 5)
    assert not make_uniform(cross_maps(3, 5)).self_attention
