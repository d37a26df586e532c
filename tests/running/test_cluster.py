"""A real dask cluster of processes: the bytes of a serial run, also where a worker is killed in the middle."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from threading import Event, Thread

import pytest

from attnviz.running import executors
from tests.attacks.endings import RunHere, ended, refused, started, worked
from tests.process import Run, bare_environment

dask = pytest.importorskip("dask")
pytest.importorskip("distributed")
pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Cluster:
    """A scheduler and its workers, each a process."""

    file: Path
    scheduler: subprocess.Popen[bytes]
    workers: tuple[subprocess.Popen[bytes], ...]


def start(stack: ExitStack, home: Path, *args: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "dask", *args]
    log = stack.enter_context((home / f"{args[0]}.log").open("ab"))
    process = subprocess.Popen(command, env=bare_environment(home), cwd=home, stdout=log, stderr=log)
    stack.callback(process.wait, 20)
    stack.callback(process.kill)
    return process


@contextmanager
def running(home: Path, n_workers: int, *security: str) -> Iterator[Cluster]:
    file = home / "scheduler.json"
    both = ("--scheduler-file", str(file), "--no-dashboard", *security)
    protocol = ("--protocol", "tls") if security else ()
    with ExitStack() as stack:
        scheduler = start(stack, home, "scheduler", "--host", "127.0.0.1", "--port", "0", *both, *protocol)
        while not file.exists():
            assert scheduler.poll() is None, (home / "scheduler.log").read_text(encoding="utf-8")
            time.sleep(0.1)
        worker = ("worker", *both, "--nthreads", "1", "--no-nanny")
        workers = tuple(start(stack, home, *worker) for _ in range(n_workers))
        wait_for_line(home / "scheduler.log", "Register worker", n_workers)
        yield Cluster(file, scheduler, workers)


def arguments(out: Path, *more: str) -> tuple[str, ...]:
    return ("survey", "--dataset", "sample", "--model", "multi:2", "--null", "none", "-q", "--out", str(out), *more)


def kill_at_work(worker: subprocess.Popen[bytes], ended: Event) -> None:
    """Kill a worker as soon as it has begun to import a model, or when the run has ended without it."""
    while "libtorch" not in Path(f"/proc/{worker.pid}/maps").read_text(encoding="utf-8") and not ended.is_set():
        time.sleep(0.05)
    worker.kill()
    worker.wait(20)


def certify(folder: Path, name: str, *signed: str) -> None:
    """A key and a certificate, by itself or signed by another."""
    subject = ("-subj", f"/CN={name}", "-days", "2", "-keyout", f"{name}.key", "-out", f"{name}.pem", *signed)
    new = ("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    subprocess.run([*new, *subject], cwd=folder, check=True, capture_output=True)


@pytest.mark.skipif(which("openssl") is None, reason="needs openssl, which makes certificates")
def test_a_cluster_gives_whom_it_knows_the_bytes_of_one_process_while_a_worker_lives(
    run_here: RunHere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With TLS, whose certificates are those of dask's own configuration. Without workers it waited for ever."""
    certify(tmp_path, "authority")
    certify(tmp_path, "stranger")
    certify(tmp_path, "me", "-CA", "authority.pem", "-CAkey", "authority.key")

    def run_as(name: str, out: str) -> Run:
        files = {"ca-file": "authority.pem", "client.cert": f"{name}.pem", "client.key": f"{name}.key"}
        with dask.config.set({f"distributed.comm.tls.{key}": str(tmp_path / file) for key, file in files.items()}):
            return run_here(*arguments(tmp_path / out, *more), "--scheduler-file", cluster.file)

    mine = [str(tmp_path / name) for name in ("authority.pem", "me.pem", "me.key")]
    tls = (part for pair in zip(("--tls-ca-file", "--tls-cert", "--tls-key"), mine, strict=True) for part in pair)
    # Two blocks of texts, and what no worker may work out by itself
    more = ("--split", "train[:33]", "--probe", "repeat", "--ablate", "mean")
    worked(run_here(*arguments(tmp_path / "serial", *more)))
    with running(tmp_path, 2, *tls) as cluster:
        is_over = Event()
        killing = Thread(target=kill_at_work, args=(cluster.workers[0], is_over))
        killing.start()
        worked(run_as("me", "dask"))
        is_over.set()
        killing.join()
        assert cluster.workers[0].returncode == -signal.SIGKILL
        assert cluster.workers[1].poll() is None
        monkeypatch.setattr(executors, "TIMEOUT", 1.0)
        unknown = refused(run_as("stranger", "none"), "no dask scheduler answers at ", code=1)
        monkeypatch.setattr(executors, "WORKERS_TIMEOUT", 1.0)
        with ThreadPoolExecutor() as pool:
            pool.submit(kill_waited_for, cluster, cluster.workers[1], 2)
            refused(run_as("me", "lost"), "has no workers after 1 s", code=1)
    for file in (tmp_path / "serial").iterdir():
        assert file.read_bytes() == (tmp_path / "dask" / file.name).read_bytes(), file.name
    assert unknown.stderr.endswith(" Check the certificates of dask's configuration, distributed.comm.tls.\n")


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
def test_a_run_that_waits_heeds_ctrl_c_and_tells_the_end_of_its_scheduler(run_here: RunHere, tmp_path: Path) -> None:
    """It waited for the end of a block that nobody measured, and showed tracebacks and advice about memory."""
    with running(tmp_path, 1) as cluster:
        asked = [*map(str, arguments(tmp_path / "dask")), "--scheduler-file", str(cluster.file)]
        left = started(tmp_path, *asked)
        wait_for_work(cluster, 1)
        left.send_signal(signal.SIGINT)
        told = ended(left)
        assert told.exit_code == 130
        assert told.stderr.endswith("the same command goes on\n")
        with ThreadPoolExecutor() as pool:
            pool.submit(kill_waited_for, cluster, cluster.scheduler, 2)
            said = "the dask scheduler has ended. Start it again; the same command goes on."
            refused(run_here(*asked), said, code=1)


def wait_for_work(cluster: Cluster, n_runs: int) -> None:
    """Wait until the last of `n_runs` has asked workers for something, which are stopped and do nothing."""
    for worker in cluster.workers:
        worker.send_signal(signal.SIGSTOP)
    wait_for_line(cluster.file.with_name("scheduler.log"), "Receive client connection", n_runs)
    time.sleep(3)


def kill_waited_for(cluster: Cluster, process: subprocess.Popen[bytes], n_runs: int) -> None:
    wait_for_work(cluster, n_runs)
    process.kill()
    process.wait(20)


def wait_for_line(log: Path, line: str, count: int) -> None:
    end = time.monotonic() + 60
    while log.read_text(encoding="utf-8").count(line) < count:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_scheduler_that_is_not_there_is_one_line(
    run_here: RunHere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executors, "TIMEOUT", 0.5)
    run = run_here(*arguments(tmp_path / "out"), "--scheduler", "tcp://127.0.0.1:9")
    refused(run, "no dask scheduler answers at tcp://127.0.0.1:9", code=1)
    assert len(run.stderr.splitlines()) == 1
