"""The mean over the heads of a layer as one more head of a record."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import attnviz
from attnviz.errors import InvalidSelection
from attnviz.records import AttentionMaps, Facts, walk
from attnviz.records.mean import add_mean
from tests.made import FILM, cross_maps, known, provenance, random_maps, sink_maps, windowed_maps

TEXT = "the acting saved the film , and the film was not good but the acting was . " * 3
RECORDS: dict[str, Callable[[], AttentionMaps]] = {
    "three heads": lambda: random_maps(n_layers=2, n_heads=3),
    "one head": lambda: random_maps(n_heads=1),
    "padding": lambda: random_maps(n_heads=3, padding=2),
    "a window": windowed_maps,
    "a sink": sink_maps,
    "two texts": cross_maps,
    "factors": lambda: attnviz.attention(TEXT, "random:4", layers=2, factored=True),
    "causal factors": lambda: attnviz.attention(TEXT, causal=True, factored=True),
}


def average(maps: AttentionMaps) -> np.ndarray:
    """[layer, query, key], by the definition."""
    return np.asarray(np.sum(maps.weights.astype(np.float64), axis=1) / maps.n_heads)


@pytest.mark.parametrize("name", RECORDS)
def test_every_way_to_the_weights_gives_the_mean_of_the_heads(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "CELLS_AT_ONCE", 100)
    monkeypatch.setattr(walk, "MIN_ROWS", 2)  # so that a mean has several blocks
    maps = RECORDS[name]()
    with_mean, means = add_mean(maps), average(maps)
    assert with_mean.head_names == (*maps.head_numbers, "mean")
    assert with_mean.weights == pytest.approx(np.concatenate([maps.weights, means[:, None]], axis=1), abs=1e-6)
    assert np.array_equal(with_mean.attendable, maps.attendable)
    queries, keys = np.arange(len(maps.queries))[::-1], np.arange(len(maps.keys))
    for layer, expected in enumerate(means):
        of_mean = layer, maps.n_heads
        assert with_mean.rows(*of_mean, slice(None)) == pytest.approx(expected, abs=1e-6)
        assert with_mean.rows(*of_mean, queries) == pytest.approx(expected[::-1], abs=1e-6)
        pairs = queries, keys[: len(queries)]
        assert with_mean.read_cells_of_heads(layer, *pairs)[-1] == pytest.approx(expected[pairs], abs=1e-6)
        (found,) = with_mean.walk(*of_mean, [slice(0, len(queries))])
        assert found.rows() == pytest.approx(expected, abs=1e-6)
        assert np.array_equal(with_mean.read_allowed(layer, slice(None)), maps.attendable[layer])


def test_a_row_of_the_mean_and_its_sink_sum_to_1() -> None:
    maps = add_mean(sink_maps(share=0.25))
    assert known(maps.sink)[0, :, 0].tolist() == [0.25, 0, 0.125]
    assert maps.rows(0, 2, slice(None)).sum(axis=-1) == pytest.approx(1 - 0.125)


def test_heads_that_were_not_recorded_have_no_part_in_a_mean() -> None:
    some = replace(random_maps(FILM, made_by=provenance(facts=Facts(n_heads_in_model=8))), head_numbers=(1, 5))
    with pytest.raises(InvalidSelection, match=r"needs all of a layer, and the record has 2 of 8. Record all heads"):
        add_mean(some)
