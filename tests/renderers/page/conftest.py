"""Pages in a browser, for all tests that look at them there."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from attnviz.cli import app
from attnviz.renderers.page.html import html
from attnviz.report import FigureStyle, Report
from tests.browser import Open, Opened

WritePage = Callable[..., Path]


@pytest.fixture(scope="session")
def write_page(tmp_path_factory: pytest.TempPathFactory) -> WritePage:
    """Writes the page of a command line once."""

    @cache
    def write(*command: str) -> Path:
        folder = tmp_path_factory.mktemp("page")
        assert app.run([*command, "--format", "html", "-q", "--out", str(folder)]) == 0
        return folder / "attention.html"

    return write


@pytest.fixture
def shown(opened: Open, tmp_path_factory: pytest.TempPathFactory) -> Open:
    """Opens a report's page, or a file."""

    def start(of: Report | Path, state: str = "", **settings: Any) -> Opened:
        if isinstance(of, Report):
            ((name, data),) = html(of, FigureStyle())
            of = tmp_path_factory.mktemp("page") / name
            of.write_bytes(data)
        return opened(of, state, **settings)

    return start
