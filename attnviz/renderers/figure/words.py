"""Where everything goes on a picture of a text whose tokens are shaded by what they get. Draws nothing.

Lengths are inches from the upper left corner, text sizes points.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from attnviz.renderers.figure.colour_bar import Across, place_bar, plan_bar
from attnviz.renderers.figure.header import MARGIN, MIN_WIDTH, ceil_to_pixel, frame, header_of, refuse_width
from attnviz.renderers.figure.layout import GAP, POINT, Box, FigurePlan, Room, TextLine, Word, maps_of, spell_maps
from attnviz.renderers.figure.style import GREY, SIZES
from attnviz.renderers.figure.text import extent
from attnviz.report import FigureStyle, Heatmap, HeatmapGrid, Report, Scale

WIDTH = 6.5  # inches at most, with text of the usual size
ALONE = 1.25  # of the size of axes' names: of a text that stands alone
HIGH, PITCH = 1.5, 1.75  # of the text's size: a box, and from line to line
AROUND, BETWEEN = 0.2, 0.1  # likewise: beside a token, and from box to box
MEAN = "each token is shaded by what it gets, as a mean over the queries that may attend to it"


class Paragraph(NamedTuple):
    """The tokens of one text with what each gets; `name` says from whom, where there are several."""

    name: str
    tokens: tuple[str, ...]
    values: Sequence[float]
    asked: int | None  # which of them attends to the others, where it is one


def plan_text(picture: Heatmap | HeatmapGrid, report: Report, look: FigureStyle) -> FigurePlan:
    """Plan where everything on one picture is placed. Raises TooLarge for too many pixels; says what would work."""
    room = Room.for_picture(picture, look)
    sizes, scale = room.sizes, picture.scale or report.scale
    paragraphs = tuple(_paragraphs(picture, scale))
    size, bigger = sizes.axis * (1 if len(paragraphs) > 1 else ALONE), sizes.axis / SIZES.axis
    width = look.width or 0.0
    if look.width is None:  # as wide as the longest line, within bounds that grow with the text's size
        _, words, _ = flow_words(paragraphs, (0.0, WIDTH * bigger), size)
        ends = [(word.box.left, word.box.left + word.box.width) for word in words]  # from the right, where so written
        longest = _beside(paragraphs, size) + max(right for _, right in ends) - min(left for left, _ in ends) + MARGIN
        width = ceil_to_pixel(max(MIN_WIDTH * bigger, longest), look.dpi)
    bar = plan_bar(scale, (width - 2 * MARGIN - bigger, 0.0), width, room.sizes.axis)
    if (least := bar.length + 2 * (MARGIN + bar.beside)) > width:
        if look.width is not None:
            raise refuse_width(picture.name, look, sizes, least)
        width = ceil_to_pixel(least, look.dpi)
        bar = plan_bar(scale, (width - 2 * MARGIN - bigger, 0.0), width, room.sizes.axis)
    header, top = header_of(picture, report, width, look, sizes)
    names, words, lowest = flow_words(paragraphs, (top, width), size)
    box, label, lowest = place_bar(bar, width - 2 * MARGIN, Across(0.0, MARGIN, 0.0, width), (top, lowest), room)
    of_maps = maps_of(picture)[0].has_queries
    return FigurePlan(
        **frame(picture, report, look, (width, lowest, GAP), [*header, *names, *label], [MEAN] * of_maps),
        bar=box,
        scale=scale,
        ticks=bar.ticks,
        words=tuple(words),
        kind="text",
        sizes=sizes,
    )


def _paragraphs(picture: Heatmap | HeatmapGrid, scale: Scale) -> Iterator[Paragraph]:
    """Yield a paragraph for each map, or for each row where rows are not tokens."""
    several = spell_maps(picture, quoted=False)
    for heatmap in several:
        shading, allowed = heatmap.shade(scale), heatmap.allowed
        if not heatmap.has_queries:
            for name, values, may in zip(heatmap.rows, shading, allowed, strict=True):
                said = f"{heatmap.row_axis} {name}" if len(heatmap.rows) * len(several) > 1 else ""
                yield Paragraph(said, heatmap.columns, np.where(may, values, 0.0).tolist(), heatmap.asked)
        else:
            sums = np.where(allowed, shading, 0.0).sum(axis=0) / np.maximum(allowed.sum(axis=0), 1)
            said = ": ".join(filter(None, (heatmap.title, heatmap.note))) if len(several) > 1 else ""
            yield Paragraph(said, heatmap.columns, sums.tolist(), None)


def flow_words(
    paragraphs: Sequence[Paragraph], place: tuple[float, float], size: float
) -> tuple[list[TextLine], list[Word], float]:
    """Place tokens line by line after their paragraphs' names; also return where they end.

    `place` is the top, and the figure's width.
    """
    em, (top, width) = size * POINT, place
    left, right = _beside(paragraphs, size), width - MARGIN
    names, words = [], []
    for name, tokens, values, asked in paragraphs:
        base = top + HIGH * em * 0.72
        names.append(TextLine(name, MARGIN, base, size, GREY))
        directions = [unicodedata.bidirectional(token[0]) for token in tokens if token and token[0].isalpha()]
        x, mirrored = left, 2 * sum(each in ("R", "AL") for each in directions) > len(directions)
        for number, (token, value) in enumerate(zip(tokens, values, strict=True)):
            taken = extent(token, size).width * POINT + 2 * AROUND * em
            if x > left and x + taken > right:
                x, top = left, top + PITCH * em
            at = left + right - x - taken if mirrored else x
            line = TextLine(token, at + AROUND * em, top + HIGH * em * 0.72, size)
            words.append(Word(Box(at, top, taken, HIGH * em), value, line, number == asked))
            x += taken + BETWEEN * em
        top += (PITCH + 0.35) * em
    return [line for line in names if line.text], words, top


def _beside(paragraphs: Sequence[Paragraph], size: float) -> float:
    """Return where tokens begin: behind the names, in inches."""
    widest = max(extent(paragraph.name, size).width * POINT for paragraph in paragraphs)
    return MARGIN + widest + 1.5 * size * POINT * bool(widest)
