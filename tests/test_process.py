"""The program as a process: what the tests of commands rely on."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.attacks.endings import started, stopped
from tests.process import Run, RunCli


def test_torch_has_the_threads_of_the_environment() -> None:
    """Not so where a conftest imports it too early; then tests take long, and processes give other bytes."""
    import torch

    assert str(torch.get_num_threads()) == os.environ["OMP_NUM_THREADS"]


@pytest.mark.parametrize(
    ("args", "stdin"),
    [(("predict", "--text-file", "-", "--json"), "ein schöner film".encode()), (("heatmap", "--heads", "7"), b"")],
    ids=lambda given: given[0] if isinstance(given, tuple) else "",
)
def test_a_forked_run_ends_as_one_that_was_started(
    args: tuple[str, ...], stdin: bytes, run_cli: RunCli, run_forked: RunCli
) -> None:
    assert run_forked(*args, stdin=stdin) == run_cli(*args, stdin=stdin)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)])
def test_a_forked_run_is_stopped_with_what_was_started(
    number: int, code: int, forked: tuple[str, ...], tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    process = started(tmp_path, "heatmap", "--text-file", "pipe", program=forked)
    with (tmp_path / "pipe").open("wb", buffering=0) as pipe:  # opens when the run has opened it
        assert stopped(process, number) == Run(code, b"", b"")  # its streams end with the run
        with pytest.raises(BrokenPipeError):
            pipe.write(b"a text")
