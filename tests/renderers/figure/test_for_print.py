"""Figures for a paper or a slide: a width that is kept, text that is large enough, themes, lines and shaded text."""

import re
import zlib
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle
from PIL import Image

from attnviz.errors import TooLarge
from attnviz.renderers.figure import files
from attnviz.renderers.figure.colour_bar import plan_ticks
from attnviz.renderers.figure.draw import THIN, draw
from attnviz.renderers.figure.plan import plan
from attnviz.renderers.figure.style import DARK, drawing
from attnviz.renderers.figure.text import extent
from attnviz.renderers.figure.words import plan_text
from attnviz.report import FigureStyle, Heatmap, Report
from tests.renderers.figure.reports import LIFT, drawn, heatmap, labelled, outside, panels, report

PAPER = FigureStyle(width=3.3, header=False)


@pytest.mark.parametrize(("kind", "n_tokens", "columns"), [("map", 11, 4), ("map", 64, 2), ("text", 64, 4)])
def test_no_text_in_a_column_of_a_paper_is_under_six_points(kind: str, n_tokens: int, columns: int) -> None:
    shown = report(panels(n_tokens, 8, columns), scale=LIFT)
    _, content = next(files.pdf(shown, replace(PAPER, kind=kind)))  # type: ignore[arg-type]
    begins = (match.end() for match in re.finditer(rb"(?<!end)stream\n(?=x)", content))
    streams = [zlib.decompressobj().decompress(content[begin:]) for begin in begins]
    sizes = [float(size) for stream in streams for size in re.findall(rb"/F\S* ([\d.]+) Tf", stream)]
    assert len(sizes) >= 8
    assert min(sizes) >= 6.0
    box = re.search(rb"/MediaBox \[([^\]]+)\]", content)
    assert box is not None
    assert float(box[1].split()[2]) == pytest.approx(3.3 * 72, abs=0.01)


@pytest.mark.parametrize(("n_tokens", "in_a_row", "step"), [(11, 2, 1), (24, 2, 2), (48, 4, 0), (200, 2, 40)])
def test_as_many_maps_stand_in_a_row_as_leave_labels(n_tokens: int, in_a_row: int, step: int) -> None:
    grid = panels(n_tokens, 8, 4)
    made = plan(replace(grid, reflows=True), report(grid, scale=LIFT), PAPER)
    assert sum(place.box.top == made.places[0].box.top for place in made.places) == in_a_row
    assert made.labels[0].step == step
    as_asked = plan(grid, report(grid, scale=LIFT), PAPER)
    assert sum(place.box.top == as_asked.places[0].box.top for place in as_asked.places) == 4


def test_no_word_over_a_map_is_broken_and_rows_are_about_as_long() -> None:
    """Cells are whole pixels: a map of 63 tokens may be half as wide as its share of the figure."""
    grid = panels(63, 16, 8)
    named = replace(grid, reflows=True, maps=tuple(replace(each, note="punctuation") for each in grid.maps))
    made = plan(named, report(named, scale=LIFT), PAPER)
    assert "punctuation" in {line.text for line in made.lines}
    assert len({place.box.left for place in made.places}) == 4  # of 16; five in a row are four rows, too
    map_width, left, right = made.places[0].box.width, made.places[0].box.left, made.places[1].box.left
    assert extent("punctuation", 6.0).width / 72 < right - left
    assert extent("punctuation", 6.0).width / 72 > map_width


@pytest.mark.parametrize(
    ("n_tokens", "kind", "theme"), [(11, "map", "paper"), (64, "map", "dark"), (64, "lines", "slide")]
)
def test_nothing_is_cut(n_tokens: int, theme: str, kind: str) -> None:
    for width in (None, 8.0):
        look = FigureStyle(width=width, theme=theme, kind=kind)  # type: ignore[arg-type]
        with drawn(report(panels(n_tokens, 4, 2), scale=LIFT), look) as made:
            assert outside(made.figure) == []
            assert width in (None, made.plan.width)


def test_strong_cells_are_named_where_their_rows_end_and_below_a_narrow_map() -> None:
    values = np.full((20, 20), 0.02)
    values[3, 17], values[11, 2], values[12, 2] = 0.62, 0.4, 0.3  # the last is of a key that is named already
    shown = report(replace(heatmap(20), values=values), scale=LIFT)
    row, column = heatmap(20).rows, heatmap(20).columns
    named = [f"{row[3]} → {column[17]} .62", f"{row[11]} → {column[2]} .40"]
    with drawn(shown) as made:
        found = [text for text in made.figure.texts if "→" in text.get_text()]
        assert [text.get_text() for text in found] == named
        box = made.maps[0].get_window_extent()
        for text, at in zip(found, (3.5, 11.5), strict=True):
            beside = text.get_window_extent()
            assert beside.x0 > box.x1
            assert (beside.y0 + beside.y1) / 2 == pytest.approx(box.y1 - at / 20 * box.height, abs=3)
    with drawn(shown, FigureStyle(width=2.4)) as made:
        assert f"strongest: {', '.join(named)}" in " ".join(made.texts)


def test_a_width_that_is_too_small_is_refused_with_what_would_work() -> None:
    shown = report(panels(11, 12, 12), scale=LIFT)
    with pytest.raises(TooLarge) as caught:
        plan(panels(11, 12, 12), shown, PAPER)
    assert str(caught.value).startswith("3.3 in are too few for 'overview' with text of 8 points. Try --width ")
    (wider,) = re.findall(r"--width ([\d.]+)in or a smaller --font-size", str(caught.value))
    assert plan(panels(11, 12, 12), shown, replace(PAPER, width=float(wider))).width == float(wider)
    with pytest.raises(TooLarge, match=r"1.5 in are too few for 'overview' with text of 8 points. Try --width 1.\din"):
        plan_text(panels(11), shown, replace(PAPER, width=1.5, kind="text"))


def test_without_a_title_a_figure_has_neither_title_nor_subtitle() -> None:
    shown = report(heatmap(5), scale=LIFT)
    with_title, without = (
        [line.text for line in plan(heatmap(5), shown, FigureStyle(header=header)).lines] for header in (True, False)
    )
    assert f"{shown.title} · {heatmap(5).title}" in with_title
    assert not {shown.title, shown.subtitle} & set(without)


def png_pixels(shown: Report, look: FigureStyle) -> np.ndarray:
    _, content = next(files.png(shown, look))
    return np.asarray(Image.open(BytesIO(content)).convert("RGBA"))  # whether it is transparent anywhere or not


def test_a_dark_page_is_the_colour_of_an_equal_share_and_a_transparent_one_none() -> None:
    shown = report(heatmap(5), scale=LIFT)
    dark = png_pixels(shown, FigureStyle(theme="dark"))
    assert (dark[0, 0, :3] == np.round(255 * np.array(to_rgb(DARK.ground)))).all()
    assert png_pixels(shown, FigureStyle(transparent=True))[0, 0, 3] == 0
    assert dark[0, 0, 3] == 255


def test_text_stays_text_on_request() -> None:
    shown = report(heatmap(3), scale=LIFT)
    (_, outlines), (_, texts) = (next(files.svg(shown, FigureStyle(svg_text=each))) for each in (False, True))
    assert b">query (attends)</text>" in texts
    assert b"</text>" not in outlines


def one_hot() -> Heatmap:
    """b gives a all it has, a and c look at all alike."""
    values = np.array([[1 / 3, 1 / 3, 1 / 3], [1, 0, 0], [1 / 3, 1 / 3, 1 / 3]], dtype=np.float32)
    return Heatmap("layer-0-head-0", "layer 0, head 0", values, np.ones((3, 3), bool), tuple("abc"), tuple("abc"))


def test_lines_run_from_queries_to_the_keys_that_get_more_than_an_equal_share() -> None:
    with drawn(report(one_hot(), scale=LIFT), FigureStyle(kind="lines")) as made:
        (lines,) = made.figure.axes[0].collections
        assert [np.asarray(path.vertices).tolist() for path in lines.get_paths()] == [[[0, 1.5], [1, 0.5]]]
        tokens = [line.text for line in made.plan.tokens if len(line.text) == 1]
        assert tokens == ["a", "b", "c"] * 2


def test_the_strongest_line_lies_on_top_and_each_is_as_thick_as_its_weight() -> None:
    picture = heatmap(9)
    with drawn(report(picture, scale=LIFT), FigureStyle(kind="lines")) as made:
        (lines,) = made.figure.axes[0].collections
        widths = np.asarray(lines.get_linewidth())
        weights = np.sort(picture.values[picture.values > 1 / 9])
        assert len(weights) > 3
        assert (widths - THIN) / (widths[-1] - THIN) == pytest.approx(weights / weights[-1])


def test_of_very_many_lines_the_strongest_are_drawn_and_the_figure_says_so() -> None:
    values = np.linspace(1, 3, 30 * 30, dtype=np.float32).reshape(30, 30) / 30
    names = tuple(f"t{place}" for place in range(30))
    picture = Heatmap("a", "", values, np.ones((30, 30), bool), names, names)
    with drawn(report(picture, scale=LIFT), FigureStyle(kind="lines")) as made:
        (lines,) = made.figure.axes[0].collections
        assert len(lines.get_paths()) == 400
        assert np.asarray(lines.get_paths()[-1].vertices).tolist() == [[0, 29.5], [1, 29.5]]
        assert any("of each head, the 400 strongest lines are drawn" in line.text for line in made.plan.lines)


@pytest.mark.parametrize(
    ("high", "ticks"),
    [
        (2.0, ["≤ 1 ×", "2 ×"]),
        (11.0, ["≤ 1 ×", "2 ×", "4 ×", "11 ×"]),  # 8 × would lie on it on a page
        (12.0, ["≤ 1 ×", "2 ×", "4 ×", "8 ×", "12 ×"]),
    ],
)
def test_a_bar_of_few_keys_ends_where_weights_do(high: float, ticks: list[str]) -> None:
    assert [text for _, text in plan_ticks(replace(LIFT, high=high, is_bounded=True))] == ticks
    assert [text for _, text in plan_ticks(LIFT)] == ["≤ 1 ×", "2 ×", "4 ×", "8 ×", "≥ 16 ×"]


def test_text_is_shaded_by_what_each_token_gets() -> None:
    made = plan_text(one_hot(), report(one_hot(), scale=LIFT), FigureStyle(kind="text"))
    assert [word.line.text for word in made.words] == ["a", "b", "c"]
    assert [word.value for word in made.words] == pytest.approx([5 / 3, 2 / 3, 2 / 3])


def test_a_text_that_is_written_from_the_right_runs_so() -> None:
    arabic = replace(one_hot(), columns=("سلام", "يا", "عالم"))
    made = plan_text(arabic, report(arabic, title="a"), FigureStyle(kind="text"))
    places = [word.box.left for word in made.words]
    assert places == sorted(places, reverse=True)
    assert made.width == pytest.approx(3.2)  # not as wide as a page


def test_the_token_that_attends_is_outlined() -> None:
    row = replace(labelled(["so", "it", "goes"]), row_axis="head", rows=("0",), asked=1)
    row = replace(row, values=row.values[:1], allowed=row.allowed[:1], row_positions=())
    made = plan_text(row, report(row), replace(PAPER, kind="text"))
    assert [word.line.text for word in made.words if word.outlined] == ["it"]
    with drawing():
        (axes, *_) = draw(made, "auto").axes
        outlines = [each.get_bbox().x0 for each in axes.patches if isinstance(each, Rectangle) and not each.get_fill()]
    assert outlines == [word.box.left for word in made.words if word.outlined]
