"""Maps side by side: how large all of them are, where each lies, and what stands beside them. Draws nothing.

Inches from the upper left corner.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import ceil, floor
from typing import NamedTuple

from attnviz.renderers.figure.colour_bar import Across, BarPlan
from attnviz.renderers.figure.header import MARGIN, MIN_WIDTH, ceil_to_pixel, height_of, ordinal
from attnviz.renderers.figure.layout import (
    GAP,
    MAX_LINES,
    POINT,
    Box,
    Cells,
    Labels,
    PlacedMap,
    Room,
    line_room,
)
from attnviz.renderers.figure.scale import LEAST_WRITTEN, plan_limits
from attnviz.report import Heatmap, Scale

READING = "in each map rows are queries, from the top, and columns keys, from the left; tokens are not labelled"


class GridPlan(NamedTuple):
    """The maps of one picture: how many, how large each and its title, and what lies between two."""

    maps: tuple[Heatmap, ...]
    n_columns: int
    map_width: float
    map_height: float
    heading_size: float
    headings: Sequence[Sequence[Sequence[str]]]  # of each map lines of its title and of its note; none of one alone
    heading_room: float
    gap: float  # across
    down: float
    edge_size: float = 0.0  # of the text that names rows and columns of maps
    lines: bool = False  # from row to column, each with its labels beside it
    small: bool = False  # close together, without labels
    beyond: float = 0.0  # what the labels to the right take
    pairs: Mapping[float, str] = {}  # by inches from the top of the map what stands to the right of it, a cell's name
    footnote: str = ""

    @property
    def width(self) -> float:
        """Return the width of all maps side by side, in inches."""
        return self.n_columns * (self.map_width + self.gap) - self.gap + self.beyond

    @property
    def height(self) -> float:
        """Return the height from the top of the first map to the bottom of the last, in inches."""
        n_rows = ceil(len(self.maps) / self.n_columns)
        return n_rows * (self.map_height + self.heading_room + self.down) - self.down - self.heading_room


def list_caveats(grid: GridPlan, cells: Cells, labels: tuple[Labels, Labels], scale: Scale) -> list[str]:
    """List what the picture cannot show by itself."""
    texts = []
    if labels[0].step == 0 and grid.maps[0].row_axis == Heatmap.row_axis:
        texts.append(READING if grid.small else "tokens are not labelled, for want of room")
    shape = [max(sizes) for sizes in zip(*(heatmap.values.shape for heatmap in grid.maps), strict=True)]
    sides = ("query", "key") if labels[0].step != labels[1].step else ("token", "token")
    first = grid.maps[0]
    axes = ((first.has_queries, first.row_axis), (first.has_keys, first.column_axis))
    things = (side if is_usual else axis for side, (is_usual, axis) in zip(sides, axes, strict=True))
    thinned = {
        (side.step * (side.step > 1) * grid.maps[0].block, thing)
        for side, thing, number in zip(labels, things, shape, strict=True)
        if number > 1
    }
    texts += [f"every {ordinal(step)} {thing} is labelled" for step, thing in sorted(thinned) if step > 1]
    if labels[1].places is not None:
        texts.append(f"of the {'keys' if grid.lines else 'columns'}, those that get most are named first")
    low, _ = plan_limits(scale)
    if grid.lines and any((heatmap.shade(scale)[heatmap.allowed] > low).sum() > MAX_LINES for heatmap in grid.maps):
        texts.append(f"of each head, the {MAX_LINES} strongest lines are drawn")
    if grid.lines:
        thicker = "thicker" if line_room(cells) == 1 else "thicker and less faint"
        texts.append(f"the {thicker} a line, the larger its weight")
    if cells.annotated and any((abs(each.values[each.allowed]) < LEAST_WRITTEN).any() for each in grid.maps):
        texts.append(f"cells without a number: less than {LEAST_WRITTEN:.3f}".replace("0.", "."))
    if grid.footnote:
        texts.append(grid.footnote)
    if cells.pools != (1, 1) or grid.maps[0].block > 1:
        (rows, columns), kind = (pool * grid.maps[0].block for pool in cells.pools), scale.family
        what = "differences" if kind.is_signed else "multiples" if kind.is_multiple else "weights"
        of = f"of {rows} × {columns} {what}"
        texts.append(f"each cell is the largest {of}, up or down" if kind.is_signed else f"each cell is the mean {of}")
    return texts


def plan_across(grid: GridPlan, row_room: float, bar: BarPlan, room: Room) -> Across:
    """Plan from the left: names of rows, their labels, maps; then the colour bar, its numbers, its label, or below."""
    size, dpi = room.sizes.axis, room.look.dpi
    axis = grid.maps[0].row_axis
    maps = MARGIN + row_room + (0.0 if grid.lines or not axis else height_of([axis], size))
    content = maps + grid.width + MARGIN + (0.0 if bar.below else GAP + bar.beside)
    if room.look.width is not None:
        width = max(room.look.width, content, 2 * MARGIN + bar.length + 2 * bar.beside)
        shift = floor((width - content) / 2 * dpi) / dpi
    else:
        width = ceil_to_pixel(max(MIN_WIDTH, content), dpi)
        shift = ceil_to_pixel((width - content) / 2, dpi)
    return Across(MARGIN + shift + size * POINT, ceil_to_pixel(maps, dpi) + shift, content - MARGIN + shift, width)


def place_maps(grid: GridPlan, left: float, top: float) -> Iterator[PlacedMap]:
    """Yield each map with its place."""
    for index, heatmap in enumerate(grid.maps):
        row, column = divmod(index, grid.n_columns)
        x = left + column * (grid.map_width + grid.gap)
        box = Box(x, top + row * (grid.map_height + grid.heading_room + grid.down), grid.map_width, grid.map_height)
        yield PlacedMap(heatmap, box)
