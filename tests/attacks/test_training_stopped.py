"""Training that is interrupted, killed or not listened to, of hostile texts, on full disks: what was kept stays."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from attnviz.commands.train.inputs import STATE
from tests.attacks import endings
from tests.commands.train.runs import CHECKPOINT, FILES, SIZES, TINY
from tests.made import HOSTILE, content
from tests.process import Run
from tests.text.corpora import write_jsonl

ENDLESS = ("train", "--dataset", "sample", "--epochs", "1000000", "--patience", "1000000", *SIZES)
PATIENCE = 120.0  # seconds


# Streams


@pytest.mark.slow
def test_standard_error_that_nobody_reads(tmp_path: Path) -> None:
    """A model is worth more than what is said about it."""
    reading, writing = os.pipe()
    os.close(reading)
    process = endings.started(tmp_path, *TINY, "--json", "--split", "train[:8]", stderr=writing)
    os.close(writing)
    out, _ = process.communicate(timeout=PATIENCE)
    printed, kept = json.loads(out), json.loads((tmp_path / "model/metrics.json").read_bytes())
    assert printed | {"schema": 0} == kept | {"schema": 0}  # each form has a version of its own
    endings.check_whole(tmp_path / "model")
    assert content(tmp_path / "model").keys() == {*FILES}
    assert process.returncode == 0


HIDDEN_CURSOR = b"\x1b[?25l"  # while a bar is drawn, which begins after a second


def on_terminal(folder: Path, *args: str, keys: bytes = b"") -> tuple[int, str]:
    """Python with these arguments and a terminal as standard error.

    `keys` are typed when the first epoch was told and a bar is drawn.
    """
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, *args],
        cwd=folder,
        env={**endings.environment(), "TERM": "xterm"},
        stdin=theirs,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=terminal_of_ours,
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            read = os.read(ours, 65536)
        except OSError:  # how Linux says that the other side is closed
            break
        if not read:
            break
        shown += read
        if keys and b"held out: loss" in shown and HIDDEN_CURSOR in shown:
            os.write(ours, keys)
            keys = b""
    os.close(ours)
    return process.wait(timeout=PATIENCE), shown.decode()


def terminal_of_ours() -> None:
    """In the new process: Ctrl-C on the terminal is a signal to it."""
    import fcntl
    import termios

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fcntl.ioctl(2, termios.TIOCSCTTY, 0)


CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
TOLD = re.compile(r"epoch (\d)/2  loss \d\.\d{3}  accuracy \d\.\d{3}  [\d,]+ texts/s; held out: loss \d\.\d{4}, acc")
TERMINALS: dict[str, dict[str, str]] = {
    "80 columns": {"COLUMNS": "80"},
    "NO_COLOR in ASCII": {"NO_COLOR": "1", "PYTHONIOENCODING": "ascii"},
    "TERM=dumb": {"TERM": "dumb"},
    "COLUMNS=1": {"COLUMNS": "1"},
}


# One process for all of them, since most of its time goes into importing torch.
ON_EACH_TERMINAL = f"""
import json, os, sys
from attnviz.commands.train import run
run.N_RANDOM = 2
from attnviz.cli import show
from attnviz.cli.app import run
from attnviz.cli.process import prepare_streams
show.BAR_DELAY = 0.1  # from the second on, a training may take less than a second
bare = dict(os.environ)
for number, env in enumerate(json.loads(sys.argv[1])):
    os.environ.clear()
    os.environ.update(bare | env)
    sys.stderr.reconfigure(encoding=env.get("PYTHONIOENCODING", "utf-8"))
    prepare_streams()
    os.mkdir(f"../{{number}}")
    os.chdir(f"../{{number}}")
    code = run({TINY!r})
    print(chr(30), code, sep="", end=chr(30), file=sys.stderr, flush=True)
"""


@pytest.mark.slow
def test_on_terminals(subtests: pytest.Subtests, tmp_path: Path) -> None:
    (tmp_path / "begin").mkdir()
    code, shown = on_terminal(tmp_path / "begin", "-c", ON_EACH_TERMINAL, json.dumps(list(TERMINALS.values())))
    assert code == 0, shown
    *found, after = shown.split(chr(30))
    assert after == ""
    assert found[1::2] == ["0"] * len(TERMINALS), shown
    for (name, env), screen in zip(TERMINALS.items(), found[::2], strict=True):
        with subtests.test(name):
            check_terminal(env, screen)


def check_terminal(env: Mapping[str, str], shown: str) -> None:
    """A bar that is gone at the end, and a line per epoch that stays, with no number cut in two."""
    assert "Traceback" not in shown
    plain = CONTROL.sub("", shown)
    assert "\x1b" not in plain
    assert TOLD.findall(plain) == ["1", "2"]
    if env.get("TERM") == "dumb":
        assert plain == shown
        assert [line for line in shown.splitlines() if not line.startswith("note: ")] == []
        return
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") == 1, "the cursor is shown again"
    bar, after = shown[shown.index("\x1b[?25l") :].split("\x1b[?25h")
    assert after.startswith("\r\x1b[1A\x1b[2Knote: wrote 6 files to model/"), "and the bar is taken away"
    if env.get("COLUMNS") != "1":
        assert ("---" if "PYTHONIOENCODING" in env else "━━━") in bar
        assert re.search(r"[0-9]/[0-9]", bar)  # steps
    colours = re.findall(r"\x1b\[[0-9;]*m", shown)
    assert bool(colours) == ("NO_COLOR" not in env and env.get("COLUMNS") != "1")


@pytest.mark.slow
def test_ctrl_c_on_a_terminal(tmp_path: Path) -> None:
    code, shown = on_terminal(tmp_path, "-m", "attnviz", *ENDLESS, keys=b"\x03")
    assert code == 130
    assert "Traceback" not in shown
    *_, what, how = CONTROL.sub("", shown).splitlines()
    assert "note: stopped after step " in what
    assert how.startswith("note: the same command with --resume goes on after step ")
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") == 1
    endings.check_whole(tmp_path / "model")
    assert content(tmp_path / "model").keys() == {STATE, *CHECKPOINT}


# --- Training on hostile texts, on damaged files, or with no place to write to: one line; what was kept stays ---


@pytest.mark.usefixtures("few_probes", "drawn_once")
def test_texts_are_data(run_here: endings.RunHere, tmp_path: Path) -> None:
    """Whatever stands in them, and however long one is."""
    texts = [*HOSTILE, "x" * 100_000, "word " * 20_000]
    write_jsonl(tmp_path / "[red] $x$ <b>.jsonl", [(f"{text} number {n}", n % 2) for n, text in enumerate(texts * 2)])
    run = endings.worked(run_here("train", "--dataset", "[red] $x$ <b>.jsonl", *TINY[3:], "--crop", "64"))
    assert "trained on [red] $x$ <b>.jsonl train" in run.stdout
    endings.check_whole(tmp_path / "model")
    assert content(tmp_path / "model").keys() == {*FILES}


# Places


@pytest.mark.slow
@pytest.mark.usefixtures("few_probes", "drawn_once")
def test_a_full_disk_after_one_epoch(run: Path, run_here: endings.RunHere, tmp_path: Path) -> None:
    """A state takes up to 110 KiB, and for a moment there are two. With more room it goes on to the same bytes."""
    mount, after = "mkdir model && mount -t tmpfs -o size=100k tmpfs model", "cp -R model left"
    done = endings.with_disks(mount, after, tmp_path, "-m", "attnviz", *TINY)
    said = f"cannot write model/{STATE}: No space left on device"
    endings.refused(Run(done.returncode, done.stdout, done.stderr), said, code=74)
    assert set(content(tmp_path / "left")) == {STATE, *CHECKPOINT}
    endings.worked(run_here(*TINY, "--out", "left", "--resume"))
    assert content(tmp_path / "left") == content(run)
