"""What stands above maps that are side by side, and beside their rows. Draws nothing.

Inches from the upper left corner; text sizes points.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

from attnviz.renderers.figure.grid import GridPlan
from attnviz.renderers.figure.header import height_of, paragraph
from attnviz.renderers.figure.layout import GAP, POINT, PlacedMap, TextLine
from attnviz.renderers.figure.style import GREY, INK
from attnviz.renderers.figure.text import extent, wrap_evenly
from attnviz.report import EdgeNames, Heatmap, HeatmapGrid

ABOVE = 0.02  # inches between a map and what stands above it


def say_above(picture: Heatmap | HeatmapGrid) -> tuple[list[str], list[str]]:
    """What stands above each map: its title, unless the edges of the grid or the picture's own title say it; its note.

    One map alone has the picture's title over it.
    """
    if isinstance(picture, Heatmap):
        return [], []
    titles = [heatmap.title if picture.edges is None else "" for heatmap in picture.maps]
    return titles, [heatmap.note for heatmap in picture.maps]


def wrap_headings(
    titles: Sequence[str], notes: Sequence[str], points: float, sizes: Sequence[float]
) -> tuple[float, Sequence[Sequence[Sequence[str]]], float]:
    """The largest of the sizes in which each text has room on one line, else the last; the lines; inches they take.

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
    """Each panel's title, centred over it, and its note in grey below."""
    lines: list[TextLine] = []
    for place, (title, note) in zip(places, grid.headings, strict=False):
        middle = place.box.left + place.box.width / 2
        top = place.box.top - grid.heading_room
        placed = paragraph([*title, *note], grid.heading_size, INK, middle, top)
        colours = [INK] * len(title) + [GREY] * len(note)
        lines += [line._replace(align="center", colour=ink) for line, ink in zip(placed, colours, strict=True)]
    return lines


def name_edges(grid: GridPlan, edges: EdgeNames, left: float, places: Sequence[PlacedMap]) -> list[TextLine]:
    """The name of each row of maps, upright, to the left of its labels, which begin at `left`; of each column above."""
    size = grid.edge_size
    rows = _spell(edges.row_axis, edges.rows, grid.map_height + grid.down + grid.heading_room, size)
    columns = _spell(edges.column_axis, edges.columns, grid.map_width + grid.gap, size)
    middles = [place.box.top + place.box.height / 2 for place in places[:: grid.n_columns]]
    above = places[0].box.top - grid.heading_room - ABOVE * (not grid.heading_room) - 0.3 * size * POINT
    return [
        *(TextLine(*row, size, INK, "center", 90) for row in zip(rows, repeat(left - 0.3 * size * POINT), middles)),
        *(
            TextLine(name, place.box.left + place.box.width / 2, above, size, INK, "center")
            for name, place in zip(columns, places, strict=False)
        ),
    ]


def _spell(axis: str, names: Sequence[str], pitch: float, size: float) -> list[str]:
    """ "head 3", or "3" where not all of them have room; "mean" says itself what it is."""
    spelled = [f"{axis} {name}" if name.isdigit() else name for name in names]
    return spelled if max(extent(name, size).width for name in spelled) * POINT < pitch else [*names]
