"""What tests of training share."""

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of `SPEC`. Not to be changed."""
    # Not above: pytest may read this file before it has set up what torch and our modules are imported under.
    from tests.commands.train.runs import SPEC, finished, probe_little

    folder = tmp_path_factory.mktemp("run") / "new" / "model"
    with pytest.MonkeyPatch.context() as patch:
        probe_little(patch)
        finished(SPEC, folder)
    return folder


@pytest.fixture
def table(tmp_path: Path) -> Callable[..., str]:
    """Writes a data set and gives its path."""

    def write(*rows: tuple[str, object], name: str = "data.csv", header: str = "text,label") -> str:
        lines = [header, *(f"{text},{label}" for text, label in rows)]
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return str(tmp_path / name)

    return write
