"""How wide a text is and where it breaks, in our fonts. Knows nothing of figures."""

import re
import unicodedata
import warnings
from functools import cache, lru_cache
from typing import NamedTuple

from matplotlib.font_manager import get_font
from matplotlib.ft2font import FT2Font, LoadFlags

from attnviz.renderers.figure.style import FAMILIES, FONT_FILES

LINE_HEIGHT = 1.3  # of the font size
ASCENT, DESCENT = 0.96875, 0.24148  # likewise, above and below the base line: by the font, of any text
BOX = "□"
LEFT_TO_RIGHT = "\u200e"  # a mark that takes no room
CLUSTER = re.compile(r".[\u0300-\u036f\u200d\ufe0f]*(?:(?<=\u200d).[\ufe0f]*\u200d?)*")  # a character and marks on it
WORD = re.compile(r"\S+(?: %\S*)?")  # "4 %" stays on one line
LATIN = re.compile("[A-Za-z]")
_RTL = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]"
FROM_RIGHT = re.compile(f"{_RTL}(?:[^”·]*{_RTL})?")  # of a quotation, or of a part of a title
_EM = 100.0


class Extent(NamedTuple):
    """Ink of one line of text in points: its width, and how far it reaches above and below the base line."""

    width: float
    ascent: float
    descent: float


@cache
def charmaps() -> tuple[frozenset[int], ...]:
    """Return the code points that each of our fonts draws."""
    return tuple(frozenset(get_font(FONT_FILES[family]).get_charmap()) for family in FAMILIES)


def open_fonts(bold: bool) -> FT2Font:
    """Open our fonts as one, in our order: of titles the bold one is the first."""
    return get_font([*FONT_FILES.values()][not bold :])


def joins(character: str) -> bool:
    """Check whether a character is drawn together with the one before it: a mark, a joiner, a choice of variant."""
    return unicodedata.category(character) in ("Mn", "Me") or character in "\u200c\u200d"


@lru_cache(maxsize=65536)
def _absent(text: str) -> tuple[bool, ...]:
    """Find for each character whether it cannot be drawn: no font has it, or none has it and what it is joined to."""
    absent = []
    fonts: list[int] = []
    for character in text:
        able = [font for font in range(len(FAMILIES)) if ord(character) in charmaps()[font]]
        if joins(character) and fonts:
            able = [font for font in able if font in fonts]
        absent.append(not able)
        if able or not joins(character):
            fonts = able
    return tuple(absent)


def missing(text: str) -> set[str]:
    """Find the characters of `text` that our fonts cannot draw where they stand."""
    return {character for character, absent in zip(text, _absent(text), strict=True) if absent}


def drawable(text: str) -> str:
    """Replace each character that cannot be drawn by an empty box; a mark on another one is left out.

    What follows a quoted text that runs from the right stays on its right.
    """
    if LATIN.search(text):
        text = FROM_RIGHT.sub(rf"{LEFT_TO_RIGHT}\g<0>{LEFT_TO_RIGHT}", text)
    if not any(_absent(text)):
        return text
    pairs = zip(text, _absent(text), strict=True)
    return "".join(character if not absent else "" if joins(character) else BOX for character, absent in pairs)


def is_plain(text: str) -> bool:
    """Check whether each character is drawn on its own, from left to right.

    In a PDF matplotlib places other text (marks, joined emoji, Arabic) by the widths of single glyphs, which is wrong.
    """
    return not any(
        unicodedata.category(character) in ("Mn", "Mc", "Me", "Cf")
        or unicodedata.bidirectional(character) in ("R", "AL", "AN")
        for character in text
    )


@lru_cache(maxsize=65536)
def _extent_of_100(text: str, bold: bool) -> Extent:
    font = open_fonts(bold)
    font.set_size(_EM, 72)
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # of glyphs, as in `style.drawing`
        font.set_text(text, flags=LoadFlags.NO_HINTING)
    width, height = (length / 64 for length in font.get_width_height())
    descent = font.get_descent() / 64
    return Extent(width, height - descent, descent)


def extent(text: str, size: float, bold: bool = False) -> Extent:
    """Measure the ink of one line at `size` points."""
    return Extent(*(part * size / _EM for part in _extent_of_100(drawable(text), bold)))


def line_height(text: str, size: float, bold: bool = False) -> float:
    """Return the points from one base line to the next; more where marks are piled high."""
    _, ascent, descent = extent(text, size, bold)
    return max(LINE_HEIGHT * size, ascent + descent + 0.2 * size)


@lru_cache(maxsize=4096)  # the pictures of a report say much the same
def wrap(text: str, size: float, width: float, bold: bool = False) -> tuple[str, ...]:
    """Break text into lines no wider than `width` points, at spaces, and within a word where it alone is too wide."""
    lines = [""]
    for word in WORD.findall(text):
        joined = f"{lines[-1]} {word}".lstrip()
        if extent(joined, size, bold).width <= width:
            lines[-1] = joined
            continue
        pieces = [""]
        for cluster in CLUSTER.findall(word):
            if pieces[-1] and extent(pieces[-1] + cluster, size, bold).width > width:
                pieces.append("")
            pieces[-1] += cluster
        lines = [*lines, *pieces] if lines[-1] else pieces
    return tuple(line for line in lines if line)


def wrap_evenly(text: str, size: float, width: float) -> tuple[str, ...]:
    """Break text into as few lines as `wrap` makes, but about equally long; no word is broken for that."""
    lines = wrap(text, size, width)
    longest = max((extent(word, size).width for word in WORD.findall(text)), default=0.0)
    for percent in range(95, 40, -5):
        if width * percent / 100 < longest:
            break
        narrower = wrap(text, size, width * percent / 100)
        if len(narrower) > len(lines):
            break
        lines = narrower
    return lines


def ordinal(number: int) -> str:
    """Write an ordinal of the steps in which labels are thinned: 2nd, 4th, 5th, 10th …."""
    return f"{number}{'nd' if number == 2 else 'th'}"
