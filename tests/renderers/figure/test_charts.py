"""What charts hold: lines, gaps, boxes, points, names; and that no text is cut or lies on another."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Annotation

from attnviz.renderers.figure import curves as lines_of_charts
from attnviz.renderers.figure import distributions as samples_of_charts
from attnviz.renderers.figure import files as figure
from attnviz.renderers.figure.distributions import BROAD, DOT, MIN_VALUES
from attnviz.renderers.figure.files import is_annotated, undrawable
from attnviz.renderers.figure.style import COLOURS, DARK, MIN_FONT_SIZE
from attnviz.renderers.shades import luminance
from attnviz.report import Curve, Curves, Distribution, Distributions, FigureStyle, Line, Report, Sample
from tests.renderers.figure.reports import (
    ACCURACY,
    HOSTILE,
    LOSS,
    SCRIPTS,
    SUBTITLE,
    DrawnCharts,
    curves,
    distributions,
    drawn_charts,
    heads,
    heatmap,
    overlapping,
    report,
    sample,
    spread,
    visible_texts,
)

KINDS: dict[str, Callable[[Report, FigureStyle], Iterator[tuple[str, bytes]]]] = {
    "png": figure.png,
    "svg": figure.svg,
    "pdf": figure.pdf,
}
NAN, INF = float("nan"), float("inf")
BOTH: tuple[Curves, Distributions] = (curves(LOSS, ACCURACY), distributions(heads(12), heads(40)))


def curve(*lines: Line, at: float | None = None) -> Curve:
    return Curve("a chart", "epoch", "nats", lines, at, "kept")


def line(*y: float, name: str = "a line", marked: bool = False) -> Line:
    return Line(name, tuple(float(x) for x in range(len(y))), y, marked)


def chart(*samples: Sample) -> Distribution:
    return Distribution("a chart", "head", "nats", samples)


def lines_on(axes: Axes) -> list[Line2D]:
    """Without the mark, which has as few points as it can."""
    return [each for each in axes.lines if each.get_transform() == axes.transData]


def boxes_on(axes: Axes) -> list[Rectangle]:
    return [each for each in axes.patches if isinstance(each, Rectangle)]


def lines_in(axes: Axes) -> list[np.ndarray]:
    """Both ends of each line that is no curve."""
    return [ends for each in axes.collections if isinstance(each, LineCollection) for ends in each.get_segments()]


def labels_along(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.get_xticklabels()]


# Lines


def test_bounds_are_bars_in_the_colour_of_their_line() -> None:
    bounded = Line("a", (0.0, 1.0), (0.5, 0.6), marked=True, bounds=((0.4, 0.6), (-INF, 0.9)))
    with drawn_charts(report(curves(curve(bounded), curve(line(0.5, 0.6))))) as made:
        first, second = made.figure.axes
        (bars,) = (each for each in first.collections if isinstance(each, LineCollection))
        assert bars.get_segments()[0].tolist() == [[0.0, 0.4], [0.0, 0.6]]
        assert np.asarray(bars.get_color())[0, :3].tolist() == pytest.approx(mpl.colors.to_rgb(COLOURS[0]))
        assert not second.collections
        assert first.get_ylim()[0] > 0.3  # what cannot be drawn stretches no axis


def test_the_peak_of_the_first_line_is_written() -> None:
    peaked = replace(curve(line(0.1, 0.62, 0.2), line(0.3, 0.9, 0.3, name="b")), peak=True)
    with drawn_charts(report(curves(peaked, curve(line(0.1, 0.62))))) as made:
        first, second = made.figure.axes
        (number,) = first.texts
        assert isinstance(number, Annotation)
        assert (number.get_text(), number.xy) == ("0.62", (1.0, 0.62))
        assert not second.texts
    empty = replace(curve(line(INF, INF), line(0.5, 0.6, name="b")), peak=True)
    with drawn_charts(report(curves(empty))) as made:
        assert not made.figure.axes[0].texts


def test_axes_that_are_the_same_are_named_once_for_a_row_and_a_column() -> None:
    with drawn_charts(report(replace(curves(*[curve(line(0.1, 0.6))] * 3), n_columns=2))) as made:
        named = [(bool(axes.get_xlabel()), bool(axes.get_ylabel())) for axes in made.figure.axes]
        assert named == [(False, True), (True, False), (True, True)]
    other = replace(curve(line(0.1, 0.6)), y_axis="something else")
    with drawn_charts(report(replace(curves(other, curve(line(0.1, 0.6))), n_columns=2))) as made:
        assert all(axes.get_ylabel() for axes in made.figure.axes)


def test_a_line_under_another_is_wider_so_that_it_is_seen() -> None:
    ys = (1.0, 0.5), (1.0, 0.5), (1.0, 0.6)
    several = [Line(name, (0.0, 1.0), y, marked=True) for name, y in zip("abc", ys, strict=True)]
    with drawn_charts(report(curves(curve(*several)))) as made:
        (axes,) = made.figure.axes
        first, *others = (each.get_linewidth() for each in axes.lines)
        assert first > others[0] == others[1]


def test_lines_are_the_points_under_their_names() -> None:
    with drawn_charts(report(curves(LOSS, ACCURACY), title="learning curve of multi:8")) as made:
        assert sorted(made.texts) == sorted(
            [
                *("learning curve of multi:8 · loss and accuracy", SUBTITLE, "training (with dropout)", "held out"),
                *("loss", "accuracy", "kept", "epoch", "epoch"),
                *("cross-entropy (nats)", "share of texts labelled correctly"),
            ]
        )
        for axes, of in zip(made.figure.axes, (LOSS, ACCURACY), strict=True):
            training, held_out = lines_on(axes)
            for shown, given_line in zip((training, held_out), of.lines, strict=True):
                assert np.array_equal(shown.get_xydata(), np.column_stack([given_line.x, given_line.y]))
            assert (training.get_markevery(), held_out.get_markevery()) == ([], None)
            (mark,) = (each for each in axes.lines if each not in (training, held_out))
            assert held_out.get_zorder() > training.get_zorder() > mark.get_zorder()
            assert list(np.asarray(mark.get_xdata())) == [3.0, 3.0]
            assert set(labels_along(axes)) >= {"0", "1", "2", "3", "4"}  # epochs are whole


def test_one_name_has_one_look_in_all_charts_and_in_the_legend() -> None:
    swapped = replace(ACCURACY, lines=ACCURACY.lines[::-1])
    with drawn_charts(report(curves(LOSS, swapped))) as made:
        wanted = [each.get_color() for each in made.figure.legends[0].get_lines()][:2]
        assert wanted == list(COLOURS[:2])
        for axes in made.figure.axes:
            assert [each.get_color() for each in lines_on(axes)] == wanted


def test_names_of_several_rows_are_read_from_left_to_right() -> None:
    """matplotlib fills columns: 8 names on 7 of them would be 0, 2, 3, 4, 5, 6, 7 and below 0 alone 1."""
    lines = tuple(Line(f"head of a layer {number}", (0.0, 1.0), (0.0, float(number))) for number in range(8))
    with drawn_charts(report(curves(replace(LOSS, lines=lines, at=None)))) as made:
        boxes = {text.get_text(): text.get_window_extent() for text in made.figure.legends[0].get_texts()}
        read = sorted(boxes, key=lambda name: (-round(boxes[name].y0), boxes[name].x0))
        per_row = Counter(round(box.y0) for box in boxes.values()).values()
    assert read == [line.name for line in lines]
    assert len(per_row) > 1
    assert max(per_row) - min(per_row) <= 1


@pytest.mark.parametrize("at", [None, NAN, INF, 9.0])
def test_a_mark_is_seen_and_named_where_it_is_a_number(at: float | None) -> None:
    with drawn_charts(report(curves(replace(LOSS, at=at)))) as made:
        assert len(made.figure.axes[0].lines) == 2 + (at == 9)
        assert ("kept" in made.texts) == (at == 9)
        assert (made.figure.axes[0].get_xlim()[1] > 9) == (at == 9)


def test_gaps_stay_gaps_and_are_counted_and_what_stands_alone_is_seen() -> None:
    broken = line(0.5, NAN, 0.7, INF, -INF, 1e300, 0.9)
    with drawn_charts(report(curves(curve(broken), curve(line(1.0, NAN))))) as made:
        (shown,) = lines_on(made.figure.axes[0])
        assert np.flatnonzero(np.isnan(shown.get_ydata())).tolist() == [1, 3, 4, 5]
        assert shown.get_markevery() == [0, 2, 6]
        assert "5 points cannot be drawn: not a number, or too large" in made.texts


# Samples


def test_many_numbers_are_boxes_of_their_middle_half_with_lines_to_the_ends() -> None:
    shown = heads(40)
    with drawn_charts(report(distributions(shown))) as made:
        (axes,) = made.figure.axes
        lines = lines_in(axes)
        for number, (box, each) in enumerate(zip(boxes_on(axes), shown.samples, strict=True)):
            ends = np.percentile(each.values, (0, 25, 50, 75, 100))
            assert (box.get_y(), box.get_y() + box.get_height()) == pytest.approx(tuple(ends[[1, 3]]))
            assert box.get_width() == pytest.approx(BROAD)
            below, above, median = lines[3 * number : 3 * number + 3]
            assert [below[:, 1].tolist(), above[:, 1].tolist()] == [ends[:2].tolist(), ends[3:].tolist()]
            assert set(median[:, 1]) == {ends[2]}
        middles = [box.get_x() + box.get_width() / 2 for box in boxes_on(axes)]
        assert middles == pytest.approx(list(axes.get_xticks()))
        assert np.diff(axes.get_xticks()) == pytest.approx([1.8, *[1] * 7])  # a gap before the next group
        assert labels_along(axes) == ["0", *"01234567"]
        handles = [patch.get_facecolor() for patch in made.figure.legends[0].get_patches()]
        assert handles == [each.get_facecolor() for each in boxes_on(axes)[:2]]
        assert any("the middle half of the numbers and their median" in text for text in made.texts)


def test_few_numbers_are_points_beside_each_other_with_a_line_at_their_median() -> None:
    with drawn_charts(report(distributions(chart(spread(MIN_VALUES - 1, "a"), spread(MIN_VALUES, "b"))))) as made:
        (axes,) = made.figure.axes
        assert len(boxes_on(axes)) == 1
        dots = next(each for each in axes.lines if len(np.atleast_1d(each.get_xdata())) == MIN_VALUES - 1)
        assert sorted(np.asarray(dots.get_ydata())) == sorted(spread(MIN_VALUES - 1).values)
        at = axes.transData.transform(np.asarray(dots.get_xydata()))
        apart = np.hypot(*(at[:, None] - at[None]).transpose(2, 0, 1)) + 1e9 * np.eye(len(at))
        assert apart.min() >= 0.9 * DOT / 72 * made.figure.dpi  # the height of the axes is matplotlib's
        assert set(lines_in(axes)[3][:, 1]) == {np.median(spread(MIN_VALUES - 1).values)}


@pytest.mark.parametrize("number", [2, 200])
def test_numbers_that_are_all_the_same_are_a_line(number: int) -> None:
    almost = sample(*[0.1 + 1e-15 * (place % 7) for place in range(number)], label="1")
    with drawn_charts(report(distributions(chart(sample(*[0.1] * number), almost, spread(40, "2"))))) as made:
        (axes,) = made.figure.axes
        assert len(boxes_on(axes)) == 1
        assert len(lines_in(axes)) == 2 + 3


def test_numbers_that_cannot_be_drawn_and_samples_without_any_are_counted() -> None:
    broken = replace(spread(40), values=(*spread(40).values, NAN, INF, -INF, 1e300))
    with drawn_charts(report(distributions(chart(broken, sample(label="b"), sample(NAN, label="c"))))) as made:
        said = " ".join(made.texts)
        assert "2 samples without numbers · 5 numbers cannot be drawn: not a number, or too large" in said
        assert labels_along(made.figure.axes[0]) == ["0", "b", "c"]


def test_many_samples_make_the_chart_wider_and_then_thin_its_labels() -> None:
    widths = []
    for number in (8, 32, 300):
        many = chart(*(sample(1.0, 2.0, label=str(place)) for place in range(number)))
        with drawn_charts(report(distributions(many, many))) as made:
            widths.append(made.plan.width)
            step = 10 if number == 300 else 1
            assert labels_along(made.figure.axes[0]) == [*map(str, range(number))][::step]
            assert ("every 10th head is labelled" in " ".join(made.texts)) == (step == 10)
    assert widths == sorted(widths)
    assert widths[-1] < 14


# Both


def test_twenty_names_look_different() -> None:
    names = [str(number) for number in range(20)]
    looks, _ = lines_of_charts.looks_of(curves(curve(*(line(1.0, name=name) for name in names))))
    tints, _ = samples_of_charts.looks_of(distributions(chart(*(sample(1.0, group=name) for name in names))))
    assert [*looks] == [*tints] == names
    assert len({str(look) for look in looks.values()}) == len(set(tints.values())) == 20


@pytest.mark.parametrize(
    ("nothing", "said"),
    [
        (curves(curve(at=1.0)), "no points"),
        (curves(curve(line(NAN, NAN), at=9.0)), "no points"),
        (distributions(chart()), "no numbers"),
        (distributions(chart(sample(), sample(NAN, label="1"))), "no numbers"),
    ],
)
def test_a_chart_of_nothing_says_so_once(nothing: Curves | Distributions, said: str) -> None:
    with drawn_charts(report(nothing)) as made:
        axes = made.figure.axes[0]
        assert [text.get_text() for text in axes.texts] == [said]
        assert len(axes.get_yticks()) == 0
        assert "kept" not in made.texts


LONG = "Donaudampfschifffahrt " * 12 + "猫坐在垫子上" * 12
PILED = "Z" + "\u0302" * 20
HUGE = (
    curve(Line("a", (1e12, 3e12), (123456789.0, 123456789.5)), at=1e12),
    curve(Line("b", (0.0, 1e-12), (1e-30, 3e-30)), at=1e-12),
    curve(Line("c", (-1e99, 1e99), (-1e-99, 1e99))),
)
HOSTILE_CHARTS: dict[str, Curves | Distributions] = {
    "lines": curves(curve(*(line(1.0, 2.0, name=name) for name in (*HOSTILE, *SCRIPTS, LONG, "", " ", "_a")), at=1.0)),
    "long lines": curves(*(Curve(LONG, LONG, LONG, (line(1.0, 2.0, name=LONG),), 1.0, LONG),) * 3),
    "empty lines": curves(Curve("", "", "", (line(1.0, 2.0, name=""),), 1.0, "")),
    "formulas": curves(Curve("$$", r"$\frac$", "$x$", (line(1.0, 2.0, name="_$_$"),), 0.0, "$5$"), LOSS),
    "huge lines": curves(*HUGE),
    "piled lines": curves(curve(line(1.0, 2.0, name=PILED), line(1.0, 2.0, name="b"))),
    "no chart of lines": curves(),
    "samples": distributions(chart(*(spread(31, name, name) for name in (*HOSTILE, *SCRIPTS, LONG, "", " ", "_a")))),
    "long samples": distributions(*(Distribution(LONG, LONG, LONG, (spread(31, LONG[:60], LONG),)),) * 3),
    "empty samples": distributions(Distribution("", "", "", (spread(31, "", ""),))),
    "huge samples": distributions(
        chart(sample(*(1e99 * value for value in spread(40).values)), sample(*[-1e100, 1e100] * 20, label="1")),
        chart(sample(*(1e-99 * value for value in spread(40).values)), sample(*[1e-300, 2e-300] * 20, label="1")),
        chart(sample(*(1e9 + 1e-3 * value for value in spread(40).values))),
    ),
    "one far out": distributions(chart(sample(*[0.0] * 60, 1.0), sample(*[0.0] * 10, 1e9, label="1"))),
    "no chart of samples": distributions(),
    "five in two columns": distributions(*[heads(6)] * 5),
    "columns to spare": distributions(heads(6), n_columns=9),
}


@pytest.mark.parametrize("name", HOSTILE_CHARTS)
def test_no_text_is_cut_and_none_lies_on_another_or_on_a_chart(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with drawn_charts(report(HOSTILE_CHARTS[name]), FigureStyle(dpi=72)) as made:
            check_texts(made)


def check_texts(made: DrawnCharts) -> None:
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
        assert min(box.height for box in sizes) / made.figure.dpi > 1.4


numbers = st.floats(allow_nan=True, allow_infinity=True) | st.floats(-10, 10) | st.just(0.5)


@settings(max_examples=10, deadline=None)
@given(st.lists(st.lists(numbers, max_size=5).map(lambda some: some * 8) | st.lists(numbers, max_size=5), max_size=3))
def test_any_numbers_are_drawn_without_a_warning(some: list[list[float]]) -> None:
    samples = [sample(*values, label=str(place), group=str(place // 2)) for place, values in enumerate(some)]
    lines = [Line("a", tuple(sorted(values)), tuple(values), marked=len(values) > 3) for values in some]
    shown = report(distributions(chart(*samples)), curves(curve(*lines, at=some[0][0] if some and some[0] else None)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(list(figure.png(shown, FigureStyle(dpi=72)))) == 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("picture", BOTH, ids=["lines", "samples"])
def test_same_bytes_twice_vectors_stay_vectors_and_nothing_else_is_touched(
    kind: str, picture: Curves | Distributions
) -> None:
    def content() -> bytes:
        (_, (name, found)) = KINDS[kind](report(heatmap(3), picture), FigureStyle(dpi=72))
        assert name == f"{picture.name}.{kind}"
        return found

    np.random.seed(1)
    state, settings_before = np.random.get_state(legacy=False)["state"]["key"].tolist(), dict(mpl.rcParams)
    first = content()
    assert np.random.get_state(legacy=False)["state"]["key"].tolist() == state
    assert dict(mpl.rcParams) == settings_before
    np.random.seed(2)
    assert content() == first
    assert kind != "svg" or b"<image" not in first


@pytest.mark.parametrize("picture", BOTH, ids=["lines", "samples"])
@pytest.mark.parametrize("width", [2.8, 3.3, 7.0])
def test_a_width_that_is_asked_for_is_kept_and_nothing_cut(picture: Curves | Distributions, width: float) -> None:
    with drawn_charts(report(picture), FigureStyle(width=width, dpi=300)) as made:
        assert made.plan.width == pytest.approx(width, abs=1 / 300)
        check_texts(made)
        assert min(float(text.get_fontsize()) for text in visible_texts(made.figure)) >= MIN_FONT_SIZE
        assert made.plan.n_columns == (1 if width < 5 else 2)


@pytest.mark.parametrize("picture", BOTH, ids=["lines", "samples"])
def test_themes_change_ground_and_inks_and_sizes(picture: Curves | Distributions) -> None:
    with drawn_charts(report(picture), FigureStyle(theme="dark", header=False)) as made:
        assert made.figure.get_facecolor() == mpl.colors.to_rgba(DARK.ground)
        assert not any(title in text for text in made.texts for title in (SUBTITLE, picture.title))
        for text in visible_texts(made.figure):
            assert mpl.colors.to_hex(text.get_color()) in (DARK.ink, DARK.grey)
        assert {text.get_fontsize() for axes in made.figure.axes for text in axes.get_xticklabels()} == {14.0}


def test_characters_that_no_font_has_are_found_wherever_they_are() -> None:
    one, two, three, four, five = "\ue001\ue002\ue003\ue004\ue005"
    lines = curves(Curve(one, two, three, (line(1.0, name=four),), 0.0, five))
    samples = distributions(Distribution(one, two, three, (sample(1.0, label=four, group=five),)))
    assert undrawable(report(lines)) == undrawable(report(samples)) == "\ue001\ue002\ue003\ue004\ue005"
    assert undrawable(report(*BOTH)) == ""


def test_there_are_no_cells_whose_numbers_could_be_left_out() -> None:
    assert is_annotated(BOTH[0])
    assert is_annotated(BOTH[1])
    assert not is_annotated(heatmap(40))


def test_every_colour_can_be_read_as_text_on_a_dark_ground() -> None:
    """What stands beside a dot or a peak has its colour."""
    ground, *inks = (
        luminance([255 * part for part in mpl.colors.to_rgb(colour)])
        for colour in (DARK.ground, *map(DARK.find_ink, COLOURS))
    )
    assert min((ink + 0.05) / (ground + 0.05) for ink in inks) >= 4.5
    assert len({DARK.find_ink(colour) for colour in COLOURS}) == len(COLOURS)
