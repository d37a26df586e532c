"""Readers that leave, full disks behind a pipe and Ctrl-C: nothing half-written, and a fitting exit code."""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from tests.attacks.endings import (
    check_streams,
    check_whole,
    ended,
    refused,
    run_in,
    started,
    stopped,
    worked,
)
from tests.process import PROGRAM, Run

LARGE = ("heatmap", "--text", "a b c d e " * 40, "--model", "dot", "--dpi", "40")
STOPPED = (130, -signal.SIGINT)  # a shell says 130 for both: the second died while a library had the signal to itself


# Pipes


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash on this machine")
@pytest.mark.parametrize(
    ("args", "reader", "n_lines"),
    [
        ((*LARGE, "--table", "full"), "head -1", 1),
        ((*LARGE, "--json"), "head -1", 1),
        (("vocab", "--json"), "sleep 0", 0),
    ],
    ids=["while a table is written", "while a document is written", "before anything is written"],
)
def test_a_reader_that_leaves(args: tuple[str, ...], reader: str, n_lines: int, tmp_path: Path) -> None:
    """Silent, and the files are there. The first two write more than a pipe holds, so that they have to notice."""
    script = f'"$@" | {reader}; exit ${{PIPESTATUS[0]}}'
    run = run_in(tmp_path, "bash", "-c", script, "bash", *PROGRAM, *args)
    assert run.exit_code == 1
    assert run.stdout.count("\n") == n_lines
    check_streams(run)
    assert "error" not in run.stderr
    assert check_whole(tmp_path) or args[0] == "vocab"


@pytest.mark.parametrize(
    "args",
    [("--help",), ("heatmap", "--text", "a", "--model", "dot"), ("vocab", "--json")],
    ids=lambda args: args[0],
)
def test_a_full_disk_behind_standard_output(args: tuple[str, ...], tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        run = run_in(tmp_path, *PROGRAM, *args, stdout=full)
    refused(run, "cannot write to standard output: No space left on device", code=74)


@pytest.mark.parametrize(
    ("args", "closed"),
    [(("vocab",), ">&-"), (("heatmap", "--text", "a b", "--model", "dot"), "<&- >&- 2>&-")],
    ids=["standard output", "all of them"],
)
def test_streams_that_are_closed(args: tuple[str, ...], closed: str, tmp_path: Path) -> None:
    """The files are written; there is nowhere to say so."""
    if shutil.which("sh") is None:
        pytest.skip("no shell on this machine")
    worked(run_in(tmp_path, "sh", "-c", f'"$@" {closed}', "sh", *PROGRAM, *args))
    assert len(check_whole(tmp_path)) == (args[0] == "heatmap")
    assert len(list(tmp_path.rglob("*.*"))) == (2 if args[0] == "heatmap" else 1)


# Ctrl-C


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_an_end_while_waiting_for_a_text(number: signal.Signals, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    process = started(tmp_path, "heatmap", "--text-file", "pipe")
    with (tmp_path / "pipe").open("wb"):  # opens when the program has opened it
        assert stopped(process, number) == Run(130, b"", b"")
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.1, 1.0])
def test_ctrl_c_at_any_moment(seconds: float, tmp_path: Path) -> None:
    """After the text was read: while libraries are imported, a model is made, or pictures are drawn."""
    os.mkfifo(tmp_path / "pipe")
    others = [option for number in range(12) for option in ("--text", f"text {number}")]
    process = started(tmp_path, "heatmap", "--text-file", "pipe", *others, "--model", "dot", "--dpi", "40")
    (tmp_path / "pipe").write_bytes(b"a text")
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    run = ended(process)
    assert run.exit_code in STOPPED
    check_streams(run)
    assert "error" not in run.stderr
    (tmp_path / "pipe").unlink()
    check_whole(tmp_path)
