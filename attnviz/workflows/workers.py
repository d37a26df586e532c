"""Jobs shared out among processes. A process that dies takes its job with it, and no other."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Literal

from attnviz import store
from attnviz.cache import caching
from attnviz.errors import AttnvizError, OutputError
from attnviz.inputs import is_file
from attnviz.jobs import Job
from attnviz.manifest import Entry
from attnviz.workflows.child import end_with_parent
from attnviz.workflows.run_job import fingerprint, inputs_of, run_job, written

How = Literal["made", "unchanged", "failed"]
PRELOADED = ["attnviz.workflows.drawing", "attnviz.models.encoder_model", "attnviz.workflows.run_job"]
PATIENCE = 5.0  # seconds for a process to end by itself


@dataclass(frozen=True, eq=False)
class Done:
    """One job, and how it ended."""

    entry: Entry
    how: How
    disk_failed: bool = False  # that is why it failed


def run_jobs(
    jobs: Sequence[Job], folder: Path, earlier: Mapping[str, Entry], n_workers: int, fail_fast: bool
) -> Generator[Done]:
    """Each job as it is done. `earlier` are entries of a run before: what did not change since is not made again.

    Where the iteration is left, the processes are ended.
    """
    waiting = deque(jobs)
    workers = [_Worker() for _ in range(min(n_workers, len(jobs)))]
    try:
        for worker in workers:
            worker.give(waiting.popleft(), folder, earlier)
        while busy := [worker for worker in workers if worker.job is not None]:
            for ready in wait([worker.connection for worker in busy]):
                worker = next(worker for worker in busy if worker.connection is ready)
                done = worker.take()
                yield done
                if done.how == "failed" and fail_fast:
                    return
                if waiting:
                    worker.give(waiting.popleft(), folder, earlier)
    finally:
        for worker in workers:
            worker.leave()
        for worker in workers:
            worker.end()


class _Worker:
    """One process and the job that it is at."""

    def __init__(self) -> None:
        self.job: Job | None = None
        self._start()

    def _start(self) -> None:
        context = _context()
        self.connection, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(target=work, args=(theirs, dict(os.environ)), daemon=True)
        self.process.start()
        theirs.close()  # so that its end is the only one, and its death is seen

    def give(self, job: Job, folder: Path, earlier: Mapping[str, Entry]) -> None:
        self.job = job
        with suppress(BrokenPipeError):  # it died idle: taking the answer says so
            self.connection.send((job, folder, earlier.get(job.name)))

    def take(self) -> Done:
        """The answer; a process that died is replaced."""
        assert self.job is not None
        job, self.job = self.job, None
        try:
            done: Done = self.connection.recv()
        except (EOFError, ConnectionResetError):
            self.process.join(PATIENCE)
            code = self.process.exitcode or 0
            how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
            self.connection.close()
            self._start()
            return _failed(job, f"the process that made it ended {how}")
        return done

    def leave(self) -> None:
        """Tell the process that there is nothing more to do."""
        with suppress(OSError):
            self.connection.close()
        if self.job is not None:
            self.process.terminate()

    def end(self) -> None:
        """Wait for the process to end, but not for ever."""
        self.process.join(PATIENCE)
        if self.process.is_alive():
            self.process.kill()


def _context() -> ForkServerContext | SpawnContext:
    """Processes that are forked from one without threads, which has imported once what all of them need.

    A fork of this process, with threads of torch or a progress bar, may hang; and each fresh interpreter imports torch
    and matplotlib anew: two seconds. Elsewhere they are fresh: libraries of macOS do not live through forks.
    """
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    resource_tracker.ensure_running()  # which the next starts too, and which unblocks what is blocked here
    before = os.environ.get("OMP_NUM_THREADS")
    # Torch reads it once: several processes are quicker with a thread each, and no bit depends on how many there are.
    os.environ["OMP_NUM_THREADS"] = "1"
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # inherited: Ctrl-C is not theirs to understand
    try:
        forkserver.ensure_running()
    except OSError:  # such as a TMPDIR whose name is too long for a socket
        return multiprocessing.get_context("spawn")
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        del os.environ["OMP_NUM_THREADS"]
        if before is not None:
            os.environ["OMP_NUM_THREADS"] = before
    return context


def work(connection: Connection, environment: Mapping[str, str]) -> None:
    """A process's life: jobs in, answers out, until the other end closes."""
    os.environ.clear()  # what it was forked from may be older than what the caller set since
    os.environ |= environment
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the other end's to understand
    end_with_parent()
    os.environ["OMP_NUM_THREADS"] = "1"  # where nothing was imported before
    # What the first job imports stays to the end: looking for garbage in it takes a tenth of a second time and again,
    # and half a second when the process ends.
    gc.disable()
    with caching(), suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            job, folder, earlier = connection.recv()
            connection.send(_answer(job, folder, earlier))
            if not gc.isenabled():
                gc.freeze()
                gc.enable()
    gc.freeze()


def _answer(job: Job, folder: Path, earlier: Entry | None) -> Done:
    try:
        store.refuse_links(folder, job.name)
        if earlier is not None and not earlier.error and _unchanged(earlier, job, folder):
            return Done(earlier, "unchanged")
        with store.replacing(folder) as new:
            entry = run_job(job, new.path)
            if earlier is not None:  # of other settings: its files are not to be taken for this job's
                new.discard(file.path for file in earlier.files)
        return Done(entry, "made")
    except AttnvizError as error:
        return _failed(job, str(error), isinstance(error, OutputError))
    except MemoryError:
        return _failed(job, "not enough memory. Fewer --max-tokens, --layers or --heads take less")
    except Exception as error:
        return _failed(job, f"this is a bug of attnviz ({type(error).__name__}: {error}); please report it")


def _unchanged(entry: Entry, job: Job, folder: Path) -> bool:
    """Whether the job would make the same again, and every file is there as it was made."""
    if entry.fingerprint != fingerprint(job, inputs_of(job)):
        return False
    paths = [(folder / file.path, file) for file in entry.files]
    return all(is_file(path) and written(path, folder) == file for path, file in paths)


def _failed(job: Job, error: str, disk_failed: bool = False) -> Done:
    entry = Entry(job.name, job.command, {}, "", {}, {}, (), (), error=error)
    return Done(entry, "failed", disk_failed)
