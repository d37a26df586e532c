"""White pixels to draw on: frames, ticks, hatching, texts. And all of them as a PNG file. Knows no plans.

Lengths are pixels from the upper left.

Pillow's writer, which matplotlib uses, tries all five filters on each row and cannot be told not to. One suffices here:
in maps most rows repeat the one above, as cells are many pixels high. zlib packs what is left in a third of the time
that a picture takes. ISA-L takes a quarter of that, but in one process of some hundreds it packs the same rows
otherwise.
"""

import struct
import warnings
import zlib
from collections.abc import Mapping
from functools import lru_cache
from io import BytesIO
from math import floor

import numpy as np
from jaxtyping import UInt8
from matplotlib.colors import to_rgb
from matplotlib.ft2font import LoadFlags
from PIL.PngImagePlugin import PngInfo, putchunk

from attnviz.renderers.figure.layout import TICK, Box, TextLine
from attnviz.renderers.figure.style import FRAME, HAIRLINE, INK, STYLE
from attnviz.renderers.figure.text import drawable, open_fonts

Pixels = UInt8[np.ndarray, "row column 3"]

HATCH_LINES = 18  # per inch across, as matplotlib has with six strokes
MAX_CACHED = 512  # texts, most of which are tokens of some kB
WHITE = 255
SIGNATURE = b"\x89PNG\r\n\x1a\n"
UP = 2  # the filter that keeps of each pixel its difference from the one above
LEVEL = 1  # of 1 to 9: the next saves little, those from 4 take half as long again
INCH = 0.0254  # metres


Stamp = tuple[UInt8[np.ndarray, "row column"], UInt8[np.ndarray, "row column 3"], int, int, float]


@lru_cache(maxsize=MAX_CACHED)
def stamp(text: str, size: float, dpi: int, colour: str = INK, up: bool = False, bold: bool = False) -> Stamp:
    """Return a text of `size` points in pixels, to the right or `up`.

    These are its shares of ink, 0 to 255, its colours on white, how many pixels left and above the start of its base
    line both begin (negative), and how many it is wide from its start to its end.
    """
    font = open_fonts(bold)
    font.set_size(size, dpi)
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # of glyphs, as in `style.drawing`
        font.set_text(" ", flags=LoadFlags.NO_HINTING)
        space = font.get_width_height()[0] / 64
        # Between spaces, which have no ink, the bitmap begins at a whole pixel; else the first glyph would be rounded
        # unlike the others.
        font.set_text(f" {text} ", flags=LoadFlags.NO_HINTING)
    font.draw_glyphs_to_bitmap()
    width, height = (length / 64 for length in font.get_width_height())
    whole = font.get_image()
    rows, columns = np.flatnonzero(whole.any(axis=1)), np.flatnonzero(whole.any(axis=0))
    top, bottom, left, right = (rows[0], rows[-1] + 1, columns[0], columns[-1] + 1) if len(rows) else (0, 0, 0, 0)
    alpha = whole[top:bottom, left:right].copy()
    left, top = round(left - space), int(top) - int(height - font.get_descent() / 64) - 1
    if up:
        left, top, alpha = top, -left - alpha.shape[1], np.rot90(alpha)
    on_white = WHITE - alpha[..., None] * (1 - np.array(to_rgb(colour)))
    return alpha, np.round(on_white).astype(np.uint8), left, top, width - 2 * space


class Canvas:
    """`dpi` turns the inches of a plan, and the points of texts and hairlines, into pixels."""

    def __init__(self, width: float, height: float, dpi: int) -> None:
        self.dpi = dpi
        thickness = HAIRLINE * dpi / 72
        self.hairline = max(1, round(thickness))
        self.cover = min(1.0, thickness)  # of a pixel that a hairline is thinner than
        self._hairline_colour = mix(WHITE, rgb(FRAME), self.cover)
        self.pixels: Pixels = np.full((round(height * dpi), round(width * dpi), 3), WHITE, dtype=np.uint8)

    def edges(self, box: Box) -> tuple[int, int, int, int]:
        """Return the pixels where a box begins and ends: left, top, right, bottom."""
        left, top, width, height = (round(inches * self.dpi) for inches in box)
        return left, top, left + width, top + height

    def within(self, box: Box) -> Pixels:
        """Return the pixels of a box."""
        left, top, right, bottom = self.edges(box)
        return self.pixels[top:bottom, left:right]

    def frame(self, box: Box) -> None:
        """Draw hairlines around a rectangle, outside of it."""
        left, top, right, bottom = self.edges(box)
        thick = self.hairline
        for y in (top - thick, bottom):
            self._fill(left - thick, y, right - left + 2 * thick, thick)
        for x in (left - thick, right):
            self._fill(x, top, thick, bottom - top)

    def tick(self, x: float, y: float) -> None:
        """Draw a tick mark from a point to the right."""
        thick = self.hairline
        self._fill(round(x), floor(y - thick / 2 + 0.5), round(TICK * self.dpi), thick)

    def _fill(self, left: int, top: int, width: int, height: int) -> None:
        self.pixels[top : top + height, left : left + width] = self._hairline_colour

    def write(self, line: TextLine) -> None:
        """Write a line of text with its start, middle or end at its place."""
        x, y, up = line.x * self.dpi, line.y * self.dpi, bool(line.rotation)
        alpha, on_white, left, top, width = stamp(drawable(line.text), line.size, self.dpi, line.colour, up, line.bold)
        back = {"left": 0.0, "center": 0.5, "right": 1.0}[line.align] * width
        left += round(x if up else x - back)
        top += round(y + back if up else y)
        below = self.pixels[max(0, top) : max(0, top + len(alpha)), max(0, left) : max(0, left + alpha.shape[1])]
        if below.shape == on_white.shape and below.min(initial=WHITE) == WHITE:
            below[:] = on_white
        else:  # on a cell, or over the edge of the page
            share = alpha[max(0, -top) :, max(0, -left) :][: below.shape[0], : below.shape[1], None] / WHITE
            below[:] = mix(below, rgb(line.colour), share)


@lru_cache(maxsize=64)
def rgb(colour: str) -> np.ndarray:
    """Convert a colour to three bytes."""
    return to_bytes(np.array(to_rgb(colour)))


def to_bytes(colours: np.ndarray) -> np.ndarray:
    """Convert 0..1 to 0..255, rounded as Agg does."""
    return np.floor(colours * WHITE + 0.5).astype(np.uint8)


def mix(below: np.ndarray | int, ink: np.ndarray, share: np.ndarray | float) -> np.ndarray:
    """Blend `ink` over what is below, 0 to 1 of it."""
    return np.round(below * (1.0 - share) + ink * share).astype(np.uint8)


@lru_cache(maxsize=8)
def hatching(dpi: int, ground: str, stroke: str) -> Pixels:
    """Draw a tile of strokes that go up to the right; it repeats without a seam."""
    period = max(3, round(dpi / HATCH_LINES))
    steps = np.arange(period)
    phase = (steps[:, None] + steps) % period
    distance = np.minimum(phase, period - phase) / np.sqrt(2)
    cover = np.clip(STYLE["hatch.linewidth"] * dpi / 72 / 2 + 0.5 - distance, 0, 1)[..., None]
    return mix(rgb(ground), rgb(stroke), cover)


def png_of(pixels: UInt8[np.ndarray, "row column 3"], dpi: int, facts: Mapping[str, str]) -> bytes:
    """Encode pixels, at least one, as a PNG file with `facts` as its text: the same pixels and facts, the same bytes.

    That is for one version of zlib: another may pack the same pixels differently.
    """
    n_rows, n_columns, _ = pixels.shape
    colours = pixels.reshape(n_rows, -1)
    rows = np.empty((n_rows, 1 + colours.shape[1]), dtype=np.uint8)  # each led by its filter
    rows[:, 0], rows[0, 1:] = UP, colours[0]
    np.subtract(colours[1:], colours[:-1], out=rows[1:, 1:])
    density = int(dpi / INCH + 0.5)  # as Pillow rounds
    texts = PngInfo()  # only what Latin-1 lacks as the younger kind of chunk, in UTF-8
    for name, text in facts.items():
        texts.add_text(name, text)
    file = BytesIO()
    file.write(SIGNATURE)
    putchunk(file, b"IHDR", struct.pack(">IIBBBBB", n_columns, n_rows, 8, 2, 0, 0, 0))  # 8 bits of each of 3 colours
    for kind, content, _ in texts.chunks:
        putchunk(file, kind, content)
    putchunk(file, b"pHYs", struct.pack(">IIB", density, density, 1))
    putchunk(file, b"IDAT", zlib.compress(rows.data, LEVEL))
    putchunk(file, b"IEND")
    return file.getvalue()
