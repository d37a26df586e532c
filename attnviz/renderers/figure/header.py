"""What all pictures share: margins, title, paragraphs, small print, whole pixels; and headings of maps.

Lengths are inches from the upper left corner, text sizes points.
"""

from collections.abc import Sequence
from itertools import chain
from math import ceil
from typing import Any

from attnviz.errors import TooLarge
from attnviz.renderers.figure.layout import GAP, PAD, POINT, Box, PlacedMap, Room, TextLine, is_small
from attnviz.renderers.figure.style import GREY, INK, MIN_FONT_SIZE, Sizes, look_of
from attnviz.renderers.figure.text import extent, line_height, wrap, wrap_evenly
from attnviz.report import FigureStyle, Heatmap, HeatmapGrid, Picture, Report
from attnviz.words import say

MARGIN = 0.12
MIN_WIDTH = 3.2  # a title needs some room even over a single cell
SWATCH_WIDTH, SWATCH_HEIGHT = 0.18, 0.09
STANDS_OUT = 0.8 * GAP  # how far a word may stand out into the gaps beside its map


def refuse_width(name: str, look: FigureStyle, sizes: Sizes, needed: float) -> TooLarge:
    """Say that a figure has no room in the width asked for, how wide it would be, and what else would work."""
    ways = f"--width {ceil(10 * needed - 1e-6) / 10:.1f}in" + " or a smaller --font-size" * (sizes.axis > MIN_FONT_SIZE)
    what = f"{look.width:.3g} in are too few for {name!r} with text of {sizes.axis:.3g} points"
    return TooLarge(what, hint=f"Try {ways}.")


def ceil_to_pixel(inches: float, dpi: int) -> float:
    """Round up to the next whole pixel, in inches."""
    return ceil(inches * dpi - 1e-6) / dpi


def height_of(lines: Sequence[str], size: float) -> float:
    """Return the height of a paragraph, in inches."""
    return sum(line_height(line, size) for line in lines) * POINT


def paragraph(
    lines: Sequence[str], size: float, colour: str, left: float, top: float, bold: bool = False
) -> list[TextLine]:
    """Place lines one below the other."""
    placed = []
    for text in lines:
        top += line_height(text, size, bold) * POINT
        base = top - max(extent(text, size, bold).descent, 0.3 * size) * POINT
        placed.append(TextLine(text, left, base, size, colour, bold=bold))
    return placed


def below(lines: Sequence[TextLine], otherwise: float) -> float:
    """Return where the next thing under a paragraph may begin, in inches."""
    return lines[-1].y + 0.3 * lines[-1].size * POINT if lines else otherwise


def header_of(
    picture: Picture, report: Report, width: float, look: FigureStyle, sizes: Sizes
) -> tuple[list[TextLine], float]:
    """Place the title over the subtitle, however long, unless neither is wanted; also return the picture's top.

    Where a width is asked for in which the report's title takes several lines, the picture's own is the title.
    """
    if not look.header:
        return [], MARGIN
    room = (width - 2 * MARGIN) / POINT
    parts, said = [title_of(picture, report)], report.subtitle
    too_long = [extent(each, sizes.title, bold=True).width > room for each in (parts[0], report.title)]
    if all(too_long) and look.width is not None and picture.title:
        parts, said = [picture.title], " · ".join(filter(None, (report.title, report.subtitle)))
    elif too_long[0]:
        parts = [report.title, picture.title]
    wrapped = [line for part in parts for line in wrap(part, sizes.title, room, bold=True)]
    lines = paragraph(wrapped, sizes.title, INK, MARGIN, MARGIN, bold=True)
    subtitle = wrap(said, sizes.subtitle, room)
    lines += paragraph(subtitle, sizes.subtitle, GREY, MARGIN, below(lines, MARGIN))
    return lines, below(lines, MARGIN) + GAP * bool(lines)


def title_of(picture: Picture, report: Report) -> str:
    """Return the title above a picture: the title of the report, then its own."""
    return " · ".join(part for part in (report.title, picture.title) if part)


def frame(
    picture: Picture,
    report: Report,
    look: FigureStyle,
    place: tuple[float, float, float],
    lines: Sequence[TextLine],
    notes: Sequence[str],
) -> dict[str, Any]:
    """Return what every picture has once all else has its place: small print under it, its height, its inks.

    `place` is its width, where it ends but for small print, and how far below that begins. A note on what is hatched
    has a key, and is the first.
    """
    (theme, sizes), (width, end, apart) = look_of(look.theme, look.font_size), place
    is_hatched = any(note.startswith("hatched") for note in notes)
    left = MARGIN + (SWATCH_WIDTH + PAD) * is_hatched
    said = " · ".join(say(text, look.lang) for text in notes)
    small_print = wrap(said, sizes.small, (width - left - MARGIN) / POINT)
    footer = paragraph(small_print, sizes.small, GREY, left, end + apart)
    return {
        "name": picture.name,
        "title": title_of(picture, report),
        "width": width,
        "height": ceil_to_pixel(below(footer, end) + MARGIN, look.dpi),
        "lines": tuple(line._replace(colour=theme.find_ink(line.colour)) for line in (*lines, *footer)),
        "theme": theme,
        "swatch": Box(MARGIN, footer[0].y - SWATCH_HEIGHT + 0.01, SWATCH_WIDTH, SWATCH_HEIGHT) if is_hatched else None,
    }


def _say_above(picture: Heatmap | HeatmapGrid) -> tuple[list[str], list[str]]:
    """Return each map's title, unless the edges of the grid or the picture's own title say it, and each map's note.

    One map alone has the picture's title over it, and small ones have nothing.
    """
    if isinstance(picture, Heatmap) or is_small(picture):
        return [], []
    titles = [heatmap.title if picture.edges is None else "" for heatmap in picture.maps]
    return titles, [heatmap.note for heatmap in picture.maps]


def measure_longest_word(picture: Heatmap | HeatmapGrid, room: Room) -> float:
    """Measure the longest word above a map, in inches of the smallest text that headings may have."""
    words = [word for text in chain(*_say_above(picture)) for word in text.split()]
    return max((extent(word, room.sizes.headings[-1]).width * POINT for word in words), default=0.0)


def wrap_headings(
    picture: Heatmap | HeatmapGrid, points: float, sizes: Sequence[float]
) -> tuple[float, Sequence[Sequence[Sequence[str]]], float]:
    """Find the largest size at which each text fits on one line, else the last; return it, the lines and their inches.

    A word that is a little wider than its map is not broken: it stands out into the gaps beside it.
    """
    titles, notes = _say_above(picture)
    widest = max((extent(text, sizes[-1]).width for text in (*titles, *notes)), default=0.0) / sizes[-1]
    size = next((size for size in sizes if widest * size <= points), sizes[-1])
    words = [word for text in (*titles, *notes) for word in text.split()]
    longest = max((extent(word, size).width for word in words), default=0.0)
    points = max(points, min(longest, points + STANDS_OUT / POINT))
    pairs = zip(titles, notes, strict=True)
    headings = [[wrap_evenly(text, size, points) if text else () for text in texts] for texts in pairs]
    return size, headings, max((height_of([*title, *note], size) for title, note in headings), default=0.0)


def place_headings(
    places: Sequence[PlacedMap], headings: Sequence[Sequence[Sequence[str]]], size: float, room: float
) -> list[TextLine]:
    """Place the title of each map, centred `room` inches over it, and its note in grey below."""
    lines: list[TextLine] = []
    for place, (title, note) in zip(places, headings, strict=False):
        middle, top = place.box.left + place.box.width / 2, place.box.top - room
        placed = paragraph([*title, *note], size, INK, middle, top)
        colours = [INK] * len(title) + [GREY] * len(note)
        lines += [line._replace(align="center", colour=ink) for line, ink in zip(placed, colours, strict=True)]
    return lines
