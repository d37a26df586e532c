"""What all pictures share: margins, title and subtitle, paragraphs, whole pixels. Draws nothing.

Lengths are inches from the upper left corner, text sizes points.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, sqrt

from attnviz.errors import TooLarge
from attnviz.renderers.figure.layout import POINT, TextLine
from attnviz.renderers.figure.style import GREY, INK, SIZES, Sizes
from attnviz.renderers.figure.text import extent, line_height, wrap
from attnviz.report import Picture, Report

MARGIN = 0.12
MIN_WIDTH = 3.2  # a title needs some room even over a single cell
MAX_PIXELS = 100_000_000


def check_size(name: str, width: float, height: float, dpi: int) -> None:
    """Raises TooLarge for too many pixels, and says what would work."""
    if width * height * dpi**2 > MAX_PIXELS:
        works = floor(0.98 * sqrt(MAX_PIXELS / (width * height)))
        pixels = f"{width * dpi:.0f} × {height * dpi:.0f} pixels"
        raise TooLarge(f"{name!r} would have {pixels}", hint=f"Up to {works} dpi it can be drawn.")


def ceil_to_pixel(inches: float, dpi: int) -> float:
    """The next whole pixel."""
    return ceil(inches * dpi - 1e-6) / dpi


def height_of(lines: Sequence[str], size: float) -> float:
    """Inches that a paragraph takes."""
    return sum(line_height(line, size) for line in lines) * POINT


def paragraph(lines: Sequence[str], size: float, colour: str, left: float, top: float) -> list[TextLine]:
    """Lines one under the other."""
    placed = []
    for text in lines:
        top += line_height(text, size) * POINT
        base = top - max(extent(text, size).descent, 0.3 * size) * POINT
        placed.append(TextLine(text, left, base, size, colour))
    return placed


def below(lines: Sequence[TextLine], otherwise: float) -> float:
    """Where the next thing under a paragraph may begin."""
    return lines[-1].y + 0.3 * lines[-1].size * POINT if lines else otherwise


def header_of(picture: Picture, report: Report, width: float, sizes: Sizes = SIZES) -> list[TextLine]:
    """The title over the subtitle, however long they are."""
    room = (width - 2 * MARGIN) / POINT
    title = title_of(picture, report)
    parts = [title] if extent(title, sizes.title).width <= room else [report.title, picture.title]
    lines = paragraph(
        [line for part in parts for line in wrap(part, sizes.title, room)], sizes.title, INK, MARGIN, MARGIN
    )
    return lines + paragraph(
        wrap(report.subtitle, sizes.subtitle, room), sizes.subtitle, GREY, MARGIN, below(lines, MARGIN)
    )


def title_of(picture: Picture, report: Report) -> str:
    """What stands above a picture: the title of the report, then its own."""
    return " · ".join(part for part in (report.title, picture.title) if part)


def ordinal(number: int) -> str:
    """2nd, 4th, 5th, 10th …: of the steps in which labels are thinned."""
    return f"{number}{'nd' if number == 2 else 'th'}"
