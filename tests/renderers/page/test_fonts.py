"""Chinese on a page where the machine has no such font: the glyphs come along, those of the texts and no more."""

from base64 import b64decode
from io import BytesIO

import pytest
from fontTools.ttLib import TTFont

from attnviz.renderers.page.fonts import write_font_face
from tests.browser import Open
from tests.made import random_maps, report
from tests.process import ROOT

DRAW = """(characters) => characters.map((each) => {
  const pen = new OffscreenCanvas(40, 40).getContext("2d");
  pen.font = `32px ${getComputedStyle(document.body).fontFamily}`;
  pen.fillText(each, 4, 34);
  return pen.getImageData(0, 0, 40, 40).data.join();
})"""
FACES = "[...document.fonts].map((each) => [each.family, each.status])"


def test_a_page_has_the_glyphs_of_its_texts() -> None:
    face = b64decode(write_font_face("a 猫 ぬ 한 ， 猫 😀 é").partition("base64,")[2].partition(")")[0])
    assert {*TTFont(BytesIO(face)).getBestCmap()} == {*map(ord, "猫ぬ한，")}
    assert write_font_face("the film — “good” 😀 Ω ж \ue000") == ""


def test_the_glyphs_of_a_text_take_little_room() -> None:
    text = "".join((ROOT / name).read_text(encoding="utf-8") for name in ("docs/zh/student.md", "README.zh.md"))
    characters = sorted({each for each in text if "\u4e00" <= each <= "\u9fff"})[:350]
    assert len(characters) == 350
    assert len(write_font_face("".join(characters))) <= 60_000


@pytest.mark.slow
def test_chinese_is_drawn_with_the_glyphs_of_the_page(shown: Open) -> None:
    """No two characters look alike, as boxes do, and what has no Chinese brings no font."""
    words = list("酒店的服务好")
    page = shown(report(random_maps(words)))
    assert page.page.evaluate(FACES) == [["Attnviz Sans CJK", "loaded"]]
    assert len({*page.page.evaluate(DRAW, words)}) == len(words)
    assert shown(report()).page.evaluate(FACES) == []
