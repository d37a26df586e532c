"""Our fonts cut down to the characters of a report, once for all its pictures.

matplotlib cuts every font that a PDF embeds, for each file anew, and spends most of the time on tables about scripts
that no text has. With a font of a hundred glyphs that is nothing. Knows no plans.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from fontTools import subset
from matplotlib.font_manager import findfont, fontManager

from attnviz.renderers.figure.style import FAMILIES
from attnviz.renderers.figure.text import charmaps

FAMILY = 1  # in a font's table of names


@contextmanager
def cut_fonts(text: str) -> Iterator[tuple[str, ...]]:
    """The families of fonts that hold just the characters of `text`, in our order; they are gone when it ends."""
    known = list(fontManager.ttflist)
    with TemporaryDirectory() as folder:
        try:
            yield tuple(_cut_each(set(text), Path(folder)))
        finally:
            fontManager.ttflist[:] = known


def _cut_each(characters: set[str], folder: Path) -> Iterator[str]:
    """Each character is in the first font that has it, which is the one that draws it."""
    for place, (family, codes) in enumerate(zip(FAMILIES, charmaps(), strict=True)):
        held = {character for character in characters if ord(character) in codes}
        characters -= held
        if held:
            yield _cut(family, "".join(sorted(held)), folder / f"{place}.ttf")


def _cut(family: str, characters: str, file: Path) -> str:
    options = subset.Options(layout_features=["*"], glyph_names=True, notdef_outline=True, name_IDs=["*"])
    options.drop_tables += ["FFTM"]  # FontForge's, of which nothing is drawn
    subsetter = subset.Subsetter(options)
    subsetter.populate(text=characters)
    name = f"{family} {file.stem}"  # the same each time, since it is embedded
    with subset.load_font(findfont(family), options) as font:
        subsetter.subset(font)
        for record in font["name"].names:
            if record.nameID == FAMILY:
                record.string = name
        subset.save_font(font, str(file), options)
    fontManager.addfont(file)
    return name
