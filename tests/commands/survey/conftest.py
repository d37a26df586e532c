"""What tests of surveys share."""

import shutil
from pathlib import Path

import pytest


def make_small(patch: pytest.MonkeyPatch) -> None:
    """Of twelve texts there are six blocks, and of random models three; nothing is drawn."""
    # Not above: pytest may read this file before it has set up what torch and our modules are imported under.
    from tests.made import draw_nothing

    draw_nothing(patch)
    for module in ("plan", "measure", "files"):
        patch.setattr(f"attnviz.commands.survey.{module}.BLOCK", 2)
    patch.setattr("attnviz.commands.survey.facts.N_RANDOM", 3)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every survey is small, unless a test undoes that."""
    make_small(monkeypatch)


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The survey of `FAST`. Not to be changed."""
    from tests.commands.survey.made import run

    folder = tmp_path_factory.mktemp("surveyed")
    with pytest.MonkeyPatch.context() as patch:
        make_small(patch)
        run(folder)
    return folder


@pytest.fixture
def surveyed(made_once: Path, tmp_path: Path) -> Path:
    """A copy of the survey of `FAST`, to read or to damage."""
    return Path(shutil.copytree(made_once, tmp_path / "surveyed"))
