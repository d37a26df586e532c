"""Attention by distance in bands that double, beside a loop over every weight."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import attnviz
from attnviz.errors import InvalidOption
from attnviz.measures import shares as bands
from attnviz.measures.shares import measure_distance_bands
from attnviz.options import build
from attnviz.report import Charts
from attnviz.specs import FigureOptions
from attnviz.views.heatmap import heatmap_report
from tests.made import columns_by, cross_maps

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
