"""Our fonts cut down to the characters of a report, once for all its pictures. Knows no plans.

matplotlib cuts every font that a PDF embeds for each file anew, and has no public way to be spared that. Meanwhile its
private `get_glyphs_subset` is replaced, if it is there (matplotlib 3.11), by one that remembers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from unittest import mock

from fontTools import subset
from fontTools.ttLib import TTFont
from matplotlib.backends import _backend_pdf_ps
from matplotlib.font_manager import FontPath, fontManager
from matplotlib.ft2font import FT2Font

from attnviz.renderers.figure.style import BOLD, CUT, FAMILIES, FONT_FILES
from attnviz.renderers.figure.text import charmap, charmaps, joins
from attnviz.store.parts import temporary_folder

FAMILY = 1  # in a font's table of names
SHAPING = ["GDEF", "GPOS", "GSUB"]  # tables that place glyphs: a PDF holds them as they were placed


@contextmanager
def cut_fonts(text: str) -> Iterator[tuple[str, ...]]:
    """The families of fonts that hold just the characters of `text`, in our order; they are gone when it ends."""
    known = list(fontManager.ttflist)
    with temporary_folder() as folder:
        try:
            fonts = tuple(_cut_by_font(set(text)))
            for place, (_, content) in enumerate(fonts):
                file = folder / f"{place}.ttf"  # matplotlib embeds them in the order of their files' names
                _open(content).save(file)
                fontManager.addfont(file)
            with _remembering({f"{place}.ttf": content for place, (_, content) in enumerate(fonts)}):
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
        return _save(font)


def _remembering(fonts: dict[str, bytes]) -> AbstractContextManager[object]:
    """Let matplotlib cut each of `fonts`, by their files' names, once for the same glyphs."""
    if not hasattr(_backend_pdf_ps, "get_glyphs_subset"):
        return nullcontext()
    cut_again = _backend_pdf_ps.get_glyphs_subset

    def find_glyphs(file: FontPath, glyphs: Iterable[int]) -> AbstractContextManager[_backend_pdf_ps.SubsetResults]:
        if (content := fonts.get(Path(file).name)) is None:
            return cut_again(file, set(glyphs))
        cut, places = _embed(content, _same_for_all(content, frozenset(glyphs)))
        return nullcontext(_backend_pdf_ps.SubsetResults(_open(cut), places))

    return mock.patch.object(_backend_pdf_ps, "get_glyphs_subset", find_glyphs)


def _same_for_all(font: bytes, glyphs: frozenset[int]) -> frozenset[int]:
    """Also the glyphs of all other characters where that of one is there; ligatures are in a font of their own."""
    of_characters = _glyphs_of_characters(font)
    return glyphs | of_characters if glyphs & of_characters else glyphs


@lru_cache(maxsize=8)
def _glyphs_of_characters(font: bytes) -> frozenset[int]:
    return frozenset(FT2Font(BytesIO(font)).get_charmap().values())


@lru_cache(maxsize=64)
def _embed(font: bytes, glyphs: frozenset[int]) -> tuple[bytes, dict[int, int]]:
    """A font of just these glyphs, and where each of them is in it."""
    options = subset.Options(layout_features=[], hinting=False, glyph_names=True)
    options.drop_tables += SHAPING
    subsetter = subset.Subsetter(options)
    subsetter.populate(gids=glyphs)
    with subset.load_font(BytesIO(font), options) as loaded:
        subsetter.subset(loaded)
        return _save(loaded), dict(subsetter.glyph_index_map)


def _open(content: bytes) -> TTFont:
    return TTFont(BytesIO(content), recalcTimestamp=False)


def _save(font: TTFont) -> bytes:
    content = BytesIO()
    font.save(content)
    return content.getvalue()
