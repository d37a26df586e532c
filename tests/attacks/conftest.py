"""What attacks share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `TINY` leaves. Not to be changed."""
    # Not above: pytest may read this file before it has set up what torch and our modules are imported under.
    from tests.attacks.trainings import FILES, check_whole
    from tests.commands.train.runs import SPEC, finished

    folder = tmp_path_factory.mktemp("whole") / "model"
    finished(SPEC, folder)
    assert check_whole(folder) == FILES
    return folder
