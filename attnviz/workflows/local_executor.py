"""Processes of this machine that work is shared out to. Knows no command and no cluster."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

from attnviz.cache import caching
from attnviz.workflows.child import end_with_parent, process_context

ATTEMPTS = 2  # at a task whose process dies: the second death is the task's own doing
PATIENCE = 5.0  # seconds for a process to end by itself


class WorkerDied(BrokenExecutor):
    """A process that ended instead of answering, each time it was tried. The message says how."""


@dataclass(eq=False)
class _Task:
    call: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
    future: Future[Any] = field(default_factory=Future)
    n_deaths: int = 0


class LocalExecutor(Executor):
    """Processes of this machine. One that dies costs the task that it was at, which another one is given.

    `ProcessPoolExecutor` loses all that waits with the first process that dies.
    """

    def __init__(self, n_workers: int) -> None:
        self._n_workers = n_workers
        self._waiting: deque[_Task] = deque()
        self._workers: list[_Worker] = []
        self._lock = threading.Lock()
        self._woken, self._wake = Pipe(duplex=False)
        self._thread: threading.Thread | None = None
        self._closing = self._ending = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have `fn` called in one of the processes. It and its arguments are pickled, as is what it gives."""
        with self._lock:
            if self._closing:
                raise RuntimeError("the executor was shut down")
            task = _Task((fn, args, kwargs))
            self._waiting.append(task)
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, daemon=True)
                self._thread.start()
        self._wake.send_bytes(b".")
        return task.future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes when all is done; with `cancel_futures` at once, whatever they are at."""
        with self._lock:
            self._closing, self._ending = True, self._ending or cancel_futures
        if self._thread is not None:
            with suppress(OSError):
                self._wake.send_bytes(b".")
            if wait:
                self._thread.join()

    def _serve(self) -> None:
        """Give tasks to processes and take their answers, in a thread of its own, until nothing is left."""
        try:
            while self._give():
                busy = {worker.connection: worker for worker in self._workers if worker.task is not None}
                for ready in wait([self._woken, *busy]):
                    if ready is self._woken:
                        self._woken.recv_bytes()
                    elif dead := busy[ready].take():  # type: ignore[index]
                        self._waiting.appendleft(dead)
        finally:
            for worker in self._workers:
                worker.leave()
            for worker in self._workers:
                worker.end()
            for task in self._waiting:
                task.future.cancel()

    def _give(self) -> bool:
        """Hand out what waits. False where nothing is left to do."""
        with self._lock:
            if self._ending:
                return False
            while self._waiting and (worker := self._idle()) is not None:
                task = self._waiting.popleft()
                if task.future.running() or task.future.set_running_or_notify_cancel():
                    worker.give(task)
            return not self._closing or any(worker.task is not None for worker in self._workers)

    def _idle(self) -> _Worker | None:
        worker = next((worker for worker in self._workers if worker.task is None), None)
        if worker is None and len(self._workers) < self._n_workers:
            worker = _Worker()
            self._workers.append(worker)
        return worker


class _Worker:
    """One process and the task that it is at."""

    def __init__(self) -> None:
        self.task: _Task | None = None
        self._start()

    def _start(self) -> None:
        context = process_context()
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs, dict(os.environ)), daemon=True)
        with suppress(EOFError, ConnectionError):  # what it is forked from was ended: it is as one that died at once
            self.process.start()
        theirs.close()  # so that its end is the only one, and its death is seen

    def give(self, task: _Task) -> None:
        """Send it a task. One that cannot be sent has failed."""
        self.task = task
        try:
            self.connection.send(task.call)
        except BrokenPipeError:  # it died idle: taking the answer says so
            pass
        except Exception as error:  # what cannot be pickled
            self.task = None
            task.future.set_exception(error)

    def take(self) -> _Task | None:
        """Its answer goes to who waits for it. A process that died is replaced, and its task to be done again."""
        assert self.task is not None
        task, self.task = self.task, None
        try:
            result, error = self.connection.recv()
        except (EOFError, ConnectionResetError):
            self._join()
            how = self._end_of_process()
            self.connection.close()
            self._start()
            task.n_deaths += 1
            if task.n_deaths < ATTEMPTS:
                return task
            task.future.set_exception(WorkerDied(how))
            return None
        if error is None:
            task.future.set_result(result)
        else:
            task.future.set_exception(error)
        return None

    def _end_of_process(self) -> str:
        if self.process.pid is None:
            return "before it began"
        code = self.process.exitcode or 0
        return f"by signal {-code}" if code < 0 else f"with exit code {code}"

    def leave(self) -> None:
        """Tell the process that there is nothing more to do."""
        with suppress(OSError):
            self.connection.close()
        if self.task is not None:
            self.process.terminate()
            self.task.future.set_exception(WorkerDied("with what it was at"))

    def end(self) -> None:
        """Wait for the process to end, but not for ever."""
        self._join()
        if self.process.is_alive():
            self.process.kill()
            self._join()

    def _join(self) -> None:
        if self.process.pid is not None:  # it was begun
            self.process.join(PATIENCE)


def work(connection: Connection, environment: Mapping[str, str]) -> None:
    """A process's life: tasks in, answers out, until the other end closes."""
    os.environ.clear()  # what it was forked from may be older than what the caller set since
    os.environ |= environment
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the other end's to understand
    end_with_parent()
    os.environ["OMP_NUM_THREADS"] = "1"  # where nothing was imported before
    # What the first task imports stays to the end: looking for garbage in it takes a tenth of a second time and again,
    # and half a second when the process ends.
    gc.disable()
    with caching(), suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            fn, args, kwargs = connection.recv()
            connection.send(_answer(fn, args, kwargs))
            if not gc.isenabled():
                gc.freeze()
                gc.enable()
    gc.freeze()


def _answer(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Exception | None]:
    try:
        return fn(*args, **kwargs), None
    except Exception as error:
        return None, error
