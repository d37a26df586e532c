"""Processes of this machine that work is shared out to, and what they are forked from. Knows no command, no cluster."""

import gc
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import lru_cache
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.util import Finalize
from typing import Any, TypeAlias

from attnviz.errors import ExecutionError, OutputError
from attnviz.store.cache import caching
from attnviz.store.parts import temporary_folder

ATTEMPTS = 2  # at a task whose process dies: the second death is the task's own doing
TIMEOUT = 5.0  # seconds for a process to end by itself
PREPARE_MODULE = "attnviz.running.forkserver"
DRAWING_MODULES = ("attnviz.running.drawing", "attnviz.models.encoder_model", "attnviz.renderers.documents.markdown")

Call: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]


class WorkerDied(ExecutionError):
    """A process that ended instead of answering, each time it was tried. `how` says by what."""

    def __init__(self, how: str) -> None:
        self.how = how
        problem = f"a process ended {how}, {ATTEMPTS} times at the same texts"
        super().__init__(problem, hint="Fewer --max-tokens take less memory.")


class LocalExecutor(Executor):
    """Processes of this machine, each with a thread here. One that dies costs the task that it was at, which is run
    again, once.

    Not `ProcessPoolExecutor`. All its processes answer through one pipe, which it keeps open for writing itself: where
    one is killed while it sends more than a pipe holds (64 KiB; a block of a survey is 260), it waits for the rest of
    that answer for ever, and Ctrl-C with it. And the first process that dies takes all that was handed out along.
    """

    def __init__(self, n_workers: int) -> None:
        self._threads = ThreadPoolExecutor(n_workers)
        self._of_thread = threading.local()
        self._workers: list[_Worker] = []
        self._lock = threading.Lock()
        self._ended = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Submit `fn` to one of the processes. It and its arguments are pickled, as is what it returns."""
        return self._threads.submit(self._run, (fn, args, kwargs))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes when all is done; with `cancel_futures` at once, whatever they are at."""
        self._threads.shutdown(wait and not cancel_futures, cancel_futures=cancel_futures)
        self._ended = True
        with self._lock:  # after it no process is begun
            workers = [*self._workers]
        for worker in workers:
            worker.process.kill()
        self._threads.shutdown()
        for worker in workers:
            worker.end()

    def _run(self, call: Call) -> Any:
        """Run a call, in a thread: have a process do it, and another one where that dies."""
        how = ""
        for _ in range(ATTEMPTS):
            worker: _Worker | None = getattr(self._of_thread, "worker", None)
            try:
                with self._lock:
                    if self._ended:
                        raise WorkerDied("with what it was at")
                    if worker is None:  # raises where what it is forked from was ended
                        worker = self._of_thread.worker = _Worker()
                        self._workers.append(worker)
                result, error = worker.answer(call)
            except (EOFError, ConnectionError):
                how = "before it began"
                if worker is not None:
                    self._of_thread.worker = None  # the next task is another's
                    with self._lock:  # whoever begins a process asks how all others ended, and only one is told
                        code = worker.end()
                    how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
                continue
            if error is not None:
                raise error
            return result
        raise WorkerDied(how)


class _Worker:
    """One process and a pipe to it."""

    def __init__(self) -> None:
        context = create_process_context()
        self._connection, theirs = context.Pipe()
        self.process = context.Process(target=worker_main, args=(theirs, dict(os.environ)), daemon=True)
        self.process.start()
        theirs.close()  # so that its end is the only one, and its death is seen, also in the middle of an answer

    def answer(self, call: Call) -> tuple[Any, Exception | None]:
        """Have the process run a call; return what it gives, or its error. Raises EOFError where the process dies."""
        try:
            self._connection.send(call)
            result, error = self._connection.recv()
        except OSError as cause:  # before it had taken the call, or in the middle of its answer
            raise EOFError from cause
        return result, error

    def end(self) -> int:
        """End the process and return its exit code: it ends by itself or, after a while, is killed."""
        self._connection.close()
        self.process.join(TIMEOUT)
        if self.process.is_alive():
            self.process.kill()
            self.process.join(TIMEOUT)
        return self.process.exitcode or 0


def create_process_context(preloaded: Sequence[str] = DRAWING_MODULES) -> ForkServerContext | SpawnContext:
    """Create a context of processes that are forked from one without threads, which has imported what all need.

    A fork of this process, with threads of torch or a progress bar, may hang; and each fresh interpreter imports torch
    and matplotlib anew: two seconds. What is `preloaded` counts when the first process is asked for. Elsewhere they are
    fresh: libraries of macOS do not live through forks.
    """
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([PREPARE_MODULE, *preloaded])
    resource_tracker.ensure_running()  # which the next starts too, and which unblocks what is blocked here
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # inherited: Ctrl-C is not theirs to understand
    asked = tempfile.tempdir
    try:
        tempfile.tempdir = _make_place()  # of its socket
        forkserver.ensure_running()
    except (OSError, OutputError):  # a TMPDIR whose name is too long for a socket, or a disk that refuses
        return multiprocessing.get_context("spawn")
    finally:
        tempfile.tempdir = asked
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    return context


@lru_cache(maxsize=1)
def _make_place() -> str:
    """Make a folder that the next run clears away if this one is killed."""
    stack = ExitStack()
    path = stack.enter_context(temporary_folder())
    Finalize(None, stack.close, exitpriority=-200)  # after multiprocessing removes what it has in it
    return str(path)


def worker_main(connection: Connection, environment: Mapping[str, str]) -> None:
    """Run a worker process: tasks in, answers out, until the other end closes."""
    os.environ.clear()  # what it was forked from may be older than what the caller set since
    os.environ.update(environment, OMP_NUM_THREADS="1")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the other end's to understand
    threading.Thread(target=_end_with_parent, daemon=True).start()
    gc.freeze()  # what it was forked with stays to the end
    gc.enable()
    with caching(), suppress(EOFError, ConnectionError):
        while True:
            connection.send(_answer(*connection.recv()))


def _answer(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Exception | None]:
    try:
        return fn(*args, **kwargs), None
    except Exception as error:
        return None, error


def _end_with_parent() -> None:
    """End at once when the process that shares out the work does, however that ends.

    Another run may come after it, and what is left of this one would write between its files.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
