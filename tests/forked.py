"""Runs of `attnviz` that are forked from a process which has imported what most of them need: torch takes two seconds.

`python -m tests.forked ADDRESS` serves them, a Unix socket, until its standard input ends. `python tests/forked.py
ADDRESS attnviz …` is `attnviz …`: it hands its arguments, its folder and its three streams over, and ends as the run
did. Another module instead of `attnviz` is run as `python -m` does.

Such a run is a process of its own: its exit code, its streams, its files, its folder and its memory are its own. It
proves nothing of starting: what is imported and when, what Ctrl-C then does, what the environment says to libraries
that read it once, how long it takes; nor that bytes are the same under another hash seed. A signal to what the test has
started is handed on to it, and a kill kills it. Its workers are forked from one process, the same for all runs, whose
streams are not its own.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from importlib import import_module
from multiprocessing import forkserver, resource_tracker
from pathlib import Path
from runpy import run_module
from typing import Any, NoReturn, TextIO, cast

N_STREAMS = 3
# What most runs import. The compiler comes with an optimizer, and takes as long again as torch.
IMPORTED = (
    *(
        "torch",
        "torch._dynamo",
        "distributed",
        "safetensors.torch",
        "tokenizers",
        "regex",
        "yaml",
        "PIL.Image",
        "rich.live",
    ),
    *("attnviz.cli.parser", "attnviz.cli.show", "attnviz.renderers.figure.files", "attnviz.models.encoder_model"),
)
LOADED = {"batch", "compare", "heatmap", "predict", "survey", "train"}  # commands, of wings that are there


def serve(address: str) -> list[str]:
    """Forks whenever somebody asks; it returns only in what was forked, and gives the arguments of the run."""
    from attnviz.commands import COMMANDS  # a run that is asked for starts without it

    serve_workers()
    wings = (command.where.partition(":")[0] for command in COMMANDS if command.name in LOADED)
    for name in (*IMPORTED, *wings):
        import_module(name)
    if (threads := len([*Path("/proc/self/task").iterdir()])) > 1:
        raise RuntimeError(f"{threads} threads, which a fork would not have")
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        while select.select([listening, sys.stdin], [], [])[0] == [listening]:
            asking, _ = listening.accept()
            if os.fork():
                asking.close()
                with suppress(ChildProcessError):
                    while os.waitpid(-1, os.WNOHANG)[0]:  # those that have told how their runs ended
                        pass
                continue
            listening.close()
            return asked_of(asking)
    os.killpg(0, signal.SIGKILL)  # with the runs that nobody waits for any more
    return []


def serve_workers() -> None:
    """Start what workers of all runs are forked from, and have it taken for running: only who started it may ask.

    Else each run that shares out its work starts one, which imports torch and matplotlib.
    """
    if import_module("attnviz.running.local_executor").create_process_context().get_start_method() != "forkserver":
        return
    servers: tuple[Any, ...] = (forkserver, vars(forkserver)["_forkserver"])
    for server in servers:
        server.ensure_running = resource_tracker.ensure_running
    vars(resource_tracker)["_resource_tracker"]._pid = None  # as in every process that has not started it


def asked_of(asking: socket.socket) -> list[str]:
    """In what was forked: another fork is the run, and this process tells how it ended."""
    message, streams, _, _ = socket.recv_fds(asking, 65536, N_STREAMS)
    while not message.endswith(b"\n"):
        message += asking.recv(65536)
    folder, *args = json.loads(message)
    args = [str(arg) for arg in args]
    run = os.fork()
    if run:
        for stream in streams:  # else nobody sees that the run has closed them
            os.close(stream)
        tell(asking, run)
    asking.close()
    os.chdir(folder)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout, sys.stderr = map(opened, range(N_STREAMS), ("r", "w", "w"))
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[assignment, misc]
    return args


def opened(number: int, mode: str) -> TextIO:
    """A stream as Python opens it where the locale is C.UTF-8."""
    errors, buffering = ("backslashreplace", 1) if number == 2 else ("surrogateescape", -1)
    return cast(TextIO, os.fdopen(number, mode, buffering, "utf-8", errors, closefd=False))


def tell(asking: socket.socket, run: int) -> NoReturn:
    """Which process the run is, and how it ended. Where whoever asked is gone, so is the run."""
    asking.sendall(f"{run}\n".encode())
    ready, _, _ = select.select([asking.fileno(), ended := os.pidfd_open(run)], [], [])
    if ended not in ready:
        os.kill(run, signal.SIGKILL)
        os._exit(0)
    asking.sendall(str(os.waitstatus_to_exitcode(os.waitpid(run, 0)[1])).encode())
    os._exit(0)


def ask(address: str, args: list[str]) -> int:
    """One run, to its end: its exit code, or less than 0 for the signal that ended it."""
    with socket.socket(socket.AF_UNIX) as asked:
        asked.connect(address)
        message = json.dumps([str(Path.cwd()), *args]).encode() + b"\n"
        asked.sendall(message[socket.send_fds(asked, [message], range(N_STREAMS)) :])
        with asked.makefile("rb") as told:
            run = int(told.readline())
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, lambda number, _: os.kill(run, number))
            return int(told.read())


if __name__ == "__main__":
    if __package__:
        sys.argv[1:] = serve(sys.argv[1])
        run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
    code = ask(sys.argv[1], sys.argv[2:])
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)
