"""How every run has to end, whatever it was given, and what has to be true of every file that it left."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unicodedata
from contextlib import suppress
from html import unescape
from pathlib import Path
from typing import Any, NoReturn, Protocol
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

import attnviz
from attnviz.cli import app
from attnviz.commands.survey.files import NAME as SURVEY
from attnviz.commands.survey.files import load_files
from attnviz.commands.train.inputs import STATE, WEIGHTS
from attnviz.commands.train.training import load_state
from attnviz.models.checkpoint import load_checkpoint
from tests.made import known
from tests.process import PROGRAM, Run, bare_environment

# What a terminal would obey, hide or turn around. Only the newline is ours.
RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffe\uffff]")
SVG = "{http://www.w3.org/2000/svg}"


# Several runs in one process, since most of the time of each goes into importing torch.
ONE_AFTER_ANOTHER = """
import contextlib, io, json, sys
from attnviz.cli.app import run
for args in map(json.loads, sys.argv[1:]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(args)
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
"""


class RunHere(Protocol):
    """`attnviz *args` within the test's own process: quick, and every warning is an error."""

    def __call__(self, *args: str | Path) -> Run: ...


def run_here(capsys: pytest.CaptureFixture[str], *args: str | Path) -> Run:
    capsys.readouterr()
    exit_code = app.run([str(arg) for arg in args])
    captured = capsys.readouterr()
    return Run(exit_code, captured.out.encode(), captured.err.encode())


def environment() -> dict[str, str]:
    """What `run_cli` gives to a run, the home included, for a process that has to be started in another way."""
    return bare_environment(Path(os.environ["HF_HOME"]).parent)


def run_in(folder: Path, *command: str, **streams: Any) -> Run:
    """A program to its end, as a user starts it in `folder`."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    done = subprocess.run(command, cwd=folder, env=environment(), timeout=120, check=False, **streams)
    return Run(done.returncode, done.stdout or b"", done.stderr)


def run_in_shell(folder: Path, script: str, *args: str) -> Run:
    """`attnviz *args` as a script of a shell starts it, where it is `"$@"`; skips where no shell is."""
    if shutil.which("sh") is None:
        pytest.skip("no shell on this machine")
    return run_in(folder, "sh", "-c", script, "sh", *PROGRAM, *args)


def started(folder: Path, *args: str, **settings: Any) -> subprocess.Popen[bytes]:
    """A run that can be stopped as from a terminal, also where the tests themselves ignore Ctrl-C."""
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    settings = {"cwd": folder, "env": environment(), **streams, **settings}
    return subprocess.Popen(
        [*PROGRAM, *args], preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), **settings
    )


def ended(process: subprocess.Popen[bytes]) -> Run:
    """How a run ended that was started before."""
    out, err = process.communicate(timeout=60)
    return Run(process.returncode, out, err)


def wait_for(process: subprocess.Popen[bytes], pictures: str, n_pictures: int, folder: Path) -> None:
    """Until that many pictures of a run are there: it has more to make."""
    while len(list(folder.glob(pictures))) < n_pictures:
        assert process.poll() is None
        time.sleep(0.005)


def stopped(process: subprocess.Popen[bytes], number: int) -> Run:
    """Sends a signal to a run that waits for a pipe, until it has ended.

    Python looks for signals before it waits, and not again until it has read: one that comes in between is heeded with
    the next. People press Ctrl-C again.
    """
    for _ in range(10):
        process.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            out, err = process.communicate(timeout=6)
            return Run(process.returncode, out, err)
    process.kill()
    process.communicate()
    raise AssertionError(f"{signal.Signals(number).name} was not heeded ten times")


def with_disks(mount: str, after: str, folder: Path, *python: str) -> subprocess.CompletedProcess[bytes]:
    """`python *python` in `folder`, where the shell's `mount` made disks for it alone; skips where none can be.

    `after` is what the shell does at the end, where the disks are still there.
    """
    if shutil.which("unshare") is None:
        pytest.skip("no unshare on this machine")
    script = f'{mount} || exit 99; "$@"; code=$?; {after}; exit $code'
    spaces = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh")
    command = [*spaces, sys.executable, *python]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, timeout=120, check=False)
    if done.returncode == 99 or done.stderr.startswith(b"unshare"):
        pytest.skip("this machine lets no user mount a disk")
    return done


def notes(run: Run) -> list[str]:
    """What was said on standard error besides errors, without the list of files."""
    lines = [line.removeprefix("note: ") for line in run.stderr.splitlines() if line.startswith("note: ")]
    return [line for line in lines if not line.startswith("wrote ")]


def check_streams(run: Run) -> None:
    """Nothing raw on either stream; standard error holds lines of ours and nothing else."""
    assert RAW.findall(run.stdout) == []
    assert RAW.findall(run.stderr) == []
    assert "Traceback" not in run.stderr
    assert [line for line in run.stderr.splitlines() if not line.startswith(("error: ", "note: "))] == []


def worked(run: Run) -> Run:
    assert run.exit_code == 0, run.stderr
    check_streams(run)
    assert "error: " not in run.stderr
    return run


def refused(run: Run, *said: str, code: int = 2) -> Run:
    """One line says why, no results, and the exit code fits."""
    check_streams(run)
    assert run.exit_code == code, run.stderr
    assert run.out == b""
    errors = [line for line in run.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, run.stderr
    for words in said:
        assert words in errors[0], errors[0]
    return run


def document(run: Run) -> dict[str, Any]:
    """Standard output as one strict JSON document."""

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not JSON")

    read: dict[str, Any] = json.loads(run.out.decode("ascii"), parse_constant=refuse)
    return read


def check_whole(folder: Path) -> list[Path]:
    """Every file below `folder` opens, none is half-written. Gives the pictures."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    for file in files:
        assert not file.name.endswith(".part"), file
        OPEN[file.suffix](file)
    return [file for file in files if file.suffix in (".png", ".svg", ".pdf")]


def png(file: Path) -> dict[str, str]:
    """Decodes every pixel; gives the metadata."""
    with Image.open(file) as picture:
        picture.load()
        assert min(picture.size) >= 30
        assert max(picture.size) <= 40 * 150, "a long token must not stretch a picture"
        assert picture.convert("L").getextrema() != (255, 255)
        text: dict[str, str] = dict(picture.text)  # type: ignore[attr-defined]  # of PNG only
    assert RAW.findall("".join(text.values())) == []
    return text


def svg(file: Path) -> list[str]:
    """Parses the vectors; gives each drawn text, which matplotlib names in a comment beside its outlines.

    Where glyphs are joined or run from right to left there is no comment: "" stands for such a text.
    """
    tree = ElementTree.parse(file, ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True)))
    root = known(tree.getroot())
    assert root.tag == f"{SVG}svg"
    assert RAW.findall(file.read_text(encoding="utf-8")) == []
    assert not list(root.iter(f"{SVG}script"))
    texts = [group for group in root.iter(f"{SVG}g") if group.get("id", "").startswith("text_")]
    assert [
        text.get("id") for text in texts if not (list(text.iter(f"{SVG}use")) or list(text.iter(f"{SVG}path")))
    ] == []
    return [_comment(text) for text in texts]


def _comment(element: ElementTree.Element) -> str:
    found = [str(each.text)[1:-1] for each in element.iter() if not isinstance(each.tag, str)]
    return unescape(found[0]) if found else ""


def pdf(file: Path) -> None:
    """Finds one page between the beginning and the end, which says where the table of contents is."""
    data = file.read_bytes()
    assert data.startswith(b"%PDF-1.")
    assert data[int(known(re.search(rb"startxref\s+(\d+)\s+%%EOF\s*$", data))[1]) :].startswith(b"xref")
    assert len(re.findall(rb"/Type /Page\b", data)) == 1


def record(file: Path) -> None:
    if file.name == WEIGHTS:
        load_checkpoint(file.parent)
    elif file.name == STATE:
        load_state(file)
    else:
        attnviz.load(file)


def survey(file: Path) -> None:
    if file.name == SURVEY:
        found = load_files(file.parent)
        assert np.nanmax(found.tables.numbers.array("n_once")) <= len(found.texts)


def data(file: Path) -> None:
    json.loads(file.read_bytes())


def text(file: Path) -> None:
    """UTF-8 to its last byte, which is a newline, and nothing in it that a terminal or a reader would obey."""
    content = file.read_text(encoding="utf-8")
    assert content.endswith("\n"), file
    assert RAW.findall(content) == [], file


OPEN = {
    ".png": png,
    ".svg": svg,
    ".pdf": pdf,
    ".safetensors": record,
    ".parquet": survey,
    ".json": data,
    **dict.fromkeys((".md", ".csv", ".tex", ".html"), text),
}


def in_svg(label: str) -> str:
    """What `svg` gives for a text."""
    joined = ("Mn", "Mc", "Me", "Cf")
    right_to_left = ("R", "AL", "AN")
    outlined = any(unicodedata.category(c) in joined or unicodedata.bidirectional(c) in right_to_left for c in label)
    return "" if outlined else re.sub("-(?=-)", "- ", label)  # two hyphens may not stand in a comment
