"""The program as a process: what the tests of commands rely on."""

from __future__ import annotations

import os
from pathlib import Path

import attnviz
from tests.process import RunCli


def test_results_and_complaints_come_apart(run_cli: RunCli) -> None:
    good = run_cli("--version")
    assert (good.exit_code, good.err) == (0, b"")
    assert attnviz.__version__ in good.stdout
    bad = run_cli("--no-such-option")
    assert (bad.exit_code, bad.out) == (2, b"")
    assert "--no-such-option" in bad.stderr


def test_it_runs_in_an_empty_folder(run_cli: RunCli, tmp_path: Path) -> None:
    assert run_cli("--help").exit_code == 0
    assert list(tmp_path.iterdir()) == []


def test_these_tests_run_without_network_and_colours() -> None:
    assert os.environ["HF_HUB_OFFLINE"] == "1"
    assert os.environ["TOKENIZERS_PARALLELISM"] == "false"
    assert "FORCE_COLOR" not in os.environ


def test_torch_has_the_threads_of_the_environment() -> None:
    """Not so where a conftest imports it too early; then tests take long, and processes give other bytes."""
    import torch

    assert str(torch.get_num_threads()) == os.environ["OMP_NUM_THREADS"]
