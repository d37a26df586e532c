"""What pictures are as files: names, bytes, metadata, and what they refuse."""

import re
from collections.abc import Callable, Iterator
from io import BytesIO
from xml.etree import ElementTree

import pytest
from PIL import Image

from attnviz.errors import TooLarge
from attnviz.registry import load
from attnviz.renderers import RENDERERS
from attnviz.renderers.figure import files as figure
from attnviz.report import FigureStyle, Report
from tests.renderers.figure.reports import FACTS, HOSTILE, SCRIPTS, SUBTITLE, heatmap, labelled, panels, report

Renderer = Callable[[Report, FigureStyle], Iterator[tuple[str, bytes]]]
BEGINNINGS = {"png": b"\x89PNG\r\n\x1a\n", "svg": b"<?xml", "pdf": b"%PDF-"}
KINDS: dict[str, Renderer] = {plugin.name: load(plugin) for plugin in RENDERERS if plugin.name in BEGINNINGS}


@pytest.mark.parametrize("kind", KINDS)
def test_one_file_per_picture_drawn_one_at_a_time(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    files = KINDS[kind](report(panels(3), heatmap(3)), FigureStyle(dpi=72))
    name, content = next(files)
    assert name == f"overview.{kind}"
    assert content.startswith(BEGINNINGS[kind])
    monkeypatch.setattr(figure, "_content", lambda *_: pytest.fail("drawn before it was asked for"))
    with pytest.raises(pytest.fail.Exception):
        next(files)


def test_png_carries_its_provenance() -> None:
    ((_, content),) = figure.png(report(heatmap(3), title="注意力"), FigureStyle())
    with Image.open(BytesIO(content)) as image:
        assert dict(image.info)["dpi"] == pytest.approx((150, 150), abs=0.05)
        told = {name: value for name, value in image.info.items() if name != "dpi"}
    assert told == {"Title": "注意力 · layer 0, head 3", "Description": SUBTITLE, **dict(FACTS)}


def test_svg_carries_its_provenance_and_no_font() -> None:
    ((_, content),) = figure.svg(report(heatmap(3), title="注意力 <&>"), FigureStyle())
    root = ElementTree.fromstring(content)
    texts = {element.text for element in root.iter() if element.text and element.text.strip()}
    assert "注意力 <&> · layer 0, head 3" in texts
    assert SUBTITLE in texts
    assert "text: 猫坐在垫子上" in texts
    assert not [element for element in root.iter() if element.tag.endswith("}text")]
    assert b"dc:date" not in content


def test_pdf_embeds_real_fonts_and_carries_its_provenance() -> None:
    ((_, content),) = figure.pdf(report(labelled(HOSTILE + SCRIPTS), title="注意力"), FigureStyle())
    assert b"/CIDFontType2" in content
    assert b"/Type3" not in content
    fonts = {name.decode() for name in re.findall(rb"/BaseFont /[A-Z]{6}\+(\w+)", content)}
    assert fonts == {"AttnvizSans", "AttnvizSansSemiBold", "AttnvizSansCJK", "AttnvizEmoji"}
    assert "注意力".encode("utf-16-be") in content
    assert b"CreationDate" not in content


def test_cells_of_vector_files_are_one_picture() -> None:
    ((_, content),) = figure.svg(report(heatmap(64)), FigureStyle())
    assert content.count(b"<image") == 2  # the map and the colour bar
    assert len(content) < 500_000


def test_too_many_pixels_are_refused_before_anything_is_drawn_with_what_would_work() -> None:
    shown = report(heatmap(3), panels(20))
    with pytest.raises(TooLarge, match=r"'overview' would have .* pixels. Up to \d+ dpi it can be drawn") as refused:
        figure.png(shown, FigureStyle(dpi=2000))
    works = int(refused.value.hint.split()[2])
    figure.png(shown, FigureStyle(dpi=works))
    assert works > 600
