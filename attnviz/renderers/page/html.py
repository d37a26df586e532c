"""A report as one page to explore: a file that opens anywhere, without a network. Knows `report` only.

The parts lie in this folder; `bundle` makes one file of them. The same report gives the same bytes.

Nothing leaves a page and nothing is run but our own scripts: a Content-Security-Policy allows them, and our style, by
their sha256 and forbids the rest. Texts are data: they stand in a JSON block, and the script puts them on the page as
text. Modules import each other, and are one script in a page, which gets those that it needs.

Script, style and content are most of the page of a short text, and a third of their size when they are deflated
together. So they are one block of base64, and a script of seven lines makes elements of them (unpack.js).
"""

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template
from zlib import compress

from attnviz.display import replace_surrogates
from attnviz.renderers.page.document import content
from attnviz.renderers.page.fonts import write_font_face
from attnviz.renderers.page.packing import write_parts
from attnviz.report import FigureStyle, Report
from attnviz.words import LANGUAGE_TAGS, list_phrases

HERE = "attnviz.renderers.page"
IMPORT = re.compile(r'^import \{[^}]*\} from "[./\w-]*/(?P<name>[\w-]+\.js)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(async )?function |const |class |let )", re.MULTILINE)
IDLE = re.compile(r"^ *//.*\n| +// .*$|/\*.*?\*/|^ +|\n(?=\n)", re.MULTILINE)  # a tenth of scripts and styles
UNPACK = "unpack.js"


@cache
def join_scripts(names: tuple[str, ...], room: str = HERE) -> str:
    """Join modules into one, each after those that it imports; names are their own: no two may have the same."""
    order: list[str] = []

    def visit(name: str) -> None:
        for imported in IMPORT.finditer(read_part(name, room)):
            visit(imported["name"])
        if name not in order:
            order.append(name)

    for name in names:
        visit(name)
    return "\n".join(IDLE.sub("", EXPORT.sub("", IMPORT.sub("", read_part(name, room)))).strip() for name in order)


@cache
def read_part(name: str, room: str = HERE) -> str:
    """Read a file of a page: of its own room, a package, else of what pages share."""
    own = files(room).joinpath(name)
    return (own if own.is_file() else files(HERE).joinpath(name)).read_text(encoding="utf-8")


def write_page(
    template: str,
    content: object,
    modules: Sequence[str],
    styles: Sequence[str],
    strings: Mapping[str, str],
    room: str = HERE,
) -> bytes:
    """Fill a page of a room with its modules, its styles in this order, and the glyphs that it needs.

    `strings` stand in the HTML as they are given, but for characters that would be markup there. The same content gives
    the same bytes.
    """
    script = join_scripts(tuple(modules), room)
    said = [text for text in strings.values() if not text.isascii()]  # some are packed numbers, of megabytes
    style = write_font_face(json.dumps((content, said), ensure_ascii=False))
    style += IDLE.sub("", "".join(read_part(name, room) for name in styles))
    written = json.dumps(content, allow_nan=False, separators=(",", ":"))
    elements: tuple[tuple[str, Mapping[str, str], str], ...] = (
        ("style", {}, style),
        ("script", {"type": "application/json", "id": "content"}, written),
        ("script", {"type": "module"}, script),
    )
    unpack = join_scripts((UNPACK,))
    page = Template(read_part(template, room)).substitute(
        {name: escape(replace_surrogates(text).replace("\0", "\ufffd")) for name, text in strings.items()},
        policy=_write_policy((unpack, script), (style,)),
        packed=b64encode(compress(json.dumps(elements, separators=(",", ":")).encode("ascii"), 9)).decode("ascii"),
        unpack=unpack,
    )
    return page.encode("utf-8")


def _write_policy(scripts: Sequence[str], styles: Sequence[str]) -> str:
    """Write all that the page may do: run these scripts, look like this, show pictures and use fonts that it holds."""

    def allow(name: str, parts: Sequence[str]) -> str:
        hashes = (b64encode(sha256(part.encode("utf-8")).digest()).decode("ascii") for part in parts)
        return " ".join((f"{name}-src", *(f"'sha256-{each}'" for each in hashes)))

    parts = ("default-src 'none'", allow("script", scripts), allow("style", styles), "img-src data:", "font-src data:")
    return "; ".join((*parts, "base-uri 'none'", "form-action 'none'"))


NAME = "attention.html"
# What of a document has a module of its name, which shows it.
PARTS = ("atlas", "graph", "screen", "pictures", "maps", "pointing", "charts", "tables", "factored")
MAIN = "main.js"
STYLES = ("base.css", "page.css", "charts.css", "atlas.css", "graph.css")


def html(report: Report, look: FigureStyle) -> Iterator[tuple[str, bytes]]:
    """Yield one page with the maps, charts and tables of the report.

    Raises InvalidOption where there are none of them.
    """
    document, parts = content(report, look)
    modules = (*(f"{part}.js" for part in PARTS if document.get(part)), MAIN)
    strings = {name.replace(".", "_"): said for name, said in list_phrases(look.lang, "ui").items()}
    strings |= {"title": report.title, "cells": write_parts(parts), "language": LANGUAGE_TAGS[look.lang]}
    yield NAME, write_page("page.html", document, modules, STYLES, strings)
