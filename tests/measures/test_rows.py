"""Rows that are walked over in blocks, and how attention falls with distance."""

from dataclasses import replace
from gc import collect
from threading import Barrier
from typing import Any
from weakref import ref

import numpy as np
import pytest

import attnviz
from attnviz import records
from attnviz.errors import InvalidOption
from attnviz.measures import rows
from attnviz.measures import shares as bands
from attnviz.measures.rows import cache_on_record, compute_entropies, compute_statistics, head_rows, layer_rows
from attnviz.measures.shares import measure_distance_bands
from attnviz.options import build
from attnviz.records import AttentionMaps, walk
from attnviz.report import Charts
from attnviz.specs import FigureOptions
from attnviz.views.heatmap import heatmap_report
from tests.made import columns_by, cross_maps, random_maps, record, sink_maps

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


def test_heads_that_are_walked_over_side_by_side_have_the_same_bits(
    maps: AttentionMaps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "CELLS_AT_ONCE", 1)  # no heads of short texts together
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


def test_entropies_are_those_of_each_row_with_nothing_for_zeros() -> None:
    rows = layer_rows(random_maps(n_heads=3, causal=True), 0)
    expected = [[-sum(w * np.log(w) for w in row if w > 0) for row in of_head] for of_head in rows]
    assert compute_entropies(rows) == pytest.approx(np.array(expected), rel=1e-14)


def test_what_is_remembered_is_of_one_record_and_one_question() -> None:
    calls: list[tuple[int, ...]] = []

    @cache_on_record
    def number(maps: AttentionMaps, *places: int) -> int:
        calls.append(places)
        return len(places)

    one, other = random_maps(), record(random_maps().weights)
    assert [number(one), number(one, 1), number(one), number(one, 1), number(other)] == [0, 1, 0, 1, 0]
    assert calls == [(), (1,), ()]
    gone = ref(one)  # what is remembered goes with its record
    del one
    collect()
    assert gone() is None


# --- Attention by distance in bands that double, beside a loop over every weight ---


TEXT = "the acting saved the film , and the film was not good but the acting was . " * 2


@pytest.mark.parametrize("n_tokens", [1, 2, 5, 33])
@pytest.mark.parametrize("settings", [{"model": "multi"}, {"model": "random:2", "causal": True, "factored": True}])
def test_bands_are_those_of_a_loop(n_tokens: int, settings: dict[str, Any]) -> None:
    maps = attnviz.attention(TEXT, max_tokens=n_tokens, **settings)
    found = measure_distance_bands(maps, 0)
    n_tokens = len(maps.keys)
    assert found.starts.tolist() == [0, *(2**power for power in range(7) if 2**power < n_tokens)]
    expected, equal = np.zeros(found.shares.shape), np.zeros(found.equal.shape)
    for query, key in np.ndindex(n_tokens, n_tokens):
        band = abs(query - key).bit_length()
        expected[:, query, band] += maps.weights[0, :, query, key]
        equal[query, band] += maps.attendable[0, query, key] / maps.attendable[0, query].sum()
    assert found.shares == pytest.approx(expected, abs=1e-6)
    assert found.equal == pytest.approx(equal)
    assert found.shares.sum(axis=-1) == pytest.approx(1)


def test_of_very_many_queries_some_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    maps = attnviz.attention(TEXT, model="multi")
    whole = measure_distance_bands(maps, 0)
    monkeypatch.setattr(bands, "MAX_QUERIES", 5)
    maps = replace(maps)  # a new record, as bands are remembered
    found = measure_distance_bands(maps, 0)
    places = np.linspace(0, whole.n_real - 1, 5).round().astype(int)
    assert found.shares == pytest.approx(whole.shares[:, places])
    report = heatmap_report(maps, (), build(FigureOptions, distance=True), (0,), (0, 3))
    (picture,) = (each for each in report.pictures if isinstance(each, Charts))
    assert picture.name == "distance"
    assert f"over 5 of {whole.n_real} queries" in picture.title
    drawn = [value for chart in picture.charts for name in ("y", "high") for value in chart.column(name)]
    assert [chart.y_range for chart in picture.charts] == [(0, np.nanmax(drawn))] * 2
    assert [chart.title for chart in picture.charts] == ["head 0", "head 3"]
    at, *shares = columns_by(picture.charts[1], "group", "x", "low", "y", "high")["attention"]
    low, middle, high = np.quantile(found.shares[3], (0.25, 0.5, 0.75), axis=0)
    assert np.array(shares) == pytest.approx(np.stack([low, middle, high]))
    labels = columns_by(picture.charts[1], "label", "y")
    assert labels[f"{middle.max():.2f}"] == [(pytest.approx(middle.max()),)]
    told: Any = report.data["distance"]
    assert told["from"].tolist() == list(at)
    assert told["quartiles"][0, 1].tolist() == np.stack([low, middle, high], axis=1).tolist()


def test_two_texts_have_no_distance() -> None:
    with pytest.raises(InvalidOption, match="attention by distance needs self-attention"):
        measure_distance_bands(cross_maps(), 0)
