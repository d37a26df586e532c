"""What charts hold: axes, lines, names, marks; as files and as figures."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import BytesIO
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.lines import Line2D
from PIL import Image

from attnviz.errors import TooLarge
from attnviz.renderers.figure import files as figure
from attnviz.renderers.figure.axis import LARGEST, AxisRange, numbered, plan_x, plan_y, points_of
from attnviz.renderers.figure.curves import strokes_of
from attnviz.renderers.figure.files import annotated, undrawable
from attnviz.renderers.figure.layout import POINT
from attnviz.renderers.figure.style import AXIS
from attnviz.renderers.figure.text import extent
from attnviz.report import Curve, Line, Look, Report
from tests.renderers.figure.reports import (
    ACCURACY,
    FACTS,
    HELD_OUT,
    HOSTILE,
    LOSS,
    SCRIPTS,
    SUBTITLE,
    TRAINING,
    DrawnCurves,
    curves,
    drawn_curves,
    heatmap,
    outside,
    overlapping,
    pixels,
    report,
    visible_texts,
)

KINDS: dict[str, Callable[[Report, Look], Iterator[tuple[str, bytes]]]] = {
    "png": figure.png,
    "svg": figure.svg,
    "pdf": figure.pdf,
}
NAN, INF = float("nan"), float("inf")


def chart(*lines: Line, at: float | None = None, at_label: str = "kept") -> Curve:
    return Curve("a chart", "epoch", "nats", lines, at, at_label)


def line(*y: float, name: str = "a line", marked: bool = False) -> Line:
    return Line(name, tuple(float(x) for x in range(len(y))), y, marked)


def lines_of(axes: Axes) -> list[Line2D]:
    """Without the mark, which has as few points as it can."""
    return [line for line in axes.lines if line.get_transform() == axes.transData]


def marks_of(axes: Axes) -> list[Line2D]:
    return [line for line in axes.lines if line.get_transform() != axes.transData]


def numbers_of(axes: Axes) -> tuple[list[str], list[str]]:
    return [text.get_text() for text in axes.get_xticklabels()], [text.get_text() for text in axes.get_yticklabels()]


def samples_of(made: DrawnCurves) -> list[Line2D]:
    return [artist for artist in made.figure.get_children() if isinstance(artist, Line2D)]


def luminance(colour: str) -> float:
    """How much light a colour gives, 0 to 1 (WCAG 2)."""
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def coloured(shown: Report, colour: str) -> int:
    """Pixels of one colour."""
    wanted = [round(255 * part) for part in to_rgb(colour)]
    return int((pixels(shown, Look(dpi=100)) == wanted).all(axis=-1).sum())


def test_charts_stand_side_by_side_with_their_names() -> None:
    with drawn_curves(report(curves(LOSS, ACCURACY), title="learning curve of multi:8")) as made:
        first, second = (axes.get_window_extent() for axes in made.figure.axes)
        assert first.x1 < second.x0
        assert (first.y0, first.height, first.width) == pytest.approx((second.y0, second.height, second.width))
        assert sorted(made.texts) == sorted(
            [
                *("learning curve of multi:8 · loss and accuracy", SUBTITLE, "training (with dropout)", "held out"),
                *("loss", "accuracy", "kept", "kept", "epoch", "epoch"),
                *("cross-entropy (nats)", "share of texts labelled correctly"),
            ]
        )
        boxes = {text.get_text(): text.get_window_extent() for text in made.figure.texts}
        assert boxes["loss"].y0 > first.y1 > first.y0 > boxes["epoch"].y1
        assert boxes["cross-entropy (nats)"].x1 < first.x0
        assert first.x1 < boxes["share of texts labelled correctly"].x1 < second.x0
        assert first.x0 < (boxes["loss"].x0 + boxes["loss"].x1) / 2 < first.x1


@pytest.mark.parametrize(("number", "width"), [(1, 4.6), (2, 2.9), (3, 2.4), (4, 2.4)])
def test_few_charts_are_larger(number: int, width: float) -> None:
    with drawn_curves(report(curves(*[LOSS] * number))) as made:
        assert [box.width for box in (each.box for each in made.plan.charts)] == pytest.approx([width] * number)


def test_lines_are_the_points_and_the_few_are_marked_on_top() -> None:
    with drawn_curves(report(curves(LOSS, ACCURACY))) as made:
        for axes, curve in zip(made.figure.axes, (LOSS, ACCURACY), strict=True):
            training, held_out = lines_of(axes)
            for drawn, given_line in zip((training, held_out), curve.lines, strict=True):
                assert np.array_equal(drawn.get_xydata(), np.column_stack([given_line.x, given_line.y]))
            assert (training.get_markevery(), held_out.get_marker(), held_out.get_markevery()) == ([], "o", None)
            assert held_out.get_zorder() > training.get_zorder() > marks_of(axes)[0].get_zorder()


def test_every_point_lies_inside_with_room_around_it() -> None:
    with drawn_curves(report(curves(LOSS, ACCURACY))) as made:
        for axes in made.figure.axes:
            points = np.concatenate([drawn.get_xydata() for drawn in lines_of(axes)])
            (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
            assert left < 0 < right
            assert (points > [left, bottom]).all()
            assert (points < [right, top]).all()
            assert np.ptp(points[:, 1]) > 0.8 * (top - bottom)  # and no more than some


def test_epochs_are_whole_and_shares_plain_decimals() -> None:
    with drawn_curves(report(curves(LOSS, ACCURACY))) as made:
        for axes in made.figure.axes:
            epochs, shares = numbers_of(axes)
            assert epochs == ["0", "1", "2", "3", "4"]
            assert len(shares) >= 4
            assert all(re.fullmatch(r"0\.\d", share) for share in shares)
            assert [float(share) for share in shares] == pytest.approx(list(axes.get_yticks()))


@pytest.mark.parametrize(
    ("ticks", "texts"),
    [
        ((0.8, 0.85, 0.9), ["0.80", "0.85", "0.90"]),
        ((0.1 + 0.2, 0.4), ["0.3", "0.4"]),
        ((-1e-17, 0.5, 1.0), ["0.0", "0.5", "1.0"]),
        ((-20.0, 0.0, 20.0), ["-20", "0", "20"]),
        ((1e-5, 2e-5), ["0.00001", "0.00002"]),
        ((1e-30, 2e-30), ["1e-30", "2e-30"]),
        ((2e8, 3e8), ["200000000", "300000000"]),
        ((2e11, 3e11), ["200000000000", "300000000000"]),
        ((2e20, 3e20), ["2e+20", "3e+20"]),
        ((), []),
    ],
)
def test_numbers_are_as_long_as_they_must_be(ticks: tuple[float, ...], texts: list[str]) -> None:
    assert [text for _, text in numbered(ticks)] == texts


@pytest.mark.parametrize(
    ("x", "texts"),
    [
        ((1.0,), ["1"]),
        ((7.0, 30.0), ["8", "12", "16", "20", "24", "28"]),
        ((1.0, 2.0), ["1", "2"]),
        ((0.1, 0.5, 1.0), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        ((0.1, 2.3), ["0", "1", "2"]),
        ((1.0, 30.0), ["0", "4", "8", "12", "16", "20", "24", "28"]),
        ((40.0, 44.0), ["40", "41", "42", "43", "44"]),
        ((), []),
    ],
)
def test_an_axis_of_epochs(x: tuple[float, ...], texts: list[str]) -> None:
    assert [text for _, text in plan_x(chart(Line("a", x, x)), 4.0).ticks] == texts


def test_one_line_of_whole_epochs_makes_an_axis_of_whole_epochs() -> None:
    steps, epochs = Line("steps", (0.1, 0.5, 1.0), (1.0, 2.0, 3.0)), Line("epochs", (1.0,), (2.0,))
    assert [text for _, text in plan_x(chart(steps, epochs), 4.0).ticks] == ["0", "1"]


def test_narrow_charts_have_fewer_numbers() -> None:
    wide, narrow = (plan_x(chart(Line("a", (1e6, 1.8e6), (1.0, 2.0))), width).ticks for width in (9.0, 2.4))
    assert len(wide) > len(narrow) >= 2


@pytest.mark.parametrize("last", [8, 9, 17, 43, 1000, 99999, 1234567, 10**9])
def test_numbers_stand_apart(last: int) -> None:
    with drawn_curves(report(curves(*[chart(Line("a", (0.0, float(last)), (1.0, 2.0)))] * 3))) as made:
        boxes = [text.get_window_extent() for text in made.figure.axes[0].get_xticklabels()]
        assert len(boxes) >= 2
        assert min(after.x0 - before.x1 for before, after in pairwise(boxes)) > 8 * made.figure.dpi / 72 - 1


def test_how_far_numbers_reach_beyond_their_axis() -> None:
    half = extent("123456", AXIS).width * POINT / 2
    assert AxisRange(0.0, 1.0, ((0.0, "123456"), (1.0, "0"))).beyond(2.0)[0] == pytest.approx(half)
    assert AxisRange(0.0, 1.0, ((0.0, "0"), (1.0, "123456"))).beyond(2.0)[1] == pytest.approx(half)
    assert AxisRange(0.0, 1.0, ((0.4, "123456"), (0.6, "0"))).beyond(2.0) == (0.0, 0.0)


def test_the_mark_stands_at_its_epoch_with_its_name_above() -> None:
    with drawn_curves(report(curves(LOSS))) as made:
        (axes,) = made.figure.axes
        (mark,) = marks_of(axes)
        assert np.array_equal(mark.get_xdata(), [3.0, 3.0])
        (name,) = (text for text in made.figure.texts if text.get_text() == "kept")
        box = name.get_window_extent()
        assert (box.x0 + box.x1) / 2 == pytest.approx(axes.transData.transform((3, 0))[0], abs=1)
        assert 0 < box.y0 - axes.get_window_extent().y1 < box.height


@pytest.mark.parametrize("at", [None, NAN, INF])
def test_without_a_mark_there_is_no_name_of_it(at: float | None) -> None:
    with drawn_curves(report(curves(replace(LOSS, at=at)))) as made:
        assert marks_of(made.figure.axes[0]) == []
        assert "kept" not in made.texts


def test_a_mark_beyond_the_lines_is_seen() -> None:
    with drawn_curves(report(curves(replace(LOSS, at=9.0)))) as made:
        assert made.figure.axes[0].get_xlim()[1] > 9
        assert len(marks_of(made.figure.axes[0])) == 1


def test_axes_are_open_and_the_grid_lies_behind() -> None:
    with drawn_curves(report(curves(LOSS))) as made:
        (axes,) = made.figure.axes
        assert {side: spine.get_visible() for side, spine in axes.spines.items()} == {
            "left": True,
            "bottom": True,
            "top": False,
            "right": False,
        }
        grid = [*axes.get_xgridlines(), *axes.get_ygridlines()]
        assert grid
        assert all(each.get_visible() for each in grid)
        assert min(to_rgb(grid[0].get_color())) > 0.8
        assert axes.get_axisbelow() is True


def test_one_name_has_one_look_in_all_charts_and_beside_its_name() -> None:
    swapped = replace(ACCURACY, lines=ACCURACY.lines[::-1])
    with drawn_curves(report(curves(LOSS, swapped))) as made:
        samples = samples_of(made)
        assert len(samples) == 2
        for axes in made.figure.axes:
            for drawn, sample in zip(lines_of(axes), samples, strict=True):
                assert drawn.get_color() == sample.get_color()
                assert drawn.get_linewidth() == sample.get_linewidth()
        assert [sample.get_marker() for sample in samples] == ["None", "o"]


def test_names_stand_beside_their_samples_above_the_charts() -> None:
    with drawn_curves(report(curves(LOSS, ACCURACY))) as made:
        names = {text.get_text(): text.get_window_extent() for text in made.figure.texts}
        for name, sample in zip((TRAINING.name, HELD_OUT.name), samples_of(made), strict=True):
            points = sample.get_transform().transform(sample.get_xydata())
            assert 0 < names[name].x0 - points[-1, 0] < 12
            assert names[name].y0 < points[0, 1] < names[name].y1
            assert names[name].y0 > made.figure.axes[0].get_window_extent().y1


def test_twenty_names_look_different_and_none_is_pale() -> None:
    many = [line(1.0, 2.0, name=str(number)) for number in range(20)]
    strokes = strokes_of(curves(chart(*many[:12]), chart(*many[8:])))
    assert [*strokes] == [each.name for each in many]
    assert len({stroke[:2] for stroke in strokes.values()}) == 20
    assert all(luminance(stroke.colour) < 0.45 for stroke in strokes.values())  # a contrast to white above 2


@pytest.mark.parametrize(
    ("given_line", "number"),
    [
        (line(0.5), 1),
        (line(0.5, marked=True), 1),
        (line(NAN, 0.5, NAN, 0.7, 0.8), 2),
        (Line("a line", (1.0, 1.0, 1.0), (0.5, 0.5, NAN)), 1),
    ],
    ids=["one", "one-marked", "alone-and-pair", "twice-the-same"],
)
def test_a_point_to_which_no_line_leads_is_seen(given_line: Line, number: int) -> None:
    nothing = replace(given_line, y=(NAN,) * len(given_line.y))
    colour = strokes_of(curves(chart(given_line)))["a line"].colour
    seen = coloured(report(curves(chart(given_line))), colour) - coloured(report(curves(chart(nothing))), colour)
    assert seen >= 5 * number


def test_gaps_stay_gaps_and_are_counted() -> None:
    broken = line(0.5, NAN, 0.7, INF, -INF, 1e300, 0.9)
    with drawn_curves(report(curves(chart(broken), chart(line(1.0, NAN))))) as made:
        (shown,) = lines_of(made.figure.axes[0])
        assert np.flatnonzero(np.isnan(shown.get_ydata())).tolist() == [1, 3, 4, 5]
        assert shown.get_markevery() == [0, 2, 6]
        bottom, top = made.figure.axes[0].get_ylim()
        assert 0 < bottom < 0.5 < 0.9 < top < 1
        assert made.texts[-1] == "5 points cannot be drawn: not a number, or too large"
    with drawn_curves(report(curves(chart(line(1.0, NAN))))) as made:
        assert made.texts[-1].startswith("1 point cannot")
    with drawn_curves(report(curves(LOSS))) as made:
        assert "cannot" not in " ".join(made.texts)


@pytest.mark.parametrize("given_chart", [chart(at=1.0), chart(line(), at=0.5), chart(line(NAN, NAN), at=9.0)])
def test_a_chart_of_nothing_says_so(given_chart: Curve) -> None:
    with drawn_curves(report(curves(given_chart))) as made:
        assert "no points" in made.texts
        assert numbers_of(made.figure.axes[0]) == ([], [])
        assert marks_of(made.figure.axes[0]) == []
        assert "kept" not in made.texts
    with drawn_curves(report(curves(LOSS))) as made:
        assert "no points" not in made.texts


numbers = st.floats(allow_nan=True, allow_infinity=True) | st.floats(-10, 10)


@given(st.lists(st.tuples(numbers, numbers), max_size=5), st.none() | numbers, st.booleans())
def test_any_numbers_have_axes(points: list[tuple[float, float]], at: float | None, marked: bool) -> None:
    x, y = zip(*sorted(points), strict=True) if points else ((), ())
    given_chart = chart(Line("a", x, y, marked), at=at)
    for axis in (plan_x(given_chart, 3.0), plan_y(points_of(each)[1] for each in given_chart.lines)):
        assert -INF < axis.low < axis.high < INF
        drawable = any(np.abs(point).max() <= LARGEST for point in points)
        assert len({text for _, text in axis.ticks}) == len(axis.ticks) >= drawable
        for tick, text in axis.ticks:
            assert axis.low <= tick <= axis.high
            assert float(text) == pytest.approx(tick, abs=1e-3 * (axis.high - axis.low))
        if len(axis.ticks) > 1:
            steps = [after - before for (before, _), (after, _) in pairwise(axis.ticks)]
            assert steps == pytest.approx([steps[0]] * len(steps), rel=1e-3)


LONG = "Donaudampfschifffahrt " * 12 + "猫坐在垫子上" * 12
HOSTILE_CHARTS = {
    "names": (chart(*(line(1.0, 2.0, name=name) for name in (*HOSTILE, *SCRIPTS, LONG, "", " ")), at=1.0),),
    "everything long": (Curve(LONG, LONG, LONG, (line(1.0, 2.0, name=LONG),), 1.0, LONG),) * 3,
    "everything empty": (Curve("", "", "", (line(1.0, 2.0, name=""),), 1.0, ""),),
    "formulas": (Curve("$$", r"$\frac$", "$x$", (line(1.0, 2.0, name="_$_$"),), 0.0, "$5$"), LOSS),
    "long numbers": (
        chart(Line("a", (1e12, 3e12), (123456789.0, 123456789.5)), at=1e12),
        chart(Line("b", (0.0, 1e-12), (1e-30, 3e-30)), at=1e-12),
        chart(Line("c", (-1e99, 1e99), (-1e-99, 1e99))),
    ),
    "numbers beyond the axis": (
        *(Curve("", "", "", (Line("a", (1.2345678901e50, 1.2345678941e50), (1.0, 5.0)),)),) * 2,
        Curve("", "", "", (Line("a", (12345678920.0, 12345678960.0), (1.0, 5.0)),)),
    ),
    "one name piled high": (chart(line(1.0, 2.0, name="Z" + "\u0302" * 20), line(1.0, 2.0, name="b")),),
    "nothing": (chart(),),
    "no chart": (),
}


@pytest.mark.parametrize("name", HOSTILE_CHARTS)
@pytest.mark.parametrize("dpi", [72, 150])
def test_no_text_is_cut_and_none_lies_on_another_or_on_a_chart(name: str, dpi: int) -> None:
    with drawn_curves(report(curves(*HOSTILE_CHARTS[name])), Look(dpi=dpi)) as made:
        assert outside(made.figure) == []
        free = [(text.get_text(), text.get_window_extent()) for text in made.figure.texts if text.get_text()]
        boxes = [("chart", axes.get_window_extent()) for axes in made.figure.axes]
        ticks = [
            (f"number {text.get_text()}", text.get_window_extent())
            for axes in made.figure.axes
            for text in (*axes.get_xticklabels(), *axes.get_yticklabels())
        ]
        found = overlapping([*free, *boxes, *ticks])
        assert [pair for pair in found if "no points" not in pair] == []
        assert not any(text.get_parse_math() for text in visible_texts(made.figure))


def test_names_are_whole_however_long() -> None:
    with drawn_curves(report(curves(chart(line(1.0, 2.0, name=LONG), line(1.0, 2.0, name="$_$ $$"))))) as made:
        assert LONG.replace(" ", "") in "".join(made.texts).replace(" ", "")
        assert "$_$ $$" in made.texts


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_beside_those_of_maps(kind: str) -> None:
    shown = report(heatmap(3), curves(LOSS, ACCURACY))
    names = [name for name, _ in KINDS[kind](shown, Look(dpi=72))]
    assert names == [f"layer-0-head-3.{kind}", f"learning-curve.{kind}"]


@pytest.mark.parametrize("kind", KINDS)
def test_same_bytes_twice_and_other_bytes_for_other_points(kind: str) -> None:
    def content(*charts: Curve) -> bytes:
        ((_, found),) = KINDS[kind](report(curves(*charts)), Look(dpi=72))
        return found

    assert content(LOSS, ACCURACY) == content(LOSS, ACCURACY)
    assert content(LOSS) != content(replace(LOSS, at=2.0))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", HOSTILE_CHARTS)
def test_anything_is_drawn_without_a_warning(kind: str, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ((_, content),) = KINDS[kind](report(curves(*HOSTILE_CHARTS[name])), Look(dpi=72))
    assert len(content) > 500


def test_files_carry_their_provenance() -> None:
    shown = report(curves(LOSS), title="注意力")
    ((_, png),) = figure.png(shown, Look())
    with Image.open(BytesIO(png)) as image:
        told = {name: value for name, value in image.info.items() if name != "dpi"}
    assert told == {"Title": "注意力 · loss and accuracy", "Description": SUBTITLE, **dict(FACTS)}
    ((_, svg),) = figure.svg(shown, Look())
    assert "注意力 · loss and accuracy" in svg.decode()
    ((_, pdf),) = figure.pdf(shown, Look())
    assert "注意力 · loss and accuracy".encode("utf-16-be") in pdf


def test_lines_of_vector_files_are_vectors() -> None:
    ((_, content),) = figure.svg(report(curves(LOSS)), Look())
    assert b"<image" not in content
    assert to_hex(strokes_of(curves(LOSS))["held out"].colour).encode() in content


def test_too_many_pixels_are_refused_with_what_would_work() -> None:
    shown = report(curves(LOSS, ACCURACY))
    with pytest.raises(TooLarge, match="'learning-curve' would have") as refused:
        figure.png(shown, Look(dpi=2400))
    figure.png(shown, Look(dpi=int(refused.value.hint.split()[2])))


def test_characters_that_no_font_has_are_found_wherever_they_are() -> None:
    title, x, y, name, mark = "\ue001\ue002\ue003\ue004\ue005"
    shown = curves(Curve(title, x, y, (line(1.0, name=name),), 0.0, mark))
    assert undrawable(report(replace(shown, title="\ue006"))) == "\ue001\ue002\ue003\ue004\ue005\ue006"
    assert undrawable(report(curves(LOSS, ACCURACY))) == ""


def test_there_are_no_cells_whose_numbers_could_be_left_out() -> None:
    assert annotated(curves(LOSS))
    assert not annotated(heatmap(30))
