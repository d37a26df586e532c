"""Who does work that is shared out: this process, processes of this machine, or a dask cluster.

All are a `concurrent.futures.Executor`, which is all that commands know of them. The only module that knows dask.

A process that is given one piece of work after the other reads its model once.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from concurrent.futures._base import DoneAndNotDoneFutures
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, TypeVar

from attnviz.bounded import MAX_JSON, expand_path, parse_json, read_bytes
from attnviz.errors import ExecutionError, InvalidOption, raising, refuse_several
from attnviz.models.loading import ModelReference
from attnviz.models.protocols import AttentionModel
from attnviz.running.cluster_options import ClusterOptions
from attnviz.running.local_executor import LocalExecutor, WorkerDied

Result = TypeVar("Result")
TASKS_PER_WORKER = 2  # one at work, one that waits
TIMEOUT = 5.0  # seconds for a scheduler to answer
WORKERS_TIMEOUT = 20.0  # seconds without a worker: on a busy machine one takes ten to start
WAIT_AT_ONCE = 1.0  # seconds
SCHEDULER_FILE_HINT = "dask scheduler --scheduler-file writes it."
EXTRA = "pip install 'attnviz[cluster]'"


class InlineExecutor(Executor):
    """Does everything at once, in this process."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call `fn` now."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class ClusterExecutor(Executor):
    """The workers of a dask cluster, through a client that is connected to its scheduler at the place `where`."""

    def __init__(self, client: Any, where: str | None) -> None:
        self._client, self._where = client, where
        self._tasks = client.get_executor(pure=False)
        self._seen = time.monotonic()  # when workers were last there

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Submit `fn` to one of the workers."""
        future: Future[Any] = self._tasks.submit(fn, *args, **kwargs)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Cancel what is not done."""
        self._tasks.shutdown(wait=False)

    def check_workers(self) -> int:
        """Return how many threads the workers have. Raises ExecutionError where there have long been none."""
        n_threads = 0
        # Where it is gone, its tasks will say so.
        with suppress(OSError, RuntimeError, TypeError, AttributeError, TimeoutError):
            n_threads = sum(self._client.nthreads(callback_timeout=TIMEOUT).values())
        if n_threads:
            self._seen = time.monotonic()
        elif time.monotonic() - self._seen > WORKERS_TIMEOUT:
            found = f"the dask scheduler at {self._where} has no workers after {WORKERS_TIMEOUT:.0f} s"
            raise ExecutionError(found, hint="Start some with: dask worker ADDRESS.")
        return n_threads


def wait_briefly(executor: Executor, futures: Collection[Future[Result]]) -> DoneAndNotDoneFutures[Result]:
    """Wait until one of these has ended, for a second at most, so that Ctrl-C is heeded between two calls.

    Raises ExecutionError where a cluster has lost its workers.
    """
    found = wait(futures, WAIT_AT_ONCE, FIRST_COMPLETED)
    if not found.done and isinstance(executor, ClusterExecutor):
        executor.check_workers()
    return found


def get_result(future: Future[Result]) -> Result:
    """Return what a task gave. Raises what it raised; WorkerDied where it was tried in vain, whoever tried it;
    ExecutionError where its scheduler is gone.
    """
    try:
        return future.result()
    except CancelledError as error:
        problem = "the dask scheduler has ended"
        raise ExecutionError(problem, hint="Start it again; the same command goes on.") from error
    except Exception as error:
        if type(error).__name__ == "KilledWorker":  # of dask, which only who has it can import
            raise WorkerDied("on the cluster") from error
        raise


def check_cluster(cluster: ClusterOptions, n_workers: int | None) -> None:
    """Check the options of a cluster.

    Raises InvalidOption for options that exclude each other, a file that is not there, and without dask.
    """
    options = {"--scheduler": cluster.scheduler, "--scheduler-file": cluster.scheduler_file, "--workers": n_workers}
    refuse_several(options)
    if cluster.scheduler_file is not None:
        file = expand_path(cluster.scheduler_file, InvalidOption)
        with raising(InvalidOption, f"--scheduler-file: {file} is not JSON", SCHEDULER_FILE_HINT):
            found = parse_json(read_bytes(file, MAX_JSON, InvalidOption, SCHEDULER_FILE_HINT))
        if not isinstance(found, dict) or not isinstance(found.get("address"), str):
            raise InvalidOption(f"--scheduler-file: {file} holds no address", hint=SCHEDULER_FILE_HINT)
    if cluster.asked:
        with raising(InvalidOption, "a dask cluster needs the extra cluster", f"{EXTRA} installs it.", (ImportError,)):
            import distributed  # noqa: F401  # of an extra


@contextmanager
def open_executor(
    n_workers: int, *, inline: bool = False, cluster: ClusterOptions | None = None
) -> Iterator[tuple[Executor, int]]:
    """Open an executor; yield it and how many tasks to hand it at a time, so that none of its workers waits.

    Where it is left, what waits is cancelled.

    `inline`: a single worker is this process. Raises ExecutionError for a scheduler that does not answer.
    """
    if cluster is not None and cluster.asked:
        import distributed  # of an extra

        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # else tracebacks where the scheduler ends
        where = cluster.scheduler or cluster.scheduler_file
        kind = "scheduler_file" if cluster.scheduler is None else "address"
        try:  # to a scheduler that is there already: none is started
            client = distributed.Client(**{kind: where}, timeout=TIMEOUT, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            tls = "Check the certificates of dask's configuration, distributed.comm.tls."
            hint = tls if "tls" in str(error).lower() else "Start one with: dask scheduler --host 127.0.0.1."
            raise ExecutionError(f"no dask scheduler answers at {where}: {error}", hint=hint) from error
        with client:
            executor = ClusterExecutor(client, where)
            try:
                while not (n_threads := executor.check_workers()):
                    time.sleep(0.1)
                yield executor, TASKS_PER_WORKER * n_threads
            finally:
                executor.shutdown()
        return
    alone = inline and n_workers == 1
    local: Executor = InlineExecutor() if alone else LocalExecutor(n_workers)
    try:
        yield local, 1 if alone else TASKS_PER_WORKER * n_workers
    finally:
        local.shutdown(cancel_futures=True)


@lru_cache(maxsize=1)
def open_model(reference: ModelReference, vocabulary: tuple[str, ...] = ()) -> AttentionModel:
    """Open a model, which a process reads once, and what it computes with."""
    # Torch comes with it, and is imported by workers alone.
    from attnviz.models.device import keep_freed_memory, use_one_thread

    use_one_thread()  # with more of them, and on a cluster nobody knows how many, sums have other bits
    keep_freed_memory()  # sizes of blocks recur
    open_model.cache_clear()  # first: two models may have no room
    return reference.open(vocabulary)
