"""Charts as figures: where everything stands.

Texts are measured and the figure is built around them, so that nothing is cut; where axes and numbers then stand,
matplotlib's constrained layout decides. Lengths are inches, text sizes points.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text

from attnviz.renderers.figure import marks
from attnviz.renderers.figure.draw import Sketch, literal, write
from attnviz.renderers.figure.header import MARGIN, MIN_WIDTH, ceil_to_pixel, frame, header_of, height_of, refuse_width
from attnviz.renderers.figure.labels import fit_labels
from attnviz.renderers.figure.layout import GAP, MAX_GRID_WIDTH, PAD, POINT, Labels
from attnviz.renderers.figure.style import AXIS, Sizes, look_of
from attnviz.renderers.figure.text import extent, ordinal, wrap, wrap_evenly
from attnviz.report import Charts, FigureStyle, Report

SIZES = ((4.6, 2.8), (2.9, 2.1), (2.4, 1.9))  # of a chart alone, of one of two in a row, of one of three and more
NUMBERS = 0.5  # inches that the numbers of a y axis take, about
MIN_ACROSS, STEEP = 1.45, 0.75  # inches of axes where a width is asked for, and at most so high for each across
HANDLE, BETWEEN = 2.5, 1.5  # of the text's size: the sample beside a name, and from one name to the next


@dataclass(frozen=True, eq=False)
class ChartsPlan(Sketch):
    """Charts before they are drawn: from the upper edge the names of groups, from `top` to `bottom` the charts."""

    panels: tuple[marks.Panel, ...]
    n_columns: int
    legend: tuple[tuple[str, Artist], ...]
    legend_columns: int
    legend_top: float
    top: float
    bottom: float
    sizes: Sizes

    def draw(self) -> Figure:
        """Return the figure, whose axes and legend matplotlib lays out."""
        width, height = self.width, self.height
        figure = Figure(figsize=(width, height))
        grid = figure.add_gridspec(max(1, ceil(len(self.panels) / self.n_columns)), self.n_columns)
        for place, panel in enumerate(self.panels):
            panel.draw(figure.add_subplot(grid[divmod(place, self.n_columns)]))
        if self.legend:
            _draw_legend(figure, self)
        for line in self.lines:
            write(figure, line)
        for text in figure.findobj(Text):
            literal(text)
        if self.panels:  # without axes there is nothing to lay out, and matplotlib warns
            left, high = MARGIN / width, (self.bottom - self.top) / height
            # The engine is not the figure's: else matplotlib draws all of it twice, once to lay it out again. The
            # solver's last bits differ from run to run, and names in an SVG follow from them, so that its results are
            # rounded.
            inside = (left, 1 - self.bottom / height, 1 - 2 * left, high)
            ConstrainedLayoutEngine(rect=inside, w_pad=PAD, h_pad=PAD, wspace=0.0, hspace=0.0).execute(figure)
            for axes in figure.axes:
                bounds = np.round(axes.get_position(original=True).bounds, 4).tolist()
                axes.set_position(tuple(bounds))
        return figure


def plan_charts(picture: Charts, report: Report, look: FigureStyle) -> ChartsPlan:
    """Give everything but the axes its place. Raises TooLarge for too many pixels, and says what would work."""
    theme, sizes = look_of(look.theme, look.font_size)
    groups = marks.find_groups(picture.charts, theme)
    width, n_columns, size, y_axes = _fit_charts(picture, look, sizes)
    charts, across, text, room = picture.charts, size[0] / POINT, sizes.axis, (width - 2 * MARGIN) / POINT
    # Axes that are the same on all charts are named once for each row and each column.
    differ = len({(chart.x_axis, chart.y_axis) for chart in charts}) > 1
    plain = Labels(1, text, 0.2 * text / AXIS)
    panels = [
        marks.Panel(
            chart,
            title=wrap(chart.title, text, across),
            x_axis=wrap(chart.x_axis, text, across) if differ or place + n_columns >= len(charts) else (),
            y_axis=y_axis if differ or place % n_columns == 0 else (),
            labels=fit_labels([chart.names], marks.find_slot(chart, across), text, below=True)
            if chart.names
            else plain,
            size=size,
            groups=groups,
            theme=theme,
            sizes=sizes,
        )
        for place, (chart, y_axis) in enumerate(zip(charts, y_axes, strict=True))
    ]
    header, legend_top = header_of(picture, report, width, look, sizes)
    legend = marks.list_legend(picture.charts, groups, theme)
    names, legend_columns, legend_height = _plan_legend([name for name, _ in legend], room, sizes.axis)
    top = legend_top + legend_height
    rows = [panels[start : start + n_columns] for start in range(0, len(panels), n_columns)]
    beside = [[height_of((*each.title, *each.x_axis), sizes.axis) + each.labels.room for each in row] for row in rows]
    bottom = top + sum(row[0].size[1] + max(names) + 6 * PAD for row, names in zip(rows, beside, strict=True))
    steps = {(panel.labels.step, panel.chart.x_axis) for panel in panels if panel.chart.names}
    thinned = [f"every {ordinal(step)} {axis or 'place'} is labelled" for step, axis in sorted(steps) if step > 1]
    caveats = [*marks.list_caveats(charts, size, sizes), *thinned]
    return ChartsPlan(
        **frame(picture, report, look, (width, bottom, PAD), header, caveats),
        panels=tuple(panels),
        n_columns=n_columns,
        legend=tuple((marks.join_lines(lines), handle) for lines, (_, handle) in zip(names, legend, strict=True)),
        legend_columns=legend_columns,
        legend_top=legend_top,
        top=top,
        bottom=bottom,
        sizes=sizes,
    )


def _fit_charts(
    picture: Charts, look: FigureStyle, sizes: Sizes
) -> tuple[float, int, tuple[float, float], list[tuple[str, ...]]]:
    """Return the figure's width, charts in a row, the size of their axes, and the name of each y axis in lines.

    As wide as the charts want; else as many of them in a row as the width asked for has room for. Raises TooLarge where
    it has none for one.
    """
    charts, factor = picture.charts, sizes.axis / AXIS
    beside, least, needed = factor * NUMBERS + GAP, factor * MIN_ACROSS, 0.0
    most = max(1, min(len(charts), picture.n_columns or len(charts)))
    for n_columns in range(most, 0, -1):
        across, high = (factor * side for side in SIZES[min(n_columns, len(SIZES)) - 1])
        if look.width is None:
            wanted = max((marks.SLOT * marks.count_places(chart) for chart in charts if chart.names), default=0.0)
            across = min(max(across, wanted), max(across, MAX_GRID_WIDTH / n_columns - factor * NUMBERS))
        else:
            share = (look.width - 2 * MARGIN) / n_columns - beside
            high = min(high, STEEP * max(least, share))
        names = [wrap_evenly(chart.y_axis, sizes.axis, high / POINT) for chart in charts]
        named = max((height_of(lines, sizes.axis) for lines in names), default=0.0)
        if look.width is not None:
            across, needed = share - named, least + named + beside + 2 * MARGIN
        if across >= least or look.width is None:
            width = look.width or max(MIN_WIDTH, n_columns * (across + named + beside) + 2 * MARGIN)
            return ceil_to_pixel(width, look.dpi), n_columns, (across, high), names
    raise refuse_width(picture.name, look, sizes, needed)


def _plan_legend(names: Sequence[str], room: float, size: float) -> tuple[list[tuple[str, ...]], int, float]:
    """Plan the legend: the names in lines, the number of columns and the inches that they take; `room` is points."""
    wrapped = [wrap(name, size, room - HANDLE * size) for name in names]
    longest = max((extent(line, size).width for lines in wrapped for line in lines), default=0.0)
    n_columns = max(1, min(len(names), int(room / (longest + (HANDLE + BETWEEN + 1) * size))))
    n_columns = ceil(len(names) / ceil(len(names) / n_columns)) if names else 1  # rows of one length
    highest = max((height_of(lines, size) + PAD for lines in wrapped), default=0.0)
    return wrapped, n_columns, highest * ceil(len(names) / n_columns)


def _draw_legend(figure: Figure, plan: ChartsPlan) -> None:
    """Draw the legend with names from left to right: matplotlib fills columns."""
    by_column = [each for column in range(plan.legend_columns) for each in plan.legend[column :: plan.legend_columns]]
    figure.legend(
        [handle for _, handle in by_column],
        [name for name, _ in by_column],
        loc="upper left",
        bbox_to_anchor=(MARGIN / plan.width, 1 - plan.legend_top / plan.height),
        ncols=plan.legend_columns,
        frameon=False,
        borderpad=0,
        borderaxespad=0,
        handlelength=HANDLE,
        columnspacing=BETWEEN,
        labelspacing=0.3,
        fontsize=plan.sizes.axis,
    )
