"""What stands above maps that are side by side, and beside their rows. Draws nothing.

Inches from the upper left corner; text sizes points.
"""

from collections.abc import Iterator, Sequence
from math import ceil
from typing import Any

from attnviz.renderers.figure.grid import GridPlan
from attnviz.renderers.figure.header import height_of, paragraph
from attnviz.renderers.figure.layout import (
    GAP,
    LABEL_PAD,
    PAD,
    POINT,
    TICK,
    Align,
    Cells,
    Labels,
    PlacedMap,
    Room,
    TextLine,
    is_small,
)
from attnviz.renderers.figure.style import GREY, INK
from attnviz.renderers.figure.text import ASCENT, extent, wrap_evenly
from attnviz.report import EdgeNames, Heatmap, HeatmapGrid

CLOSE = 1.2  # of a name's width: from one to the next
ABOVE = 0.02  # inches between a map and what stands above it


def say_above(picture: Heatmap | HeatmapGrid) -> tuple[list[str], list[str]]:
    """Return each map's title, unless the edges of the grid or the picture's own title say it, and each map's note.

    One map alone has the picture's title over it, and small ones have nothing.
    """
    if isinstance(picture, Heatmap) or is_small(picture):
        return [], []
    titles = [heatmap.title if picture.edges is None else "" for heatmap in picture.maps]
    return titles, [heatmap.note for heatmap in picture.maps]


def wrap_headings(
    titles: Sequence[str], notes: Sequence[str], points: float, sizes: Sequence[float]
) -> tuple[float, Sequence[Sequence[Sequence[str]]], float]:
    """Find the largest size at which each text fits on one line, else the last; return it, the lines and their inches.

    A word that is a little wider than its map is not broken: it stands out into the gaps beside it.
    """
    widest = max((extent(text, sizes[-1]).width for text in (*titles, *notes)), default=0.0) / sizes[-1]
    size = next((size for size in sizes if widest * size <= points), sizes[-1])
    words = [word for text in (*titles, *notes) for word in text.split()]
    longest = max((extent(word, size).width for word in words), default=0.0)
    points = max(points, min(longest, points + 0.8 * GAP / POINT))
    pairs = zip(titles, notes, strict=True)
    headings = [[wrap_evenly(text, size, points) if text else () for text in texts] for texts in pairs]
    return size, headings, max((height_of([*title, *note], size) for title, note in headings), default=0.0)


def place_headings(grid: GridPlan, places: Sequence[PlacedMap]) -> list[TextLine]:
    """Place each panel's title, centred over it, and its note in grey below."""
    lines: list[TextLine] = []
    for place, (title, note) in zip(places, grid.headings, strict=False):
        middle = place.box.left + place.box.width / 2
        top = place.box.top - grid.heading_room
        placed = paragraph([*title, *note], grid.heading_size, INK, middle, top)
        colours = [INK] * len(title) + [GREY] * len(note)
        lines += [line._replace(align="center", colour=ink) for line, ink in zip(placed, colours, strict=True)]
    return lines


def name_edges(grid: GridPlan, edges: EdgeNames, left: float, places: Sequence[PlacedMap]) -> list[TextLine]:
    """Place the name of each row of maps, upright, left of its labels, which begin at `left`; of each column above it.

    Beside small maps rows have their names as they are, and what has no room for each name has every second …
    """
    size, down = grid.edge_size, grid.map_height + grid.down + grid.heading_room
    pitch, lines = grid.map_width + grid.gap, list[TextLine]()
    rows, columns = edges.rows, edges.columns
    if not grid.small:
        rows, columns = _spell(edges.row_axis, rows, down, size), _spell(edges.column_axis, columns, pitch, size)
    for place, name in [*zip(places[:: grid.n_columns], rows, strict=True)][:: _step(size, down)]:
        middle = place.box.top + place.box.height / 2
        if grid.small:
            base = middle + 0.36 * size * POINT
            lines.append(TextLine(name, place.box.left - PAD, base, size, INK, "right"))
        else:
            lines.append(TextLine(name, left - 0.3 * size * POINT, middle, size, INK, "center", 90))
    above = places[0].box.top - PAD
    if not grid.small:
        above = places[0].box.top - grid.heading_room - ABOVE * (not grid.heading_room) - 0.3 * size * POINT
    widest = max(extent(name, size).width for name in columns)
    for place, name in [*zip(places[: grid.n_columns], columns, strict=True)][:: _step(widest, pitch)]:
        lines.append(TextLine(name, place.box.left + place.box.width / 2, above, size, INK, "center"))
    return lines


def _step(points: float, pitch: float) -> int:
    """Return n where only every n-th name has room."""
    return max(1, ceil(CLOSE * points * POINT / pitch))


def _spell(axis: str, names: Sequence[str], pitch: float, size: float) -> tuple[str, ...]:
    """Spell names as "head 3", or "3" where not all of them have room; "mean" says itself what it is."""
    spelled = tuple(f"{axis} {name}" if name.isdigit() else name for name in names)
    return spelled if max(extent(name, size).width for name in spelled) * POINT < pitch else tuple(names)


def write_tokens(
    places: Sequence[PlacedMap], labels: tuple[Labels, Labels], cells: Cells, n_columns: int, room: Room
) -> Iterator[TextLine]:
    """Write tokens beside rows of maps and under columns, or at both ends of lines, of which a few are as high as many.

    Rows are labelled in the first column of maps only, columns only where no map follows below.
    """
    (beside, below), ink, away = labels, room.theme.find_ink(INK), TICK + LABEL_PAD * POINT
    for index, place in enumerate(places):
        rows, columns = (list(enumerate(names)) for names in (place.heatmap.rows, place.heatmap.columns))
        (left, top, width, height), end = place.box, place.box.left + place.box.width + TICK + PAD
        if room.look.kind == "lines":
            sides: tuple[tuple[Any, Labels, float, Align], ...]
            sides = (rows, beside, left - TICK - PAD, "right"), (columns, below, end, "left")
            for tokens, label, x, align in sides:
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
