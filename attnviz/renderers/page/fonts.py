"""The Chinese, Japanese and Korean glyphs that a page uses, so that it shows no boxes where there is no such font.

A page goes to machines that nobody knows. Of Latin, Greek and Cyrillic every one has glyphs; of Chinese many have none.
The font that figures use has 12,859 glyphs and 3.3 MB; a page gets those of its own texts.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from importlib.resources import as_file, files
from io import BytesIO
from pathlib import Path

FAMILY = "Attnviz Sans CJK"  # as base.css names it
FONT = files("attnviz").joinpath("data/fonts/AttnvizSansCJK.ttf")
FIRST, LAST = "\u2e80", "\uffef"  # from radicals to full-width forms
UNITS = 256  # of an em, in place of 1000: a quarter of the bytes less, and lines move by 1/20 of a pixel on a screen


def write_font_face(text: str) -> str:
    """Write the style that brings the glyphs of a text along: the same text gives the same bytes; "" if it needs none.

    Of 350 characters it takes 60 kB.
    """
    characters = {ord(each) for each in text if FIRST <= each <= LAST}
    if not characters:
        return ""
    from fontTools.ttLib import TTFont  # only pages with such characters wait for it

    with as_file(FONT) as path, TTFont(path, lazy=True) as font:
        characters &= font.getBestCmap().keys()
        if not characters:
            return ""  # browsers refuse a font without a glyph
        packed = b64encode(subset_font(path, characters, UNITS)).decode("ascii")
    # Without its range it would be the first font that is there, whose height all lines have.
    span = f"U+{ord(FIRST):X}-{ord(LAST):X}"
    return f'@font-face{{font-family:"{FAMILY}";unicode-range:{span};src:url(data:font/woff;base64,{packed})}}\n'


def subset_font(path: Path, characters: Iterable[int], units: int = 0) -> bytes:
    """Return a font with no more than these characters, packed as WOFF; with `units` of an em if those are given."""
    from fontTools.subset import Subsetter
    from fontTools.ttLib import TTFont
    from fontTools.ttLib.scaleUpem import scale_upem

    font, packed = TTFont(path, recalcTimestamp=False), BytesIO()
    subsetter = Subsetter()
    subsetter.populate(unicodes=characters)
    subsetter.subset(font)
    if units:
        scale_upem(font, units)
    font.flavor = "woff"
    font.save(packed)
    return packed.getvalue()
