"""Pages in a browser, for all tests that look at them there."""

from pathlib import Path
from typing import Any

import pytest

from attnviz.renderers.page.html import html
from attnviz.report import FigureStyle, Report
from tests.browser import Open, Opened


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
