"""Very many maps on one picture: how large it is, what stands at its edges, and the slim columns beside maps."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from attnviz.errors import TooLarge
from attnviz.renderers.figure.plan import plan
from attnviz.renderers.figure.style import FOLDED
from attnviz.renderers.figure.text import extent
from attnviz.report import EdgeNames, FigureStyle, HeatmapGrid
from tests.renderers.figure.reports import (
    LIFT,
    drawn,
    folded,
    outside,
    overlapping,
    panels,
    pixels,
    report,
)

SIDES = ("right", "center")  # how names of rows and of columns are set
GREY = np.round(255 * np.array(to_rgb(FOLDED)))


def many(n_tokens: int, n_layers: int, n_heads: int) -> HeatmapGrid:
    return replace(folded(panels(n_tokens, n_layers * n_heads, n_heads, causal=True)), scale=LIFT)


@pytest.mark.parametrize(
    ("n_tokens", "n_layers", "n_heads"),
    [(48, 48, 25), *((n, *shape) for n in (3, 11, 64, 256) for shape in ((30, 9), (6, 12), (5, 8)))],
)
def test_all_heads_are_on_one_page(n_tokens: int, n_layers: int, n_heads: int) -> None:
    made = plan(many(n_tokens, n_layers, n_heads), report(), FigureStyle())
    assert round(150 * made.height) <= 2400
    assert made.width <= 12
    room = min(16 / n_layers, 12 / n_heads)
    assert made.places[0].box.height > 0.55 * room
    boxes = [place.outer for place in made.places]
    below, beside = boxes[n_heads], boxes[1]
    assert boxes[0].top + boxes[0].height < below.top
    assert boxes[0].left + boxes[0].width < beside.left


def test_layers_and_heads_are_named_once_at_the_edges() -> None:
    with drawn(report(many(14, 12, 9))) as made:
        assert [text for text in made.texts if text.isdecimal()] == [*map(str, range(12)), *map(str, range(9))]
        assert made.texts.count("layer") == made.texts.count("head") == 1
        assert not [text for text in made.texts if text.startswith("layer ")]
        assert outside(made.figure) == []
        maps = [("map", axes.get_window_extent()) for axes in [*made.maps, made.bar]]
        assert overlapping([(text.get_text(), text.get_window_extent()) for text in made.figure.texts] + maps) == []
        said = " ".join(made.texts)
        assert "rows are queries, from the top, and columns keys, from the left; tokens are not labelled" in said
        assert "grey: the first" in said


def test_names_that_would_touch_are_thinned() -> None:
    made = plan(many(3, 30, 120), report(), FigureStyle())
    rows, columns = ([line for line in made.lines if line.text.isdecimal() and line.align == each] for each in SIDES)
    assert 15 <= len(rows) <= 30 < len(columns) < 120
    for line, other in pairwise(columns):
        widths = [extent(each.text, each.size).width / 72 for each in (line, other)]
        assert line.x + widths[0] / 2 < other.x - widths[1] / 2
    assert all(line.y < other.y - other.size / 72 for line, other in pairwise(rows))


def test_a_column_is_filled_as_far_as_its_share_says() -> None:
    grid = many(8, 5, 8)
    shown = report(grid)
    made = plan(grid, shown, FigureStyle())
    image = pixels(shown)
    for place, heatmap in zip(made.places, grid.maps, strict=True):
        assert place.fold is not None
        left, top, width, height = (round(150 * part) for part in place.fold.box)
        grey = (image[top : top + height, left : left + width] == GREY).all(axis=-1).mean(axis=1)
        of_rows = (
            grey.reshape(8, -1) if height % 8 == 0 else np.array([part.mean() for part in np.array_split(grey, 8)])
        )
        np.testing.assert_allclose(of_rows.reshape(8, -1).mean(axis=1), heatmap.values[:, 0], atol=0.6 / width + 0.1)


@pytest.mark.parametrize("column", [0, 3])
def test_whichever_column_stands_beside_the_other_cells_keep_their_colours(column: int) -> None:
    grid, kept = folded(panels(8, 4, 4)), [place for place in range(8) if place != column]
    assert grid.fold is not None
    whole = replace(grid, scale=LIFT, edges=None, fold=None)
    made = plan(replace(whole, fold=replace(grid.fold, column=column)), report(), FigureStyle())
    before = plan(whole, report(), FigureStyle())
    for place, other in zip(made.places, before.places, strict=True):
        assert place.heatmap.columns == tuple(other.heatmap.columns[each] for each in kept)
        assert place.heatmap.column_positions == tuple(kept)
        assert np.array_equal(made.read_cells(place), before.read_cells(other)[:, kept])


def test_lines_begin_at_every_token_and_have_titles() -> None:
    shown = report(many(6, 5, 8))
    with drawn(shown, FigureStyle(kind="lines")) as made:
        assert all(place.fold is None and len(place.heatmap.columns) == 6 for place in made.plan.places)
        assert {"layer 0", "layer 4", "head 0", "head 7"} <= {*made.texts}
        assert "layer 0, head 39" not in made.texts


@pytest.mark.parametrize("width", [3.3, 7.0])
def test_a_width_that_is_asked_for(width: float) -> None:
    made = plan(many(14, 6, 12), report(), FigureStyle(width=width))
    assert made.width == pytest.approx(width)
    with pytest.raises(TooLarge, match=r"6 × 100 maps have no room on 3\.3 × 16 inches"):
        plan(many(4, 6, 100), report(), FigureStyle(width=3.3))


def test_a_row_per_layer_that_has_no_room_is_broken_and_has_titles() -> None:
    edges = EdgeNames("layer", "head", ("0", "1"), tuple("01234567"))
    grid = panels(12, 16, 8)
    named = tuple(replace(heatmap, note="punctuation") for heatmap in grid.maps)
    grid = replace(grid, maps=named, edges=edges, reflows=True)
    wide, narrow = (plan(grid, report(grid), FigureStyle(width=width)) for width in (12.0, 3.3))
    above = [[line.text for line in made.lines].count("layer 0,") for made in (wide, narrow)]
    assert above == [0, 16]
    assert narrow.width == pytest.approx(3.3)
    with pytest.raises(TooLarge, match=r"1 in are too few"):
        plan(grid, report(grid), FigureStyle(width=1.0))
    with pytest.raises(TooLarge, match=r"3\.3 in are too few"):
        plan(replace(grid, reflows=False), report(grid), FigureStyle(width=3.3))
