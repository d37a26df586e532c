"""What is other on a picture of very many maps: small, close together, named once at the edges. Draws nothing.

Inches from the upper left corner; text sizes points.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor

from attnviz.renderers.figure.grid import GridPlan
from attnviz.renderers.figure.header import Across
from attnviz.renderers.figure.layout import MAX_CELLS, PAD, POINT, Cells, Room, Side, TextLine, shape_of
from attnviz.renderers.figure.style import GREY, INK
from attnviz.renderers.figure.text import extent
from attnviz.report import EdgeNames, Heatmap, HeatmapGrid

BETWEEN, MIN_BETWEEN = (0.06, 0.035), 0.02  # inches from map to map, across and down
BETWEEN_SHARE = 0.13  # of a small map's side
MAX_WASTE = 0.125  # of a map's side, for cells of whole pixels
CLOSE = 1.2  # of a name's width: from one to the next


def find_small_edges(picture: Heatmap | HeatmapGrid) -> EdgeNames | None:
    """Return what names rows and columns of small maps; None where maps are not small."""
    return picture.edges if isinstance(picture, HeatmapGrid) and picture.small else None


def plan_small_cells(picture: Heatmap | HeatmapGrid, room: Room) -> Cells:
    """As large as the side of a map allows; of whole pixels, unless that would leave much of it empty."""
    n_tokens, n_pixels = max(shape_of(picture)), max(1, floor(room.side * room.look.dpi))
    pool = ceil(n_tokens / min(MAX_CELLS, n_pixels))
    n_cells = ceil(n_tokens / pool)
    pixels = n_pixels / n_cells
    if floor(pixels) >= (1 - MAX_WASTE) * pixels:
        pixels = floor(pixels)
    side = Side(pool, pixels / room.look.dpi)
    return Cells(side, side, annotated=False)


def plan_small_gaps(width: float) -> tuple[float, float]:
    """Return inches between small maps, across and down."""
    across, down = (min(most, max(MIN_BETWEEN, BETWEEN_SHARE * width)) for most in BETWEEN)
    return across, down


def name_small_edges(
    grid: GridPlan, edges: EdgeNames, across: Across, down: tuple[float, float], room: Room
) -> list[TextLine]:
    """What rows and columns of maps are, the name of each row to its left and of each column above it, of narrow ones
    every second … `down` is where the name of the columns ends and where maps begin.
    """
    size, axis, (heads, top) = room.sizes.panel, room.sizes.axis, down
    length = extent(edges.row_axis, axis).width * POINT
    lines = [
        TextLine(edges.column_axis, across.maps + grid.width / 2, heads - PAD / 2, axis, GREY, "center"),
        TextLine(edges.row_axis, across.row_axis, top + max(grid.height, length) / 2, axis, GREY, "center", 90),
    ]
    for n in range(0, len(edges.rows), _step(edges.rows, grid.map_height + grid.down, size, upright=True)):
        box = grid.fold_box(n * grid.n_columns, across.maps, top)
        end = box.left - PAD - extent(edges.rows[n], size).width * POINT
        lines.append(TextLine(edges.rows[n], end, box.top + box.height / 2 + 0.36 * size * POINT, size))
    pitch = grid.slim + grid.map_width + grid.gap
    for n in range(0, len(edges.columns), _step(edges.columns, pitch, size, upright=False)):
        box = grid.box(n, across.maps, top)
        lines.append(TextLine(edges.columns[n], box.left + box.width / 2, top - PAD, size, INK, "center"))
    return lines


def _step(names: Sequence[str], pitch: float, size: float, *, upright: bool) -> int:
    """How many names on one of them has room."""
    widest = size if upright else max(extent(name, size).width for name in names)
    return max(1, ceil(CLOSE * widest * POINT / pitch))
