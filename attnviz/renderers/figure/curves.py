"""Charts as matplotlib figures: as with maps, texts are measured first and the figure is built around them.

No text lies on a line: names stand under the subtitle, each beside a sample of its line, and marks above the charts.
Lengths are inches from the upper left corner, text sizes points.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from attnviz.renderers.figure.axis import AxisRange, plan_x, plan_y, points_of
from attnviz.renderers.figure.chart import (
    COLOURS,
    GRID,
    SAMPLE,
    SIZES,
    Frame,
    Key,
    centred,
    draw_frame,
    legend,
)
from attnviz.renderers.figure.draw import axes_at, write
from attnviz.renderers.figure.header import (
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
from attnviz.renderers.figure.layout import GAP, PAD, POINT, TICK, Box, Line
from attnviz.renderers.figure.style import AXIS, GREY, HAIRLINE, SMALL
from attnviz.renderers.figure.text import extent, wrap, wrap_evenly
from attnviz.report import Curve, Curves, Look, Report

NUMBERS = TICK + PAD + AXIS * POINT  # inches that the numbers of an x axis take
DASHES = ((0, ()), (0, (4, 2)), (0, (1, 1.5)))  # the next once all colours are taken


class Stroke(NamedTuple):
    """How all lines of one name look."""

    colour: str
    dashes: tuple[int, tuple[float, ...]]
    marked: bool


@dataclass(frozen=True, eq=False)
class Chart:
    """One pair of axes and what is drawn into it."""

    curve: Curve
    x: AxisRange
    frame: Frame

    @property
    def box(self) -> Box:
        return self.frame.box

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
    keys: tuple[Key, ...]
    lines: tuple[Line, ...]


def plan_curves(picture: Curves, report: Report, look: Look) -> CurvesPlan:
    """Everything on one picture with its place. Raises TooLarge for too many pixels, and says what would work."""
    strokes = strokes_of(picture)
    charts, width = _across(picture, look.dpi)
    header = header_of(picture, report, width)
    names, keys, bottom = legend(strokes, below(header, MARGIN) + GAP, width)
    title_room = max((chart.frame.heading_room for chart in charts), default=0.0)
    mark_room = max((height_of(chart.mark_name, SMALL) for chart in charts), default=0.0)
    top = whole(bottom + GAP + title_room + mark_room + PAD, look.dpi)
    charts = tuple(_moved(chart, top=top) for chart in charts)
    texts = [line for chart in charts for line in _texts(chart, top - mark_room - PAD)]
    numbers = max((chart.box.height + NUMBERS for chart in charts), default=0.0)
    lowest = max([top + numbers, *(below([line], top) for line in texts if not line.rotation)]) + PAD
    footer = paragraph(wrap(_left_out(picture), SMALL, (width - 2 * MARGIN) / POINT), SMALL, GREY, MARGIN, lowest)
    height = whole(below(footer, lowest - PAD) + MARGIN, look.dpi)
    check_size(picture.name, width, height, look.dpi)
    lines = (*header, *names, *texts, *footer)
    return CurvesPlan(picture.name, title_of(picture, report), width, height, charts, strokes, keys, lines)


def draw_curves(plan: CurvesPlan) -> Figure:
    """The figure of one plan. To be called, and the figure to be saved, within `style.drawing`."""
    figure = Figure(figsize=(plan.width, plan.height))
    for chart in plan.charts:
        _draw_chart(axes_at(figure, chart.box), chart, plan.strokes)
    for key in plan.keys:
        figure.add_artist(_drawn_key(key, plan, figure))
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
        y = plan_y(points_of(line)[1] for line in curve.lines)
        frame = Frame(curve.title, curve.x_axis, curve.y_axis, y, right, Box(0.0, 0.0, width, height))
        chart = Chart(curve, plan_x(curve, width), frame)
        before, after = chart.x.beyond(width)
        left = whole(right + max(frame.y_room, before), dpi)
        charts.append(_moved(chart, left=left))
        right = left + width + max(after, GAP) + GAP
    return tuple(charts), whole(max(NARROWEST, right - GAP + MARGIN), dpi)


def _moved(chart: Chart, **place: float) -> Chart:
    return replace(chart, frame=replace(chart.frame, box=chart.box._replace(**place)))


def _texts(chart: Chart, mark_top: float) -> Iterator[Line]:
    """What stands around a chart: the mark's name above it between title and box, the names of its axes."""
    box = chart.box
    yield from chart.frame.texts(mark_top, NUMBERS)
    if chart.mark is not None:
        half = max((extent(text, SMALL).width for text in chart.mark_name), default=0.0) * POINT / 2
        at = min(max(chart.mark, box.left + half), box.left + box.width - half)
        yield from centred(chart.mark_name, SMALL, at, box.top - PAD / 2 - height_of(chart.mark_name, SMALL), GREY)
    if not any(np.isfinite(points_of(line)).any() for line in chart.curve.lines):
        yield from centred(["no points"], SMALL, box.left + box.width / 2, box.top + box.height / 2, GREY)


def _left_out(picture: Curves) -> str:
    """In small print what the charts cannot show."""
    lines = [line for curve in picture.curves for line in curve.lines]
    number = sum(int(np.isnan(points_of(line)[0]).sum()) for line in lines)
    if not number:
        return ""
    return f"{number} point{'' if number == 1 else 's'} cannot be drawn: not a number, or too large"


def _draw_chart(axes: Axes, chart: Chart, strokes: Mapping[str, Stroke]) -> None:
    draw_frame(axes, chart.frame)
    axes.set(xlim=(chart.x.low, chart.x.high))
    axes.xaxis.set_ticks([tick for tick, _ in chart.x.ticks], [text for _, text in chart.x.ticks])
    axes.xaxis.grid(visible=True, color=GRID, linewidth=HAIRLINE)
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


def _drawn_key(key: Key, plan: CurvesPlan, figure: Figure) -> Line2D:
    x = np.array([key.x, key.x + SAMPLE / 2, key.x + SAMPLE]) / plan.width
    shown = _line(x, np.full(3, 1 - key.y / plan.height), plan.strokes[key.name])
    shown.set(transform=figure.transFigure, markevery=[1])
    return shown


def _alone(points: np.ndarray) -> list[int]:
    """The points to which no line leads, as beside a gap or beside the same point once more."""
    steps = np.abs(np.diff(points)).max(axis=0, initial=0.0)
    joined = np.concatenate([[False], steps > 0, [False]])  # written so that NaN joins nothing
    return [int(index) for index in np.flatnonzero(~np.isnan(points[0]) & ~joined[:-1] & ~joined[1:])]
