"""A real dask cluster of processes: the bytes of a serial run, also where a worker is killed in the middle."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from threading import Event, Thread

import pytest

from tests.attacks.endings import RunHere, refused, worked
from tests.process import RunCli, bare_environment

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
def test_a_cluster_gives_whom_it_knows_the_bytes_of_one_process_though_a_worker_dies(
    run_cli: RunCli, run_here: RunHere, tmp_path: Path
) -> None:
    """With TLS. Certificates are those of dask's own configuration, which it reads where it is imported."""
    certify(tmp_path, "authority")
    certify(tmp_path, "stranger")
    certify(tmp_path, "me", "-CA", "authority.pem", "-CAkey", "authority.key")

    def configure(name: str) -> dict[str, str]:
        files = {"CA_FILE": "authority.pem", "CLIENT__CERT": f"{name}.pem", "CLIENT__KEY": f"{name}.key"}
        return {f"DASK_DISTRIBUTED__COMM__TLS__{key}": str(tmp_path / file) for key, file in files.items()}

    mine = [str(tmp_path / name) for name in ("authority.pem", "me.pem", "me.key")]
    tls = (part for pair in zip(("--tls-ca-file", "--tls-cert", "--tls-key"), mine, strict=True) for part in pair)
    # Two blocks of texts, and what no worker may work out by itself
    more = ("--split", "train[:33]", "--probe", "repeat", "--ablate", "mean")
    worked(run_here(*arguments(tmp_path / "serial", *more)))
    with running(tmp_path, 2, *tls) as cluster:
        asked = (*more, "--scheduler-file", str(cluster.file))
        ended = Event()
        killing = Thread(target=kill_at_work, args=(cluster.workers[0], ended))
        killing.start()
        found = run_cli(*arguments(tmp_path / "dask", *asked), env=configure("me"))
        ended.set()
        killing.join()
        assert found.exit_code == 0, found.stderr
        assert cluster.workers[0].returncode == -signal.SIGKILL
        assert cluster.workers[1].poll() is None
        unknown = run_cli(*arguments(tmp_path / "none", *asked), env=configure("stranger"))
    for file in (tmp_path / "serial").iterdir():
        assert file.read_bytes() == (tmp_path / "dask" / file.name).read_bytes(), file.name
    assert (unknown.exit_code, unknown.out) == (1, b"")
    error = unknown.stderr.splitlines()[-1]
    assert error.startswith("error: no dask scheduler answers at ")
    assert error.endswith(" Check the certificates of dask's configuration, distributed.comm.tls.")


@pytest.mark.parametrize("lost", ["scheduler", "workers"])
def test_a_cluster_that_is_lost_is_told_in_one_line(lost: str, run_cli: RunCli, tmp_path: Path) -> None:
    """The one showed tracebacks and advice about memory, without the others it waited for ever."""
    with running(tmp_path, 1) as cluster:
        ending = Thread(target=kill_at_wait, args=(cluster, lost))
        ending.start()
        found = run_cli(*arguments(tmp_path / "dask"), "--scheduler-file", cluster.file)
        ending.join()
    assert found.exit_code == 1
    said = {
        "scheduler": "the dask scheduler has ended. Start it again; the same command goes on.",
        "workers": "has no workers",
    }
    *notes, error = found.stderr.splitlines()
    assert error.startswith("error: ")
    assert said[lost] in error
    assert all(line.startswith("note: ") for line in notes)


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
def test_ctrl_c_is_heeded_where_no_worker_is_left(tmp_path: Path) -> None:
    """It waited for the end of a block that nobody measured."""
    with running(tmp_path, 1) as cluster:
        own = [*map(str, arguments(tmp_path / "dask")), "--scheduler-file", str(cluster.file)]
        command = [sys.executable, "-m", "attnviz", *own]
        run = subprocess.Popen(command, env=bare_environment(tmp_path), stderr=subprocess.PIPE, text=True)
        kill_at_wait(cluster, "workers")
        time.sleep(1)
        run.send_signal(signal.SIGINT)
        _, stderr = run.communicate(timeout=6)
    assert run.returncode == 130
    assert stderr.endswith("the same command goes on\n")


def kill_at_wait(cluster: Cluster, lost: str) -> None:
    """Kill the scheduler or all workers when a survey waits for these, which are stopped until then."""
    log = cluster.file.with_name("scheduler.log")
    for worker in cluster.workers:
        worker.send_signal(signal.SIGSTOP)
    wait_for_line(log, "Receive client connection", 1)
    time.sleep(2)
    for process in (cluster.scheduler,) if lost == "scheduler" else cluster.workers:
        process.kill()
        process.wait(20)


def wait_for_line(log: Path, line: str, count: int) -> None:
    end = time.monotonic() + 60
    while log.read_text(encoding="utf-8").count(line) < count:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_scheduler_that_is_not_there_is_one_line(run_here: RunHere, tmp_path: Path) -> None:
    run = run_here(*arguments(tmp_path / "out"), "--scheduler", "tcp://127.0.0.1:9")
    refused(run, "no dask scheduler answers at tcp://127.0.0.1:9", code=1)
    assert len(run.stderr.splitlines()) == 1
