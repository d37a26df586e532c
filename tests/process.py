"""The real program as a process, the way a user starts it."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

ROOT = Path(__file__).parents[1]
PROGRAM = (sys.executable, "-m", "attnviz")
# The threads too, and which processor BLAS takes this one for: torch adds in another order, and other bytes are the
# result. By how they begin.
KEPT = ("PATH", "SYSTEMROOT", "TMPDIR", "LD_LIBRARY_PATH", "OMP_", "OPENBLAS_", "CUDA_", "ATTNVIZ_CACHE")


@dataclass(frozen=True)
class Run:
    """How one run ended. Nothing is decoded before somebody asks for it."""

    exit_code: int
    out: bytes
    err: bytes

    @property
    def stdout(self) -> str:
        return self.out.decode("utf-8")

    @property
    def stderr(self) -> str:
        return self.err.decode("utf-8")


class RunCli(Protocol):
    """`attnviz *args` in an empty folder; `env` adds to a bare environment, and None there removes a name."""

    def __call__(
        self,
        *args: str | bytes | Path,
        stdin: bytes = b"",
        env: Mapping[str, str | None] | None = None,
        cwd: Path = ...,
        timeout: float = 120,
    ) -> Run: ...


def bare_environment(home: Path) -> dict[str, str]:
    """What a run sees: UTF-8, no network, no colours asked for, and a home of its own, caches and settings included."""
    return {name: value for name, value in os.environ.items() if name.startswith(KEPT)} | {
        "HOME": str(home),
        "HF_HUB_OFFLINE": "1",
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(ROOT),
        "TOKENIZERS_PARALLELISM": "false",
    }


def run(
    *args: str | bytes | Path,
    home: Path,
    cwd: Path,
    stdin: bytes = b"",
    env: Mapping[str, str | None] | None = None,
    timeout: float = 120,
) -> Run:
    wanted = bare_environment(home) | dict(env or {})
    given = {name: value for name, value in wanted.items() if value is not None}
    command = [*PROGRAM, *args]
    done = subprocess.run(command, input=stdin, env=given, cwd=cwd, timeout=timeout, capture_output=True, check=False)
    return Run(done.returncode, done.stdout, done.stderr)


def said_by(command: list[str], *, cwd: Path, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Any program to its end, and what it said as text."""
    return subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, encoding="utf-8", timeout=120, check=False
    )


def workers_of(parent: int) -> list[int]:
    """Those that make jobs: forked from the one child that has imported what they need, or each begun anew."""
    fresh = [child for child in _children(parent) if b"spawn_main" in _read(Path(f"/proc/{child}/cmdline"))]
    return fresh + [worker for child in _children(parent) for worker in _children(child)]


def _children(parent: int) -> list[int]:
    """Of whichever of its threads."""
    lists = Path(f"/proc/{parent}/task").glob("*/children")
    return [int(child) for threads in lists for child in _read(threads).split()]


def _read(told: Path) -> bytes:
    """Nothing where the process has ended meanwhile."""
    try:
        return told.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def leave_part(folder: Path) -> Path:
    """Make in `folder` what a writer leaves there that is killed: a file half-written, and a lock that nobody holds."""
    part = folder / ".left.attnviz.part"
    (part / "new").mkdir(parents=True, exist_ok=True)
    (part / ".attnviz.lock").write_bytes(b"")
    (part / "new" / "half").write_bytes(b"half")
    return part
