"""Folders in the temporary one of the system: gone with the run, or at the next one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from attnviz.store.temporary import PREFIX, make_temporary_folder, temporary_folder

HOLD = """
import sys, time
from attnviz.store.temporary import make_temporary_folder
print(make_temporary_folder()[0], flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_goes_with_its_run(tmp_path: Path) -> None:
    with temporary_folder() as path:
        (path / "inner").mkdir()
        (path / "inner" / "file").write_text("a", encoding="utf-8")
        assert path.parent == tmp_path
    assert [*tmp_path.iterdir()] == []


@pytest.mark.skipif(sys.platform == "win32", reason="no such locks")
def test_what_a_killed_run_left_goes_at_the_next_one_and_nothing_else_does(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    runs = [
        subprocess.Popen([sys.executable, "-c", HOLD], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    lives, killed = (Path(str(run.stdout and run.stdout.readline().strip())) for run in runs)
    try:
        runs[1].kill()
        runs[1].wait()
        assert killed.is_dir()
        (own := tmp_path / "attnviz-mine").mkdir()
        (elsewhere := tmp_path / "elsewhere").mkdir()
        (link := tmp_path / f"{PREFIX}link").symlink_to(elsewhere)
        _, remove = make_temporary_folder()
        remove()
        assert sorted(tmp_path.iterdir()) == sorted([lives, own, elsewhere, link])
    finally:
        runs[0].kill()
        for run in runs:
            run.communicate()
