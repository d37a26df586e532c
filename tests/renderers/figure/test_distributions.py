"""What charts of samples hold: violins, points, groups, labels, and what they say of numbers that they cannot show."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.colors import to_hex, to_rgba
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from attnviz.errors import TooLarge
from attnviz.renderers.figure import files as figure
from attnviz.renderers.figure.chart import COLOURS
from attnviz.renderers.figure.distributions import FEWEST, tints_of
from attnviz.renderers.figure.files import annotated, undrawable
from attnviz.report import Distribution, Look, Report, Sample
from tests.renderers.figure.reports import (
    HOSTILE,
    SCRIPTS,
    SUBTITLE,
    DrawnDistributions,
    distributions,
    drawn_distributions,
    heads,
    outside,
    overlapping,
    report,
    sample,
    spread,
    visible_texts,
)

KINDS: dict[str, Callable[[Report, Look], Iterator[tuple[str, bytes]]]] = {
    "png": figure.png,
    "svg": figure.svg,
    "pdf": figure.pdf,
}
NAN, INF = float("nan"), float("inf")


def chart(*samples: Sample) -> Distribution:
    return Distribution("a chart", "head", "nats", samples)


def violins_of(axes: Axes) -> list[PolyCollection]:
    return [each for each in axes.collections if isinstance(each, PolyCollection)]


def points_of(axes: Axes) -> np.ndarray:
    """All points of all strips, as rows of x and y."""
    strips = [each for each in axes.collections if isinstance(each, PathCollection)]
    return np.concatenate([np.asarray(each.get_offsets()) for each in strips] or [np.zeros((0, 2))])


def levels_of(axes: Axes) -> list[Line2D]:
    return [line for line in axes.lines if np.shape(line.get_xydata()) == (2, 2) and np.ptp(y_of(line)) == 0]


def y_of(line: Line2D) -> np.ndarray:
    return np.asarray(line.get_ydata())


def edge(violin: PolyCollection) -> str:
    return to_hex(np.asarray(violin.get_edgecolor())[0]).upper()


def places_of(axes: Axes) -> list[float]:
    return [float(tick) for tick in axes.get_xticks()]


def middle(violin: PolyCollection) -> float:
    box = violin.get_paths()[0].get_extents()
    return float(box.x0 + box.x1) / 2


def labels_of(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.get_xticklabels()]


def keys_of(made: DrawnDistributions) -> list[Rectangle]:
    ground = made.figure.patch
    return [each for each in made.figure.get_children() if isinstance(each, Rectangle) and each is not ground]


def test_many_numbers_are_violins_in_the_colour_of_their_group() -> None:
    with drawn_distributions(report(distributions(heads(40)))) as made:
        (axes,) = made.figure.axes
        one, *eight = violins_of(axes)
        assert len(eight) == 8
        assert len(points_of(axes)) == 0
        assert {edge(each) for each in eight} == {COLOURS[1]}
        assert edge(one) == COLOURS[0]
        assert [middle(each) for each in (one, *eight)] == pytest.approx(places_of(axes))
        assert labels_of(axes) == ["0", *"01234567"]


def test_a_violin_ends_at_its_numbers_and_all_are_as_wide() -> None:
    shown = heads(40)
    with drawn_distributions(report(distributions(shown))) as made:
        (axes,) = made.figure.axes
        for violin, each in zip(violins_of(axes), shown.samples, strict=True):
            box = violin.get_paths()[0].get_extents()
            assert (box.y0, box.y1) == pytest.approx((min(each.values), max(each.values)))
            assert box.width == pytest.approx(0.8)


def test_the_box_in_a_violin_is_the_middle_half_and_its_dot_the_median() -> None:
    values = [float(value) for value in range(101)]
    with drawn_distributions(report(distributions(chart(sample(*values))))) as made:
        box, dot = made.figure.axes[0].lines
        assert list(y_of(box)) == [25, 75]
        assert list(y_of(dot)) == [50]
        assert list(np.asarray(dot.get_xdata())) == places_of(made.figure.axes[0])
        assert "the white dot is their median" in made.texts[-1]
        assert "each is a point" not in made.texts[-1]


def test_few_numbers_are_points_with_a_line_at_their_median() -> None:
    shown = heads(FEWEST - 1)
    with drawn_distributions(report(distributions(shown))) as made:
        (axes,) = made.figure.axes
        assert violins_of(axes) == []
        points = points_of(axes)
        for place, each, level in zip(places_of(axes), shown.samples, levels_of(axes), strict=True):
            near = points[np.abs(points[:, 0] - place) < 0.5]
            assert sorted(near[:, 1]) == pytest.approx(sorted(each.values))
            assert np.abs(near[:, 0] - place).max() <= 0.4 + 1e-9
            assert y_of(level)[0] == pytest.approx(np.median(each.values))
            assert np.mean(np.asarray(level.get_xdata())) == pytest.approx(place)
        assert made.texts[-1].startswith("samples of fewer than 30 numbers: each is a point")


def test_thirty_numbers_are_enough_for_a_violin() -> None:
    with drawn_distributions(report(distributions(chart(spread(FEWEST - 1, "a"), spread(FEWEST, "b"))))) as made:
        (axes,) = made.figure.axes
        (violin,) = violins_of(axes)
        assert middle(violin) == pytest.approx(places_of(axes)[1])
        assert len(points_of(axes)) == FEWEST - 1


def test_points_do_not_lie_on_each_other_and_lie_on_both_sides() -> None:
    with drawn_distributions(report(distributions(chart(spread(29))))) as made:
        (axes,) = made.figure.axes
        at = axes.transData.transform(points_of(axes))
        apart = np.hypot(*(at[:, None] - at[None]).transpose(2, 0, 1)) + 1e9 * np.eye(len(at))
        assert apart.min() >= 3.6 / 72 * made.figure.dpi - 0.01
        sides = points_of(axes)[:, 0] - places_of(axes)[0]
        assert abs(int((sides > 0.01).sum()) - int((sides < -0.01).sum())) <= 1
        assert (np.abs(sides) < 0.01).sum() >= 10  # no farther out than they must


def test_samples_of_a_group_stand_together_with_a_gap_before_the_next() -> None:
    mixed = [spread(40, "0", "a"), spread(40, "0", "b"), spread(40, "1", "a"), spread(40, "1", "b")]
    with drawn_distributions(report(distributions(chart(*mixed)))) as made:
        (axes,) = made.figure.axes
        assert labels_of(axes) == ["0", "1", "0", "1"]
        assert np.diff(places_of(axes)) == pytest.approx([1, 1.8, 1])
        colours = [edge(each) for each in violins_of(axes)]
        assert colours == [COLOURS[0]] * 2 + [COLOURS[1]] * 2


def test_a_group_looks_the_same_in_all_charts_and_beside_its_name() -> None:
    turned = chart(spread(40, "0", "multi:8"), spread(12, "0", "single"))
    with drawn_distributions(report(distributions(heads(40), turned))) as made:
        first, second = (violins_of(axes) for axes in made.figure.axes)
        assert edge(first[1]) == edge(second[0]) == COLOURS[1]
        strip = next(each for each in made.figure.axes[1].collections if isinstance(each, PathCollection))
        assert to_hex(np.asarray(strip.get_facecolor())[0]).upper() == COLOURS[0]
        keys = keys_of(made)
        assert [each.get_edgecolor() for each in keys] == [to_rgba(COLOURS[0]), to_rgba(COLOURS[1])]
        assert [each.get_facecolor() for each in keys] == [
            tuple(np.asarray(each.get_facecolor())[0]) for each in first[:2]
        ]
        names = {text.get_text(): text.get_window_extent() for text in made.figure.texts}
        for name, key in zip(("single", "multi:8"), keys, strict=True):
            box = key.get_window_extent()
            assert 0 < names[name].x0 - box.x1 < 12
            assert names[name].y0 < (box.y0 + box.y1) / 2 < names[name].y1
            assert box.y0 > max(axes.get_window_extent().y1 for axes in made.figure.axes)


def test_twenty_groups_look_different() -> None:
    many = chart(*(spread(3, "0", str(number)) for number in range(20)))
    tints = tints_of(distributions(many))
    assert [*tints] == [str(number) for number in range(20)]
    assert len(set(tints.values())) == 20


def test_one_group_without_a_name_has_no_key() -> None:
    with drawn_distributions(report(distributions(chart(spread(40, group=""))))) as made:
        assert keys_of(made) == []
    with drawn_distributions(report(distributions(chart(spread(40, group="a"))))) as made:
        assert len(keys_of(made)) == 1


def test_charts_stand_in_rows_with_their_names() -> None:
    charts = [heads(40, title, unit) for title, unit in (("keys", "tokens"), ("entropy", "nats"), ("peak", "share"))]
    with drawn_distributions(report(distributions(*charts), title="a title")) as made:
        first, second, third = (axes.get_window_extent() for axes in made.figure.axes)
        assert first.x1 < second.x0
        assert (first.y0, first.width, first.height) == pytest.approx((second.y0, second.width, second.height))
        assert third.y1 < first.y0
        assert (third.x0, third.width) == pytest.approx((first.x0, first.width))
        assert made.texts[:2] == ["a title · each head over many texts", SUBTITLE]
        boxes = {text.get_text(): text.get_window_extent() for text in made.figure.texts}
        assert boxes["keys"].y0 > first.y1
        assert first.y0 > boxes["peak"].y0 > third.y1
        assert boxes["entropy (nats)"].x1 < second.x0
        assert made.texts.count("head") == 3


def test_axes_are_open_with_numbers_and_lines_of_the_y_axis_only() -> None:
    with drawn_distributions(report(distributions(heads(40)))) as made:
        (axes,) = made.figure.axes
        assert [spine for spine in axes.spines if axes.spines[spine].get_visible()] == ["left", "bottom"]
        assert all(line.get_visible() for line in axes.get_ygridlines())
        assert not any(line.get_visible() for line in axes.get_xgridlines())
        numbers = [text.get_text() for text in axes.get_yticklabels()]
        assert [float(number) for number in numbers] == pytest.approx([float(tick) for tick in axes.get_yticks()])
        assert len(numbers) >= 4
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("", "")
        low, high = axes.get_ylim()
        values = [value for each in heads(40).samples for value in each.values]
        assert low < min(values) < max(values) < high
        left, right = axes.get_xlim()
        assert places_of(axes)[0] - left == pytest.approx(right - places_of(axes)[-1])
        assert axes.get_legend() is None


def test_a_few_samples_are_not_blown_up() -> None:
    with drawn_distributions(report(distributions(chart(spread(40))))) as made:
        left, right = made.figure.axes[0].get_xlim()
        assert made.figure.axes[0].get_window_extent().width / made.figure.dpi / (right - left) <= 0.6 + 1e-9


@pytest.mark.parametrize("number", [30, 200])
def test_numbers_that_are_all_the_same_are_a_line(number: int) -> None:
    same = sample(*[0.1] * number)
    almost = sample(*[0.1 + 1e-15 * (place % 7) for place in range(number)], label="1")
    with drawn_distributions(report(distributions(chart(same, almost, spread(40, "2"))))) as made:
        (axes,) = made.figure.axes
        assert len(violins_of(axes)) == 1
        assert [y_of(line)[0] for line in levels_of(axes)] == pytest.approx([0.1, 0.1])
        assert {str(line.get_color()) for line in levels_of(axes)} == {COLOURS[0]}
        assert all(np.ptp(np.asarray(line.get_xdata())) == pytest.approx(0.8) for line in levels_of(axes))


def test_a_few_numbers_that_are_all_the_same_are_points_side_by_side() -> None:
    with drawn_distributions(report(distributions(chart(sample(*[0.5] * 9))))) as made:
        points = points_of(made.figure.axes[0])
        assert len(np.unique(points[:, 0].round(6))) == 9
        assert set(points[:, 1]) == {0.5}


def test_one_number_is_one_point() -> None:
    with drawn_distributions(report(distributions(chart(sample(0.5))))) as made:
        assert len(points_of(made.figure.axes[0])) == 1
        assert len(made.figure.axes[0].lines) == 0
        low, high = made.figure.axes[0].get_ylim()
        assert low < 0.5 < high
        assert "point" not in made.texts[-1]


def test_a_sample_without_numbers_says_so_in_its_place() -> None:
    samples = spread(40, "a"), sample(label="b"), sample(NAN, INF, label="c"), spread(40, "d")
    with drawn_distributions(report(distributions(chart(*samples)))) as made:
        (axes,) = made.figure.axes
        assert labels_of(axes) == ["a", "b", "c", "d"]
        assert [middle(each) for each in violins_of(axes)] == pytest.approx([places_of(axes)[0], places_of(axes)[3]])
        said = [text for text in made.figure.texts if text.get_text() == "no numbers"]
        assert len(said) == 2
        for text, place in zip(said, places_of(axes)[1:3], strict=True):
            box = text.get_window_extent()
            assert (box.x0 + box.x1) / 2 == pytest.approx(axes.transData.transform((place, 0))[0], abs=2)
            assert axes.get_window_extent().y0 < box.y0 < box.y1 < axes.get_window_extent().y1
            assert text.get_color() == "#595959"
            assert text.get_rotation() == 90


@pytest.mark.parametrize("samples", [(), (sample(),), (sample(NAN), sample(INF, label="1"))])
def test_a_chart_of_nothing_says_so_once(samples: tuple[Sample, ...]) -> None:
    with drawn_distributions(report(distributions(chart(*samples)))) as made:
        assert made.texts.count("no numbers") == 1
        assert labels_of(made.figure.axes[0]) == [each.label for each in samples]
        assert len(made.figure.axes[0].get_yticks()) == 0


def test_numbers_that_cannot_be_drawn_are_left_out_and_counted() -> None:
    broken = replace(spread(40), values=(*spread(40).values, NAN, INF, -INF, 1e300))
    with drawn_distributions(report(distributions(chart(broken), chart(sample(1.0, NAN))))) as made:
        assert made.texts[-1].endswith("· 5 numbers cannot be drawn: not a number, or too large")
        box = violins_of(made.figure.axes[0])[0].get_paths()[0].get_extents()
        assert box.y1 == pytest.approx(max(spread(40).values))
    with drawn_distributions(report(distributions(chart(sample(1.0, NAN))))) as made:
        assert made.texts[-1].startswith("1 number cannot")
    with drawn_distributions(report(distributions(heads(40)))) as made:
        assert "cannot" not in " ".join(made.texts)


def test_labels_stand_upright_only_where_they_do_not_fit() -> None:
    with drawn_distributions(report(distributions(heads(40)))) as made:
        assert {text.get_rotation() for text in made.figure.axes[0].get_xticklabels()} == {0}
    long = chart(*(spread(40, f"layer 0, head {head}") for head in range(8)))
    with drawn_distributions(report(distributions(long))) as made:
        assert {text.get_rotation() for text in made.figure.axes[0].get_xticklabels()} == {90}


def test_many_samples_make_the_chart_wider_and_then_thin_its_labels() -> None:
    widths = []
    for number in (8, 16, 32, 300):
        many = chart(*(sample(1.0, 2.0, label=str(place)) for place in range(number)), sample(label="empty"))
        with drawn_distributions(report(distributions(many, many))) as made:
            widths.append(made.plan.charts[0].frame.box.width)
            assert made.plan.width < 13
            step = 10 if number == 300 else 1
            assert labels_of(made.figure.axes[0]) == [*map(str, range(number)), "empty"][::step]
            assert ("every 10th head is labelled" in " ".join(made.texts)) == (step == 10)
            assert ("2 samples without numbers" in " ".join(made.texts)) == (step == 10)  # no room in its place
            assert made.texts.count("no numbers") == 2 * (step == 1)
    assert widths == sorted(widths)
    assert widths[0] == pytest.approx(2.9, abs=0.2)


LONG = "Donaudampfschifffahrt " * 12 + "猫坐在垫子上" * 12
HOSTILE_CHARTS = {
    "names": (chart(*(spread(31, name, name) for name in (*HOSTILE, *SCRIPTS, LONG, "", " "))),),
    "everything long": (Distribution(LONG, LONG, LONG, (spread(31, LONG[:60], LONG),)),) * 3,
    "everything empty": (Distribution("", "", "", (spread(31, "", ""),)),),
    "formulas": (Distribution("$$", r"$\frac$", "$x$", (spread(31, "$_$", "_$_$"), spread(5, "${$", "$5$"))), heads(9)),
    "huge and tiny": (
        chart(sample(*(1e99 * value for value in spread(40).values)), sample(*[-1e100, 1e100] * 20, label="1")),
        chart(sample(*(1e-99 * value for value in spread(40).values)), sample(*[1e-300, 2e-300] * 20, label="1")),
        chart(sample(*(1e9 + 1e-3 * value for value in spread(40).values))),
    ),
    "one far out": (chart(sample(*[0.0] * 60, 1.0), sample(*[0.0] * 10, 1e9, label="1")),),
    "nothing": (chart(),),
    "no chart": (),
}


@pytest.mark.parametrize("name", HOSTILE_CHARTS)
@pytest.mark.parametrize("dpi", [72, 150])
def test_no_text_is_cut_and_none_lies_on_another_or_on_a_chart(name: str, dpi: int) -> None:
    with drawn_distributions(report(distributions(*HOSTILE_CHARTS[name])), Look(dpi=dpi)) as made:
        check_texts(made)


@pytest.mark.parametrize("n_columns", [0, 1, 2, 3, 9])
@pytest.mark.parametrize("number", [1, 2, 5])
def test_any_number_of_charts_in_any_number_of_columns(number: int, n_columns: int) -> None:
    with drawn_distributions(report(distributions(*[heads(6)] * number, n_columns=n_columns))) as made:
        assert len(made.figure.axes) == number
        assert len({round(axes.get_window_extent().x0) for axes in made.figure.axes}) == max(1, min(n_columns, number))
        check_texts(made)


def check_texts(made: DrawnDistributions) -> None:
    assert outside(made.figure) == []
    free = [(text.get_text(), text.get_window_extent()) for text in made.figure.texts if text.get_text()]
    boxes = [("chart", axes.get_window_extent()) for axes in made.figure.axes]
    boxes += [("key", key.get_window_extent()) for key in keys_of(made)]
    ticks = [
        (f"number {text.get_text()}", text.get_window_extent())
        for axes in made.figure.axes
        for text in (*axes.get_xticklabels(), *axes.get_yticklabels())
        if text.get_text()
    ]
    assert [pair for pair in overlapping([*free, *boxes, *ticks]) if "no numbers" not in pair] == []
    assert not any(text.get_parse_math() for text in visible_texts(made.figure))


numbers = st.floats(allow_nan=True, allow_infinity=True) | st.floats(-10, 10) | st.just(0.5)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.lists(numbers, max_size=5).map(lambda some: some * 8) | st.lists(numbers, max_size=5), max_size=3))
def test_any_numbers_are_drawn_without_a_warning(some: list[list[float]]) -> None:
    samples = [sample(*values, label=str(place), group=str(place // 2)) for place, values in enumerate(some)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ((_, content),) = figure.png(report(distributions(chart(*samples))), Look(dpi=72))
    assert len(content) > 500


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", HOSTILE_CHARTS)
def test_anything_is_drawn_without_a_warning(kind: str, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ((file, content),) = KINDS[kind](report(distributions(*HOSTILE_CHARTS[name])), Look(dpi=72))
    assert file == f"distributions.{kind}"
    assert len(content) > 500


@pytest.mark.parametrize("kind", KINDS)
def test_same_bytes_twice_and_nothing_random_is_touched(kind: str) -> None:
    def content(*charts: Distribution) -> bytes:
        ((_, found),) = KINDS[kind](report(distributions(*charts)), Look(dpi=72))
        return found

    def state() -> list[int]:
        return list(np.random.get_state(legacy=False)["state"]["key"])

    np.random.seed(1)
    before, settings_before = state(), dict(mpl.rcParams)
    first = content(heads(12), heads(40))
    assert state() == before  # seaborn takes its jitter from there
    assert dict(mpl.rcParams) == settings_before
    np.random.seed(2)
    assert content(heads(12), heads(40)) == first
    assert content(heads(13), heads(40)) != first


def test_violins_and_points_of_vector_files_are_vectors() -> None:
    ((_, content),) = figure.svg(report(distributions(heads(12), heads(40))), Look())
    assert b"<image" not in content
    assert COLOURS[1].lower().encode() in content


def test_too_many_pixels_are_refused_with_what_would_work() -> None:
    shown = report(distributions(*[heads(5)] * 4))
    with pytest.raises(TooLarge, match="'distributions' would have") as refused:
        figure.png(shown, Look(dpi=2400))
    figure.png(shown, Look(dpi=int(refused.value.hint.split()[2])))


def test_characters_that_no_font_has_are_found_wherever_they_are() -> None:
    title, x, y, label, group = "\ue001\ue002\ue003\ue004\ue005"
    shown = distributions(Distribution(title, x, y, (sample(1.0, label=label, group=group),)))
    assert undrawable(report(shown)) == "\ue001\ue002\ue003\ue004\ue005"
    assert undrawable(report(distributions(heads(3)))) == ""


def test_there_are_no_cells_whose_numbers_could_be_left_out() -> None:
    assert annotated(distributions(heads(3)))
