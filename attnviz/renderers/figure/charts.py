"""Charts as matplotlib figures. Texts are measured and the figure is built around them, so that nothing is cut; where
axes, numbers and names then stand, matplotlib's constrained layout decides. Lengths are inches, text sizes points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, NamedTuple

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text

from attnviz.renderers.figure import curves, distributions
from attnviz.renderers.figure.draw import literal, write
from attnviz.renderers.figure.header import (
    MARGIN,
    MIN_WIDTH,
    below,
    ceil_to_pixel,
    check_size,
    header_of,
    height_of,
    paragraph,
    title_of,
)
from attnviz.renderers.figure.layout import GAP, MAX_GRID_WIDTH, PAD, POINT, TICK, Labels, TextLine
from attnviz.renderers.figure.style import AXIS, GREY, GRID, HAIRLINE, INK, SMALL
from attnviz.renderers.figure.text import drawable, extent, wrap, wrap_evenly
from attnviz.report import Curve, Curves, Distribution, Distributions, FigureStyle, Report

SIZES = ((4.6, 2.8), (2.9, 2.1), (2.4, 1.9))  # of a chart alone, of one of two in a row, of one of three and more
NUMBERS = 0.5  # inches that the numbers of a y axis take, about
HANDLE, BETWEEN = 2.5, 1.5  # of the text's size: the sample beside a name, and from one name to the next


class Panel(NamedTuple):
    """One chart and its names, broken into lines; `labels` are those of the samples along its x axis."""

    chart: Curve | Distribution
    title: tuple[str, ...]
    x_axis: tuple[str, ...]
    y_axis: tuple[str, ...]
    labels: Labels
    size: tuple[float, float]  # of the axes, about

    @property
    def above_and_below(self) -> float:
        """Inches that everything above and below the axes takes."""
        return height_of(self.title, AXIS) + height_of(self.x_axis, AXIS) + self.labels.room + 4 * PAD


@dataclass(frozen=True, eq=False)
class ChartsPlan:
    """Charts before they are drawn: from the upper edge the names of lines, from `top` to `bottom` the charts."""

    name: str
    title: str
    width: float
    height: float
    panels: tuple[Panel, ...]
    n_columns: int
    legend: tuple[tuple[str, Artist], ...]
    legend_columns: int
    legend_top: float
    top: float
    bottom: float
    lines: tuple[TextLine, ...]
    looks: Any  # by the name of a line or a group, as `curves` and `distributions` have it


def plan_charts(
    picture: Curves | Distributions,
    report: Report,
    look: FigureStyle,
    whole_picture: Curves | Distributions | None = None,
) -> ChartsPlan:
    """Everything but the charts with its place. Raises TooLarge for too many pixels, and says what would work.

    `whole_picture`: what `picture` is a part of, drawn small: what has one name looks as in all of it.
    """
    charts: Sequence[Curve | Distribution] = picture.curves if isinstance(picture, Curves) else picture.charts
    n_columns = max(1, min(len(charts), picture.n_columns if isinstance(picture, Distributions) else len(charts)))
    axes_width, axes_height = SIZES[min(n_columns, len(SIZES)) - 1] if whole_picture is None else SIZES[-1]
    if isinstance(picture, Distributions):
        widest = max(axes_width, MAX_GRID_WIDTH / n_columns - NUMBERS)
        axes_width = min(max(axes_width, distributions.width_of(picture)), widest)
    panels = tuple(_panel(chart, axes_width, axes_height) for chart in charts)
    beside = max((height_of(panel.y_axis, AXIS) for panel in panels), default=0.0) + NUMBERS + GAP
    width = ceil_to_pixel(max(MIN_WIDTH, n_columns * (axes_width + beside) + 2 * MARGIN), look.dpi)
    room = (width - 2 * MARGIN) / POINT

    header = header_of(picture, report, width)
    legend_top = below(header, MARGIN) + GAP
    looks: Any
    legend: Sequence[tuple[str, Artist]]
    caveats = curves.caveats(picture) if isinstance(picture, Curves) else distributions.caveats(picture, axes_width)
    of = whole_picture or picture
    looks, legend = curves.looks_of(of) if isinstance(of, Curves) else distributions.looks_of(of)
    names, legend_columns, legend_height = _plan_legend([name for name, _ in legend], room)
    top = legend_top + legend_height
    rows = [panels[start : start + n_columns] for start in range(0, len(panels), n_columns)]
    bottom = top + sum(axes_height + max(panel.above_and_below for panel in row) + 2 * PAD for row in rows)
    footer = paragraph(wrap(" · ".join(caveats), SMALL, room), SMALL, GREY, MARGIN, bottom + PAD)
    height = ceil_to_pixel(below(footer, bottom) + MARGIN, look.dpi)
    check_size(picture.name, width, height, look.dpi)
    return ChartsPlan(
        name=picture.name,
        title=title_of(picture, report),
        width=width,
        height=height,
        panels=panels,
        n_columns=n_columns,
        legend=tuple((_joined(lines), handle) for lines, (_, handle) in zip(names, legend, strict=True)),
        legend_columns=legend_columns,
        legend_top=legend_top,
        top=top,
        bottom=bottom,
        lines=(*header, *footer),
        looks=looks,
    )


def _plan_legend(names: Sequence[str], room: float) -> tuple[list[tuple[str, ...]], int, float]:
    """The names in lines, in how many columns they stand, and inches that they take; `room` is points."""
    wrapped = [wrap(name, AXIS, room - HANDLE * AXIS) for name in names]
    longest = max((extent(line, AXIS).width for lines in wrapped for line in lines), default=0.0)
    n_columns = max(1, int(room / (longest + (HANDLE + BETWEEN + 1) * AXIS)))
    highest = max((height_of(lines, AXIS) + PAD for lines in wrapped), default=0.0)
    return wrapped, n_columns, highest * ceil(len(names) / n_columns)


def _panel(chart: Curve | Distribution, width: float, height: float) -> Panel:
    return Panel(
        chart,
        title=wrap(chart.title, AXIS, width / POINT),
        x_axis=wrap(chart.x_axis, AXIS, width / POINT),
        y_axis=wrap_evenly(chart.y_axis, AXIS, height / POINT),
        labels=distributions.labels_of(chart, width) if isinstance(chart, Distribution) else Labels(1, AXIS, 0.2),
        size=(width, height),
    )


def _joined(lines: Sequence[str]) -> str:
    return "\n".join(map(drawable, lines))


def draw_charts(plan: ChartsPlan) -> Figure:
    """The figure of one plan. To be called, and the figure to be saved, within `style.drawing`."""
    width, height = plan.width, plan.height
    figure = Figure(figsize=(width, height))
    inside = (MARGIN / width, 1 - plan.bottom / height, 1 - 2 * MARGIN / width, (plan.bottom - plan.top) / height)
    figure.set_layout_engine(ConstrainedLayoutEngine(rect=inside, w_pad=PAD, h_pad=PAD, wspace=0.0, hspace=0.0))
    grid = figure.add_gridspec(max(1, ceil(len(plan.panels) / plan.n_columns)), plan.n_columns)
    for place, panel in enumerate(plan.panels):
        _draw_panel(figure.add_subplot(grid[divmod(place, plan.n_columns)]), panel, plan)
    if plan.legend:
        figure.legend(
            [handle for _, handle in plan.legend],
            [""] * len(plan.legend),
            loc="upper left",
            bbox_to_anchor=(MARGIN / width, 1 - plan.legend_top / height),
            ncols=plan.legend_columns,
            frameon=False,
            borderpad=0,
            borderaxespad=0,
            handlelength=HANDLE,
            columnspacing=BETWEEN,
            labelspacing=0.3,
            fontsize=AXIS,
        )
        for text, (name, _) in zip(figure.legends[0].get_texts(), plan.legend, strict=True):
            text.set_text(name)  # only now: matplotlib leaves out names that begin with _
    for line in plan.lines:
        write(figure, line)
    for text in figure.findobj(Text):
        literal(text)
    if plan.panels:  # without axes there is nothing to lay out, and matplotlib warns
        _settle(figure)
    figure.set_layout_engine("none")
    return figure


def _settle(figure: Figure) -> None:
    """Lay out now and round: the solver's last bits differ from run to run, and names in an SVG follow from them."""
    engine = figure.get_layout_engine()
    assert engine is not None
    engine.execute(figure)
    for axes in figure.axes:
        left, bottom, width, height = (round(float(part), 4) for part in axes.get_position(original=True).bounds)
        axes.set_position((left, bottom, width, height))


def _draw_panel(axes: Axes, panel: Panel, plan: ChartsPlan) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(length=TICK / POINT, width=HAIRLINE, pad=2, labelsize=AXIS)
    axes.yaxis.grid(visible=True, color=GRID, linewidth=HAIRLINE)
    axes.set_axisbelow(True)
    axes.margins(0.03, 0.06)
    if isinstance(panel.chart, Curve):
        nothing = curves.draw_curve(axes, panel.chart, plan.looks)
    else:
        nothing = distributions.draw_distribution(axes, panel.chart, plan.looks, panel.labels, panel.size)
    axes.set_title(_joined(panel.title), size=AXIS, pad=PAD / POINT)
    axes.set_xlabel(_joined(panel.x_axis), labelpad=PAD / POINT, color=INK)
    axes.set_ylabel(_joined(panel.y_axis), labelpad=PAD / POINT, color=INK)
    if nothing:
        axes.set(yticks=[])
        axes.text(0.5, 0.5, nothing, transform=axes.transAxes, ha="center", va="center", size=SMALL, color=GREY)
    else:
        axes.ticklabel_format(axis="y", useOffset=False)
