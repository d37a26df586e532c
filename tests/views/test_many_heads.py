"""More heads than have a file each: an overview with one heading per layer and head, and those worth a look."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from attnviz.records import AttentionMaps
from attnviz.report import HeatmapGrid, Note, Report
from attnviz.specs import FigureOptions
from tests.made import cross_maps, notes, provenance, random_maps, record, report, table

TEXT = ("the", "cat", "sat", "on", "the", "mat")


def many(n_layers: int = 5, n_heads: int = 6, pieces: tuple[str, ...] = TEXT, causal: bool = False) -> AttentionMaps:
    return random_maps(pieces, n_layers=n_layers, n_heads=n_heads, sharpness=3.0, causal=causal)


def names(of: Report) -> list[str]:
    return [picture.name for picture in of.pictures]


def grids(of: Report) -> list[Any]:
    return [picture for picture in of.pictures if isinstance(picture, HeatmapGrid)]


def test_up_to_24_heads_each_has_a_picture() -> None:
    shown = report(many(4, 6))
    assert len(names(shown)) == 25
    assert (grids(shown)[0].small, shown.panels) == (False, ())
    assert table(shown, "heads").first == ()


def test_of_more_there_are_two_pictures() -> None:
    shown = report(many())
    overview, twelve = grids(shown)
    assert names(shown) == ["overview", "worth-a-look"]
    assert overview.small
    assert overview.title == "30 heads of 5 layers"
    assert (overview.edges.row_axis, overview.edges.rows) == ("layer", tuple("01234"))
    assert (overview.edges.column_axis, overview.edges.columns) == ("head", tuple("012345"))
    assert (len(overview.maps), overview.n_columns) == (30, 6)
    assert [panel.title for panel in twelve.maps] == sorted(panel.title for panel in twelve.maps)
    assert len({panel.title for panel in twelve.maps}) == 12
    assert twelve.title.startswith("12 heads worth a look: they attend to more than the first token")


@pytest.mark.parametrize(
    ("options", "n_each"),
    [({"all_heads": True}, 30), ({"layer": ("0-4",)}, 30), ({"head": ("0-5",)}, 30), ({"table": "full"}, 0)],
)
def test_each_has_a_picture_on_request(options: dict[str, object], n_each: int) -> None:
    shown = report(many(), FigureOptions(**options))  # type: ignore[arg-type]
    assert names(shown)[:2] == ["overview", "worth-a-look"]
    assert len(names(shown)) == 2 + n_each


def test_the_table_has_every_head_and_says_which_come_first() -> None:
    shown = report(many())
    heads = table(shown, "heads")
    twelve = grids(shown)[1]
    assert len(heads.rows) == 30
    assert [f"{heads.rows[n][0]}.{heads.rows[n][1]}" for n in heads.first] == [each.title for each in twelve.maps]
    assert sum(each.role == "top" for each in shown.tables) == 12
    assert sum(each.role == "top" for each in report(many(), FigureOptions(table="full")).tables) == 30
    assert "Of 30 heads 12 are picked out, by what moves beside the first token." in notes(shown)


def test_sorted_heads_are_the_first_by_the_measure_asked_for() -> None:
    maps = many()
    values = maps.weights[..., np.arange(1, 6), np.arange(5)].sum(axis=-1) / 6  # of to_previous
    twelve = [f"{n // 6}.{n % 6}" for n in np.argsort(-values, axis=None, kind="stable")[:12]]
    shown = report(maps, FigureOptions(measure=("to_previous",), sort="to_previous"))
    heads = table(shown, "heads")
    assert heads.first == tuple(range(12))
    assert [f"{row[0]}.{row[1]}" for row in heads.rows[:12]] == twelve
    assert [panel.title for panel in grids(shown)[1].maps] == twelve
    assert grids(shown)[1].title == "12 heads, the first when sorted by to previous, the largest first"
    assert "Of 30 heads 12 are picked out, the first when sorted by to previous, the largest first." in notes(shown)


def test_what_is_known_of_a_head_stands_over_its_map() -> None:
    n = 16
    previous = np.eye(n)[np.maximum(np.arange(n) - 1, 0)]
    weights = np.stack([np.tri(n) / np.tri(n).sum(axis=1, keepdims=True)] * 30).reshape(5, 6, n, n)
    weights[3, 4] = previous
    maps = record(weights, attendable=np.tri(n, dtype=bool))
    learned = replace(maps, provenance=provenance(revision="sha256:" + "5e" * 32, trained=True))
    assert [panel.title for panel in grids(report(maps))[1].maps] == ["3.4"]
    shown = report(learned)
    assert [panel.title for panel in grids(shown)[1].maps] == ["3.4 previous token"]
    assert [grids(each)[1].footnote.partition(":")[0] for each in (shown, report(maps))] == ["named", ""]


def test_means_have_titles_and_are_no_heads_worth_a_look() -> None:
    only = report(many(), FigureOptions(head=("mean",)))
    assert names(only) == ["overview", *(f"layer-{layer}-mean" for layer in range(5))]
    both = report(many(), FigureOptions(head=("0-5", "mean")))
    overview, twelve = grids(both)
    assert overview.edges.columns == (*"012345", "mean")
    assert not [panel for panel in twelve.maps if panel.name.endswith("mean")]
    assert "Of 30 heads 12 are picked out" in notes(both)


def test_two_texts_have_no_first_token() -> None:
    two = cross_maps()
    shown = report(record(np.tile(two.weights, (5, 3, 1, 1)), two.queries, two.keys))
    assert grids(shown)[1].title == "2 heads worth a look: they attend far from equally, each unlike the others"


def test_of_one_token_there_is_one_line_and_no_picture() -> None:
    shown = report(many(pieces=("one",)))
    said = "There is one token, which gets all attention of every head: nothing is drawn."
    assert shown.blocks == (Note(said, leads=True),)
