"""The colour bar of a picture of maps: how long it is, what is written along it, and where it lies. Draws nothing.

Which numbers stand along it, `scale.plan_ticks` says; `draw.draw_bar` and `paint` draw it. Lengths are inches from the
upper left corner, text sizes points.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from attnviz.renderers.figure.header import MARGIN, below, ceil_to_pixel, height_of, paragraph
from attnviz.renderers.figure.layout import GAP, PAD, POINT, TICK, Box, Room, TextLine
from attnviz.renderers.figure.scale import norm_of
from attnviz.renderers.figure.style import GREY, INK
from attnviz.renderers.figure.text import LINE_HEIGHT, extent, wrap_evenly
from attnviz.report import Scale

BAR_WIDTH, BAR_SHORTEST = 0.09, 1.2
MAX_BAR_WIDTH = 3.0  # below maps, unless its numbers need more


class Across(NamedTuple):
    """What stands beside what: inches from the left."""

    row_axis: float  # base line of the name of the rows
    maps: float
    end: float  # of what stands beside each other
    width: float  # of the whole figure


class BarPlan(NamedTuple):
    """The colour bar: how long, and what is written along it. Below maps where a width is asked for, else beside."""

    below: bool
    length: float
    beside: float  # inches that numbers and label take beside it, or that the first and the last number stick out
    label: tuple[str, ...]


def plan_bar(
    scale: Scale, ticks: Sequence[tuple[float, str]], maps: tuple[float, float], width: float | None, room: Room
) -> BarPlan:
    """Plan the colour bar: beside maps, as high as they are, or below them where the figure's width is given.

    In a bar below, no number may touch the next.

    `maps` is how wide and high they are.
    """
    size = room.sizes.axis
    widths = [extent(text, size).width * POINT for _, text in ticks]
    if width is None:
        length = max(BAR_SHORTEST, maps[1])
        label = wrap_evenly(scale.label, size, length / POINT)
        return BarPlan(False, length, BAR_WIDTH + TICK + 2 * PAD + max(widths) + height_of(label, size), label)
    at = np.asarray(norm_of(scale)([value for value, _ in ticks])).tolist()
    apart = [
        ((one + other) / 2 + 0.5 * size * POINT) / max(1e-6, to - of)
        for one, other, of, to in zip(widths, widths[1:], at, at[1:], strict=False)
    ]
    label = wrap_evenly(scale.label, size, (width - 2 * MARGIN) / POINT)
    beside = max(widths[0], widths[-1]) / 2
    longest = min(maps[0], MAX_BAR_WIDTH, width - 2 * (MARGIN + beside))
    return BarPlan(True, max(BAR_SHORTEST, longest, *apart), beside, label)


def place_bar(
    bar: BarPlan, maps: float, across: Across, ends: tuple[float, float], room: Room
) -> tuple[Box, list[TextLine], float]:
    """Place the bar and its label; also return where all ends.

    `maps` is the width of the maps, `ends` their top and their lowest text.
    """
    (top, lowest), size = ends, room.sizes.axis
    if not bar.below:
        box = Box(across.maps + maps + GAP, top, BAR_WIDTH, bar.length)
        flat = paragraph(bar.label, size, INK, 0.0, across.end - height_of(bar.label, size))
        middle = top + bar.length / 2
        upright = [TextLine(line.text, line.y, middle, size, GREY, "center", 90) for line in flat]
        return box, upright, max(lowest, top + bar.length)
    centred = across.maps + (maps - bar.length) / 2
    left = max(MARGIN + bar.beside, min(centred, across.width - MARGIN - bar.beside - bar.length))
    box = Box(left, ceil_to_pixel(lowest + GAP, room.look.dpi), bar.length, BAR_WIDTH)
    under = box.top + BAR_WIDTH + TICK + LINE_HEIGHT * size * POINT
    half = max(extent(line, size).width for line in bar.label) * POINT / 2
    middle = min(max(left + bar.length / 2, MARGIN + half), across.width - MARGIN - half)
    label = [line._replace(align="center") for line in paragraph(bar.label, size, GREY, middle, under)]
    return box, label, below(label, under)
