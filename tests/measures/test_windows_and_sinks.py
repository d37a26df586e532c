"""Measures where layers allow different attention, and where some of it goes to a sink."""

from math import log

import numpy as np
import pytest

from attnviz.measures import ALL, measure_maps
from attnviz.measures.concentration import make_uniform
from attnviz.measures.merging import merge_tokens
from attnviz.measures.weighing import find_reachable, rollout
from attnviz.records import AttentionMaps
from tests.made import known, random_maps, record, sink_maps, windowed_maps


def numbers(maps: AttentionMaps) -> dict[str, np.ndarray]:
    return {each.name: each.values for each in measure_maps(maps, [ALL])}


def test_each_layer_is_measured_as_if_it_were_alone() -> None:
    maps = windowed_maps(7, window=3)
    together = numbers(maps)
    for layer in range(2):
        alone = numbers(record(maps.weights[layer : layer + 1], attendable=maps.attendable[layer]))
        for name in alone:
            assert together[name][layer].tolist() == alone[name][0].tolist()


def test_uniform_attention_within_windows_is_as_wide_as_each_layer_allows() -> None:
    null = make_uniform(windowed_maps(4, window=2))
    assert null.weights.shape == (2, 1, 4, 4)
    assert null.weights[1, 0, 3].tolist() == [0, 0, 0.5, 0.5]
    found = numbers(null)
    assert found["entropy"].ravel() == pytest.approx([sum(map(log, (1, 2, 3, 4))) / 4, 3 / 4 * log(2)])


def test_what_is_reached_through_windows_adds_up() -> None:
    """Two layers that each look one token back reach two tokens back, and rollout lies there and nowhere else."""
    one_back = np.tri(5, dtype=bool) & ~np.tri(5, k=-2, dtype=bool)
    maps = record(np.stack([one_back / one_back.sum(axis=-1, keepdims=True)] * 2)[:, None], attendable=one_back)
    assert (find_reachable(maps) == (rollout(maps) > 0)).all()
    assert find_reachable(maps)[4].tolist() == [False, False, True, True, True]
    assert not find_reachable(random_maps(n_layers=2, padding=2))[:, -2:].any()


def test_joined_windows_and_sinks_stay_what_they_are() -> None:
    joined = merge_tokens(windowed_maps(4, window=2), ((0, 1), (2,), (3,)))
    assert joined.attendable[0].tolist() == np.tri(3, dtype=bool).tolist()
    assert joined.attendable[1, 2].tolist() == [False, True, True]
    with_sink = merge_tokens(sink_maps(share=0.4), ((0, 1), (2, 3)))
    assert known(with_sink.sink)[0, 0] == pytest.approx([0.4, 0.4])
    assert with_sink.weights.sum(axis=-1)[0, 0] == pytest.approx([0.6, 0.6])


def test_the_share_of_a_sink_is_its_own_number_and_no_other_counts_it() -> None:
    maps = sink_maps(share=0.25)
    assert [each.name for each in measure_maps(maps)][-1] == "to_sink"
    found = numbers(maps)
    assert found["to_sink"].tolist() == [[0.25, 0]]
    bare = numbers(record(maps.weights / maps.weights.sum(axis=-1, keepdims=True)))
    assert bare["to_sink"].tolist() == [[0, 0]]
    for name in bare.keys() - {"to_sink"}:
        assert found[name] == pytest.approx(bare[name], abs=1e-6)
