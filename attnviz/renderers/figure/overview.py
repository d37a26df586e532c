"""Where everything goes on a picture of very many maps: small, close together, named once at the edges. Draws nothing.

Inches from the upper left corner; text sizes points.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor

from attnviz.errors import TooLarge
from attnviz.renderers.figure.grid import GridPlan, choose_statistic, describe_cells, place_maps, plan_across, plan_slim
from attnviz.renderers.figure.header import (
    MARGIN,
    below,
    ceil_to_pixel,
    finish_plan,
    header_of,
    height_of,
    place_bar,
    plan_bar,
)
from attnviz.renderers.figure.layout import (
    GAP,
    MAX_CELLS,
    MAX_GRID_WIDTH,
    MAX_PANEL,
    PAD,
    POINT,
    Cells,
    FigurePlan,
    Room,
    Side,
    TextLine,
    shape_of,
)
from attnviz.renderers.figure.scale import plan_ticks
from attnviz.renderers.figure.style import GREY, INK
from attnviz.renderers.figure.text import extent
from attnviz.report import EdgeNames, HeatmapGrid, Report, ScaleFamily

MAX_HEIGHT = 16.0  # inches: 2,400 pixels at the usual resolution
MIN_SIDE = 0.04  # of a map: in less, nothing is to be seen
BETWEEN, MIN_BETWEEN = (0.06, 0.035), 0.02  # inches from map to map, across and down
BETWEEN_SHARE = 0.13  # of a small map's side
MAX_BAR = 4.0
MAX_WASTE = 0.125  # of a map's side, for cells of whole pixels
CLOSE = 1.2  # of a name's width: from one to the next
READING = "in each map rows are queries, from the top, and columns keys, from the left; tokens are not labelled"


def plan_overview(picture: HeatmapGrid, edges: EdgeNames, report: Report, room: Room) -> FigurePlan:
    """The plan with the largest maps that fit a page, or the width that is asked for. Raises TooLarge if none does."""
    widest = room.look.width or MAX_GRID_WIDTH
    side = min(MAX_PANEL, widest / len(edges.columns))
    while side >= MIN_SIDE:
        result = _plan_at(picture, edges, report, room._replace(side=side))
        over = (result.width - widest) / len(edges.columns), (result.height - MAX_HEIGHT) / len(edges.rows)
        if max(over) <= 0:
            return result
        side -= max(*over, 1 / room.look.dpi)
    sizes = f"{len(edges.rows)} × {len(edges.columns)} maps have no room on {widest:.3g} × {MAX_HEIGHT:g} inches"
    raise TooLarge(sizes, hint="Choose fewer with --layer or --head.")


def _plan_at(picture: HeatmapGrid, edges: EdgeNames, report: Report, room: Room) -> FigurePlan:
    look, sizes, dpi = room.look, room.sizes, room.look.dpi
    scale, cells = picture.scale or report.scale, _plan_cells(picture, room)
    ticks = plan_ticks(scale)
    grid = _plan_grid(picture, cells, scale.family, room)
    names = max(extent(name, sizes.panel).width for name in edges.rows) * POINT + 2 * PAD
    bar = plan_bar(scale, ticks, (grid.width, min(grid.height, MAX_BAR)), look.width, room)
    across = plan_across(grid, names, bar, room)
    header = header_of(picture, report, across.width, sizes) if look.header else []
    top = below(header, MARGIN) + GAP * bool(header)
    heads = top + height_of([edges.column_axis], sizes.axis)
    maps = ceil_to_pixel(heads + height_of(edges.columns[:1], sizes.panel) + PAD, dpi)
    places = place_maps(grid, across.maps, maps)
    length = extent(edges.row_axis, sizes.axis).width * POINT
    axes = (
        TextLine(edges.column_axis, across.maps + grid.width / 2, heads - PAD / 2, sizes.axis, GREY, "center"),
        TextLine(edges.row_axis, across.row_axis, maps + max(grid.height, length) / 2, sizes.axis, GREY, "center", 90),
    )
    box, label, lowest = place_bar(bar, grid.width, across, (maps, maps + grid.height), room)
    texts = [READING, *([grid.fold.label] if grid.fold else [])]
    if cells.pools != (1, 1) or picture.maps[0].block > 1:
        texts.append(describe_cells(grid.statistic, picture.maps[0], cells, scale.family))
    result = FigurePlan(
        name=picture.name,
        width=across.width,
        height=lowest,
        cells=cells,
        places=places,
        bar=box,
        scale=scale,
        ticks=ticks,
        lines=(*header, *axes, *_name_edges(grid, edges, (across.maps, maps), room), *label),
        kind=look.kind,
    )
    return finish_plan(result, picture, report, room, texts)


def _plan_cells(picture: HeatmapGrid, room: Room) -> Cells:
    """As large as the side of a map allows; of whole pixels, unless that would leave much of it empty."""
    n_tokens, n_pixels = max(shape_of(picture)), max(1, floor(room.side * room.look.dpi))
    pool = ceil(n_tokens / min(MAX_CELLS, n_pixels))
    n_cells = ceil(n_tokens / pool)
    pixels = n_pixels / n_cells
    if floor(pixels) >= (1 - MAX_WASTE) * pixels:
        pixels = floor(pixels)
    side = Side(pool, pixels / room.look.dpi)
    return Cells(side, side, annotated=False)


def _plan_grid(picture: HeatmapGrid, cells: Cells, kind: ScaleFamily, room: Room) -> GridPlan:
    dpi, sides = room.look.dpi, zip(cells[:2], shape_of(picture), strict=True)
    height, width = (ceil_to_pixel(side.count(number) * side.length, dpi) for side, number in sides)
    gap, down = (ceil_to_pixel(min(most, max(MIN_BETWEEN, BETWEEN_SHARE * width)), dpi) for most in BETWEEN)
    return GridPlan(
        maps=picture.maps,
        n_columns=picture.n_columns,
        map_width=width,
        map_height=height,
        heading_size=0.0,
        headings=(),
        heading_room=0.0,
        gap=gap,
        down=down,
        statistic=choose_statistic(picture.maps[0], kind),
        fold=picture.fold,
        slim=plan_slim(picture, width, dpi),
    )


def _name_edges(grid: GridPlan, edges: EdgeNames, corner: tuple[float, float], room: Room) -> list[TextLine]:
    """The name of each row to its left and of each column above it, of narrow ones every second …"""
    size, (left, top) = room.sizes.panel, corner
    lines = []
    for n in range(0, len(edges.rows), _step(edges.rows, grid.map_height + grid.down, size, upright=True)):
        box = grid.fold_box(n * grid.n_columns, left, top)
        end = box.left - PAD - extent(edges.rows[n], size).width * POINT
        lines.append(TextLine(edges.rows[n], end, box.top + box.height / 2 + 0.36 * size * POINT, size))
    pitch = grid.slim + grid.map_width + grid.gap
    for n in range(0, len(edges.columns), _step(edges.columns, pitch, size, upright=False)):
        box = grid.box(n, left, top)
        lines.append(TextLine(edges.columns[n], box.left + box.width / 2, top - PAD, size, INK, "center"))
    return lines


def _step(names: Sequence[str], pitch: float, size: float, *, upright: bool) -> int:
    """How many names on one of them has room."""
    widest = size if upright else max(extent(name, size).width for name in names)
    return max(1, ceil(CLOSE * widest * POINT / pitch))
