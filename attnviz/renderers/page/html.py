"""A report as one page to explore: a file that opens anywhere, without a network. Knows `report` only.

The parts lie in this folder; how they become one file is `bundle`. The same report gives the same bytes.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from string import Template
from zlib import compress

from attnviz.renderers.page.bundle import (
    join_scripts,
    join_styles,
    read_part,
    write_json,
    write_policy,
    write_title,
)
from attnviz.renderers.page.document import Content, content
from attnviz.renderers.page.fonts import write_font_face
from attnviz.report import FigureStyle, Report

NAME = "attention.html"
PARTS = {
    "atlas": "atlas.js",
    "graph": "graph.js",
    "maps": "maps.js",
    "charts": "charts.js",
    "tables": "table.js",
    "factored": "long.js",
}  # what shows a part of the document
STYLED = {
    "charts.css": ("charts", "atlas"),
    "atlas.css": ("atlas",),
    "graph.css": ("graph",),
}  # and which parts have a style of their own
MAIN = "main.js"
PACKED = ("tables", "pictures", "maps")  # of which each head has its part, alike to those of others
STYLES = ("base.css", "page.css")


def html(report: Report, look: FigureStyle) -> Iterator[tuple[str, bytes]]:
    """One page with the maps, charts and tables of the report. Raises InvalidOption where there are none of them."""
    yield NAME, page(content(report, look))


def page(content: Content) -> bytes:
    """The whole file."""
    packed = write_json({name: part for name, part in content.document.items() if name in PACKED})
    script = join_scripts((*(module for part, module in PARTS.items() if content.document.get(part)), MAIN))
    written = json.dumps(content.document, ensure_ascii=False)
    style = write_font_face("".join((written, *content.pieces)))
    style += join_styles((*STYLES, *(name for name, parts in STYLED.items() if any(map(content.document.get, parts)))))
    strings = {
        "title": write_title(str(content.document["title"])),
        "policy": write_policy(script, style),
        "style": style,
        "content": write_json({name: part for name, part in content.document.items() if name not in PACKED}),
        "packed": b64encode(compress(packed.encode("ascii"), 9)).decode("ascii"),
        "script": script,
    }
    halves = read_part("page.html").split("$cells")
    before, after = (Template(half).substitute(strings).encode("utf-8") for half in halves)
    kinds = ((b"cells", content.cells), (b"factors", content.factors), (b"atlas", content.atlas))
    blocks = (  # bytes throughout, because they are most of the page
        b'<script type="text/base64" id="%b-%d">%b</script>\n' % (name, number, packed)
        for name, of_kind in kinds
        for number, packed in enumerate(of_kind)
        if packed
    )
    return b"".join((before, *blocks, after))
