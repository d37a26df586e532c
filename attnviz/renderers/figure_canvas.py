"""Pixels to draw on with matplotlib's own pens, without its figures of nested parts.

Knows no plans; places come as boxes, inches from the upper left corner.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from math import ceil
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, UInt8, UInt32
from matplotlib.artist import Artist
from matplotlib.backend_bases import GraphicsContextBase
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Rectangle
from matplotlib.path import Path
from matplotlib.transforms import Bbox, IdentityTransform

from attnviz.renderers.figure_draw import ground, write
from attnviz.renderers.figure_layout import Box, Line
from attnviz.renderers.figure_png import png_of as png_of
from attnviz.renderers.style import HAIRLINE, INK
from attnviz.report import Scale

Pixels = UInt8[np.ndarray, "row column 4"]
Rgba = tuple[float, float, float, float]

WHITE = 255
WHITE_PIXEL = np.uint32(0xFFFFFFFF)
SHEET, MARGIN = 320, 48  # pixels: a square on which a text is drawn to be copied, which it starts in, and its height
KEPT = 1 << 10  # texts, together 44 MB at most
STEPS = 64  # of a glyph's place within a pixel


class Stamp(NamedTuple):
    """A text in pixels on white, and where its first column and row are, seen from the pixel that it starts in."""

    pixels: UInt32[np.ndarray, "row column"]
    left: int
    top: int


class Pen(RendererAgg):
    """matplotlib's, but most of a text's time goes into its glyphs: a short one is drawn once and then copied.

    The same pixels, as a text's follow from what `_stamp` is given, on white.
    """

    def get_text_width_height_descent(
        self, s: str, prop: FontProperties, ismath: bool | Literal["TeX"]
    ) -> tuple[float, float, float]:
        return _extent(self.dpi, s, prop.copy(), ismath)

    def draw_text(
        self,
        gc: GraphicsContextBase,
        x: float,
        y: float,
        s: str,
        prop: FontProperties,
        angle: float,
        ismath: bool | Literal["TeX"] = False,
        mtext: Any = None,
    ) -> None:
        if ismath or angle not in (0, 90) or not _is_simple(gc) or not self._copied(gc, x, y, s, prop, angle):
            super().draw_text(gc, x, y, s, prop, angle, ismath, mtext)  # type: ignore[no-untyped-call]

    def _copied(self, gc: GraphicsContextBase, x: float, y: float, s: str, prop: FontProperties, angle: float) -> bool:
        """Whether a copy stands there; not if the text is too long, or meets another, or the edge of the page."""
        across, upwards = _step(x, angle == 0), _step(self.height - y)
        if across is None or upwards is None:
            return False
        (column, right), (row, up) = divmod(across, STEPS), divmod(upwards, STEPS)
        stamp = _stamp(self.dpi, s, prop.copy(), angle, gc.get_rgb(), right, up)
        if stamp is None:
            return False
        top, left = int(self.height - row) + stamp.top, int(column) + stamp.left
        n_rows, n_columns = stamp.pixels.shape
        page = whole(np.asarray(self.buffer_rgba()))  # type: ignore[no-untyped-call]
        below = page[max(0, top) : top + n_rows, max(0, left) : left + n_columns]
        ink = stamp.pixels != WHITE_PIXEL
        if below.shape != ink.shape or (below[ink] != WHITE_PIXEL).any():
            return False
        np.copyto(below, stamp.pixels, where=ink)
        return True


def _is_simple(gc: GraphicsContextBase) -> bool:
    """Opaque, smooth and uncut."""
    return (
        gc.get_alpha() == 1
        and bool(gc.get_antialiased())
        and gc.get_clip_rectangle() is None
        and gc.get_clip_path() == (None, None)
    )


def _step(at: float, exact: bool = True) -> float | None:
    """Where glyphs are rounded to: whole steps, or halves, from which whole ones go up and down in turns.

    None for what is so near to a half that it follows from the last bits, and those from where on the page it is.
    Across the page `at` is not `exact` in a text upwards, as the cosine of a right angle is not quite 0.
    """
    step = STEPS * at
    if abs(step - round(step)) < 0.49:
        return round(step)
    return step if exact and (2 * step).is_integer() else None


@lru_cache(maxsize=1 << 16)
def _extent(dpi: float, text: str, font: FontProperties, is_formula: bool | str) -> tuple[float, float, float]:
    """Width, height and descent in pixels."""
    extent: tuple[float, float, float] = _sheet(dpi).get_text_width_height_descent(text, font, is_formula)
    return extent


@lru_cache(maxsize=1)
def _sheet(dpi: float) -> Any:  # a RendererAgg, which has no types
    return RendererAgg(SHEET, SHEET, dpi)  # type: ignore[no-untyped-call]


@lru_cache(maxsize=KEPT)
def _stamp(
    dpi: float, text: str, font: FontProperties, angle: float, rgba: Rgba, right: float, up: float
) -> Stamp | None:
    """A text that starts so many 64ths of a pixel right of a pixel's corner and above it.

    None if it is too large, or nothing of it is seen.
    """
    width, height, _ = _extent(dpi, text, font, False)
    if width > SHEET - 2 * MARGIN or height >= MARGIN - 2:  # glyphs are rounded to pixels
        return None
    sheet = _sheet(dpi)
    pixels = whole(np.asarray(sheet.buffer_rgba()))
    pixels[:] = WHITE_PIXEL
    pen = sheet.new_gc()
    pen.set_foreground(rgba, isRGBA=True)
    sheet.draw_text(pen, MARGIN + right / STEPS, SHEET - MARGIN - up / STEPS, text, font, angle)
    ink = pixels != WHITE_PIXEL
    rows, columns = np.flatnonzero(ink.any(axis=1)), np.flatnonzero(ink.any(axis=0))
    if not len(rows):
        return None
    top, left = int(rows[0]), int(columns[0])
    return Stamp(pixels[top : rows[-1] + 1, left : columns[-1] + 1].copy(), left - MARGIN, top - (SHEET - MARGIN))


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

    def write(self, lines: Iterable[Line]) -> None:
        """Lines of text."""
        self.draw(write(self.figure, line) for line in lines)

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


def whole(pixels: np.ndarray) -> np.ndarray:
    """Each pixel as one number."""
    numbers: np.ndarray = pixels.view(np.uint32)[..., 0]
    return numbers


def paint(within: Pixels, colours: Float[np.ndarray, "row column 4"]) -> None:
    """Fill a map with the colours of its cells, 0 to 1; a transparent cell leaves the ground as it is."""
    cells = whole(np.floor(colours * WHITE + 0.5).astype(np.uint8))  # as Agg rounds
    opaque = colours[..., 3] > 0
    for axis in (0, 1):
        size = within.shape[axis] // cells.shape[axis]
        cells, opaque = cells.repeat(size, axis), opaque.repeat(size, axis)
    np.copyto(whole(within), cells, where=opaque)
