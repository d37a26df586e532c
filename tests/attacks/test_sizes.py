"""What would take more memory than there is, or more than allowed, is refused before it is taken."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.attacks.endings import RunHere, environment, refused, worked
from tests.process import Run

ADDRESSES = 16 * 2**20  # KiB: enough for every library, and less than half of what is asked for below
LONG = " ".join(f"w{number % 500}" for number in range(20_000))


def bounded(folder: Path, *args: str) -> Run:
    """`attnviz *args` that cannot take more than 16 GiB, so that a refusal after the fact is told from one before."""
    if shutil.which("sh") is None:
        pytest.skip("no shell on this machine")
    command = ["sh", "-c", f'ulimit -v {ADDRESSES} && exec "$@"', "sh", sys.executable, "-m", "attnviz", *args]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, timeout=120, check=False)
    return Run(done.returncode, done.stdout, done.stderr)


def test_twenty_thousand_tokens(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text(LONG, encoding="utf-8")
    run = bounded(tmp_path, "heatmap", "--text-file", "long.txt", "--heads", "8")
    refused(run, "20,000 tokens × 8 heads × 1 layer need 35.8 GiB, allowed are 4", "--max-tokens 6688 fits")
    assert [path.name for path in tmp_path.iterdir()] == ["long.txt"]


def test_what_the_hint_says_is_true(run_here: RunHere, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text(LONG, encoding="utf-8")
    asked = ("heatmap", "--text-file", "long.txt", "--heads", "8", "--max-memory", "0.001", "--table", "none")
    refused(run_here(*asked), "--max-tokens 105 fits")
    refused(run_here(*asked, "--max-tokens", "106"), "--max-tokens 105 fits")
    worked(run_here(*asked, "--max-tokens", "105", "--head", "0"))


def test_memory_that_is_not_there(tmp_path: Path) -> None:
    """A width that the option allows and this process cannot have."""
    refused(bounded(tmp_path, "heatmap", "--text", "a b", "--d-model", "65536"), "not enough memory", code=1)
