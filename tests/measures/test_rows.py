"""Rows that are walked over in blocks, and how attention falls with distance."""

from dataclasses import replace
from threading import Barrier
from typing import Any

import numpy as np
import pytest

from attnviz.measures import rows
from attnviz.measures.rows import compute_statistics, head_rows, layer_rows
from attnviz.records import AttentionMaps, walk
from tests.made import cross_maps, random_maps, sink_maps

EVERY = {
    "plain": random_maps(n_layers=2, n_heads=3),
    "causal": random_maps(n_heads=3, causal=True),
    "padded": random_maps(n_heads=3, padding=4),
    "two texts": cross_maps(),
    "with a sink": sink_maps(),
}


@pytest.fixture(params=EVERY.values(), ids=list(EVERY))
def maps(request: pytest.FixtureRequest) -> AttentionMaps:
    found: AttentionMaps = request.param
    return found


def test_rows_are_those_of_real_queries_brought_to_sum_1(maps: AttentionMaps) -> None:
    for layer, head in np.ndindex(maps.n_layers, maps.n_heads):
        given = maps.weights[layer, head][maps.real_queries].astype(np.float64)
        expected = given / given.sum(axis=-1, keepdims=True)
        assert head_rows(maps, layer, head) == pytest.approx(expected, rel=1e-15)
        assert layer_rows(maps, layer)[head].tolist() == head_rows(maps, layer, head).tolist()
        assert compute_statistics(maps, layer).sums[head] == pytest.approx(given.sum(axis=-1), rel=1e-15)


@pytest.mark.parametrize("at_once", [1, 50, 2**16])
def test_blocks_are_the_real_queries_once(maps: AttentionMaps, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "CELLS_AT_ONCE", at_once)
    found = [(block, maps.rows(0, 1, block.queries)) for block in rows.split_real_queries(maps)]
    assert (
        np.concatenate([of_block for _, of_block in found]).tolist() == maps.weights[0, 1][maps.real_queries].tolist()
    )
    assert len(found) == 1 or max(of_block.size for _, of_block in found) <= max(at_once, len(maps.keys))
    places = np.arange(maps.real_queries.sum())
    assert np.concatenate([places[block.places] for block, _ in found]).tolist() == places.tolist()


def test_heads_in_several_threads_have_the_same_bits(maps: AttentionMaps, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "CELLS_AT_ONCE", 1)  # no heads of short texts together
    alone, several = compute_statistics(replace(maps), 0), replace(maps)
    monkeypatch.setattr(walk, "CELLS_PER_THREAD", 1)
    monkeypatch.setattr(walk, "count_cores", lambda: walk.MAX_THREADS)
    met, rows_of = Barrier(maps.n_heads, timeout=30), AttentionMaps.rows

    def meeting(*asked: Any) -> np.ndarray:
        met.wait()  # for all the other heads
        return rows_of(*asked)

    monkeypatch.setattr(AttentionMaps, "rows", meeting)
    found = compute_statistics(several, 0)
    for name in ("sums", "entropies", "peaks", "peak_keys", "distances", "received"):
        assert np.array_equal(getattr(found, name), getattr(alone, name)), name
