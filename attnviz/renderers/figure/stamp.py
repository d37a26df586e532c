"""Texts in pixels: each is drawn once by matplotlib's FreeType, shaped and in our fonts, and then copied.

Knows no plans and no pictures.
"""

from __future__ import annotations

import warnings
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8
from matplotlib.colors import to_rgb
from matplotlib.font_manager import findfont, get_font
from matplotlib.ft2font import LoadFlags

from attnviz.renderers.figure.style import FAMILIES, load_fonts

MAX_CACHED, MAX_SIZE = 1 << 10, 1 << 15  # texts, and pixels that each may take up: together about 70 MB at most
WHITE = 255


class StampSize(NamedTuple):
    """How much room a text takes, in pixels; above and below its base line at least as much as the font says."""

    width: float
    ascent: float
    descent: float


class Stamp(NamedTuple):
    """One line of text in pixels; `left` and `top` are where they begin, from the start of its base line."""

    alpha: UInt8[np.ndarray, "row column"]
    on_white: UInt8[np.ndarray, "row column 3"]
    left: int
    top: int
    extent: StampSize


def stamp(text: str, size: float, dpi: int, colour: str, up: bool) -> Stamp:
    """A text of `size` points, to the right or `up`. Characters that no font has are drawn as boxes."""
    stamp = _cached_stamp if len(text) * (size * dpi / 72) ** 2 <= MAX_SIZE else _stamp
    return stamp(text, size, dpi, colour, up)


def _stamp(text: str, size: float, dpi: int, colour: str, up: bool) -> Stamp:
    alpha, left, top, extent = _draw(text, size, dpi)
    if up:
        alpha, left, top = np.rot90(alpha), top, -left - alpha.shape[1]
    on_white = WHITE - alpha[..., None] * (1 - np.array(to_rgb(colour)))
    return Stamp(alpha, np.round(on_white).astype(np.uint8), left, top, extent)


_cached_stamp = lru_cache(maxsize=MAX_CACHED)(_stamp)


@lru_cache(maxsize=MAX_CACHED // 8)  # the same words stand beside rows and, upwards, below columns
def _draw(text: str, size: float, dpi: int) -> tuple[np.ndarray, int, int, StampSize]:
    """Shares of ink, 0 to 255, where they begin, and the extent."""
    files, ascent, descent = _fonts()
    font = get_font(files)
    font.set_size(size, dpi)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph ", category=UserWarning)  # as in `style.drawing`
        font.set_text(" ", flags=LoadFlags.NO_HINTING)
        space = font.get_width_height()[0] / 64
        # Between spaces, which have no ink, the bitmap begins at a whole pixel; else the first glyph would be rounded
        # unlike the others.
        font.set_text(f" {text} ", flags=LoadFlags.NO_HINTING)
    font.draw_glyphs_to_bitmap()
    width, height = (length / 64 for length in font.get_width_height())
    below = font.get_descent() / 64
    alpha = font.get_image()
    rows, columns = np.flatnonzero(alpha.any(axis=1)), np.flatnonzero(alpha.any(axis=0))
    top, bottom, left, right = (rows[0], rows[-1] + 1, columns[0], columns[-1] + 1) if len(rows) else (0, 0, 0, 0)
    extent = StampSize(
        width=width - 2 * space,
        ascent=max(height - below, ascent * size * dpi / 72),
        descent=max(below, descent * size * dpi / 72),
    )
    ink = alpha[top:bottom, left:right].copy()
    return ink, round(left - space), int(top) - int(height - below) - 1, extent


@cache
def _fonts() -> tuple[tuple[str, ...], float, float]:
    """The files of our fonts, and how far the first one reaches above and below the base line, in its sizes."""
    load_fonts()
    files = tuple(findfont(family) for family in FAMILIES)
    font = get_font(files)
    metrics = font.get_sfnt_table("OS/2")
    assert metrics is not None
    return files, metrics["sTypoAscender"] / font.units_per_EM, -metrics["sTypoDescender"] / font.units_per_EM
