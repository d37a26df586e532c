"""A report as one page to explore: a file that opens anywhere, without a network. Knows `report` only.

Nothing leaves the page and nothing is run but our own script: a Content-Security-Policy allows it, and our style, by
their sha256 and forbids the rest. Texts are data: they stand in a JSON block that no token can close, and the script
puts them on the page as text. The parts lie in page/: modules that import each other there, and are one script here,
of which a page gets those that it needs. The same report gives the same bytes.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template

from attnviz.renderers.page.document import Content, content
from attnviz.report import FigureStyle, Report

NAME = "attention.html"
PARTS = {
    "maps": "maps.js",
    "charts": "charts.js",
    "tables": "table.js",
    "factored": "long.js",
}  # what shows a part of the document
MAIN = "main.js"
IMPORT = re.compile(r'^import \{[^}]*\} from "\./(?P<name>[\w-]+\.js)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(async )?function |const |class |let )", re.MULTILINE)
IDLE = re.compile(r"^ *//.*\n| +// .*$|/\*.*?\*/|^ +|\n(?=\n)", re.MULTILINE)  # a tenth of scripts and styles
CLOSING = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}  # of JSON within HTML, where they could end the block
SURROGATE = re.compile("[\ud800-\udfff]")


def html(report: Report, look: FigureStyle) -> Iterator[tuple[str, bytes]]:
    """One page with the maps, charts and tables of the report. Raises InvalidOption where there are none of them."""
    yield NAME, page(content(report, look))


def page(content: Content) -> bytes:
    """The whole file."""
    script = _script(tuple(module for part, module in PARTS.items() if content.document.get(part)))
    style = IDLE.sub("", _part("page.css") + (_part("charts.css") if content.document["charts"] else ""))
    strings = {
        "title": escape(SURROGATE.sub("\ufffd", str(content.document["title"])).replace("\0", "\ufffd")),
        "policy": _policy(script, style),
        "style": style,
        "content": _json(content.document),
        "charts": "\n".join(content.charts),
        "script": script,
    }
    before, after = (Template(half).substitute(strings).encode("utf-8") for half in _part("page.html").split("$cells"))
    return b"".join((before, *_blocks(content), after))


def _blocks(content: Content) -> Iterator[bytes]:
    """Bytes throughout, because they are most of the page."""
    for name, blocks in ((b"cells", content.cells), (b"factors", content.factors)):
        for number, packed in enumerate(blocks):
            if packed:
                yield b'<script type="application/octet-stream" id="%b-%d">%b</script>\n' % (name, number, packed)


def _policy(script: str, style: str) -> str:
    hashes = (b64encode(sha256(part.encode("utf-8")).digest()).decode("ascii") for part in (script, style))
    parts = (f"{name}-src 'sha256-{digest}'" for name, digest in zip(("script", "style"), hashes, strict=True))
    return "; ".join(("default-src 'none'", *parts, "base-uri 'none'", "form-action 'none'"))


def _json(document: object) -> str:
    """Pure ASCII, in which no character can end the block that it stands in."""
    written = json.dumps(document, allow_nan=False, separators=(",", ":"))
    return re.sub("[<>&]", lambda sign: CLOSING[sign[0]], written)


@cache
def _script(views: tuple[str, ...]) -> str:
    """Modules as one, each after those that it imports; so that names are their own, no two may have the same."""
    order: list[str] = []

    def visit(name: str) -> None:
        for imported in IMPORT.finditer(_part(name)):
            visit(imported["name"])
        if name not in order:
            order.append(name)

    for name in (*views, MAIN):
        visit(name)
    return "\n".join(IDLE.sub("", EXPORT.sub("", IMPORT.sub("", _part(name)))).strip() for name in order)


@cache
def _part(name: str) -> str:
    return files("attnviz.renderers.page").joinpath(name).read_text(encoding="utf-8")
