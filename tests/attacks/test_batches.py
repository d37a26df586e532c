"""Runs that are killed, interrupted or not listened to, and batches of hostile texts: nothing half-written is left."""

import os
import random
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from attnviz import store
from attnviz.commands.batch.manifests import to_bytes
from attnviz.store.manifest import Entry, Manifest
from tests.attacks import endings
from tests.made import content, random_maps
from tests.process import PROGRAM, Run, RunCli, workers_of

PICTURES = "figures/drawn-*/layer-0-head-0.png"
CONFIG = """\
defaults: {model: dot, d_model: 8, dpi: 40, format: [png, svg]}
jobs:
  - name: drawn
    heatmap: {dataset: texts.csv}
    matrix: {index: [0, 1, 2, 3, 4, 5, 6, 7]}
  - name: by-hand
    explain: {text: by hand, by_hand: true, query: 1}
"""


def prepared(folder: Path) -> Path:
    folder.mkdir()
    rows = "\n".join(f"{number} words of a text number {number}" for number in range(8))
    (folder / "texts.csv").write_text(f"text\n{rows}\n", encoding="utf-8")
    (folder / "figures.yaml").write_text(CONFIG, encoding="utf-8")
    return folder


def start(folder: Path) -> subprocess.Popen[bytes]:
    return endings.started(folder, "batch", "figures.yaml", "--workers", "2", start_new_session=True)


def gone(group: int) -> bool:
    """Whether no process of a group is left: one that is ending may take a moment."""
    deadline = time.monotonic() + 10
    with suppress(ProcessLookupError):
        while time.monotonic() < deadline:
            os.killpg(group, 0)
            time.sleep(0.02)
        return False
    return True


@pytest.mark.slow
def test_killed_again_and_again_and_run_again_it_is_as_if_it_never_was(run_cli: RunCli, tmp_path: Path) -> None:
    """With everything that it started: while it is starting, and soon after most of its eight pictures are there.

    None is ever half a picture.
    """
    unbroken, broken = prepared(tmp_path / "unbroken"), prepared(tmp_path / "broken")
    endings.worked(run_cli("batch", "figures.yaml", "--workers", "2", cwd=unbroken))
    moments = random.Random(5)
    for n_pictures in (0, 5):
        process = start(broken)
        endings.wait_for(process, PICTURES, n_pictures, broken)
        time.sleep(moments.uniform(0, 0.1))
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        assert gone(process.pid)  # the next run leaves what a process that is there may be writing
        for file in (broken / "figures").rglob("*.png"):  # what a killed writer leaves is hidden, for the next run
            if not any(step.startswith(".") for step in file.relative_to(broken).parts):
                endings.png(file)
    endings.worked(run_cli("batch", "figures.yaml", "--workers", "1", cwd=broken))
    assert content(broken / "figures") == content(unbroken / "figures")


@pytest.mark.slow
def test_interrupted_it_says_so_by_its_code_and_leaves_no_process(run_cli: RunCli, tmp_path: Path) -> None:
    folder = prepared(tmp_path / "folder")
    process = start(folder)
    endings.wait_for(process, PICTURES, 1, folder)
    os.killpg(process.pid, signal.SIGINT)
    run = endings.ended(process)
    assert run.exit_code == 130
    endings.check_streams(run)
    assert gone(process.pid)
    endings.worked(run_cli("batch", "figures.yaml", cwd=folder))
    endings.check_whole(folder / "figures")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
@pytest.mark.parametrize(
    ("command", "number"),
    [("batch", signal.SIGKILL), ("batch", signal.SIGTERM), ("diff", signal.SIGHUP)],
)
def test_no_worker_outlives_a_parent_that_alone_is_ended(command: str, number: signal.Signals, tmp_path: Path) -> None:
    """Each waits for a text that never comes, and would write its pictures whenever it does. Both commands share out
    their work in one way; `diff --again` has a folder of its own to take away.
    """
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "figures.yaml").write_text("jobs: [heatmap: {text_file: pipe}]\n", encoding="utf-8")
    entry = Entry("heatmap-1", "heatmap", {"text_file": ("pipe",)}, "", {}, (), (), ())
    (tmp_path / "manifest.json").write_bytes(to_bytes(Manifest({}, {}, (entry,))))
    (tmp_path / "tmp").mkdir()
    asked = ["batch", "figures.yaml", "--out", "tmp/out"] if command == "batch" else ["diff", ".", "--again"]
    process = endings.started(tmp_path, *asked, env={**endings.environment(), "TMPDIR": str(tmp_path / "tmp")})
    text = None
    while text is None:
        assert process.poll() is None, process.communicate()[1]
        with suppress(OSError):  # as long as the worker has not opened it
            text = os.open(tmp_path / "pipe", os.O_WRONLY | os.O_NONBLOCK)
        time.sleep(0.02)
    workers = workers_of(process.pid)
    assert workers
    if (command, number) == ("batch", signal.SIGTERM):  # and while it is there, no other writes to its folder
        endings.refused(endings.run_in(tmp_path, *PROGRAM, *asked), "another run of attnviz is writing to tmp/out")
    process.send_signal(number)
    assert endings.ended(process) == Run(-number if number == signal.SIGKILL else 130, b"", b"")
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{worker}").exists() for worker in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)
    os.close(text)
    if number != signal.SIGKILL:
        assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.slow
def test_a_disk_that_refuses_one_picture_has_its_own_exit_code(run_here: endings.RunHere, tmp_path: Path) -> None:
    """A folder stands where the picture should go; the other job is made."""
    folder = prepared(tmp_path / "folder")
    (tmp_path / "out/by-hand/report.md").mkdir(parents=True)
    run = run_here("batch", str(folder / "figures.yaml"), "--out", "out", "--workers", "2")
    assert run.exit_code == 74
    assert run.stderr.count("error: by-hand: cannot write ") == 1
    assert len(list((tmp_path / "out").glob("drawn-*/layer-0-head-0.png"))) == 8


# --- Readers that leave, full disks behind a pipe and Ctrl-C: nothing half-written, and a fitting exit code ---


RENDER = ("render", "attention.safetensors", "--dpi", "40")


# Pipes


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash on this machine")
@pytest.mark.parametrize(
    ("args", "reader", "n_lines"),
    [
        ((*RENDER, "--json"), "head -1", 1),
        (("vocab", "--json"), "sleep 0", 0),
    ],
    ids=["while a document is written", "before anything is written"],
)
def test_a_reader_that_leaves(args: tuple[str, ...], reader: str, n_lines: int, tmp_path: Path) -> None:
    """Silent, and the files are there. The first writes more than a pipe holds, so that it has to notice."""
    store.save(random_maps(["a"] * 200), tmp_path / "attention.safetensors")
    script = f'"$@" | {reader}; exit ${{PIPESTATUS[0]}}'
    run = endings.run_in(tmp_path, "bash", "-c", script, "bash", *PROGRAM, *args)
    assert run.exit_code == 1
    assert run.stdout.count("\n") == n_lines
    endings.check_streams(run)
    assert "error" not in run.stderr
    assert endings.check_whole(tmp_path) or args[0] == "vocab"


@pytest.mark.parametrize(
    "args",
    [("--help",), ("vocab", "--json")],
    ids=lambda args: args[0],
)
def test_a_full_disk_behind_standard_output(args: tuple[str, ...], tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        run = endings.run_in(tmp_path, *PROGRAM, *args, stdout=full)
    endings.refused(run, "cannot write to standard output: No space left on device", code=74)


@pytest.mark.parametrize(
    ("args", "closed"),
    [(("vocab",), ">&-"), (RENDER, "<&- >&- 2>&-")],
    ids=["standard output", "all of them"],
)
def test_streams_that_are_closed(args: tuple[str, ...], closed: str, tmp_path: Path) -> None:
    """The files are written; there is nowhere to say so."""
    store.save(random_maps(n_heads=1), tmp_path / "attention.safetensors")
    endings.worked(endings.run_in_shell(tmp_path, f'"$@" {closed}', *args))
    assert len(endings.check_whole(tmp_path)) == (args[0] == "render")
    assert len(list(tmp_path.rglob("*.*"))) == 2


# Ctrl-C


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_an_end_while_waiting_for_a_text(number: signal.Signals, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    process = endings.started(tmp_path, "heatmap", "--text-file", "pipe")
    with (tmp_path / "pipe").open("wb"):  # opens when the program has opened it
        assert endings.stopped(process, number) == Run(130, b"", b"")
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]
