"""Whatever is given: an exit code that means something, a line that says why, and nothing written elsewhere.

Here a few of each kind, always the same; `make fuzz` tries many.
"""

import os
import subprocess
import sys

import pytest

from tests.process import ROOT


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork") or not hasattr(os, "wait4"), reason="this system does not fork")
def test_what_is_given_ends_well() -> None:
    """In a process that only forks: those of a test runner would copy locks that its threads hold."""
    command = [sys.executable, "-m", "tests.fuzz", "--examples", "40"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
