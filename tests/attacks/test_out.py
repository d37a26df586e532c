"""Where files go and come from: disks and folders that refuse, devices. All or nothing, and one line."""

import json
import os
import re
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
RENDER = ("render", "attention.safetensors", "--table", "none")  # without torch, for runs that are processes
SMALL = "tmpfs -o size=24k"  # less than one picture


def on_disk(kind: str, folder: Path, before: str = "true") -> tuple[Run, dict[str, str]]:
    """A run that writes to a disk of its own at `folder`/disk, and what lies there afterwards."""
    disk = folder / "disk"
    disk.mkdir()
    mount = f"mount -t {kind} tmpfs disk && {before}"
    store.save(random_maps(n_heads=1), folder / "attention.safetensors")
    done = with_disks(mount, "cp -R disk left", folder, "-m", "attnviz", *RENDER, "--out", "disk")
    return Run(done.returncode, done.stdout, done.stderr), {
        path.name: path.read_text(encoding="utf-8") for path in (folder / "left").iterdir()
    }


def test_a_full_disk(tmp_path: Path) -> None:
    """What was there before stays as it was."""
    run, left = on_disk(SMALL, tmp_path, before="echo old > disk/layer-0-head-0.png && echo old > disk/mine.txt")
    refused(run, "cannot write disk/layer-0-head-0.png: No space left on device", code=74)
    assert left == {"layer-0-head-0.png": "old\n", "mine.txt": "old\n"}


def test_a_read_only_folder(tmp_path: Path) -> None:
    run, left = on_disk("tmpfs -o ro", tmp_path)
    refused(run, "cannot write to disk: Read-only file system", code=74)
    assert left == {}


NO_FOLDERS = {
    "a device": ("/dev/null", "/dev/null is not a folder. Choose another --out.", 2),
    "300 characters": ("a" * 300, "File name too long", 74),
    "a folder of the system": ("/proc/attention", "cannot make the folder /proc/attention", 74),
}


@pytest.mark.parametrize(("out", "said", "code"), NO_FOLDERS.values(), ids=NO_FOLDERS)
def test_no_folder(out: str, said: str, code: int, run_here: RunHere, tmp_path: Path) -> None:
    run = refused(run_here("vocab", "--out", out), said, code=code)
    assert len(run.err) < 400
    refused(run_here(*DRAW, "--out", out), said, code=code)
    assert [*tmp_path.iterdir()] == []
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


def test_a_folder_that_may_not_be_read_is_one_line(subtests: pytest.Subtests, tmp_path: Path) -> None:
    """Not at all; or listed, and not entered."""
    closed, asked = [], []
    for mode in (0o000, 0o444):
        below = tmp_path / f"{mode}"
        shutil.copytree(ROOT / "attnviz" / "data" / "sample", below / "closed")
        for name in ("neg", "pos"):
            (below / "classes" / name).mkdir(parents=True)
            (below / "classes" / name / "0.txt").write_text("a film")
        for folder in (below / "closed", below / "classes" / "neg"):
            folder.chmod(mode)
            closed.append(folder)
        asked += [(door, [re.sub("^c(?=losed|lasses)", f"{mode}/c", arg) for arg in DOORS[door]]) for door in DOORS]
    try:
        done = run_without_rights(tmp_path, "-c", ONE_AFTER_ANOTHER, *(json.dumps(args) for _, args in asked))
    finally:
        for folder in closed:
            folder.chmod(0o755)
    assert done.returncode == 0, done.stderr
    for (door, args), line in zip(asked, done.stdout.splitlines(), strict=True):
        code, _, err = json.loads(line)
        with subtests.test(door, args=args):
            assert code in (2, 74), err
            *_, said = err.splitlines()
            assert said.startswith("error: ")
            assert "closed" in said or "classes/neg" in said
            if "new" not in args[-1] and args[0] != "render":
                assert "Permission denied" in said or "Is a directory" in said


def test_files_of_earlier_runs_that_may_not_be_read_stay_and_the_working_folder_may_be_one(tmp_path: Path) -> None:
    here, out = tmp_path / "here", tmp_path / "out"
    for folder in (here, out):
        folder.mkdir()
    for name in ("attention.safetensors", "layer-0-head-0.png", "overview.svg"):
        (out / name).write_bytes(b"attnviz")
        (out / name).chmod(0)
    if os.geteuid() == 0:  # only root can begin there
        here.chmod(0)
    try:
        done = run_without_rights(here, "-m", "attnviz", *DRAW, "--out", str(out))
    finally:
        here.chmod(0o755)
    assert done.returncode == 0, done.stderr
    (out / "overview.svg").chmod(0o644)
    assert (out / "overview.svg").read_bytes() == b"attnviz"
