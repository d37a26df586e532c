"""What charts hold: lines, gaps, boxes, points, names; and that no text is cut or lies on another."""

import re
from collections.abc import Sequence
from dataclasses import replace
from math import inf, nan
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import Collection, LineCollection

from attnviz.renderers.figure.files import undrawable
from attnviz.renderers.figure.marks import MIN_VALUES, find_groups, place_labels, read_table
from attnviz.renderers.figure.style import COLOURS, DARK, MIN_FONT_SIZE, PAPER
from attnviz.renderers.shades import luminance
from attnviz.report import Chart, Charts, FigureStyle
from attnviz.views.translate import translate
from tests.renderers.figure.reports import (
    ACCURACY,
    HOSTILE,
    LOSS,
    SCRIPTS,
    SUBTITLE,
    Drawn,
    box_chart,
    curves,
    distributions,
    drawn,
    heads,
    heatmap,
    line_chart,
    overlapping,
    report,
    sample,
    spread,
    visible_texts,
)
from tests.renderers.figure.test_files import KINDS


def lines(**ys: Sequence[float]) -> Chart:
    return line_chart({name: (range(len(y)), y) for name, y in ys.items()})


def points(*rows: tuple[Any, ...]) -> Chart:
    return Chart("point", "", "to previous (share)", "peak", ("x", "y", "group", "letter", "label", "leads"), rows)


def find_points(drawn: Collection) -> np.ndarray:
    return np.asarray(drawn.get_offsets())


HEADS = points(
    *((0.1 + n / 10, 0.2 - n / 10, "first token", "F", "", False) for n in range(2)),
    (0.1, 0.9, "induction", "I", "18.6", False),
    (0.5, 0.5, "", "", "", False),
    (nan, 0.5, "", "", "", False),
    (0.9, inf, "previous $_$", "P", "", False),
)
COSTS = Chart(
    "point",
    "replaced",
    "head",
    "lost",
    ("x", "y", "group", "low", "high"),
    ((0, 0.5, "beyond", 0.4, 0.6), (1, 0.1, "within", -0.1, 0.3)),
    ("3.1", "0.2"),
    quiet=("within",),
)
ALL = {
    "lines": curves(LOSS, ACCURACY),
    "boxes": distributions(heads(12), heads(40)),
    "points": curves(HEADS),
    "costs": curves(COSTS, COSTS),
}


def colours_of(axes: Axes) -> list[str]:
    return [
        mpl.colors.to_hex(line.get_color()).upper() for line in axes.lines if line.get_transform() == axes.transData
    ]


def labels_along(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.get_xticklabels()]


def bars_on(axes: Axes) -> list[Any]:
    found = [each for each in axes.collections if isinstance(each, LineCollection)]
    return [segment.tolist() for each in found for segment in each.get_segments()]


def test_lines_are_their_points_with_gaps_and_a_name_looks_the_same_in_all_charts() -> None:
    broken = lines(b=(0.5, nan, 0.7, 0.8, inf, 1e300, 0.9), a=(0.1, 0.2, 0.3))
    with drawn(report(curves(lines(a=(0.3, 0.4), b=(0.1, 0.2)), broken))) as made:
        first, second = made.figure.axes
        assert [line.get_ydata().tolist() for line in second.lines] == [[0.5], [0.7, 0.8], [0.9], [0.1, 0.2, 0.3]]  # type: ignore[union-attr]
        assert (colours_of(first), colours_of(second)) == ([*COLOURS[:2]], [*[COLOURS[1]] * 3, COLOURS[0]])
        assert [each.get_color() for each in made.figure.legends[0].get_lines()] == [*COLOURS[:2]]
        dots = [tuple(at) for each in second.collections for at in np.asarray(each.get_offsets()).tolist()]
        assert (0.0, 0.5) in dots  # what stands alone is seen
        assert (6.0, 0.9) in dots
        assert "3 numbers are not drawn: not finite, or too large" in made.texts


def test_a_training_run_has_its_mark_whole_epochs_and_dots_on_few_points() -> None:
    with drawn(report(curves(LOSS, ACCURACY), title="learning curve of multi:8")) as made:
        assert {"learning curve of multi:8 · loss and accuracy", SUBTITLE, "held out", "kept", "loss"} < {*made.texts}
        for axes in made.figure.axes:
            (mark,) = (each for each in axes.lines if each.get_transform() != axes.transData)
            assert list(np.asarray(mark.get_xdata())) == [3.0, 3.0]
            assert {*labels_along(axes)} >= {"0", "1", "2", "3", "4"}
            assert [len(each) for each in map(find_points, axes.collections) if len(each) > 1] == [4]
    for at in (nan, inf):
        with drawn(report(curves(replace(LOSS, at=(at, "kept"))))) as made:
            assert "kept" not in made.texts


def test_intervals_are_bars_and_the_quiet_are_grey() -> None:
    bounded = Chart(
        "line",
        "",
        "away",
        "share",
        ("x", "y", "group", "low", "high"),
        ((1.0, 0.5, "a", 0.4, 0.6), (2.0, 0.6, "a", -inf, 0.9), (4.0, 0.2, "even", None, None)),
        quiet=("even",),
        y_range=(0.0, 1.0),
    )
    with drawn(report(curves(bounded))) as made:
        (axes,) = made.figure.axes
        assert bars_on(axes) == [[[1.0, 0.4], [1.0, 0.6]]]
        assert axes.get_ylim() == pytest.approx((-0.06, 1.06))
        assert find_groups([bounded], PAPER)["even"].colour == PAPER.grey
    with drawn(report(curves(COSTS))) as made:
        assert bars_on(made.figure.axes[0]) == [[[0.0, 0.4], [0.0, 0.6]], [[1.0, -0.1], [1.0, 0.3]]]
        assert labels_along(made.figure.axes[0]) == ["3.1", "0.2"]


def test_many_numbers_are_boxes_of_their_middle_half_with_lines_to_the_ends() -> None:
    with drawn(report(distributions(heads(40)))) as made:
        (axes,) = made.figure.axes
        table = read_table(heads(40))
        for box, (x, rows) in zip(axes.patches, table.groupby("x"), strict=True):
            extent = box.get_path().get_extents()
            assert (extent.y0, extent.y1) == pytest.approx(tuple(np.percentile(rows["y"], (25, 75))))
            assert (extent.x0 + extent.x1) / 2 == pytest.approx(x)
        ends = {round(float(y), 9) for line in axes.lines for y in np.ravel(line.get_ydata())}
        assert ends >= {
            round(float(each(rows["y"])), 9) for _, rows in table.groupby("x") for each in (min, max, np.median)
        }
        assert np.diff(axes.get_xticks()) == pytest.approx([1.8, *[1] * 7])  # a gap before the next group
        assert labels_along(axes) == ["0", *"01234567"]
        assert any("the middle half of the numbers and their median" in text for text in made.texts)


def test_few_numbers_are_points_beside_each_other_with_a_line_at_their_median() -> None:
    few = spread(MIN_VALUES - 1, "a")
    with drawn(report(distributions(box_chart(few, spread(MIN_VALUES, "b"))))) as made:
        (axes,) = made.figure.axes
        assert len(axes.patches) == 1
        dots = next(each for each in map(find_points, axes.collections) if len(each) > 1)
        assert sorted(dots[:, 1]) == pytest.approx(sorted(few.values), abs=1e-3)
        at = axes.transData.transform(dots)
        apart = np.hypot(*(at[:, None] - at[None]).transpose(2, 0, 1)) + 1e9 * np.eye(len(at))
        assert apart.min() >= 0.9 * 3.6 / 72 * made.figure.dpi
        assert [bar[0][1] for bar in bars_on(axes)] == [np.median(few.values)]


def test_points_bear_letters_and_labels_where_there_is_room_those_farthest_out_first() -> None:
    with drawn(report(ALL["points"])) as made:
        assert sorted(text.get_text() for text in made.figure.axes[0].texts) == ["18.6", "F", "F", "I"]
        assert {"F: first token", "I: induction", "P: previous $_$"} < {*made.texts}
        assert "2 numbers are not drawn: not finite, or too large" in made.texts
    crowd = [(0.5, 0.5 + n * 1e-6, "", "", f"0.{n}", n == 5) for n in range(9)]
    chart = points(*crowd, (0.0, 0.0, "", "", "1.0", False), (1.0, 1.0, "", "", "1.1", False))
    placed = place_labels(read_table(chart), 4.6, 2.8, 7.0)
    assert [*placed][:3] == [5, 9, 10]
    assert (placed[9][0] > 0, placed[10][0] > 0) == (True, False)
    middles = np.array([[chart.rows[n][0], chart.rows[n][1]] for n in placed]) * 0.94 + 0.03
    boxes = [(at - 3, at + 3) for at in middles * np.array([4.6, 2.8]) * 72 + np.array([*placed.values()])]
    for n, (low, high) in enumerate(boxes):
        assert not any((low < other[1]).all() and (high > other[0]).all() for other in boxes[:n])
    with drawn(report(curves(chart))) as made:
        assert f"{11 - len(placed)} points are too close to others to be labelled" in made.texts


def test_charts_in_chinese_say_nothing_in_english() -> None:
    crowd = points(*((0.5, 0.5, "", "", "1.0", False),) * 3)
    measured = [
        heads(number, title, unit) for number, title, unit in ((3, "entropy", "nats"), (40, "to self", "share"))
    ]
    for charts in (
        (*measured, box_chart(sample(1.0, nan), sample(inf))),
        (replace(crowd, x_axis="head", y_axis="step"),),
    ):
        shown = translate(report(distributions(*charts), title=""), "zh")
        with drawn(shown, FigureStyle(lang="zh", header=False)) as made:
            assert {*re.findall("[A-Za-z]{4,}", " ".join(made.texts))} <= {"single", "multi", "chart"}


def test_twenty_names_look_different() -> None:
    groups = find_groups([lines(**{str(number): (1.0,) for number in range(20)})], PAPER)
    assert len({(each.colour, each.dashes) for each in groups.values()}) == 20


@pytest.mark.parametrize(
    "nothing", [lines(), lines(a=(nan, nan)), box_chart(sample(nan, label="1")), box_chart(), points()]
)
def test_a_chart_of_nothing_says_so_once(nothing: Chart) -> None:
    with drawn(report(curves(replace(nothing, at=(1.0, "kept"))))) as made:
        axes = made.figure.axes[0]
        assert [text.get_text() for text in axes.texts] == ["no numbers"]
        assert len(axes.get_yticks()) == 0
        assert "kept" not in made.texts


LONG = "Donaudampfschifffahrt " * 12 + "猫坐在垫子上" * 12
PILED = "Z" + "\u0302" * 20
NAMED = dict.fromkeys((*HOSTILE, *SCRIPTS, LONG, "", " ", "_a"), (1.0, 2.0))
HOSTILE_CHARTS: dict[str, Charts] = ALL | {
    "hostile lines": curves(replace(lines(**NAMED), at=(1.0, "$5$"))),
    "long lines": curves(*(line_chart({LONG: ((1.0, 2.0), (1.0, 2.0))}, LONG, LONG, at=(1.0, LONG)),) * 3),
    "huge lines": curves(
        line_chart({"a": ((1e12, 3e12), (123456789.0, 123456789.5))}, at=(1e12, "kept")),
        line_chart({"b": ((0.0, 1e-12), (1e-30, 3e-30))}),
        line_chart({"c": ((-1e99, 1e99), (-1e-99, 1e99))}),
    ),
    "piled lines": curves(lines(**{PILED: (1.0, 2.0), "b": (1.0, 2.0)})),
    "no chart": curves(),
    "hostile samples": distributions(box_chart(*(spread(31, name, name) for name in NAMED))),
    "huge samples": distributions(
        box_chart(sample(*(1e99 * value for value in spread(40).values)), sample(*[-1e100, 1e100] * 20, label="1")),
        box_chart(sample(*(1e-99 * value for value in spread(40).values)), sample(*[1e-300, 2e-300] * 20, label="1")),
        box_chart(sample(*(1e9 + 1e-3 * value for value in spread(40).values))),
    ),
}


@pytest.mark.parametrize("name", HOSTILE_CHARTS)
def test_no_text_is_cut_and_none_lies_on_another_or_on_a_chart(name: str) -> None:
    with drawn(report(HOSTILE_CHARTS[name]), FigureStyle(dpi=72)) as made:
        check_texts(made)


def check_texts(made: Drawn) -> None:
    seen = list(made.free)
    for axes in made.figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = axis.get_view_interval()
            seen += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
            seen.append(axis.get_offset_text())
    boxes = [(text.get_text(), text.get_window_extent()) for text in seen if text.get_text()]
    page = made.figure.bbox
    cut = [name for name, box in boxes if box.x0 < 0 or box.y0 < 0 or box.x1 > page.x1 or box.y1 > page.y1]
    assert cut == []
    boxes += [("chart", axes.get_window_extent()) for axes in made.figure.axes]
    assert overlapping(boxes) == []
    assert not any(text.get_parse_math() for text in visible_texts(made.figure))
    if made.figure.axes:
        sizes = [axes.get_window_extent() for axes in made.figure.axes]
        assert min(box.width for box in sizes) / made.figure.dpi > 1.7
        assert min(box.height for box in sizes) / made.figure.dpi > 1.2


@pytest.mark.parametrize(("kind", "name"), [("png", "points"), ("svg", "lines")])
def test_same_bytes_twice_vectors_stay_vectors_and_nothing_else_is_touched(kind: str, name: str) -> None:
    def content() -> bytes:
        (_, (file, found)) = KINDS[kind](report(heatmap(3), ALL[name]), FigureStyle(dpi=72))
        assert file == f"{ALL[name].name}.{kind}"
        return found

    np.random.seed(1)
    state, settings_before = np.random.get_state(legacy=False)["state"]["key"].tolist(), dict(mpl.rcParams)
    first = content()
    assert np.random.get_state(legacy=False)["state"]["key"].tolist() == state
    assert dict(mpl.rcParams) == settings_before
    np.random.seed(2)
    assert content() == first
    assert kind != "svg" or b"<image" not in first


@pytest.mark.parametrize(("name", "width"), [*((name, 2.8) for name in ALL), ("boxes", 7.0)])
def test_a_width_that_is_asked_for_is_kept_and_nothing_cut(name: str, width: float) -> None:
    with drawn(report(ALL[name]), FigureStyle(width=width, dpi=300)) as made:
        assert made.plan.width == pytest.approx(width, abs=1 / 300)
        check_texts(made)
        assert min(float(text.get_fontsize()) for text in visible_texts(made.figure)) >= 0.7 * MIN_FONT_SIZE
        assert made.plan.n_columns == (1 if width < 5 else min(2, len(ALL[name].charts)))


def test_themes_change_ground_and_inks_and_sizes() -> None:
    name = "boxes"
    with drawn(report(ALL[name]), FigureStyle(theme="dark", header=False)) as made:
        assert made.figure.get_facecolor() == mpl.colors.to_rgba(DARK.ground)
        assert not any(title in text for text in made.texts for title in (SUBTITLE, ALL[name].title))
        for text in visible_texts(made.figure):
            assert mpl.colors.to_hex(text.get_color()) in (DARK.ink, DARK.grey)
        assert {text.get_fontsize() for axes in made.figure.axes for text in axes.get_xticklabels()} == {14.0}


def test_characters_that_no_font_has_are_found_wherever_they_are() -> None:
    one, two, three, four, five = "\ue001\ue002\ue003\ue004\ue005"
    hard = line_chart({two: ((0.0,), (1.0,))}, one, three, at=(0.0, four), names=(five,))
    assert undrawable(report(curves(hard), title="क")) == "क\ue001\ue002\ue003\ue004\ue005"
    assert undrawable(report(*ALL.values())) == ""


def test_every_colour_can_be_read_as_text_on_a_dark_ground() -> None:
    """What stands beside a dot or a peak has its colour."""
    ground, *inks = (
        luminance([255 * part for part in mpl.colors.to_rgb(colour)])
        for colour in (DARK.ground, *map(DARK.find_ink, COLOURS))
    )
    assert min((ink + 0.05) / (ground + 0.05) for ink in inks) >= 4.5
    assert len({DARK.find_ink(colour) for colour in COLOURS}) == len(COLOURS)
