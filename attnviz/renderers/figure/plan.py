"""Where everything on a picture goes: texts are measured and the figure is built around them, so nothing is ever cut.

Inches from the upper left corner; maps lie on whole pixels, so that all cells are equal. Draws nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

from attnviz.renderers.figure.header import (
    MARGIN,
    NARROWEST,
    below,
    ceil_to_pixel,
    check_size,
    header_of,
    height_of,
    ordinal,
    paragraph,
    title_of,
)
from attnviz.renderers.figure.layout import (
    GAP,
    OBLONG,
    PAD,
    POINT,
    TICK,
    Box,
    Cells,
    FigurePlan,
    Labels,
    PlacedMap,
    Statistic,
    TextLine,
    columns_of,
    maps_of,
    plan_cells,
    plan_labels,
    shape_of,
)
from attnviz.renderers.figure.scale import plan_limits, plan_ticks, scale_of
from attnviz.renderers.figure.style import AXIS, GREY, INK, SMALL
from attnviz.renderers.figure.text import extent, wrap, wrap_evenly
from attnviz.report import FigureStyle, Heatmap, HeatmapGrid, Report

BAR_WIDTH, BAR_SHORTEST = 0.13, 1.2
SWATCH_WIDTH, SWATCH_HEIGHT = 0.18, 0.09
BOTH: tuple[Statistic, Statistic] = ("largest", "mean")
HEADING_SIZES = (8.0, 7.0, 6.0)  # of panel titles: the largest that fits


class Grid(NamedTuple):
    """The maps of one picture: how many, how large each and its title, and what lies between two."""

    maps: tuple[Heatmap, ...]
    n_columns: int
    map_width: float
    map_height: float
    heading_size: float
    headings: tuple[tuple[str, ...], ...]  # none where one map stands alone
    heading_room: float
    gap: float
    statistics: tuple[Statistic, ...]  # what the cells of each map show where they are pooled

    @property
    def n_rows(self) -> int:
        """How many rows of maps."""
        return ceil(len(self.maps) / self.n_columns)

    @property
    def width(self) -> float:
        """Inches of all maps side by side."""
        return self.n_columns * (self.map_width + self.gap) - self.gap

    @property
    def height(self) -> float:
        """From the top of the first map to the bottom of the last."""
        return self.n_rows * (self.map_height + self.heading_room + self.gap) - self.gap - self.heading_room

    def box(self, index: int, left: float, top: float) -> Box:
        """The box of one map."""
        row, column = divmod(index, self.n_columns)
        return Box(
            left + column * (self.map_width + self.gap),
            top + row * (self.map_height + self.heading_room + self.gap),
            self.map_width,
            self.map_height,
        )


class Across(NamedTuple):
    """What stands beside what: inches from the left."""

    row_axis: float  # base line of the name of the rows
    maps: float
    bar: float
    bar_label: float
    width: float  # of the whole figure


def plan(picture: Heatmap | HeatmapGrid, report: Report, look: FigureStyle) -> FigurePlan:
    """Everything on one picture with its place. Raises TooLarge for too many pixels, and says what would work."""
    scale = scale_of(picture, report)
    ticks = plan_ticks(scale)
    cells = plan_cells(picture, look)
    row_labels, column_labels = plan_labels(picture, cells)
    signed = scale.kind == "diverging"
    grid = _grid(picture, cells, signed, look.dpi)
    bar_height = max(BAR_SHORTEST, grid.height)
    bar_label = wrap_evenly(scale.label, AXIS, bar_height / POINT)
    across = _across(grid, row_labels.room, ticks, bar_label, look.dpi)

    header = header_of(picture, report, across.width)
    top = ceil_to_pixel(below(header, MARGIN) + GAP + grid.heading_room, look.dpi)
    places = _places(grid, across.maps, top)
    axes = _axis_names(grid, column_labels.room, across, top)
    lowest = max(axes[1].y, top + bar_height, top + extent(axes[0].text, AXIS).width * POINT)
    small_print = _small_print(grid, cells, (row_labels, column_labels), signed)
    hatched = not all(heatmap.allowed.all() for heatmap in grid.maps)
    swatch, footer, bottom = _footer(small_print, hatched, lowest + GAP, across.width)

    result = FigurePlan(
        name=picture.name,
        title=title_of(picture, report),
        width=across.width,
        height=ceil_to_pixel(bottom + MARGIN, look.dpi),
        cells=cells,
        row_labels=row_labels,
        column_labels=column_labels,
        places=places,
        bar=Box(across.bar, top, BAR_WIDTH, bar_height),
        scale=scale,
        ticks=ticks,
        limits=plan_limits(scale),
        lines=(*header, *_headings(grid, places), *axes, *_bar_label(bar_label, across, top + bar_height / 2), *footer),
        swatch=swatch,
    )
    check_size(result.name, result.width, result.height, look.dpi)
    return result


def _grid(picture: Heatmap | HeatmapGrid, cells: Cells, signed: bool, dpi: int) -> Grid:
    """A map whose cells are pooled stands there twice: where weights are large, and how much of them there is."""
    twice = isinstance(picture, Heatmap) and cells.pools != (1, 1)
    statistics = BOTH if twice else (BOTH[0],) * len(maps_of(picture))
    titles = [_of_cells(each, cells, signed) for each in statistics] if twice else _titles(picture)
    height, width = (
        side.count(number) * side.length for side, number in zip(cells[:2], shape_of(picture), strict=True)
    )
    points = width / POINT
    widest = max((extent(title, HEADING_SIZES[-1]).width for title in titles), default=0.0) / HEADING_SIZES[-1]
    size = next((size for size in HEADING_SIZES if widest * size <= points), HEADING_SIZES[-1])
    headings = tuple(wrap(title, size, points) for title in titles)
    room = max((height_of(lines, size) for lines in headings), default=0.0)
    return Grid(
        maps=maps_of(picture) * (len(BOTH) if twice else 1),
        n_columns=(2 if width < OBLONG * height else 1) if twice else columns_of(picture),
        map_width=width,
        map_height=height,
        heading_size=size,
        headings=headings,
        heading_room=ceil_to_pixel(room + 0.02, dpi) if headings else 0.0,
        gap=ceil_to_pixel(GAP, dpi),
        statistics=statistics,
    )


def _titles(picture: Heatmap | HeatmapGrid) -> list[str]:
    """Of panels. One map alone has the picture's title over it."""
    return [heatmap.title for heatmap in picture.maps] if isinstance(picture, HeatmapGrid) else []


def _of_cells(statistic: Statistic, cells: Cells, signed: bool) -> str:
    """What a cell is that stands for several."""
    rows, columns = cells.pools
    what = "differences" if signed else "weights"
    largest = "largest" if signed else "maximum"
    return f"each cell is the {'mean' if statistic == 'mean' else largest} of {rows} × {columns} {what}" + (
        ", up or down" if signed and statistic == "largest" else ""
    )


def _across(
    grid: Grid, row_room: float, ticks: Sequence[tuple[float, str]], bar_label: Sequence[str], dpi: int
) -> Across:
    """From the left: name of the rows, their labels, maps, colour bar, its numbers, its label."""
    numbers = max(extent(text, AXIS).width for _, text in ticks) * POINT
    maps = MARGIN + height_of([grid.maps[0].row_axis], AXIS) + row_room
    bar = maps + grid.width + GAP
    bar_label_left = bar + BAR_WIDTH + TICK + 2 * PAD + numbers
    content = bar_label_left + height_of(bar_label, AXIS) + MARGIN
    width = ceil_to_pixel(max(NARROWEST, content), dpi)
    shift = ceil_to_pixel((width - content) / 2, dpi)
    left = ceil_to_pixel(maps, dpi)
    return Across(MARGIN + shift + AXIS * POINT, left + shift, bar + left - maps + shift, bar_label_left + shift, width)


def _places(grid: Grid, left: float, top: float) -> tuple[PlacedMap, ...]:
    """Rows are labelled in the first column only, columns only where no map follows below."""
    return tuple(
        PlacedMap(
            heatmap,
            grid.box(index, left, top),
            row_labels=index % grid.n_columns == 0,
            column_labels=index + grid.n_columns >= len(grid.maps),
            statistic=statistic,
        )
        for index, (heatmap, statistic) in enumerate(zip(grid.maps, grid.statistics, strict=True))
    )


def _headings(grid: Grid, places: Sequence[PlacedMap]) -> list[TextLine]:
    """Each panel's title, centred over it."""
    lines: list[TextLine] = []
    for place, texts in zip(places, grid.headings or [()] * len(places), strict=True):
        middle, top = place.box.left + place.box.width / 2, place.box.top - grid.heading_room
        lines += [line._replace(align="center") for line in paragraph(texts, grid.heading_size, INK, middle, top)]
    return lines


def _axis_names(grid: Grid, column_room: float, across: Across, top: float) -> tuple[TextLine, TextLine]:
    """What rows and columns are, each once, at the middle of its side."""
    rows, columns = grid.maps[0].row_axis, grid.maps[0].column_axis
    length = extent(rows, AXIS).width * POINT
    half = extent(columns, AXIS).width * POINT / 2
    middle = min(max(across.maps + grid.width / 2, MARGIN + half), across.width - MARGIN - half)
    base = top + grid.height + column_room + AXIS * POINT
    return (
        TextLine(rows, across.row_axis, top + max(grid.height, length) / 2, AXIS, INK, "center", 90),
        TextLine(columns, middle, base, AXIS, INK, "center"),
    )


def _bar_label(lines: Sequence[str], across: Across, middle: float) -> list[TextLine]:
    flat = paragraph(lines, AXIS, INK, 0.0, across.bar_label)
    return [TextLine(line.text, line.y, middle, AXIS, INK, "center", 90) for line in flat]


def _small_print(grid: Grid, cells: Cells, labels: tuple[Labels, Labels], signed: bool) -> list[str]:
    """What the picture cannot show by itself."""
    texts = []
    if labels[0].step == 0:
        texts.append("tokens are not labelled, for want of room")
    thinned = {
        (side.step, _thing(axis))
        for side, axis in zip(labels, (grid.maps[0].row_axis, grid.maps[0].column_axis), strict=True)
    }
    texts += [f"every {ordinal(step)} {thing} is labelled" for step, thing in sorted(thinned) if step > 1]
    if labels[1].places is not None:
        texts.append("of the columns, those that get most are named first")
    if cells.pools != (1, 1) and "mean" not in grid.statistics:  # else it stands over the maps
        texts.append(_of_cells("largest", cells, signed))
    return texts


def _thing(axis: str) -> str:
    """What an axis names."""
    return axis if axis not in (Heatmap.row_axis, Heatmap.column_axis) else "token"


def _footer(texts: Sequence[str], hatched: bool, top: float, width: float) -> tuple[Box | None, list[TextLine], float]:
    """Small print under everything, with a key to forbidden cells where there are any; and where it ends."""
    texts = ["hatched: not attendable"] * hatched + [*texts]
    left = MARGIN + (SWATCH_WIDTH + PAD) * hatched
    lines = paragraph(wrap(" · ".join(texts), SMALL, (width - left - MARGIN) / POINT), SMALL, GREY, left, top)
    if not lines:
        return None, [], top - GAP
    swatch = Box(MARGIN, lines[0].y - SWATCH_HEIGHT + 0.01, SWATCH_WIDTH, SWATCH_HEIGHT) if hatched else None
    return swatch, lines, below(lines, top)
