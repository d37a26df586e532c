"""What tests of configs share."""

from collections.abc import Callable
from pathlib import Path

import pytest

from attnviz.commands.batch.configs import load_all
from attnviz.commands.batch.jobs import BatchPlan
from attnviz.errors import InvalidConfig

Write = Callable[..., Path]
Problems = Callable[[str | bytes], list[str]]


def load(path: Path) -> BatchPlan:
    """What one config asks for."""
    return load_all([path])


@pytest.fixture
def write(here: Path) -> Write:
    """Writes a config into the current folder, which is empty, and gives its relative path."""

    def write(content: str | bytes, name: str = "c.yaml") -> Path:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def problems(write: Write) -> Problems:
    """What is wrong with a config called c.yaml: one line each, none if nothing is."""

    def problems(content: str | bytes) -> list[str]:
        try:
            load(write(content))
        except InvalidConfig as error:
            return list(error.lines)
        return []

    return problems
