"""Pixels to draw on with matplotlib's own pens, without its figures of nested parts.

Knows no plans; places come as boxes, inches from the upper left corner.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, UInt8, UInt32
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.path import Path
from matplotlib.transforms import Bbox, IdentityTransform

from attnviz.renderers.figure.draw import ground
from attnviz.renderers.figure.label import Label, Style, draw_labels
from attnviz.renderers.figure.layout import Box, Line
from attnviz.renderers.figure.pen import WHITE_PIXEL, Pen, whole
from attnviz.renderers.figure.style import HAIRLINE, INK
from attnviz.renderers.figure.text import drawable
from attnviz.report import Scale

Pixels = UInt8[np.ndarray, "row column 4"]

WHITE = 255


class Taken(NamedTuple):
    """What must not be drawn on any more, from the top of the page down to where this ends."""

    before: UInt32[np.ndarray, "row column"]  # a pixel in one number
    where: Bool[np.ndarray, "row column"]

    def changed(self, canvas: Canvas) -> bool:
        return bool((self.where & (self.before != whole(canvas.pixels[: len(self.before)]))).any())


class Canvas:
    """A white page. To be used within `style.drawing`."""

    def __init__(self, width: float, height: float, dpi: int) -> None:
        self.figure = Figure(figsize=(width, height), dpi=dpi)
        self._dpi = dpi
        self._renderer = Pen(*self.figure.canvas.get_width_height(physical=True), dpi)  # type: ignore[no-untyped-call]
        buffer = self._renderer.buffer_rgba()  # type: ignore[no-untyped-call]
        self.pixels: Pixels = np.asarray(buffer)  # these very ones, not a copy
        self.pixels[:] = WHITE

    def within(self, box: Box) -> Pixels:
        """The pixels of a box, of which it takes whole ones."""
        left, top, width, height = (round(part * self._dpi) for part in box)
        return self.pixels[top : top + height, left : left + width]

    def draw(self, artists: Iterable[Artist]) -> None:
        """Anything of matplotlib's."""
        for artist in artists:
            if artist.get_figure() is None:
                artist.set_figure(self.figure)
            artist.draw(self._renderer)

    def label(self, labels: Iterable[Label]) -> None:
        """Many short texts."""
        draw_labels(labels, self.figure, self._renderer)

    def write(self, lines: Iterable[Line]) -> None:
        """Lines of text, as `draw.write` places them."""
        width, height = self.figure.get_size_inches()
        for line in lines:
            right, up = self.figure.transSubfigure.transform((line.x / width, 1 - line.y / height))
            style = Style(line.size, line.colour, line.align, "baseline", line.rotation, "anchor")
            self.label([Label(drawable(line.text), right, up, style)])

    def hatch(self, box: Box, scale: Scale) -> None:
        """The ground that forbidden cells leave open."""
        left, bottom, right, top = self._edges(box)
        page = IdentityTransform()
        self.draw([Rectangle((left, bottom), right - left, top - bottom, transform=page, **ground(scale))])

    def frame(self, box: Box) -> None:
        """The four lines around a map."""
        left, bottom, right, top = self._edges(box)
        pen = self._renderer.new_gc()
        pen.set_foreground(INK)
        pen.set_linewidth(HAIRLINE)
        pen.set_capstyle("projecting")
        corners = (left, bottom), (left, top), (right, bottom), (right, top)
        for start, end in ((0, 1), (2, 3), (0, 2), (1, 3)):
            side = Path([corners[start], corners[end]])
            self._renderer.draw_path(pen, side, IdentityTransform())  # type: ignore[no-untyped-call]
        pen.restore()

    def cut(self, artist: Artist, box: Box) -> None:
        """From now on only what lies in the box is drawn of it."""
        left, bottom, right, top = self._edges(box)
        artist.set_clip_box(Bbox.from_extents(left, bottom + 1, right - 1, top))  # Agg includes the pixels at the ends

    def taken(self, boxes: Iterable[Box] = (), down_to: float | None = None) -> Taken:
        """What is drawn so far, and `boxes` with their frames; only as many inches from the top as are asked for."""
        before = whole(self.pixels[: None if down_to is None else round(down_to * self._dpi)]).copy()
        where = before != WHITE_PIXEL
        reach = ceil(HAIRLINE * self._dpi / 72 / 2)
        for left, bottom, right, top in map(self._edges, boxes):
            low, high = len(self.pixels) - top, len(self.pixels) - bottom
            where[max(0, low - reach) : high + reach, max(0, left - reach) : right + reach] = True
        return Taken(before, where)

    def _edges(self, box: Box) -> tuple[int, int, int, int]:
        """Left, bottom, right and top in pixels as matplotlib counts them, upwards."""
        left, top, width, height = (round(part * self._dpi) for part in box)
        page = len(self.pixels)
        return left, page - top - height, left + width, page - top


def paint(within: Pixels, colours: Float[np.ndarray, "row column 4"]) -> None:
    """Fill a map with the colours of its cells, 0 to 1; a transparent cell leaves the ground as it is."""
    cells = whole(np.floor(colours * WHITE + 0.5).astype(np.uint8))  # as Agg rounds
    opaque = colours[..., 3] > 0
    for axis in (0, 1):
        size = within.shape[axis] // cells.shape[axis]
        cells, opaque = cells.repeat(size, axis), opaque.repeat(size, axis)
    np.copyto(whole(within), cells, where=opaque)
