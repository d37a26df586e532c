"""Where files go and come from: disks and folders that refuse, devices. All or nothing, and one line."""

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from attnviz import store
from tests.attacks.endings import ONE_AFTER_ANOTHER, RunHere, environment, refused, with_disks, worked
from tests.made import random_maps
from tests.process import ROOT, Run, said_by

DRAW = ("heatmap", "--text", "the cat sat", "--model", "dot", "--table", "none")
SMALL = "tmpfs -o size=24k"  # less than one picture
READ_ONLY = "tmpfs -o ro"


def on_disk(kind: str, folder: Path, before: str = "true") -> tuple[Run, dict[str, str]]:
    """A run that writes to a disk of its own at `folder`/disk, and what lies there afterwards."""
    disk = folder / "disk"
    disk.mkdir()
    mount = f"mount -t {kind} tmpfs disk && {before}"
    done = with_disks(mount, "cp -R disk left", folder, "-m", "attnviz", *DRAW, "--out", "disk")
    return Run(done.returncode, done.stdout, done.stderr), {
        path.name: path.read_text(encoding="utf-8") for path in (folder / "left").iterdir()
    }


def test_a_full_disk(tmp_path: Path) -> None:
    """What was there before stays as it was."""
    run, left = on_disk(SMALL, tmp_path, before="echo old > disk/layer-0-head-0.png && echo old > disk/mine.txt")
    refused(run, "cannot write disk/layer-0-head-0.png: No space left on device", code=74)
    assert left == {"layer-0-head-0.png": "old\n", "mine.txt": "old\n"}


def test_a_read_only_folder(tmp_path: Path) -> None:
    run, left = on_disk(READ_ONLY, tmp_path)
    refused(run, "cannot write to disk: Read-only file system", code=74)
    assert left == {}


NO_FOLDERS = {
    "a file": ("file", "file is not a folder. Choose another --out.", 2),
    "a device": ("/dev/null", "/dev/null is not a folder. Choose another --out.", 2),
    "300 characters": ("a" * 300, "File name too long", 74),
    "below a file": ("file/below", "file is not a folder. Choose another --out.", 2),
    "a folder of the system": ("/proc/attention", "cannot make the folder /proc/attention", 74),
}


@pytest.mark.parametrize(("out", "said", "code"), NO_FOLDERS.values(), ids=NO_FOLDERS)
def test_no_folder(out: str, said: str, code: int, run_here: RunHere, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"mine")
    run = refused(run_here("vocab", "--out", out), said, code=code)
    assert len(run.err) < 400
    refused(run_here(*DRAW, "--out", out), said, code=code)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == b"mine"
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_devices_stay_devices(run_here: RunHere, tmp_path: Path) -> None:
    """A picture may go to /dev/null; one that /dev/full refuses is an error, and neither is replaced."""
    picture = tmp_path / "out/layer-0-head-0.png"
    picture.parent.mkdir()
    picture.symlink_to("/dev/null")
    worked(run_here(*DRAW, "--out", "out"))
    assert picture.readlink() == Path("/dev/null")
    assert (tmp_path / "out/attention.safetensors").is_file()

    picture.unlink()
    picture.symlink_to("/dev/full")
    run = run_here(*DRAW, "--out", "out")
    refused(run, "cannot write out/layer-0-head-0.png: No space left on device", code=74)
    for device in ("/dev/null", "/dev/full"):
        assert stat.S_ISCHR(Path(device).stat().st_mode)


WRITING = {
    "heatmap": DRAW,
    "render": ("render", "attention.safetensors"),
    "compare": ("compare", "dot", "single", "--text", "a b"),
    "lesson": ("lesson", "a b"),
    "vocab": ("vocab",),
    "train": ("train", "--dataset", "sample"),
    "batch": ("batch", "figures.yaml"),
}


@pytest.mark.parametrize("args", WRITING.values(), ids=WRITING)
def test_a_folder_that_another_run_writes_to(args: tuple[str, ...], run_here: RunHere, tmp_path: Path) -> None:
    (tmp_path / "figures.yaml").write_text("jobs: [heatmap: {}]\n", encoding="utf-8")
    store.save(random_maps(), tmp_path / "attention.safetensors")
    with store.locked(tmp_path / "out"):
        refused(run_here(*args, "--out", "out"), "another run of attnviz is writing to out. Wait for it, or choose")
        assert [path.name for path in (tmp_path / "out").iterdir()] == [".attnviz.lock"]


# --- Folders and files that may not be read, at every door: one line with their name, and no bug of attnviz ---


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
    """Python, whom the system refuses what modes refuse."""
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("needs setpriv, where root reads everything")
    command = [*(SETPRIV if os.geteuid() == 0 else ()), sys.executable, *args]
    return said_by(command, cwd=folder, env=environment())


@pytest.mark.parametrize("mode", [0o000, 0o444])  # not at all; listed, and not entered
def test_a_folder_that_may_not_be_read_is_one_line(mode: int, subtests: pytest.Subtests, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "attnviz" / "data" / "sample", tmp_path / "closed")
    for name in ("neg", "pos"):
        (tmp_path / "classes" / name).mkdir(parents=True)
        (tmp_path / "classes" / name / "0.txt").write_text("a film")
    closed = [tmp_path / "closed", tmp_path / "classes" / "neg"]
    for folder in closed:
        folder.chmod(mode)
    try:
        done = run_without_rights(tmp_path, "-c", ONE_AFTER_ANOTHER, *map(json.dumps, DOORS.values()))
    finally:
        for folder in closed:
            folder.chmod(0o755)
    assert done.returncode == 0, done.stderr
    for (door, args), line in zip(DOORS.items(), done.stdout.splitlines(), strict=True):
        code, _, err = json.loads(line)
        with subtests.test(door):
            assert code in (2, 74), err
            *_, said = err.splitlines()
            assert said.startswith("error: ")
            assert "closed" in said or "classes/neg" in said
            if "new" not in args[-1] and args[0] != "render":
                assert "Permission denied" in said or "Is a directory" in said


def test_files_of_earlier_runs_that_may_not_be_read_stay(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    for name in ("attention.safetensors", "layer-0-head-0.png", "overview.svg"):
        (tmp_path / "out" / name).write_bytes(b"attnviz")
        (tmp_path / "out" / name).chmod(0)
    done = run_without_rights(tmp_path, "-m", "attnviz", "heatmap", "the cat", "--heads", "1", "--out", "out")
    assert done.returncode == 0, done.stderr
    (tmp_path / "out" / "overview.svg").chmod(0o644)
    assert (tmp_path / "out" / "overview.svg").read_bytes() == b"attnviz"


def test_a_working_folder_that_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here").chmod(0)
    if os.geteuid() != 0:
        pytest.skip("only root can begin there")
    try:
        done = run_without_rights(
            tmp_path / "here", "-m", "attnviz", "heatmap", "the cat", "--out", str(tmp_path / "out")
        )
    finally:
        (tmp_path / "here").chmod(0o755)
    assert done.returncode == 0, done.stderr
