"""Where files go: into the way of others, onto disks that refuse, onto devices. All or nothing, and one line."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from attnviz import store
from tests.attacks.endings import RunHere, refused, with_disks, worked
from tests.made import random_maps
from tests.process import Run, RunCli

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


def test_devices_stay_devices(run_cli: RunCli, run_here: RunHere, tmp_path: Path) -> None:
    """A picture may go to /dev/null; one that /dev/full refuses is an error, and neither is replaced."""
    picture = tmp_path / "out/layer-0-head-0.png"
    picture.parent.mkdir()
    picture.symlink_to("/dev/null")
    worked(run_here(*DRAW, "--out", "out"))
    assert picture.readlink() == Path("/dev/null")
    assert (tmp_path / "out/attention.safetensors").is_file()

    picture.unlink()
    picture.symlink_to("/dev/full")
    run = run_cli(*DRAW, "--out", "out")
    refused(run, "cannot write out/layer-0-head-0.png: No space left on device", code=74)
    for device in ("/dev/null", "/dev/full"):
        assert stat.S_ISCHR(Path(device).stat().st_mode)


WRITING = {
    "heatmap": DRAW,
    "render": ("render", "attention.safetensors"),
    "compare": ("compare", "dot", "single", "--text", "a b"),
    "predict": ("predict", "--text", "a b", "--format", "html"),
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
