"""One command line in a process of its own, cheaply, and the laws that hold however it ends.

The process is a fork of this one, which has imported everything: a few milliseconds, its own memory counted by the
kernel, and nothing that it breaks is left for the next.
"""

import faulthandler
import hashlib
import os
import re
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from attnviz.cli import app, process
from attnviz.commands.batch import diff as batch_diff
from attnviz.commands.batch import run as batch_run
from attnviz.errors import DifferencesFound, ExecutionError, InputError, OutputError
from attnviz.running.executors import open_executor
from tests.attacks.endings import RAW

CODES = {0, ExecutionError.exit_code, InputError.exit_code, DifferencesFound.exit_code, OutputError.exit_code}
MAX_SECONDS = 10  # of processor time
MAX_WAIT = 60  # seconds: for what hangs without working
MAX_MEMORY = 0.75  # GiB, of every command line that has the option
MAX_RSS = 2 * MAX_MEMORY * 2**30 + 700e6
OURS = re.compile("(error|note): |::(error|warning|notice) ")  # how lines on standard error begin
BUG = "this is a bug of attnviz"


@dataclass(frozen=True)
class Ending:
    """How a run ended, what it said, and the most bytes that it held."""

    code: int
    out: str
    err: str
    rss: int


def run(args: Sequence[str], folder: Path, room: Path) -> Ending:
    """`attnviz *args` in `folder`; home and temporary files in `room`."""
    streams = [room.parent.parent / name for name in ("stdout", "stderr")]
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        _become(args, folder, room, streams)
    end = time.monotonic() + MAX_WAIT
    while True:
        found, status, used = os.wait4(process, os.WNOHANG)
        if found:
            break
        if time.monotonic() > end:
            os.kill(process, signal.SIGABRT if time.monotonic() < end + 1 else signal.SIGKILL)
        time.sleep(0.002)
    out, err = (stream.read_text(encoding="utf-8", errors="backslashreplace") for stream in streams)
    return Ending(os.waitstatus_to_exitcode(status), out, err, used.ru_maxrss * 1024)


def _become(args: Sequence[str], folder: Path, room: Path, streams: list[Path]) -> None:
    import resource

    code = 99
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.chdir(folder)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, stream in enumerate(streams, start=1):
            os.dup2(os.open(stream, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.stdout, sys.stderr = (os.fdopen(number, "w", encoding="utf-8") for number in (1, 2))
        faulthandler.enable(2)  # where it was when the time was over
        faulthandler.register(signal.SIGXCPU, 2, chain=True)
        tempfile.tempdir = None
        os.environ |= {"HOME": str(room), "TMPDIR": str(room), "COLUMNS": "80"}
        process.prepare_streams()
        for module in (batch_run, batch_diff):  # workers of their own would import everything anew
            vars(module)["open_executor"] = lambda *_: open_executor(1, inline=True)
        code = app.run(args)
        process.flush_stderr()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def contents(folder: Path) -> dict[str, str]:
    """What lies below a folder, links as links."""
    return {path.relative_to(folder).as_posix(): _state(path) for path in sorted(folder.rglob("*"))}


def _state(path: Path) -> str:
    if path.is_symlink():
        return f"link to {path.readlink()}"
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else f"mode {path.lstat().st_mode:o}"


def breaches(
    ending: Ending, before: Mapping[str, str], after: Mapping[str, str], outputs: Sequence[str]
) -> Iterator[str]:
    """Each law that a run broke. `before` and `after` are what lies in and beside its folder."""
    if -ending.code in (signal.SIGXCPU, signal.SIGABRT, signal.SIGKILL):
        where = ending.err.partition("(most recent call first):")[2] or ending.err
        yield f"no end after {MAX_SECONDS} s of work or {MAX_WAIT} s in all: {where[:1500]}"
        return
    elif BUG in ending.err or BUG in ending.out:
        yield next(line for line in (ending.err + ending.out).splitlines() if BUG in line)
    elif ending.code not in CODES:
        yield f"exit code {ending.code}: {ending.err[-300:]}"
    if "Traceback" in ending.err:
        yield f"a traceback: {ending.err[-300:]}"
    elif others := [line for line in ending.err.splitlines() if not OURS.match(line)]:
        yield f"not a line of ours: {others[0][:200]}"
    if raw := RAW.findall(ending.err + ending.out):
        yield f"raw characters {sorted(set(raw))}"
    if ending.rss > MAX_RSS:
        yield f"{ending.rss / 2**30:.2f} GiB, allowed are {MAX_RSS / 2**30:.2f}"
    for path in before.keys() | after.keys():
        if before.get(path) != after.get(path) and not any(
            path == out or path.startswith(f"{out}/") for out in outputs
        ):
            yield f"{path} is {'changed' if path in before and path in after else 'gone' if path in before else 'new'}"
