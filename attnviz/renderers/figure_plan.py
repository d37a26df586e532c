"""Where everything on a picture goes: texts are measured and the figure is built around them, so nothing is ever cut.

Inches from the upper left corner; maps lie on whole pixels, so that all cells are equal and square. Draws nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, sqrt
from typing import NamedTuple

from attnviz.errors import TooLarge
from attnviz.renderers.figure_layout import (
    GAP,
    PAD,
    POINT,
    TICK,
    Box,
    Cells,
    Labels,
    Line,
    Place,
    Plan,
    columns_of,
    maps_of,
    plan_cells,
    plan_labels,
    plan_limits,
    plan_ticks,
    shape_of,
)
from attnviz.renderers.figure_text import extent, line_height, wrap, wrap_evenly
from attnviz.renderers.style import AXIS, GREY, INK, SMALL, SUBTITLE, TITLE
from attnviz.report import Heatmap, Look, Panels, Report

MARGIN = 0.12
NARROWEST = 3.2  # a title needs some room even over a single cell
BAR_WIDTH, BAR_SHORTEST = 0.13, 1.2
SWATCH_WIDTH, SWATCH_HEIGHT = 0.18, 0.09
HEADING_SIZES = (8.0, 7.0, 6.0)  # of panel titles: the largest that fits
MOST_PIXELS = 100_000_000


class Grid(NamedTuple):
    """The maps of one picture: how many, how large each and its title, and what lies between two."""

    maps: tuple[Heatmap, ...]
    n_columns: int
    map_width: float
    map_height: float
    heading_size: float
    headings: tuple[tuple[str, ...], ...]
    heading_room: float
    gap: float

    @property
    def n_rows(self) -> int:
        return ceil(len(self.maps) / self.n_columns)

    @property
    def width(self) -> float:
        return self.n_columns * (self.map_width + self.gap) - self.gap

    @property
    def height(self) -> float:
        """From the top of the first map to the bottom of the last."""
        return self.n_rows * (self.map_height + self.heading_room + self.gap) - self.gap - self.heading_room

    def box(self, index: int, left: float, top: float) -> Box:
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


def plan(picture: Heatmap | Panels, report: Report, look: Look) -> Plan:
    """Everything on one picture with its place. Raises TooLarge for too many pixels, and says what would work."""
    cells = plan_cells(picture, look)
    labels = plan_labels(picture, cells)
    grid = _grid(picture, cells, look.dpi)
    bar_height = max(BAR_SHORTEST, grid.height)
    bar_label = wrap_evenly(report.scale.label, AXIS, bar_height / POINT)
    across = _across(grid, labels, report, bar_label, look.dpi)

    header = _header(picture, report, across.width)
    top = _whole(_below(header, MARGIN) + GAP + grid.heading_room, look.dpi)
    places = _places(grid, across.maps, top)
    axes = _axis_names(grid, labels, across, top)
    below = max(axes[1].y, top + bar_height, top + extent(axes[0].text, AXIS).width * POINT)
    swatch, footer, bottom = _footer(grid, cells, labels, below + GAP, across.width)

    result = Plan(
        name=picture.name,
        title=_title(picture, report),
        width=across.width,
        height=_whole(bottom + MARGIN, look.dpi),
        cells=cells,
        labels=labels,
        places=places,
        bar=Box(across.bar, top, BAR_WIDTH, bar_height),
        ticks=plan_ticks(report.scale),
        limits=plan_limits(report.scale),
        lines=(*header, *_headings(grid, places), *axes, *_bar_label(bar_label, across, top + bar_height / 2), *footer),
        swatch=swatch,
    )
    _check_size(result, look.dpi)
    return result


def _check_size(result: Plan, dpi: int) -> None:
    if result.width * result.height * dpi**2 > MOST_PIXELS:
        works = floor(0.98 * sqrt(MOST_PIXELS / (result.width * result.height)))
        pixels = f"{result.width * dpi:.0f} × {result.height * dpi:.0f} pixels"
        raise TooLarge(f"{result.name!r} would have {pixels}", hint=f"Up to {works} dpi it can be drawn.")


def _whole(inches: float, dpi: int) -> float:
    """The next whole pixel."""
    return ceil(inches * dpi - 1e-6) / dpi


def _grid(picture: Heatmap | Panels, cells: Cells, dpi: int) -> Grid:
    maps = maps_of(picture)
    n_rows, n_columns = (ceil(length / cells.pool) for length in shape_of(picture))
    size, room = HEADING_SIZES[0], 0.0
    headings: tuple[tuple[str, ...], ...] = ((),) * len(maps)
    if isinstance(picture, Panels):
        points = n_columns * cells.side / POINT
        widest = max(extent(each.title, HEADING_SIZES[-1]).width for each in maps) / HEADING_SIZES[-1]
        size = next((size for size in HEADING_SIZES if widest * size <= points), HEADING_SIZES[-1])
        headings = tuple(wrap(each.title, size, points) for each in maps)
        room = _whole((max(_height(lines, size) for lines in headings)) + 0.02, dpi)
    return Grid(
        maps=maps,
        n_columns=columns_of(picture),
        map_width=n_columns * cells.side,
        map_height=n_rows * cells.side,
        heading_size=size,
        headings=headings,
        heading_room=room,
        gap=_whole(GAP, dpi),
    )


def _across(grid: Grid, labels: Labels, report: Report, bar_label: Sequence[str], dpi: int) -> Across:
    """From the left: name of the rows, their labels, maps, colour bar, its numbers, its label."""
    numbers = max(extent(text, AXIS).width for _, text in plan_ticks(report.scale)) * POINT
    maps = MARGIN + _height([grid.maps[0].row_axis], AXIS) + labels.row_room
    bar = maps + grid.width + GAP
    bar_label_left = bar + BAR_WIDTH + TICK + 2 * PAD + numbers
    content = bar_label_left + _height(bar_label, AXIS) + MARGIN
    width = _whole(max(NARROWEST, content), dpi)
    shift = _whole((width - content) / 2, dpi)
    left = _whole(maps, dpi)
    return Across(MARGIN + shift + AXIS * POINT, left + shift, bar + left - maps + shift, bar_label_left + shift, width)


def _height(lines: Sequence[str], size: float) -> float:
    """Inches that a paragraph takes."""
    return sum(line_height(line, size) for line in lines) * POINT


def _paragraph(lines: Sequence[str], size: float, colour: str, left: float, top: float) -> list[Line]:
    """Lines one under the other."""
    placed = []
    for text in lines:
        top += line_height(text, size) * POINT
        base = top - max(extent(text, size).descent, 0.3 * size) * POINT
        placed.append(Line(text, left, base, size, colour))
    return placed


def _header(picture: Heatmap | Panels, report: Report, width: float) -> list[Line]:
    """The title over the subtitle, however long they are."""
    room = (width - 2 * MARGIN) / POINT
    title = _title(picture, report)
    parts = [title] if extent(title, TITLE).width <= room else [report.title, picture.title]
    lines = _paragraph([line for part in parts for line in wrap(part, TITLE, room)], TITLE, INK, MARGIN, MARGIN)
    return lines + _paragraph(wrap(report.subtitle, SUBTITLE, room), SUBTITLE, GREY, MARGIN, _below(lines, MARGIN))


def _below(lines: Sequence[Line], otherwise: float) -> float:
    """Where the next thing under a paragraph may begin."""
    return lines[-1].y + 0.3 * lines[-1].size * POINT if lines else otherwise


def _title(picture: Heatmap | Panels, report: Report) -> str:
    return " · ".join(part for part in (report.title, picture.title) if part)


def _places(grid: Grid, left: float, top: float) -> tuple[Place, ...]:
    """Rows are labelled in the first column only, columns only where no map follows below."""
    return tuple(
        Place(
            heatmap,
            grid.box(index, left, top),
            row_labels=index % grid.n_columns == 0,
            column_labels=index + grid.n_columns >= len(grid.maps),
        )
        for index, heatmap in enumerate(grid.maps)
    )


def _headings(grid: Grid, places: Sequence[Place]) -> list[Line]:
    """Each panel's title, centred over it."""
    lines: list[Line] = []
    for place, texts in zip(places, grid.headings, strict=True):
        middle, top = place.box.left + place.box.width / 2, place.box.top - grid.heading_room
        lines += [line._replace(align="center") for line in _paragraph(texts, grid.heading_size, INK, middle, top)]
    return lines


def _axis_names(grid: Grid, labels: Labels, across: Across, top: float) -> tuple[Line, Line]:
    """What rows and columns are, each once, at the middle of its side."""
    rows, columns = grid.maps[0].row_axis, grid.maps[0].column_axis
    length = extent(rows, AXIS).width * POINT
    half = extent(columns, AXIS).width * POINT / 2
    middle = min(max(across.maps + grid.width / 2, MARGIN + half), across.width - MARGIN - half)
    base = top + grid.height + labels.column_room + AXIS * POINT
    return (
        Line(rows, across.row_axis, top + max(grid.height, length) / 2, AXIS, INK, "center", 90),
        Line(columns, middle, base, AXIS, INK, "center"),
    )


def _bar_label(lines: Sequence[str], across: Across, middle: float) -> list[Line]:
    flat = _paragraph(lines, AXIS, INK, 0.0, across.bar_label)
    return [Line(line.text, line.y, middle, AXIS, INK, "center", 90) for line in flat]


def _footer(grid: Grid, cells: Cells, labels: Labels, top: float, width: float) -> tuple[Box | None, list[Line], float]:
    """In small print what the picture cannot show by itself; with a key to forbidden cells where there are any."""
    hatched = not all(heatmap.allowed.all() for heatmap in grid.maps)
    texts = ["hatched: not attendable"] if hatched else []
    if labels.step == 0:
        texts.append("tokens are not labelled, for want of room")
    elif labels.step > 1:
        texts.append(f"every {labels.step}{_ordinal(labels.step)} token is labelled")
    if cells.pool > 1:
        texts.append(f"each cell is the maximum of {cells.pool} × {cells.pool} weights")
    left = MARGIN + (SWATCH_WIDTH + PAD) * hatched
    lines = _paragraph(wrap(" · ".join(texts), SMALL, (width - left - MARGIN) / POINT), SMALL, GREY, left, top)
    if not lines:
        return None, [], top - GAP
    swatch = Box(MARGIN, lines[0].y - SWATCH_HEIGHT + 0.01, SWATCH_WIDTH, SWATCH_HEIGHT) if hatched else None
    return swatch, lines, _below(lines, top)


def _ordinal(number: int) -> str:
    """The ending of a number: 2nd, 4th, 5th, 10th …"""
    return "nd" if number == 2 else "th"
