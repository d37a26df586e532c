"""What tests of surveys share."""

import pytest


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of twelve texts there are six blocks, and of random models three."""
    for module in ("plan", "measure", "files"):
        monkeypatch.setattr(f"attnviz.commands.survey.{module}.BLOCK", 2)
    monkeypatch.setattr("attnviz.commands.survey.facts.N_RANDOM", 3)
