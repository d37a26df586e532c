"""Lessons as their command writes them, and in a browser."""

from collections.abc import Callable
from pathlib import Path

import pytest

from attnviz.cli import app
from tests.browser import Open, Opened

SENTENCE = "the film was not good but the acting saved the film"
Write = Callable[..., Path]


@pytest.fixture(scope="module")
def write(tmp_path_factory: pytest.TempPathFactory) -> Write:
    """Writes a lesson once for each choice of options."""
    folder = tmp_path_factory.mktemp("lessons")
    written: dict[tuple[str | None, ...], Path] = {}

    def make(*options: str, text: str | None = SENTENCE) -> Path:
        asked = (text, *options)
        if asked not in written:
            written[asked] = folder / f"{len(written)}.html"
            assert app.run(["lesson", *([text] if text else []), *options, "--out", str(written[asked])]) == 0
        return written[asked]

    return make


@pytest.fixture
def page(opened: Open, write: Write) -> Opened:
    """The lesson on the sentence in a browser, as it opens."""
    return opened(write())
