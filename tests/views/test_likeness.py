"""Which heads are alike, in words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from attnviz.records import AttentionMaps
from attnviz.specs import FigureOptions
from attnviz.views import likeness
from attnviz.views.heatmap import heatmap_report
from tests.made import random_maps, record

PREVIOUS, NEXT = np.eye(6, k=-1) + np.eye(6)[[0]].T * np.eye(6)[0], np.eye(6, k=1) + np.eye(6)[[5]].T * np.eye(6)[5]


def said(maps: AttentionMaps, layers: tuple[int, ...], heads: tuple[int, ...], **options: object) -> list[str]:
    spec = FigureOptions(**options)  # type: ignore[arg-type]
    shown = heatmap_report(maps, [], spec, layers, heads)
    return [note.text for note in shown.notes if "alike" in note.text]


def test_pairs_of_all_layers_by_the_names_of_their_heads() -> None:
    """Two heads of different layers are one map, the others have half of each row in common with one, or nothing."""
    half = (PREVIOUS + NEXT) / 2
    maps = replace(record(np.array([[PREVIOUS, NEXT], [half, PREVIOUS]])), layer_numbers=(0, 3), head_numbers=(0, 5))
    (found,) = said(maps, (0, 1), (0, 1))
    assert found.startswith("Heads most alike here (1 - mean JSD in bits): 0.0 and 3.5 (1.000), ")
    assert found.endswith("; median pair .689; least like any other 0.5 (.689).")


def test_of_one_token_no_pair_is_said_to_be_more_alike_than_others() -> None:
    (found,) = said(record(np.ones((2, 2, 1, 1))), (0, 1), (0, 1))
    assert found == "No two heads are more alike than the others here (1 - mean JSD in bits): 1.000."


def test_heads_that_are_drawn_and_no_mean() -> None:
    maps = random_maps(n_layers=2, n_heads=4)
    (found,) = said(maps, (0, 1), (0, 1, 2, 3), pick=("0.1", "1.2"))
    assert found.startswith("How alike heads are here (1 - mean JSD in bits): 0.1 and 1.2 (.")
    assert said(maps, (1,), (2,)) == []
    assert said(random_maps(n_heads=1), (0,), (0,)) == []


def test_many_pairs_of_a_long_text_are_left_to_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    maps = random_maps("abcd", n_layers=2, n_heads=2)
    monkeypatch.setattr(likeness, "MAX_WORK", 6 * 16)
    (measured,) = said(maps, (0, 1), (0, 1))
    monkeypatch.setattr(likeness, "MAX_WORK", 6 * 16 - 1)
    (left,) = said(maps, (0, 1), (0, 1))
    assert "median pair" in measured
    assert left == (
        "Which heads are alike is not said here: 6 pairs over 4 × 4 weights take long. attnviz compare says it."
    )
    assert said(maps, (1,), (0,)) == []
