"""Pages in a browser, for all tests that look at them there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from attnviz.renderers.page.html import html
from attnviz.report import FigureStyle, Report
from tests.browser import Open, Opened, files


@pytest.fixture
def shown(chromium: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens a report's page, or a file; afterwards no page may have asked for anything or complained."""
    opened: list[Opened] = []

    def start(of: Report | Path, state: str = "", **settings: Any) -> Opened:
        if isinstance(of, Report):
            folder = tmp_path / str(len(opened))
            folder.mkdir()
            of = files(folder, list(html(of, FigureStyle())))
        opened.append(Opened(chromium, of, state, **settings))
        return opened[-1]

    yield start
    for each in opened:
        each.close()
