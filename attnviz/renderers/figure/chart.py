"""What charts of all kinds share: colours, a frame with a title and named axes, a legend above them.

Lengths are inches from the upper left corner, text sizes points.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from matplotlib.axes import Axes

from attnviz.renderers.figure.axis import AxisRange
from attnviz.renderers.figure.header import MARGIN, height_of, paragraph
from attnviz.renderers.figure.layout import GAP, PAD, POINT, TICK, Box, Line
from attnviz.renderers.figure.style import AXIS, HAIRLINE, INK
from attnviz.renderers.figure.text import extent, wrap, wrap_evenly

SIZES = ((4.6, 2.8), (2.9, 2.1), (2.4, 1.9))  # of a chart alone, of one of two in a row, of one of three and more
SAMPLE = 0.28  # inches of line or colour beside its name
# Okabe and Ito's colours, which colour-blind readers tell apart; without their yellow, which is too pale for a line.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GRID = "#e4e4e4"


class Key(NamedTuple):
    """Where the sample beside a name begins, `y` at its middle."""

    name: str
    x: float
    y: float


@dataclass(frozen=True, eq=False)
class Frame:
    """One pair of axes in its box, and from where on the left the name of its y axis stands."""

    title: str
    x_axis: str
    y_axis: str
    y: AxisRange
    left: float
    box: Box

    @property
    def heading(self) -> tuple[str, ...]:
        return wrap(self.title, AXIS, self.box.width / POINT)

    @property
    def heading_room(self) -> float:
        return height_of(self.heading, AXIS)

    @property
    def y_name(self) -> tuple[str, ...]:
        return wrap_evenly(self.y_axis, AXIS, self.box.height / POINT)

    @property
    def y_room(self) -> float:
        """Inches that everything left of the box takes."""
        numbers = max((extent(text, AXIS).width for _, text in self.y.ticks), default=0.0) * POINT
        return height_of(self.y_name, AXIS) + PAD + numbers + PAD + TICK

    def texts(self, heading_bottom: float, x_room: float) -> Iterator[Line]:
        """The title, the names of the axes; no numbers, which along the x axis take `x_room`."""
        middle = self.box.left + self.box.width / 2
        yield from centred(self.heading, AXIS, middle, heading_bottom - self.heading_room)
        for line in paragraph(self.y_name, AXIS, INK, 0.0, self.left):
            yield Line(line.text, line.y, self.box.top + self.box.height / 2, AXIS, INK, "center", 90)
        x_name = wrap(self.x_axis, AXIS, self.box.width / POINT)
        yield from centred(x_name, AXIS, middle, self.box.top + self.box.height + x_room)


def centred(texts: Sequence[str], size: float, middle: float, top: float, colour: str = INK) -> list[Line]:
    return [line._replace(align="center") for line in paragraph(texts, size, colour, middle, top)]


def legend(names: Iterable[str], top: float, width: float) -> tuple[list[Line], tuple[Key, ...], float]:
    """The names, each after room for a sample, as many to a row as fit; and where the last row ends."""
    lines: list[Line] = []
    keys = []
    left, bottom = MARGIN, top
    for name in names:
        texts = wrap(name, AXIS, (width - 2 * MARGIN - SAMPLE - PAD) / POINT) or ("",)
        taken = SAMPLE + PAD + max(extent(text, AXIS).width for text in texts) * POINT
        if left > MARGIN and left + taken > width - MARGIN:
            left, top = MARGIN, bottom
        placed = paragraph(texts, AXIS, INK, left + SAMPLE + PAD, top)
        lines += placed
        keys.append(Key(name, left, placed[0].y - 0.35 * AXIS * POINT))
        left += taken + 2 * GAP
        bottom = max(bottom, top + height_of(texts, AXIS))
    return lines, tuple(keys), bottom


def draw_frame(axes: Axes, frame: Frame) -> None:
    """Open to the top and the right, with the numbers of its y axis. The x axis is as the chart needs it."""
    axes.set(ylim=(frame.y.low, frame.y.high))
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_linewidth(HAIRLINE)
    axes.yaxis.set_ticks([tick for tick, _ in frame.y.ticks], [text for _, text in frame.y.ticks])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_tick_params(length=TICK / POINT, width=HAIRLINE, pad=2, labelsize=AXIS)
    axes.yaxis.grid(visible=True, color=GRID, linewidth=HAIRLINE)
    axes.set_axisbelow(True)
