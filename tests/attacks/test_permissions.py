"""Folders and files that may not be read, at every door: one line with their name, and no bug of attnviz."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.attacks.endings import environment
from tests.process import PROGRAM, ROOT, said_by

# The owner of every file may read whatever its mode says, unless these two capabilities are taken away.
RIGHTS = "-dac_override,-dac_read_search"
SETPRIV = ("setpriv", f"--bounding-set={RIGHTS}", f"--inh-caps={RIGHTS}")
DOORS = {
    "a data set": ("heatmap", "--dataset", "closed"),
    "an argument": ("heatmap", "closed"),
    "a model": ("heatmap", "the cat", "--model", "closed"),
    "configs": ("batch", "closed"),
    "an output folder": ("heatmap", "the cat", "--out", "closed"),
    "a folder in it": ("heatmap", "the cat", "--out", "closed/new"),
    "a vocabulary": ("heatmap", "the cat", "--vocab", "closed"),
    "a record": ("render", "closed/attention.safetensors"),
    "two records": ("diff", "closed", "closed"),
    "parts of a survey": ("merge", "closed", "--out", "merged"),
    "texts of a survey": ("survey", "--dataset", "closed"),
    "texts of a class": ("heatmap", "--dataset", "classes"),
}


def run_without_rights(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """A run that the system refuses what modes refuse."""
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("needs setpriv, where root reads everything")
    return said_by([*(SETPRIV if os.geteuid() == 0 else ()), *PROGRAM, *args], cwd=folder, env=environment())


@pytest.mark.parametrize("mode", [0o000, 0o444])  # not at all; listed, and not entered
@pytest.mark.parametrize("args", DOORS.values(), ids=DOORS)
def test_a_folder_that_may_not_be_read_is_one_line(args: tuple[str, ...], mode: int, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "attnviz" / "data" / "sample", tmp_path / "closed")
    for name in ("neg", "pos"):
        (tmp_path / "classes" / name).mkdir(parents=True)
        (tmp_path / "classes" / name / "0.txt").write_text("a film")
    closed = [tmp_path / "closed", tmp_path / "classes" / "neg"]
    for folder in closed:
        folder.chmod(mode)
    try:
        done = run_without_rights(tmp_path, *args)
    finally:
        for folder in closed:
            folder.chmod(0o755)
    assert done.returncode in (2, 74), done.stderr
    *_, said = done.stderr.splitlines()
    assert said.startswith("error: ")
    assert "closed" in said or "classes/neg" in said
    if "new" not in args[-1] and args[0] != "render":
        assert "Permission denied" in said or "Is a directory" in said


def test_files_of_earlier_runs_that_may_not_be_read_stay(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    for name in ("attention.safetensors", "layer-0-head-0.png", "overview.svg"):
        (tmp_path / "out" / name).write_bytes(b"attnviz")
        (tmp_path / "out" / name).chmod(0)
    done = run_without_rights(tmp_path, "heatmap", "the cat", "--heads", "1", "--out", "out")
    assert done.returncode == 0, done.stderr
    (tmp_path / "out" / "overview.svg").chmod(0o644)
    assert (tmp_path / "out" / "overview.svg").read_bytes() == b"attnviz"


def test_a_working_folder_that_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here").chmod(0)
    if os.geteuid() != 0:
        pytest.skip("only root can begin there")
    try:
        done = run_without_rights(tmp_path / "here", "heatmap", "the cat", "--out", str(tmp_path / "out"))
    finally:
        (tmp_path / "here").chmod(0o755)
    assert done.returncode == 0, done.stderr
