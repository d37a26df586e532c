"""Our fonts cut down to the characters of a report, once for all its pictures. Knows no plans.

matplotlib cuts every font that a PDF embeds for each file anew. To cut these few characters takes it a small part of
the time that whole fonts would.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from io import BytesIO

from fontTools import subset
from fontTools.ttLib import TTFont
from matplotlib.font_manager import fontManager

from attnviz.renderers.figure.style import BOLD, CUT, FAMILIES, FONT_FILES
from attnviz.renderers.figure.text import charmap, charmaps, joins
from attnviz.store.parts import temporary_folder

FAMILY = 1  # in a font's table of names


@contextmanager
def cut_fonts(text: str) -> Iterator[tuple[str, ...]]:
    """The families of fonts that hold just the characters of `text`, in our order; they are gone when it ends."""
    known = list(fontManager.ttflist)
    with temporary_folder() as folder:
        try:
            fonts = tuple(_cut_by_font(set(text)))
            for place, (_, content) in enumerate(fonts):
                file = folder / f"{place}.ttf"  # matplotlib embeds them in the order of their files' names
                TTFont(BytesIO(content), recalcTimestamp=False).save(file)
                fontManager.addfont(file)
            yield tuple(family for family, _ in fonts if family != BOLD + CUT)
        finally:
            fontManager.ttflist[:] = known


def _cut_by_font(characters: set[str]) -> Iterator[tuple[str, bytes]]:
    """Each character is in the first font that has it, which is the one that draws it; joiners are in all of them."""
    if in_bold := {character for character in characters if ord(character) in charmap(BOLD)}:
        yield BOLD + CUT, _subset(BOLD, "".join(sorted(in_bold)))
    for family, codes in zip(FAMILIES, charmaps(), strict=True):
        held = {character for character in characters if ord(character) in codes}
        characters -= {character for character in held if not joins(character)}
        if held:
            yield family + CUT, _subset(family, "".join(sorted(held)))


@lru_cache(maxsize=8)
def _subset(family: str, characters: str) -> bytes:
    options = subset.Options(layout_features=["*"], hinting=False, glyph_names=True)
    options.drop_tables += ["FFTM", "MATH"]  # of which nothing is drawn
    subsetter = subset.Subsetter(options)
    subsetter.populate(text=characters)
    with subset.load_font(FONT_FILES[family], options) as font:
        subsetter.subset(font)
        for record in font["name"].names:
            if record.nameID == FAMILY:
                record.string = family + CUT
        content = BytesIO()
        font.save(content)
    return content.getvalue()
