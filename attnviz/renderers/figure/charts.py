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

from attnviz.errors import TooLarge
from attnviz.renderers.figure import arcs, curves, distributions, scatter
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
from attnviz.renderers.figure.style import AXIS, GREY, HAIRLINE, MIN_FONT_SIZE, Sizes, Theme, look_of
from attnviz.renderers.figure.text import drawable, extent, wrap, wrap_evenly
from attnviz.report import (
    ArcDiagram,
    Arcs,
    Curve,
    Curves,
    Distribution,
    Distributions,
    FigureStyle,
    Report,
    Scatter,
    Scatters,
)

AnyCharts = Curves | Distributions | Scatters | Arcs
AnyChart = Curve | Distribution | Scatter | ArcDiagram

SIZES = ((4.6, 2.8), (2.9, 2.1), (2.4, 1.9))  # of a chart alone, of one of two in a row, of one of three and more
NUMBERS = 0.5  # inches that the numbers of a y axis take, about
MIN_ACROSS = 1.45  # inches of axes where a width is asked for: with fewer, numbers below would touch
HANDLE, BETWEEN = 2.5, 1.5  # of the text's size: the sample beside a name, and from one name to the next


class Panel(NamedTuple):
    """One chart and its names, broken into lines; `labels` are those of the samples along its x axis."""

    chart: AnyChart
    title: tuple[str, ...]
    x_axis: tuple[str, ...]
    y_axis: tuple[str, ...]
    labels: Labels
    size: tuple[float, float]  # of the axes, about
    text: float  # points

    @property
    def above_and_below(self) -> float:
        """Inches that everything above and below the axes takes."""
        return height_of((*self.title, *self.x_axis), self.text) + self.labels.room + 4 * PAD


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
    theme: Theme
    sizes: Sizes


def plan_charts(
    picture: AnyCharts,
    report: Report,
    look: FigureStyle,
    whole_picture: AnyCharts | None = None,
) -> ChartsPlan:
    """Everything but the charts with its place. Raises TooLarge for too many pixels, and says what would work.

    `whole_picture`: what `picture` is a part of, drawn small: what has one name looks as in all of it.
    """
    theme, sizes = look_of(look.theme, look.font_size)
    width, n_columns, panels, axes_width, axes_height = _across(picture, look, sizes, whole_picture is not None)
    room = (width - 2 * MARGIN) / POINT

    header = header_of(picture, report, width, sizes) if look.header else []
    legend_top = below(header, MARGIN) + GAP * bool(header)
    caveats = _list_caveats(picture, (axes_width, axes_height), sizes)
    looks, legend = _looks_of(whole_picture or picture, theme)
    names, legend_columns, legend_height = _plan_legend([name for name, _ in legend], room, sizes.axis)
    top = legend_top + legend_height
    panels = _name_axes_once(panels, n_columns)
    rows = [panels[start : start + n_columns] for start in range(0, len(panels), n_columns)]
    bottom = top + sum(axes_height + max(panel.above_and_below for panel in row) + 2 * PAD for row in rows)
    footer = paragraph(wrap(" · ".join(caveats), sizes.small, room), sizes.small, GREY, MARGIN, bottom + PAD)
    height = ceil_to_pixel(below(footer, bottom) + MARGIN, look.dpi)
    check_size(picture.name, width, height, look.dpi)
    return ChartsPlan(
        name=picture.name,
        title=title_of(picture, report),
        width=width,
        height=height,
        panels=panels,
        n_columns=n_columns,
        legend=tuple((_join(lines), handle) for lines, (_, handle) in zip(names, legend, strict=True)),
        legend_columns=legend_columns,
        legend_top=legend_top,
        top=top,
        bottom=bottom,
        lines=tuple(line._replace(colour=theme.find_ink(line.colour)) for line in (*header, *footer)),
        looks=looks,
        theme=theme,
        sizes=sizes,
    )


def _name_axes_once(panels: tuple[Panel, ...], n_columns: int) -> tuple[Panel, ...]:
    """Axes that are the same on all charts are named at the left of each row and below each column only."""
    if len({(panel.chart.x_axis, panel.chart.y_axis) for panel in panels}) > 1:
        return panels
    return tuple(
        panel._replace(
            x_axis=panel.x_axis if place + n_columns >= len(panels) else (),
            y_axis=panel.y_axis if place % n_columns == 0 else (),
        )
        for place, panel in enumerate(panels)
    )


def _list_caveats(picture: AnyCharts, across: tuple[float, float], sizes: Sizes) -> list[str]:
    match picture:
        case Curves():
            return curves.caveats(picture)
        case Distributions():
            return distributions.caveats(picture, across[0], sizes.axis)
        case Scatters():
            return scatter.caveats(picture, across, sizes.small)
        case Arcs():
            return arcs.caveats(picture)


def _looks_of(picture: AnyCharts, theme: Theme) -> tuple[Any, Sequence[tuple[str, Artist]]]:
    match picture:
        case Curves():
            return curves.looks_of(picture, theme)
        case Distributions():
            return distributions.looks_of(picture, theme)
        case Scatters():
            return scatter.looks_of(picture, theme)
        case Arcs():
            return arcs.looks_of(picture, theme)


def _across(
    picture: AnyCharts, look: FigureStyle, sizes: Sizes, small: bool
) -> tuple[float, int, tuple[Panel, ...], float, float]:
    """The figure's width, charts in a row, panels, and width and height of their axes.

    As wide as the charts want; else as many of them in a row as the width asked for has room for. Raises TooLarge where
    it has none for one.
    """
    charts = picture.charts
    n_columns = max(1, min(len(charts), picture.n_columns or len(charts)))
    factor = sizes.axis / AXIS
    if look.width is None:
        axes_width, axes_height = (factor * side for side in SIZES[-1 if small else min(n_columns, len(SIZES)) - 1])
        if wanted := _find_wanted_width(picture):
            widest = max(axes_width, MAX_GRID_WIDTH / n_columns - factor * NUMBERS)
            axes_width = min(max(axes_width, wanted), widest)
        panels = tuple(_panel(chart, axes_width, axes_height, sizes.axis) for chart in charts)
        width = max(MIN_WIDTH, n_columns * (axes_width + _beside(panels, factor)) + 2 * MARGIN)
        return ceil_to_pixel(width, look.dpi), n_columns, panels, axes_width, axes_height
    least = MIN_ACROSS * factor
    for number in range(n_columns, 0, -1):
        share = (look.width - 2 * MARGIN) / number
        usual = SIZES[min(number, len(SIZES)) - 1]
        axes_height = factor * usual[1] * min(1.0, max(least, share - factor * NUMBERS) / (factor * usual[0]))
        panels = tuple(_panel(chart, max(least, share), axes_height, sizes.axis) for chart in charts)
        axes_width = share - _beside(panels, factor)
        if axes_width >= least:
            panels = tuple(_panel(chart, axes_width, axes_height, sizes.axis) for chart in charts)
            return ceil_to_pixel(look.width, look.dpi), number, panels, axes_width, axes_height
    needed = least + _beside(panels, factor) + 2 * MARGIN
    ways = f"--width {ceil(10 * needed) / 10:.1f}in" + " or a smaller --font-size" * (sizes.axis > MIN_FONT_SIZE)
    what = f"{look.width:.3g} in are too few for {picture.name!r} with text of {sizes.axis:.3g} points"
    raise TooLarge(what, hint=f"Try {ways}.")


def _find_wanted_width(picture: AnyCharts) -> float:
    """Inches that what stands along the x axes wishes for; 0 for numbers."""
    match picture:
        case Curves():
            return curves.width_of(picture)
        case Distributions():
            return distributions.width_of(picture)
        case Scatters():
            return 0.0
        case Arcs():
            return arcs.width_of(picture)


def _beside(panels: Sequence[Panel], factor: float) -> float:
    """Inches beside each chart: the name of its y axis, and numbers."""
    return max((height_of(panel.y_axis, panel.text) for panel in panels), default=0.0) + factor * NUMBERS + GAP


def _plan_legend(names: Sequence[str], room: float, size: float) -> tuple[list[tuple[str, ...]], int, float]:
    """The names in lines, in how many columns they stand, and inches that they take; `room` is points."""
    wrapped = [wrap(name, size, room - HANDLE * size) for name in names]
    longest = max((extent(line, size).width for lines in wrapped for line in lines), default=0.0)
    n_columns = max(1, min(len(names), int(room / (longest + (HANDLE + BETWEEN + 1) * size))))
    n_columns = ceil(len(names) / ceil(len(names) / n_columns)) if names else 1  # rows of one length
    highest = max((height_of(lines, size) + PAD for lines in wrapped), default=0.0)
    return wrapped, n_columns, highest * ceil(len(names) / n_columns)


def _panel(chart: AnyChart, width: float, height: float, size: float) -> Panel:
    match chart:
        case Curve():
            labels = curves.labels_of(chart, width, size)
        case Scatter():
            labels = Labels(1, size, 0.2 * size / AXIS)
        case Distribution():
            labels = distributions.labels_of(chart, width, size)
        case ArcDiagram():
            labels = arcs.labels_of(chart, width, size)
    return Panel(
        chart,
        title=wrap(chart.title, size, width / POINT),
        x_axis=wrap(chart.x_axis, size, width / POINT),
        y_axis=wrap_evenly(chart.y_axis, size, height / POINT),
        labels=labels,
        size=(width, height),
        text=size,
    )


def _join(lines: Sequence[str]) -> str:
    return "\n".join(map(drawable, lines))


def draw_charts(plan: ChartsPlan) -> Figure:
    """The figure of one plan. To be called, and the figure to be saved, within `style.drawing`."""
    width, height = plan.width, plan.height
    figure = Figure(figsize=(width, height))
    grid = figure.add_gridspec(max(1, ceil(len(plan.panels) / plan.n_columns)), plan.n_columns)
    for place, panel in enumerate(plan.panels):
        _draw_panel(figure.add_subplot(grid[divmod(place, plan.n_columns)]), panel, plan)
    if plan.legend:
        by_column = [
            each for column in range(plan.legend_columns) for each in plan.legend[column :: plan.legend_columns]
        ]
        figure.legend(
            [handle for _, handle in by_column],
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
            fontsize=plan.sizes.axis,
        )
        for text, (name, _) in zip(figure.legends[0].get_texts(), by_column, strict=True):
            text.set_text(name)  # only now: matplotlib leaves out names that begin with _
    for line in plan.lines:
        write(figure, line)
    for text in figure.findobj(Text):
        literal(text)
    if plan.panels:  # without axes there is nothing to lay out, and matplotlib warns
        inside = (MARGIN / width, 1 - plan.bottom / height, 1 - 2 * MARGIN / width, (plan.bottom - plan.top) / height)
        _settle(figure, ConstrainedLayoutEngine(rect=inside, w_pad=PAD, h_pad=PAD, wspace=0.0, hspace=0.0))
    return figure


def _settle(figure: Figure, engine: ConstrainedLayoutEngine) -> None:
    """Lay out now and round: the solver's last bits differ from run to run, and names in an SVG follow from them.

    The engine is not the figure's: else matplotlib draws all of it twice, once to lay it out again.
    """
    engine.execute(figure)
    for axes in figure.axes:
        left, bottom, width, height = (round(float(part), 4) for part in axes.get_position(original=True).bounds)
        axes.set_position((left, bottom, width, height))


def _draw_panel(axes: Axes, panel: Panel, plan: ChartsPlan) -> None:
    theme, size = plan.theme, plan.sizes.axis
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(length=TICK / POINT, width=HAIRLINE, pad=2, labelsize=size)
    axes.yaxis.grid(visible=True, color=theme.grid, linewidth=HAIRLINE)
    axes.set_axisbelow(True)
    axes.margins(0.03, 0.06)
    match panel.chart:
        case Curve():
            nothing = curves.draw_curve(axes, panel.chart, plan.looks, panel.labels, theme)
        case Distribution():
            nothing = distributions.draw_distribution(axes, panel.chart, plan.looks, panel.labels, panel.size, theme)
        case Scatter():
            nothing = scatter.draw_scatter(axes, panel.chart, plan.looks, panel.size, plan.sizes.small, theme)
        case ArcDiagram():
            nothing = arcs.draw_arcs(axes, panel.chart, plan.looks, panel.labels, panel.size[1], theme)
    axes.set_title(_join(panel.title), size=size, pad=PAD / POINT)
    axes.set_xlabel(_join(panel.x_axis), labelpad=PAD / POINT, color=theme.grey, size=size)
    axes.set_ylabel(_join(panel.y_axis), labelpad=PAD / POINT, color=theme.grey, size=size)
    if nothing:
        axes.set(yticks=[])
        axes.text(
            0.5,
            0.5,
            nothing,
            transform=axes.transAxes,
            ha="center",
            va="center",
            size=plan.sizes.small,
            color=theme.grey,
        )
    else:
        axes.ticklabel_format(axis="y", useOffset=False)
