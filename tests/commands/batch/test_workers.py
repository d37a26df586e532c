"""Jobs shared out among real processes: what is made, what is not made again, and what a death takes with it."""

import os
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from multiprocessing import active_children, forkserver
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from attnviz.commands.batch.jobs import Job
from attnviz.commands.batch.workers import Done, run_jobs
from attnviz.commands.explain.spec import ExplainSpec
from attnviz.commands.heatmap.spec import HeatmapSpec
from attnviz.errors import InvalidOption
from attnviz.options import build, replace_values
from attnviz.running import local_executor
from attnviz.running.executors import open_executor
from attnviz.running.local_executor import WorkerDied
from attnviz.store.manifest import Entry
from tests.process import bare_environment

SMALL = {"model": "dot", "d_model": 8, "dpi": 40}


def jobs(*texts: str, **more: object) -> list[Job]:
    made = (build(HeatmapSpec, text=(text,), **{**SMALL, **more}) for text in texts)
    return [Job(f"job-{n}", "heatmap", spec) for n, spec in enumerate(made)]


def run(
    these: list[Job],
    folder: Path,
    earlier: dict[str, Entry] | None = None,
    *,
    here: bool = True,
    fail_fast: bool = False,
) -> dict[str, Done]:
    """In this process, or in one of its own."""
    with open_executor(1, inline=here) as (executor, _):
        return {done.entry.name: done for done in run_jobs(these, folder, earlier or {}, executor, fail_fast)}


@pytest.fixture(autouse=True)
def nobody_stays() -> Iterator[None]:
    yield
    assert not active_children()


@pytest.mark.slow
def test_where_nothing_can_be_forked_processes_are_fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_socket() -> None:
        raise OSError("AF_UNIX path too long")

    monkeypatch.setattr(forkserver, "ensure_running", no_socket)
    (done,) = run(jobs("one"), tmp_path, here=False).values()
    assert done.how == "made"


def test_a_file_that_was_changed_or_lost_is_made_again(tmp_path: Path) -> None:
    whole = run(jobs("one two"), tmp_path)["job-0"]
    picture = tmp_path / "job-0/layer-0-head-0.png"
    content = picture.read_bytes()
    for harm in (lambda: picture.write_bytes(content[:-1]), picture.unlink):
        harm()
        again = run(jobs("one two"), tmp_path, {"job-0": whole.entry})["job-0"]
        assert (again.how, again.entry) == ("made", whole.entry)
        assert picture.read_bytes() == content


def test_a_job_that_fails_leaves_what_it_made_before(tmp_path: Path) -> None:
    """Neither are the old pictures gone, nor is one of the new among them; and nothing half-written is."""
    entry = run(jobs("one"), tmp_path)["job-0"].entry
    (tmp_path / "job-0/explanation.png").mkdir()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file()}
    explained = Job("job-0", "explain", build(ExplainSpec, text=("one",)))
    failed = run([explained], tmp_path, {"job-0": entry})["job-0"]
    assert failed.entry.error == f"cannot write {tmp_path}/job-0/explanation.png: Is a directory"
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file()} == before


def test_fail_fast_stops_at_the_first(tmp_path: Path) -> None:
    assert list(run(jobs("", "two", "three"), tmp_path, here=False, fail_fast=True)) == ["job-0"]


@pytest.mark.slow
def test_a_process_that_dies_takes_its_own_job_and_is_replaced(tmp_path: Path) -> None:
    """Killed twice while the first job of three is at work: once it is tried again, and the others are made."""
    os.mkfifo(tmp_path / "pipe")  # whoever reads it waits until somebody writes
    slow = Job("slow", "heatmap", build(HeatmapSpec, text_file=(str(tmp_path / "pipe"),)))

    def kill(_signal: int, _frame: object) -> None:
        for child in active_children():
            assert child.pid is not None
            os.kill(child.pid, signal.SIGKILL)

    before = signal.signal(signal.SIGALRM, kill)
    signal.setitimer(signal.ITIMER_REAL, 2, 2)
    try:
        done = next(done for done in _events([slow], tmp_path / "out"))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert done.entry.error == "the process that made it ended by signal 9"


def test_a_process_that_dies_costs_one_task_which_is_run_again(tmp_path: Path) -> None:
    """Of twelve tasks, one of which kills its process the first time, each is done once and none is lost."""
    with open_executor(2) as (executor, _):
        futures = [executor.submit(die_once, tmp_path / "died", number) for number in range(12)]
        assert [future.result() for future in futures] == list(range(12))
    assert (tmp_path / "died").is_file()


def test_a_process_that_is_killed_while_it_answers_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """`ProcessPoolExecutor` waits for the rest of such an answer for ever."""
    monkeypatch.setattr(local_executor, "worker_main", begin_to_answer)
    with open_executor(1) as (executor, _), pytest.raises(WorkerDied, match="by signal 9"):
        executor.submit(abs, -1).result(30)


@pytest.mark.slow
def test_nothing_stays_behind_a_run_that_is_done(tmp_path: Path) -> None:
    """Neither processes nor what they were forked from, which ends without tearing libraries down."""
    shared = "from attnviz.running.executors import open_executor as e\n"
    shared += "with e(2) as (executor, _): assert [*executor.map(abs, (-1, -2))] == [1, 2]"
    torn_down = "import atexit\natexit.register(print, 'torn down')\nimport attnviz.running.forkserver"
    for code in (shared, torn_down):
        command, environment = [sys.executable, "-c", code], bare_environment(tmp_path)
        run = subprocess.run(command, env=environment, capture_output=True, check=True, timeout=60)
        assert (run.stdout, run.stderr) == (b"", b"")  # at the end of which all that have them are gone


@pytest.mark.parametrize(("n_failures", "is_done"), [(1, True), (3, False)])
def test_a_process_that_cannot_be_begun_is_as_one_that_died(
    n_failures: int, is_done: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal to all of a group ends what processes are forked from, too."""
    failures, start = [EOFError("unexpected EOF")] * n_failures, BaseProcess.start

    def begin(process: BaseProcess) -> None:
        if failures:
            raise failures.pop()
        start(process)

    monkeypatch.setattr(BaseProcess, "start", begin)
    with open_executor(1) as (executor, _):
        first = executor.submit(abs, -1)
        if is_done:
            assert first.result(30) == 1
        else:
            with pytest.raises(WorkerDied, match="before it began"):
                first.result(30)
        assert executor.submit(abs, -2).result(30) == 2


def test_what_a_task_raises_comes_back_and_what_cannot_be_sent_is_told() -> None:
    with open_executor(1) as (executor, _):
        with pytest.raises(InvalidOption, match=r"no\. Yes") as raised:
            executor.submit(refuse).result()
        assert raised.value.hint == "Yes"
        with pytest.raises(Exception, match="pickle"):
            executor.submit(lambda: 1).result()
        assert executor.submit(abs, -1).result() == 1


def test_left_in_the_middle_all_processes_end(tmp_path: Path) -> None:
    assert next(_events(jobs("one", "two", "three"), tmp_path)).how == "made"


def _events(these: list[Job], folder: Path) -> Iterator[Done]:
    with open_executor(2) as (executor, _):
        yield from run_jobs(these, folder, {}, executor, fail_fast=False)


def die_once(mark: Path, number: int) -> int:
    if number == 5 and not mark.exists():
        mark.write_bytes(b"")
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def begin_to_answer(connection: Connection, _: Mapping[str, str]) -> None:
    """Instead of `work`: a thousand bytes of a million."""
    connection.recv()
    os.write(connection.fileno(), struct.pack("!i", 10**6) + bytes(1000))
    os.kill(os.getpid(), signal.SIGKILL)


def refuse() -> None:
    raise InvalidOption("no", hint="Yes")


def test_jobs_that_read_each_other_are_refused(tmp_path: Path) -> None:
    first, second = jobs("one", "two")
    with pytest.raises(InvalidOption, match="the jobs job-0, job-1 read each other's files"):
        run(
            [
                replace(first, spec=replace_values(first.spec, vocab=str(tmp_path / "job-1"))),
                replace(second, spec=replace_values(second.spec, vocab=f"{tmp_path}/./job-0/tokenizer.json")),
            ],
            tmp_path,
        )
