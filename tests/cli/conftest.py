"""What tests of the command line share."""

from __future__ import annotations

import pytest

from tests.attacks.endings import RunHere


@pytest.fixture
def attnviz(run_here: RunHere) -> RunHere:
    """Runs a command in `tmp_path` without a process of its own."""
    return run_here
