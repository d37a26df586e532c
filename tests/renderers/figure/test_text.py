"""Widths, line breaks and glyphs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from fontTools.ttLib import TTFont
from hypothesis import given
from hypothesis import strategies as st

from attnviz.renderers.figure.style import FONT_FILES, FONTS
from attnviz.renderers.figure.text import drawable, extent, is_plain, line_height, missing, wrap, wrap_evenly
from tests.process import bare_environment


def test_ink_above_and_below_the_base_line() -> None:
    assert extent("x", 10).descent == pytest.approx(0, abs=0.3)
    assert extent("gy", 10).descent > 1.5
    assert extent("Z\u0302\u0303\u0304", 10).ascent > extent("Z", 10).ascent + 1.5
    assert line_height("Ԁ" + "\u0302" * 10, 10) > line_height("Ԁ", 10) == 13  # of the second font, which piles them up


@given(st.text(st.sampled_from("ab ɣ猫m\u0301w"), max_size=80), st.floats(20, 200))
def test_lines_fit_and_nothing_is_lost(text: str, width: float) -> None:
    for wrapped in (wrap, wrap_evenly):
        lines = wrapped(text, 10, width)
        assert re.sub(r"\s", "", "".join(lines)) == re.sub(r"\s", "", text)
        assert all(extent(line, 10).width <= width for line in lines)


def test_words_stay_whole_where_they_fit() -> None:
    lines = wrap("attention is all you need", 10, 80)
    assert " ".join(lines) == "attention is all you need"
    assert len(lines) > 1


def test_marks_stay_with_their_characters() -> None:
    family = "👨\u200d👩\u200d👧"
    assert set(wrap(family * 9, 10, 40)) <= {family * number for number in range(1, 9)}
    assert not [line for line in wrap("e\u0301" * 50, 10, 40) if line.startswith("\u0301")]


def test_scripts_that_our_fonts_have() -> None:
    assert missing("Ünïcode Ελλάδα Жизнь שלום مرحبا 猫坐在垫子上 繁體字 ねこカナ 고양이 。「」！⏎⇥␣∅…◌") == set()
    assert missing("👨\u200d👩\u200d👧❤\ufe0f👍🏽🇩🇪1\ufe0f\u20e3") == set()


def test_what_no_font_has_becomes_a_box() -> None:
    assert drawable("a\ue000b\U0010ffff") == "a□b□"
    assert drawable("नमस्ते") == "□□□□"  # marks leave no box of their own
    assert drawable("□") == "□"
    assert drawable("plain $_$ 猫") == "plain $_$ 猫"


def test_a_mark_needs_a_font_that_has_its_character_too() -> None:
    assert drawable("e\u0301") == "e\u0301"
    assert drawable("猫\u0301坐") == "猫坐"
    assert missing("e\u0301猫\u0301") == {"\u0301"}


def test_what_follows_a_text_from_the_right_stays_on_its_right() -> None:
    """Else the number is read as part of the text, and stands at its left end."""
    assert drawable("m attends to “سلام يا عالم” · 4 heads") == "m attends to “\u200eسلام يا عالم\u200e” · 4 heads"
    assert drawable("שלום · head 3") == "\u200eשלום\u200e · head 3"
    assert drawable("سلام 20") == "سلام 20"
    assert extent("“سلام” x", 10).width == pytest.approx(extent("“\u200eسلام” x", 10).width)


def test_plain_text_is_one_glyph_after_the_other() -> None:
    assert all(is_plain(text) for text in ("plain", "猫", "Жизнь", "fi", "naïve", "$_$"))
    assert not any(is_plain(text) for text in ("e\u0301", "مرحبا", "שלום", "👩\u200d🚀", "a\u200bb"))


@pytest.mark.parametrize("family", [family for family, file in FONT_FILES.items() if file.parent == FONTS])
def test_fonts_carry_our_name_real_outlines_and_their_licence(family: str) -> None:
    with TTFont(FONT_FILES[family]) as font:
        assert font["name"].getDebugName(1) == family
        assert "glyf" in font  # cubic outlines make PDFs that readers complain of
        assert "Open Font License" in font["name"].getDebugName(13)
    licence = (FONTS / f"OFL-{FONT_FILES[family].stem}.txt").read_text(encoding="utf-8")
    assert "SIL OPEN FONT LICENSE Version 1.1" in licence
    assert licence.startswith("Copyright")


STATE = """
import sys
from dataclasses import replace
import matplotlib
from matplotlib.font_manager import fontManager
from attnviz.renderers.figure.files import pdf, svg
from attnviz.renderers.figure.page import stamp
from attnviz.renderers.figure.text import extent
from attnviz.report import FigureStyle
from tests.renderers.figure.reports import labelled, report
shown = report(labelled(["⊥ a"]))
exec(sys.argv[1])
sys.stdout.buffer.write(stamp("⊥ a", 10, 100)[0].tobytes() + repr(extent("⊥ a", 10)).encode())
sys.stdout.buffer.write(next(svg(shown, FigureStyle()))[1])
"""
BOLD = 'matplotlib.rcParams["font.weight"] = "bold"'
# Where a font that matplotlib has listed is gone, it makes its list anew, without ours.
GONE = """
fontManager.ttflist.append(replace(fontManager.ttflist[0], fname="gone.ttf", name="Gone"))
fontManager.findfont("Gone")
"""


def test_what_matplotlib_knows_of_fonts_reaches_no_text(tmp_path: Path) -> None:
    """Its settings, a PDF, or a font for one whose temporary folder went too soon: each drew other letters."""
    found = {
        subprocess.run(
            [sys.executable, "-c", STATE, state], env=bare_environment(tmp_path), check=True, capture_output=True
        ).stdout
        for state in ("", f"{BOLD}\n{GONE}\n[*pdf(shown, FigureStyle())]")
    }
    assert len(found) == 1
