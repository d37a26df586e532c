"""What tests of the command line share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attacks import endings
from tests.process import Run


@pytest.fixture
def attnviz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> endings.RunHere:
    """Runs a command in `tmp_path` without a process of its own."""
    monkeypatch.chdir(tmp_path)

    def start(*args: str | Path) -> Run:
        return endings.run_here(args, capsys)

    return start
