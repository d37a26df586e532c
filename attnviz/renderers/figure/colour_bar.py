"""The colour bar of a picture of maps: its ticks and their numbers, how long it is, and where it lies. Draws nothing.

`draw.draw_bar` and `paint` draw it. Lengths are inches from the
upper left corner, text sizes points.
"""

from math import ceil, floor, log2, log10
from typing import NamedTuple

import numpy as np
from matplotlib.ticker import MaxNLocator

from attnviz.renderers.figure.header import MARGIN, below, ceil_to_pixel, height_of, paragraph
from attnviz.renderers.figure.layout import GAP, PAD, POINT, TICK, Box, Room, TextLine
from attnviz.renderers.figure.scale import norm_of, plan_limits, write_sign
from attnviz.renderers.figure.style import GREY, INK
from attnviz.renderers.figure.text import LINE_HEIGHT, extent, wrap_evenly
from attnviz.report import Scale

BAR_WIDTH, BAR_SHORTEST = 0.09, 1.2
MAX_BAR_WIDTH = 3.0  # below maps, unless its numbers need more
APART = 0.7  # of the end of a bar: numbers of multiples beyond would lie on its own, most of all below a bar

Ticks = tuple[tuple[float, str], ...]  # where, and what they say


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
    ticks: Ticks


def plan_ticks(scale: Scale) -> Ticks:
    """Choose the ticks of the colour bar.

    A shared range shows its two ends, as does one without a round number inside.
    """
    low, high = plan_limits(scale)
    kind = scale.family
    if kind.is_multiple:
        inner = [2**power for power in range(round(log2(low)) + 1, ceil(log2(high))) if 2**power <= APART * high]
        most = f"{high:g} ×" if scale.is_bounded else f"≥ {high:g} ×"
        return (low, f"≤ {low:g} ×"), *((float(each), f"{each} ×") for each in inner), (high, most)
    if kind.is_signed:  # both ends, 0, and the same round numbers on either side; only 0 where there is no difference
        above = MaxNLocator(3, steps=[1, 2, 2.5, 5, 10]).tick_values(0.0, high)
        positive = [*_inner([float(tick) for tick in above if tick > 0], low, high), high] if scale.high else []
        ticks = [*(-tick for tick in reversed(positive)), 0.0, *positive]
        return tuple((tick, write_sign(f"{tick:+.3g}")) for tick in ticks)
    if kind.is_logarithmic:
        powers = [10.0**power for power in range(ceil(log10(low) - 1e-9), floor(log10(high) + 1e-9) + 1)]
        ticks = powers[:: ceil(len(powers) / 8) or 1]
    else:
        ticks = [float(tick) for tick in MaxNLocator(5).tick_values(low, high) if low <= tick <= high]
    if kind.has_ends or len(ticks) < 2:
        ticks = [low, *_inner(ticks, low, high), high]
    # Smaller values have the lowest colour of a logarithmic scale, too.
    return tuple((tick, f"{'≤ ' * (kind.is_logarithmic and tick <= low)}{tick:.3g}") for tick in ticks)


def _inner(ticks: list[float], low: float, high: float) -> list[float]:
    """Drop ticks whose numbers would lie on those of the ends."""
    room = 0.06 * (high - low)
    return [tick for tick in ticks if low + room < tick < high - room]


def plan_bar(scale: Scale, maps: tuple[float, float], width: float | None, size: float) -> BarPlan:
    """Plan the colour bar: beside maps, as high as they are, or below them where the figure's width is given.

    In a bar below, no number may touch the next: where there is no room for all, the ends and the middle one are
    written, of differences 0.

    `maps` is how wide and high they are, `size` that of the text.
    """
    ticks = plan_ticks(scale)
    if width is None:
        length = max(BAR_SHORTEST, maps[1])
        label = wrap_evenly(scale.label, size, length / POINT)
        widest = max(extent(text, size).width for _, text in ticks) * POINT
        return BarPlan(False, length, BAR_WIDTH + TICK + 2 * PAD + widest + height_of(label, size), label, ticks)
    label = wrap_evenly(scale.label, size, (width - 2 * MARGIN) / POINT)
    for few in (ticks, tuple(dict.fromkeys((ticks[0], ticks[len(ticks) // 2], ticks[-1])))):
        widths = [extent(text, size).width * POINT for _, text in few]
        at = np.asarray(norm_of(scale)([value for value, _ in few])).tolist()
        apart = [
            ((one + other) / 2 + 0.5 * size * POINT) / max(1e-6, to - of)
            for one, other, of, to in zip(widths, widths[1:], at, at[1:], strict=False)
        ]
        beside = max(widths[0], widths[-1]) / 2
        longest = width - 2 * (MARGIN + beside)
        length = max(BAR_SHORTEST, min(maps[0], MAX_BAR_WIDTH, longest), *apart)
        if length <= longest:
            break
    return BarPlan(True, length, beside, label, few)


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
