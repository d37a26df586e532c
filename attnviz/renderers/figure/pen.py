"""Texts in pixels: matplotlib's own, but each is drawn once and then copied. Knows no plans and no pictures."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import UInt32
from matplotlib.backend_bases import GraphicsContextBase
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.font_manager import FontProperties

Rgba = tuple[float, float, float, float]

WHITE_PIXEL = np.uint32(0xFFFFFFFF)
# Pixels: how long a text may be that is kept, such as a token, and a title; and how high, on either side of its line.
SHORT, LONG, MARGIN = 224, 1400, 48
KEPT, KEPT_LONG = 1 << 10, 1 << 6  # texts, together 44 and 17 MB at most
STEPS = 64  # of a glyph's place within a pixel


class Stamp(NamedTuple):
    """A text in pixels on white, and where its first column and row are, seen from the pixel that it starts in."""

    pixels: UInt32[np.ndarray, "row column"]
    left: int
    top: int


class Pen(RendererAgg):
    """matplotlib's, but most of a text's time goes into its glyphs: each is drawn once and then copied.

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
        font = prop.copy()
        length, _, _ = _extent(self.dpi, s, font, False)
        stamped = _stamp if length <= SHORT else _long_stamp
        stamp = stamped(self.dpi, s, font, angle, gc.get_rgb(), right, up)
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
    sheet = _sheet(dpi, SHORT, MARGIN)
    extent: tuple[float, float, float] = sheet.get_text_width_height_descent(text, font, is_formula)
    return extent


@lru_cache(maxsize=4)
def _sheet(dpi: float, width: int, height: int) -> Any:  # a RendererAgg, which has no types
    return RendererAgg(width + 2 * MARGIN, height + 2 * MARGIN, dpi)  # type: ignore[no-untyped-call]


@lru_cache(maxsize=KEPT)
def _stamp(
    dpi: float, text: str, font: FontProperties, angle: float, rgba: Rgba, right: float, up: float
) -> Stamp | None:
    """A text that starts so many 64ths of a pixel right of a pixel's corner and above it.

    None if it is too large, or nothing of it is seen.
    """
    width, height, _ = _extent(dpi, text, font, False)
    if width > LONG or height >= MARGIN - 2:  # glyphs are rounded to pixels
        return None
    length = SHORT if width <= SHORT else LONG
    sheet = _sheet(dpi, *((length, 0) if angle == 0 else (0, length)))
    pixels = whole(np.asarray(sheet.buffer_rgba()))
    pixels[:] = WHITE_PIXEL
    pen = sheet.new_gc()
    pen.set_foreground(rgba, isRGBA=True)
    line = len(pixels) - MARGIN
    sheet.draw_text(pen, MARGIN + right / STEPS, line - up / STEPS, text, font, angle)
    ink = pixels != WHITE_PIXEL
    rows, columns = np.flatnonzero(ink.any(axis=1)), np.flatnonzero(ink.any(axis=0))
    if not len(rows):
        return None
    top, left = int(rows[0]), int(columns[0])
    return Stamp(pixels[top : rows[-1] + 1, left : columns[-1] + 1].copy(), left - MARGIN, top - line)


_long_stamp = lru_cache(maxsize=KEPT_LONG)(_stamp.__wrapped__)


def whole(pixels: np.ndarray) -> np.ndarray:
    """Each pixel as one number."""
    numbers: np.ndarray = pixels.view(np.uint32)[..., 0]
    return numbers
