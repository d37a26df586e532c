"""What tests of training share."""

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
