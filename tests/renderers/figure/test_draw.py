"""What pictures hold: axes, labels, colours, sizes."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import LogNorm
from matplotlib.text import Text

from attnviz.renderers.figure.files import is_annotated
from attnviz.renderers.figure.scale import colours_of
from attnviz.renderers.figure.style import DARK, PAPER, Theme
from attnviz.renderers.pooling import pool_cells
from attnviz.report import FigureStyle, Heatmap, HeatmapGrid, Scale
from tests.renderers.figure.reports import (
    FIXED,
    HOSTILE,
    LIFT,
    LOG,
    SCRIPTS,
    Drawn,
    attend,
    cell_pixels,
    difference,
    drawn,
    heatmap,
    labelled,
    outside,
    overlapping,
    panels,
    report,
    words,
)
from tests.renderers.figure.seen import visions


def labels(made: Drawn) -> tuple[list[Text], list[Text]]:
    """Of rows and of columns."""
    rows = [text for text in made.tokens if text.get_horizontalalignment() == "right" and not text.get_rotation()]
    return rows, [text for text in made.tokens if text not in rows]


def tick_texts(made: Drawn) -> tuple[list[str], list[str]]:
    """The labels, those of single marks without the quotes that these have."""
    rows, columns = ([text.get_text().strip("“\u200a”") for text in texts] for texts in labels(made))
    return rows, columns


def test_a_mark_alone_is_quoted() -> None:
    with drawn(report(labelled([".", "a.", "’", "!"]))) as made:
        rows, _ = labels(made)
        assert [text.get_text() for text in rows] == ["“\u200a.\u200a”", "a.", "“\u200a’\u200a”", "!"]


def bar_texts(made: Drawn) -> list[str]:
    return [text.get_text() for text in made.bar.get_yticklabels()]


@pytest.mark.parametrize("n_tokens", [1, 5, 20, 64])
def test_every_token_is_labelled_on_both_axes(n_tokens: int) -> None:
    with drawn(report(heatmap(n_tokens))) as made:
        assert tick_texts(made) == ([*words(n_tokens)], [*words(n_tokens)])
        of_map = made.maps[0].get_window_extent()
        down = [of_map.y1 - text.get_window_extent().get_points()[:, 1].mean() for text in labels(made)[0]]
        assert [int(pixels / of_map.height * n_tokens) for pixels in down] == [*range(n_tokens)]
        assert not [text for text in made.texts if "labelled" in text]


@pytest.mark.parametrize(("n_tokens", "step", "said"), [(100, 2, "2nd"), (200, 4, "4th"), (1500, 40, "40th")])
def test_many_tokens_are_labelled_evenly_and_the_figure_says_so(n_tokens: int, step: int, said: str) -> None:
    with drawn(report(heatmap(n_tokens))) as made:
        rows, columns = tick_texts(made)
        assert rows == [*words(n_tokens)[::step]]
        assert len(rows) / 2 <= len(columns) <= len(rows)
        assert len(rows) <= 67
        assert f"every {said} token is labelled" in " ".join(made.texts)


def test_a_dark_column_has_its_name() -> None:
    weights, allowed = attend(200, 200)
    values = np.array(weights[0])
    values[:, 77] = 0.5
    values[:, 79] = 0.2
    names = tuple(f"t{position}" for position in range(200))
    with drawn(report(Heatmap("a", "", values, allowed, names, names))) as made:
        rows, columns = tick_texts(made)
        assert "t77" in columns
        assert not {"t77", "t79"} & {*rows}
        assert not {"t76", "t79"} & {*columns}  # which would lie on it
        assert len(columns) > 40


@pytest.mark.parametrize(("theme", "darker"), [(PAPER, 1), (DARK, -1)], ids=["paper", "dark"])
def test_what_gets_two_equal_shares_is_seen_by_every_reader(theme: Theme, darker: int) -> None:
    colours = colours_of(LIFT, "auto", theme).to_rgba(np.geomspace(1, 16, 256))[:, :3]
    for name, seen in visions(colours).items():
        assert np.linalg.norm(seen[64:] - seen[0], axis=-1).min() >= 20, name  # from 2 × on; ΔE of 10 are seen
        assert (darker * np.diff(seen[:, 0]) < 0).all(), name
        steps = np.linalg.norm(np.diff(seen, axis=0), axis=-1)
        assert steps.min() >= 0.8 * steps.mean(), name


def test_chinese_characters_stay_upright_in_small_panels() -> None:
    two = (labelled("这部电影不好看，但是演员救了它。"),) * 2
    with drawn(report(HeatmapGrid("overview", "2 heads of layer 0", two, 2))) as made:
        assert {text.get_rotation() for text in labels(made)[1]} == {0}


@pytest.mark.parametrize(("shape", "dpi"), [((1, 1), 300), ((64, 64), 72), ((15, 40), 300), ((1100, 1100), 72)])
def test_cells_are_square_and_whole_pixels(shape: tuple[int, int], dpi: int) -> None:
    with drawn(report(heatmap(*shape)), FigureStyle(dpi=dpi)) as made:
        axes, pool = made.maps[0], made.plan.cells.rows.pool
        assert made.plan.cells.rows == made.plan.cells.columns
        box = axes.get_window_extent()
        (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
        width, height = box.width / (right - left), box.height / (bottom - top)
        assert width == pytest.approx(height, abs=1e-6)
        assert width == pytest.approx(round(width), abs=1e-6)
        assert box.x0 == pytest.approx(round(box.x0), abs=1e-6)
        assert box.y0 == pytest.approx(round(box.y0), abs=1e-6)
        assert right * pool >= shape[1]
        assert bottom * pool >= shape[0]


@pytest.mark.parametrize(("n_tokens", "is_close"), [(11, False), (200, True)])
def test_where_lines_lie_close_small_weights_are_faint_and_that_is_said(n_tokens: int, is_close: bool) -> None:
    with drawn(report(heatmap(n_tokens)), FigureStyle(kind="lines")) as made:
        (lines,) = made.figure.axes[0].collections
        alphas = np.asarray(lines.get_edgecolor())[:, 3]
        assert alphas.max() <= 1
        assert (alphas.min() < 0.5) == is_close
        assert (alphas == 1).all() == (not is_close)
        assert any("less faint" in text for text in made.texts) == is_close


LONG = tuple(f"a-label-with-{position:02}-letters" for position in range(20))


@pytest.mark.parametrize(
    "picture",
    [
        *(heatmap(number) for number in (1, 20, 200)),
        *(panels(number) for number in (1, 20, 64)),
        *(labelled(labels) for labels in (SCRIPTS, HOSTILE, LONG, ("W" * 24,), ("",))),
        heatmap(3, 40, causal=True),
        heatmap(40, 2, causal=True),
        heatmap(9, 60),
        difference(20),
        panels(7, 5, 3, causal=True),
    ],
    ids=lambda picture: f"{picture.name}-{picture.title}",
)
def test_no_text_is_cut_and_none_lies_on_another(picture: Heatmap | HeatmapGrid) -> None:
    with drawn(report(picture)) as made:
        check_texts(made)


@pytest.mark.parametrize(
    "title", ["A long title. " * 20, "Donaudampf" * 40, "猫" * 300, "Z\u0302\u0303" * 50, "", "👩\u200d🚀" * 90]
)
def test_no_title_is_cut_or_lies_on_something(title: str) -> None:
    with drawn(report(heatmap(1), title=title)) as made:
        check_texts(made)


def check_texts(made: Drawn) -> None:
    assert outside(made.figure) == []
    free = [(text.get_text(), text.get_window_extent()) for text in made.free]
    ticks = [(text.get_text(), text.get_window_extent()) for text in (*made.tokens, *made.bar.get_yticklabels())]
    maps = [("map", axes.get_window_extent()) for axes in [*made.maps, made.bar]]
    assert overlapping(free + maps) == []
    assert [pair for pair in overlapping(free + ticks) if pair[0] in made.texts and pair[1] not in made.texts] == []


def test_log_scale_draws_zero_in_the_lowest_colour_and_says_so() -> None:
    values = np.array([[0.0, 1e-9, 1e-3, 1.0]])
    row = Heatmap("a", "", values, np.ones((1, 4), dtype=bool), ("q",), words(4))
    with drawn(report(row, scale=LOG)) as made:
        assert isinstance(made.maps[0].collections[0].norm, LogNorm)
        assert bar_texts(made) == ["≤ 0.001", "0.01", "0.1", "1"]
    image = cell_pixels(report(row, scale=LOG))
    middle, side = image.shape[0] // 2, image.shape[0]
    colours = [tuple(image[middle, side * column + side // 2]) for column in range(4)]
    assert colours == [(68, 1, 84)] * 3 + [(253, 231, 37)]


def test_a_picture_has_its_own_scale_or_the_reports() -> None:
    own = Scale("shared", 0.2, 0.7, "similarity")
    for picture in (replace(heatmap(5), scale=own), replace(panels(5), scale=own)):
        with drawn(report(picture, scale=LOG)) as made:
            assert {axes.collections[0].get_clim() for axes in made.maps} == {(0.2, 0.7)}
            assert made.bar.get_ylim() == (0.2, 0.7)
            assert (bar_texts(made)[0], bar_texts(made)[-1]) == ("0.2", "0.7")
            assert "similarity" in made.texts
            assert not [text for text in made.texts if "attention weight" in text]


@pytest.mark.parametrize(
    ("high", "texts"),
    [
        (1.05, ["−1.05", "−0.5", "0", "+0.5", "+1.05"]),  # 1 would lie on 1.05
        (1e-9, ["−1e−09", "−5e−10", "0", "+5e−10", "+1e−09"]),
        (0.0, ["0"]),
    ],
)
def test_a_difference_shows_its_ends_and_0(high: float, texts: list[str]) -> None:
    shown = replace(heatmap(5), scale=Scale("diverging", -high, high, "difference"))
    with drawn(report(shown)) as made:
        assert bar_texts(made) == texts
        ticks, (low, top) = list(made.bar.get_yticks()), made.bar.get_ylim()
        assert low == -top < 0
        assert ticks == [-tick for tick in reversed(ticks)]
        assert ([ticks[0], ticks[-1]] == [low, top]) == (high > 0)
        boxes = [(text.get_text(), text.get_window_extent()) for text in made.bar.get_yticklabels()]
        assert overlapping(boxes) == []


def test_numbers_of_a_difference_are_signed_and_fit() -> None:
    values, everything = np.array([[0.12, -0.3, 0.004, -0.004, 0.0]] * 2), np.ones((2, 5), dtype=bool)
    scale = Scale("diverging", -0.3, 0.3, "difference")
    shown = Heatmap("a", "", values, everything, words(2), words(5), scale=scale)
    with drawn(report(shown), FigureStyle(annotate=True)) as made:
        assert [text.get_text() for text in made.maps[0].texts] == ["+.12", "−.30", "+.12", "−.30"]
        assert [text.get_color() for text in made.maps[0].texts[:3]] == ["#1a1a1a", "white", "#1a1a1a"]
    full = difference(16, causal=False)
    assert is_annotated(full)
    with drawn(report(full), FigureStyle(annotate=True)) as made:
        side = made.plan.cells.columns.length * 150
        assert len(made.maps[0].texts) == (np.abs(full.values) >= 0.005).sum()
        assert max(text.get_window_extent().width for text in made.maps[0].texts) < side - 6  # some room is left


@pytest.mark.parametrize(("cmap", "n_tokens"), [("viridis", 60), ("Greys", 8), ("gray", 8), ("of differences", 8)])
def test_forbidden_cells_look_unlike_zero_and_are_explained(cmap: str, n_tokens: int) -> None:
    values = np.zeros((n_tokens, n_tokens))
    values[:, 0] = 1
    allowed = np.tril(np.ones((n_tokens, n_tokens), dtype=bool))
    shown = report(Heatmap("a", "", values, allowed, words(n_tokens), words(n_tokens)))
    if cmap == "of differences":
        cmap, shown = "auto", report(difference(n_tokens, share=0.0))
    image = cell_pixels(shown, FigureStyle(cmap=cmap)).astype(int)
    side = image.shape[0] // n_tokens
    corner = slice(2, 3 * side - 2)
    forbidden, zero = image[corner, -3 * side + 2 : -2], image[-side + 2 : -2, side + 2 : 2 * side - 2]
    assert np.ptp(zero, axis=(0, 1)).max() == 0
    assert np.ptp(forbidden, axis=(0, 1)).min() > 30  # hatched
    assert np.abs(forbidden - zero[0, 0]).sum(axis=-1).min() > 5
    with drawn(shown, FigureStyle(cmap=cmap)) as made:
        assert "hatched: not attendable" in " ".join(made.texts)
    with drawn(report(heatmap(4))) as made:
        assert "hatched" not in " ".join(made.texts)
        assert made.plan.swatch is None


def test_pooling_has_means_of_what_is_allowed() -> None:
    values, allowed = np.zeros((3, 5)), np.ones((3, 5), dtype=bool)
    values[0, 0], values[1, 1], values[2, 4] = 0.2, 0.6, 0.5
    values[0, 2:4], allowed[0, 2:4] = 9.0, False  # never to be seen
    values[1, 2], values[2, 2:4], allowed[2, 2:4] = 0.8, 9.0, False
    cells = pool_cells(values, allowed, (2, 2))
    assert cells.filled(-1).tolist() == [[pytest.approx(0.2), pytest.approx(0.4), 0], [0, -1, 0.5]]


def test_pooling_keeps_the_largest_difference_up_or_down() -> None:
    values, allowed = np.zeros((3, 4)), np.ones((3, 4), dtype=bool)
    values[0, 0], values[1, 1], values[0, 3], values[2, 2] = 0.3, -0.5, 0.2, -0.1
    values[1, 2], allowed[1, 2] = -9.0, False  # never to be seen
    allowed[2, :2] = False
    cells = pool_cells(values, allowed, (2, 2), signed=True)
    assert cells.filled(9).tolist() == [[-0.5, 0.2], [9, -0.1]]
    assert pool_cells(values, allowed, (1, 2), signed=True).filled(9).tolist() == [[0.3, 0.2], [-0.5, 0], [9, -0.1]]


@pytest.mark.parametrize(("n_tokens", "scale"), [(1025, LIFT), (2500, FIXED)])
def test_more_tokens_than_pixels_are_pooled_and_the_figure_says_how(n_tokens: int, scale: Scale) -> None:
    """The mean: maxima of large blocks are all large."""
    values = np.zeros((n_tokens, n_tokens), dtype=np.float32)
    values[n_tokens // 3, n_tokens // 2] = 1
    everything = np.ones((n_tokens, n_tokens), dtype=bool)
    shown = report(Heatmap("a", "", values, everything, words(n_tokens), words(n_tokens)), scale=scale)
    pool = -(-n_tokens // 1024)
    largest = n_tokens if scale is LIFT else 1
    with drawn(shown) as made:
        (axes,) = made.maps
        cells = axes.collections[0].get_array()
        unit = "multiples" if scale is LIFT else "weights"
        assert made.texts[-1].endswith(f"each cell is the mean of {pool} × {pool} {unit}")
        assert cells is not None
        assert max(cells.shape) <= 1024
        assert cells.max() == pytest.approx(largest / pool**2)


def test_overview_has_one_bar_and_labels_only_outside() -> None:
    with drawn(report(panels(6, n_heads=8, n_columns=3))) as made:
        assert len(made.figure.axes) == 9
        rows, columns = ([text.get_window_extent() for text in texts] for texts in labels(made))
        first, last = made.maps[0].get_window_extent(), made.maps[7].get_window_extent()
        assert [0 < first.x0 - box.x1 < 10 for box in rows] == [True] * 6 * 3
        assert [0 < last.y0 - box.y1 < 10 or box.x0 > last.x1 for box in columns] == [True] * 6 * 3
        assert made.texts.count("query (attends)") == made.texts.count("key (is attended to)") == 1
        assert [text for text in made.texts if text.startswith("layer 0, head")] == [
            f"layer 0, head {head}" for head in range(8)
        ]
        assert {*(axes.collections[0].get_clim() for axes in made.maps), made.bar.get_ylim()} == {(0, 1)}  # as is fixed


def test_numbers_in_cells_where_they_fit() -> None:
    few, many = heatmap(12, causal=True), heatmap(40)
    assert is_annotated(few)
    assert not is_annotated(many)
    assert is_annotated(panels(5))
    assert not is_annotated(panels(20))
    with drawn(report(few), FigureStyle(annotate=True)) as made:
        texts = made.maps[0].texts
        written = few.values[few.allowed & (few.values >= 0.005)]  # none in forbidden cells
        assert [text.get_text() for text in texts] == [
            f"{value:.2f}".lstrip("0").replace("1.00", "1.0") for value in written
        ]
        assert len(texts) < 12 * 13 // 2
        assert any(text.endswith("cells without a number: less than .005") for text in made.texts)
        side = made.plan.cells.columns.length * 150
        assert all(text.get_window_extent().width < side for text in texts)
    for picture, look in ((many, FigureStyle(annotate=True)), (few, FigureStyle())):
        with drawn(report(picture), look) as made:
            assert not made.maps[0].texts
