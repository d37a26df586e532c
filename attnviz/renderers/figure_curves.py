"""Charts as matplotlib figures: as with maps, texts are measured first and the figure is built around them.

No text lies on a line: names stand under the subtitle, each beside a sample of its line, and marks above the charts.
Lengths are inches from the upper left corner, text sizes points.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from attnviz.renderers.figure_axis import AxisRange, plan_x, plan_y, points_of
from attnviz.renderers.figure_draw import axes_at, write
from attnviz.renderers.figure_layout import GAP, PAD, POINT, TICK, Box, Line
from attnviz.renderers.figure_page import (
    MARGIN,
    NARROWEST,
    below,
    check_size,
    header_of,
    height_of,
    paragraph,
    title_of,
    whole,
)
from attnviz.renderers.figure_text import extent, wrap, wrap_evenly
from attnviz.renderers.style import AXIS, GREY, HAIRLINE, INK, SMALL
from attnviz.report import Curve, Curves, Look, Report

SIZES = ((4.6, 2.8), (2.9, 2.1), (2.4, 1.9))  # of a chart alone, of one of two, of one of three and more
NUMBERS = TICK + PAD + AXIS * POINT  # inches that the numbers of an x axis take
SAMPLE = 0.28  # inches of line beside its name
# Okabe and Ito's colours, which colour-blind readers tell apart; without their yellow, which is too pale for a line.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ((0, ()), (0, (4, 2)), (0, (1, 1.5)))  # the next once all colours are taken
GRID = "#e4e4e4"


class Stroke(NamedTuple):
    """How all lines of one name look."""

    colour: str
    dashes: tuple[int, tuple[float, ...]]
    marked: bool


class Sample(NamedTuple):
    """A piece of line beside its name, from `x` to the right."""

    stroke: Stroke
    x: float
    y: float


@dataclass(frozen=True, eq=False)
class Chart:
    """One pair of axes in its box, and from where on the left the name of its y axis stands."""

    curve: Curve
    x: AxisRange
    y: AxisRange
    left: float
    box: Box

    @property
    def title(self) -> tuple[str, ...]:
        return wrap(self.curve.title, AXIS, self.box.width / POINT)

    @property
    def y_name(self) -> tuple[str, ...]:
        return wrap_evenly(self.curve.y_axis, AXIS, self.box.height / POINT)

    @property
    def mark(self) -> float | None:
        """Where the vertical line stands, in inches, if there is one and there is anything to mark."""
        at, (low, high, ticks) = self.curve.at, self.x
        if at is None or not ticks or not low <= at <= high:
            return None
        return self.box.left + (at - low) / (high - low) * self.box.width

    @property
    def mark_name(self) -> tuple[str, ...]:
        return () if self.mark is None else wrap_evenly(self.curve.at_label, SMALL, self.box.width / POINT)


@dataclass(frozen=True, eq=False)
class CurvesPlan:
    """Charts before they are drawn."""

    name: str
    title: str
    width: float
    height: float
    charts: tuple[Chart, ...]
    strokes: Mapping[str, Stroke]
    samples: tuple[Sample, ...]
    lines: tuple[Line, ...]


def plan_curves(picture: Curves, report: Report, look: Look) -> CurvesPlan:
    """Everything on one picture with its place. Raises TooLarge for too many pixels, and says what would work."""
    strokes = strokes_of(picture)
    charts, width = _across(picture, look.dpi)
    header = header_of(picture, report, width)
    names, samples, bottom = _legend(strokes, below(header, MARGIN) + GAP, width)
    title_room = max((height_of(chart.title, AXIS) for chart in charts), default=0.0)
    mark_room = max((height_of(chart.mark_name, SMALL) for chart in charts), default=0.0)
    top = whole(bottom + GAP + title_room + mark_room + PAD, look.dpi)
    charts = tuple(replace(chart, box=chart.box._replace(top=top)) for chart in charts)
    texts = [line for chart in charts for line in _texts(chart, top - mark_room - PAD)]
    numbers = max((chart.box.height + NUMBERS for chart in charts), default=0.0)
    lowest = max([top + numbers, *(below([line], top) for line in texts if not line.rotation)]) + PAD
    footer = paragraph(wrap(_left_out(picture), SMALL, (width - 2 * MARGIN) / POINT), SMALL, GREY, MARGIN, lowest)
    height = whole(below(footer, lowest - PAD) + MARGIN, look.dpi)
    check_size(picture.name, width, height, look.dpi)
    lines = (*header, *names, *texts, *footer)
    return CurvesPlan(picture.name, title_of(picture, report), width, height, charts, strokes, samples, lines)


def draw_curves(plan: CurvesPlan) -> Figure:
    """The figure of one plan. To be called, and the figure to be saved, within `style.drawing`."""
    figure = Figure(figsize=(plan.width, plan.height))
    for chart in plan.charts:
        _draw_chart(axes_at(figure, chart.box), chart, plan.strokes)
    for sample in plan.samples:
        figure.add_artist(_drawn_sample(sample, plan, figure))
    for line in plan.lines:
        write(figure, line)
    return figure


def strokes_of(picture: Curves) -> dict[str, Stroke]:
    """How the lines of each name look, in the order in which the names come up: colours first, then dashes."""
    lines = [line for curve in picture.curves for line in curve.lines]
    marked = {line.name for line in lines if line.marked}
    strokes = {}
    for number, name in enumerate(dict.fromkeys(line.name for line in lines)):
        round_, colour = divmod(number, len(COLOURS))
        strokes[name] = Stroke(COLOURS[colour], DASHES[round_ % len(DASHES)], name in marked)
    return strokes


def _across(picture: Curves, dpi: int) -> tuple[tuple[Chart, ...], float]:
    """The charts from left to right, each as far from the last as its texts ask for, and the width of it all."""
    width, height = (whole(side, dpi) for side in SIZES[min(len(picture.curves), len(SIZES)) - 1])
    charts: list[Chart] = []
    right = MARGIN
    for curve in picture.curves:
        chart = Chart(curve, plan_x(curve, width), plan_y(curve), right, Box(0.0, 0.0, width, height))
        numbers = max((extent(text, AXIS).width for _, text in chart.y.ticks), default=0.0) * POINT
        before, after = chart.x.beyond(width)
        left = whole(right + max(height_of(chart.y_name, AXIS) + PAD + numbers + PAD + TICK, before), dpi)
        charts.append(replace(chart, box=chart.box._replace(left=left)))
        right = left + width + max(after, GAP) + GAP
    return tuple(charts), whole(max(NARROWEST, right - GAP + MARGIN), dpi)


def _legend(strokes: Mapping[str, Stroke], top: float, width: float) -> tuple[list[Line], tuple[Sample, ...], float]:
    """The names, each after a sample of its line, as many to a row as fit; and where the last row ends."""
    lines: list[Line] = []
    samples = []
    left, bottom = MARGIN, top
    for name, stroke in strokes.items():
        texts = wrap(name, AXIS, (width - 2 * MARGIN - SAMPLE - PAD) / POINT) or ("",)
        taken = SAMPLE + PAD + max(extent(text, AXIS).width for text in texts) * POINT
        if left > MARGIN and left + taken > width - MARGIN:
            left, top = MARGIN, bottom
        placed = paragraph(texts, AXIS, INK, left + SAMPLE + PAD, top)
        lines += placed
        samples.append(Sample(stroke, left, placed[0].y - 0.35 * AXIS * POINT))
        left += taken + 2 * GAP
        bottom = max(bottom, top + height_of(texts, AXIS))
    return lines, tuple(samples), bottom


def _texts(chart: Chart, mark_top: float) -> Iterator[Line]:
    """What stands around a chart: its title and the mark's name above it, the names of its axes, but no numbers."""
    box, curve = chart.box, chart.curve
    middle, bottom = box.left + box.width / 2, box.top + box.height
    yield from _centred(chart.title, AXIS, middle, mark_top - height_of(chart.title, AXIS))
    if chart.mark is not None:
        half = max((extent(text, SMALL).width for text in chart.mark_name), default=0.0) * POINT / 2
        at = min(max(chart.mark, box.left + half), box.left + box.width - half)
        yield from _centred(chart.mark_name, SMALL, at, box.top - PAD / 2 - height_of(chart.mark_name, SMALL), GREY)
    for line in paragraph(chart.y_name, AXIS, INK, 0.0, chart.left):
        yield Line(line.text, line.y, box.top + box.height / 2, AXIS, INK, "center", 90)
    yield from _centred(wrap(curve.x_axis, AXIS, box.width / POINT), AXIS, middle, bottom + NUMBERS)
    if not any(np.isfinite(points_of(line)).any() for line in curve.lines):
        yield from _centred(["no points"], SMALL, middle, box.top + box.height / 2, GREY)


def _centred(texts: Sequence[str], size: float, middle: float, top: float, colour: str = INK) -> list[Line]:
    return [line._replace(align="center") for line in paragraph(texts, size, colour, middle, top)]


def _left_out(picture: Curves) -> str:
    """In small print what the charts cannot show."""
    lines = [line for curve in picture.curves for line in curve.lines]
    number = sum(int(np.isnan(points_of(line)[0]).sum()) for line in lines)
    if not number:
        return ""
    return f"{number} point{'' if number == 1 else 's'} cannot be drawn: not a number, or too large"


def _draw_chart(axes: Axes, chart: Chart, strokes: Mapping[str, Stroke]) -> None:
    axes.set(xlim=(chart.x.low, chart.x.high), ylim=(chart.y.low, chart.y.high))
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_linewidth(HAIRLINE)
    for axis, numbers in ((axes.xaxis, chart.x.ticks), (axes.yaxis, chart.y.ticks)):
        axis.set_ticks([tick for tick, _ in numbers], [text for _, text in numbers])
        axis.set_tick_params(length=TICK / POINT, width=HAIRLINE, pad=2, labelsize=AXIS)
    axes.grid(visible=True, color=GRID, linewidth=HAIRLINE)
    axes.set_axisbelow(True)
    if chart.curve.at is not None and chart.mark is not None:
        axes.axvline(chart.curve.at, color=GREY, linewidth=0.8, dashes=(3, 2), zorder=1.5)
    for line in sorted(chart.curve.lines, key=lambda line: line.marked):  # few points lie over many
        points = points_of(line)
        shown = _line(points[0], points[1], strokes[line.name]._replace(marked=line.marked))
        if not line.marked:
            shown.set(marker="o", markersize=2.5, markevery=_alone(points))
        axes.add_line(shown)


def _line(x: np.ndarray, y: np.ndarray, stroke: Stroke) -> Line2D:
    line = Line2D(x, y, color=stroke.colour, linestyle=stroke.dashes, linewidth=1.0, zorder=2)
    if stroke.marked:
        line.set(linewidth=1.4, zorder=3, marker="o", markersize=4.5, markeredgecolor="white", markeredgewidth=0.6)
    return line


def _drawn_sample(sample: Sample, plan: CurvesPlan, figure: Figure) -> Line2D:
    x = np.array([sample.x, sample.x + SAMPLE / 2, sample.x + SAMPLE]) / plan.width
    shown = _line(x, np.full(3, 1 - sample.y / plan.height), sample.stroke)
    shown.set(transform=figure.transFigure, markevery=[1])
    return shown


def _alone(points: np.ndarray) -> list[int]:
    """The points to which no line leads, as beside a gap or beside the same point once more."""
    steps = np.abs(np.diff(points)).max(axis=0, initial=0.0)
    joined = np.concatenate([[False], steps > 0, [False]])  # written so that NaN joins nothing
    return [int(index) for index in np.flatnonzero(~np.isnan(points[0]) & ~joined[:-1] & ~joined[1:])]
