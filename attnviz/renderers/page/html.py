"""A report as one page to explore: a file that opens anywhere, without a network. Knows `report` only.

The parts lie in this folder; how they become one file is `bundle`. The same report gives the same bytes.
"""

from collections.abc import Iterator

from attnviz.renderers.page.bundle import write_page
from attnviz.renderers.page.document import content
from attnviz.renderers.page.packing import write_parts
from attnviz.report import FigureStyle, Report
from attnviz.words import LANGUAGE_TAGS, list_phrases

NAME = "attention.html"
PARTS = {
    "atlas": "atlas.js",
    "graph": "graph.js",
    "maps": "maps.js",
    "pointing": "pointing.js",
    "charts": "charts.js",
    "tables": "table.js",
    "factored": "long.js",
}  # what shows a part of the document
MAIN = "main.js"
STYLES = ("base.css", "page.css", "charts.css", "atlas.css", "graph.css")


def html(report: Report, look: FigureStyle) -> Iterator[tuple[str, bytes]]:
    """Yield one page with the maps, charts and tables of the report.

    Raises InvalidOption where there are none of them.
    """
    document, parts = content(report, look)
    modules = (*(module for part, module in PARTS.items() if document.get(part)), MAIN)
    strings = {name.replace(".", "_"): said for name, said in list_phrases(look.lang, "ui").items()}
    strings |= {"title": report.title, "cells": write_parts(parts), "language": LANGUAGE_TAGS[look.lang]}
    yield NAME, write_page("page.html", document, modules, STYLES, strings)
