"""Reports as bytes. Renderers know `attnviz.report` and nothing of records, measures or views.

A renderer takes a report and a look and yields a file name and its content for each picture, one at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from attnviz.registry import Plugin, find

if TYPE_CHECKING:
    from attnviz.report import FigureStyle, Report


class Renderer(Protocol):
    """Draws the pictures of a report."""

    def __call__(self, report: Report, look: FigureStyle) -> Iterator[tuple[str, bytes]]:
        """Yield each file's name and content."""


RENDERERS: tuple[Plugin, ...] = (
    Plugin("png", "attnviz.renderers.figure.files:png", "pixels, for screens and slides"),
    Plugin("svg", "attnviz.renderers.figure.files:svg", "vectors, for the web; looks the same everywhere"),
    Plugin("pdf", "attnviz.renderers.figure.files:pdf", "vectors, for print; fonts embedded"),
    Plugin("html", "attnviz.renderers.page.html:html", "one page to explore, offline: maps, charts and tables"),
)
PAGE_FORMAT = "html"  # which --open shows


def choose_renderers(names: Sequence[str], open_page: bool) -> tuple[Plugin, ...]:
    """Return the renderers of these formats, of which an item may name several with commas, each once.

    Raises InvalidOption where one is unknown.
    """
    formats = [name.strip().lower() for item in names for name in item.split(",")]
    if open_page:
        formats.append(PAGE_FORMAT)
    return tuple(find(RENDERERS, name, "format") for name in dict.fromkeys(formats))
