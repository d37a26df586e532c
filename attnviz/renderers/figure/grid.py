"""Maps side by side: how large all of them are, where each lies, and what stands above and beside them. Draws nothing.

Inches from the upper left corner. Text sizes are points.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil, floor, inf
from typing import Any, NamedTuple

from attnviz.renderers.figure import header, layout
from attnviz.renderers.figure.colour_bar import Across, BarPlan, place_bar, plan_bar
from attnviz.renderers.figure.header import MARGIN, ceil_to_pixel, frame, height_of, paragraph
from attnviz.renderers.figure.labels import find_step, name_pairs, plan_labels, spell_names
from attnviz.renderers.figure.layout import GAP, PAD, POINT, TICK, Box, Cells, Labels, PlacedMap, Room, TextLine
from attnviz.renderers.figure.scale import LEAST_WRITTEN, plan_limits
from attnviz.renderers.figure.style import GREY, INK
from attnviz.renderers.figure.text import ASCENT, extent, ordinal, wrap_evenly
from attnviz.report import EdgeNames, Heatmap, HeatmapGrid, Report, Scale
from attnviz.words import say

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
    texts, first = [], grid.maps[0]
    if not grid.lines and not all(each.is_of_pairs or each.allowed.all() for each in grid.maps):
        texts.append("hatched: not attendable" if first.has_queries or first.has_keys else "hatched: not measured")
    if labels[0].step == 0 and first.has_queries:
        texts.append(READING if grid.small else "tokens are not labelled, for want of room")
    shape = [max(sizes) for sizes in zip(*(heatmap.values.shape for heatmap in grid.maps), strict=True)]
    sides = ("query", "key") if labels[0].step != labels[1].step else ("token", "token")
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
    if grid.lines and any(
        (heatmap.shade(scale)[heatmap.allowed] > low).sum() > layout.MAX_LINES for heatmap in grid.maps
    ):
        texts.append(f"of each head, the {layout.MAX_LINES} strongest lines are drawn")
    if grid.lines:
        thicker = "thicker" if layout.line_room(cells) == 1 else "thicker and less faint"
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
        width = ceil_to_pixel(max(header.MIN_WIDTH, content), dpi)
        shift = ceil_to_pixel((width - content) / 2, dpi)
    return Across(MARGIN + shift + size * POINT, ceil_to_pixel(maps, dpi) + shift, content - MARGIN + shift, width)


def place_maps(grid: GridPlan, left: float, top: float) -> Iterator[PlacedMap]:
    """Yield each map with its place."""
    for index, heatmap in enumerate(grid.maps):
        row, column = divmod(index, grid.n_columns)
        x = left + column * (grid.map_width + grid.gap)
        box = Box(x, top + row * (grid.map_height + grid.heading_room + grid.down), grid.map_width, grid.map_height)
        yield PlacedMap(heatmap, box)


ABOVE = 0.02  # inches between a map and what stands above it
BETWEEN, MIN_BETWEEN = (0.06, 0.035), 0.02  # inches from one small map to the next, across and down
BETWEEN_SHARE = 0.13  # of a small map's side
MAX_BESIDE = 0.22  # of a width that is asked for: what names of cells may take beside the map
MAX_BAR_HEIGHT = 4.0


def name_edges(grid: GridPlan, edges: EdgeNames, left: float, places: Sequence[PlacedMap]) -> list[TextLine]:
    """Place the name of each row of maps, upright, left of its labels, which begin at `left`; of each column above it.

    Beside small maps rows have their names as they are, and what has no room for each name has every second …
    """
    size, down = grid.edge_size, grid.map_height + grid.down + grid.heading_room
    pitch, lines = grid.map_width + grid.gap, list[TextLine]()
    rows, columns, above = edges.rows, edges.columns, places[0].box.top - PAD
    if not grid.small:
        rows = spell_names(edges.row_axis, rows, down, size)
        columns = spell_names(edges.column_axis, columns, pitch, size)
        above = places[0].box.top - grid.heading_room - ABOVE * (not grid.heading_room) - 0.3 * size * POINT
    for place, name in [*zip(places[:: grid.n_columns], rows, strict=True)][:: find_step(size, down)]:
        middle = place.box.top + place.box.height / 2
        if grid.small:
            base = middle + 0.36 * size * POINT
            lines.append(TextLine(name, place.box.left - PAD, base, size, INK, "right"))
        else:
            lines.append(TextLine(name, left - 0.3 * size * POINT, middle, size, INK, "center", 90))
    widest = max(extent(name, size).width for name in columns)
    for place, name in [*zip(places[: grid.n_columns], columns, strict=True)][:: find_step(widest, pitch)]:
        lines.append(TextLine(name, place.box.left + place.box.width / 2, above, size, INK, "center"))
    return lines


def name_axes(
    grid: GridPlan, names: tuple[str, str], base: float, across: Across, top: float, room: Room
) -> tuple[TextLine, ...]:
    """Place the names of rows and columns, each once, at the middle of its side; columns on a line at `base`."""
    size, (rows, columns) = room.sizes.axis, names
    right = across.maps + grid.width if grid.lines else across.width - MARGIN  # beyond are the colour bar's numbers
    said = say(f"from {rows} to {columns}", room.look.lang)
    texts = wrap_evenly(said, size, (right - MARGIN) / POINT) if grid.lines else (columns,)
    half = max(extent(text, size).width for text in texts) * POINT / 2
    maps = grid.width - grid.beyond
    middle = min(max(across.maps + maps / 2, MARGIN + half), right - half)
    if grid.lines:
        under = top + grid.height + PAD
        return tuple(line._replace(align="center") for line in paragraph(texts, size, GREY, middle, under))
    length = extent(rows, size).width * POINT
    return (
        TextLine(rows, across.row_axis, top + max(grid.height, length) / 2, size, GREY, "center", 90),
        TextLine(columns, middle, base, size, GREY, "center"),
    )


def write_tokens(
    places: Sequence[PlacedMap], labels: tuple[Labels, Labels], cells: Cells, n_columns: int, room: Room
) -> Iterator[TextLine]:
    """Write tokens beside rows of maps and under columns, or at both ends of lines, of which a few are as high as many.

    Rows are labelled in the first column of maps only, columns only where no map follows below.
    """
    (beside, below), ink, away = labels, room.theme.find_ink(INK), TICK + layout.LABEL_PAD * POINT
    for index, place in enumerate(places):
        rows, columns = (list(enumerate(names)) for names in (place.heatmap.rows, place.heatmap.columns))
        (left, top, width, height), end = place.box, place.box.left + place.box.width + TICK + PAD
        if room.look.kind == "lines":
            sides: dict[layout.Align, Any] = {"right": (rows, beside, left - TICK - PAD), "left": (columns, below, end)}
            for align, (tokens, label, x) in sides.items():
                pitch = max(len(rows), len(columns)) / len(tokens) * cells.rows.length
                for at, name in label.choose(tokens):
                    base = top + (at + 0.5) * pitch + 0.36 * label.size * POINT
                    yield TextLine(name, x, base, label.size, ink, align)
            continue
        for at, name in beside.choose(rows) if index % n_columns == 0 else ():
            middle = top + (at + 0.5) / cells.rows.pool * height / cells.rows.count(len(rows))
            base = middle + ASCENT / 2 * beside.size * POINT
            yield TextLine(name, place.box.left - away, base, beside.size, ink, "right")
        under, rise = top + height + away, ASCENT * below.size * POINT
        for at, name in below.choose(columns) if index + n_columns >= len(places) else ():
            x = left + (at + 0.5) / cells.columns.pool * width / cells.columns.count(len(columns))
            if below.rotated:
                yield TextLine(name, x + rise / 2, under, below.size, ink, "right", 90)
            else:
                yield TextLine(name, x, under + rise, below.size, ink, "center")


def plan_in(picture: Heatmap | HeatmapGrid, report: Report, room: Room) -> layout.FigurePlan:
    """Plan the figure for maps of one size; wider than the width asked for where they do not fit."""
    look, sizes, dpi = room.look, room.sizes, room.look.dpi
    scale, edges = picture.scale or report.scale, picture.edges if isinstance(picture, HeatmapGrid) else None
    cells = layout.plan_cells(picture, room)
    labels = plan_labels(picture, cells, room)
    grid = _grid(picture, cells, labels, room)
    highest = min(grid.height, MAX_BAR_HEIGHT) if grid.small else grid.map_height
    bar = plan_bar(scale, (grid.width, highest), look.width, room.sizes.axis)
    axis, above, beside = 0.0, 0.0, labels[0].room
    if edges and grid.small:
        axis = height_of([edges.column_axis], sizes.axis)
        above = axis + height_of(edges.columns[:1], grid.edge_size) + PAD
        beside = max(extent(name, grid.edge_size).width for name in edges.rows) * POINT + 2 * PAD
    elif edges:
        above = height_of(["layer"], grid.edge_size) + ABOVE
        beside += above + PAD
    across = plan_across(grid, beside, bar, room)

    titles, start = header.header_of(picture, report, across.width, look, sizes)
    top = ceil_to_pixel(start + above + grid.heading_room, dpi)
    places = tuple(place_maps(grid, across.maps, top))
    named, base = (grid.maps[0].row_axis, grid.maps[0].column_axis), top + grid.height + labels[1].room
    if edges and grid.small:
        named, base = (edges.row_axis, edges.column_axis), start + axis - PAD / 2 - sizes.axis * POINT
    axes: tuple[TextLine, ...] = ()
    lowest = top + grid.height
    if any(named):
        axes = name_axes(grid, named, base + sizes.axis * POINT, across, top, room)
        length = extent(axes[0].text, sizes.axis).width * POINT * (not grid.lines)
        lowest = max(lowest, top + length, axes[-1].y)
    names = name_edges(grid, edges, across.maps - labels[0].room, places) if edges else []
    names += [*header.place_headings(places, grid.headings, grid.heading_size, grid.heading_room), *axes]
    bar_box, bar_label, lowest = place_bar(bar, grid.width, across, (top, lowest), room)
    notes = list_caveats(grid, cells, labels, scale)
    end, down = across.maps + grid.map_width + TICK + PAD, top + 0.36 * sizes.smallest * POINT
    pairs = [TextLine(pair, end, down + at, sizes.smallest) for at, pair in grid.pairs.items()]
    return layout.FigurePlan(
        **frame(picture, report, look, (across.width, lowest, GAP), [*titles, *names, *bar_label, *pairs], notes),
        cells=cells,
        labels=labels,
        tokens=tuple(write_tokens(places, labels, cells, grid.n_columns, room)),
        places=places,
        bar=bar_box,
        scale=scale,
        ticks=bar.ticks,
        kind=look.kind,
        sizes=sizes,
    )


def _grid(picture: Heatmap | HeatmapGrid, cells: Cells, labels: tuple[Labels, Labels], room: Room) -> GridPlan:
    lines, dpi, sizes = room.look.kind == "lines", room.look.dpi, room.sizes.headings
    small = layout.is_small(picture)
    sides = zip(cells[:2], layout.shape_of(picture), strict=True)
    height, width = (side.count(number) * side.length for side, number in sides)
    if small:
        height, width = (ceil_to_pixel(side, dpi) for side in (height, width))
    if lines:
        height, width = max(height, width), ceil_to_pixel(room.side, dpi)
    beside = sum(label.room for label in labels) if lines else 0.0
    gaps = [min(most, max(MIN_BETWEEN, BETWEEN_SHARE * width)) for most in BETWEEN] if small else (GAP + beside, GAP)
    size, headings, above = header.wrap_headings(picture, (width + beside) / POINT, sizes)
    maps = layout.maps_of(picture)
    if labels[0].step == 0 and maps[0].backdrop is not None and not small:
        maps, gaps = tuple(replace(each, row_axis="", column_axis="") for each in maps), (BETWEEN[0], GAP)
    pairs, footnote = name_pairs(picture, cells, room), "" if small else picture.footnote
    beyond = labels[1].room if lines else 0.0
    if pairs:
        widest = max(extent(pair, room.sizes.smallest).width for pair in pairs.values())
        beyond = ceil_to_pixel(widest * POINT + TICK + 2 * PAD, dpi)
    if beyond > MAX_BESIDE * (room.look.width or inf) and not lines:  # so narrow a map needs the room itself
        listed = f"strongest: {', '.join(pairs.values())}"
        pairs, beyond, footnote = {}, 0.0, " · ".join(filter(None, (footnote, listed)))
    return GridPlan(
        maps=maps,
        n_columns=layout.count_maps(picture)[1],
        map_width=width,
        map_height=height,
        heading_size=size,
        headings=headings,
        heading_room=ceil_to_pixel(above + ABOVE, dpi) if above else 0.0,
        edge_size=room.sizes.panel if small else sizes[0],
        gap=ceil_to_pixel(gaps[0], dpi),
        down=ceil_to_pixel(gaps[1], dpi),
        lines=lines,
        small=small,
        beyond=beyond,
        footnote=footnote,
        pairs=pairs,
    )
