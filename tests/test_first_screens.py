"""The first screen of a command holds the answer and no more: so many lines and numbers at 80 columns."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.attacks.endings import worked
from tests.process import RunCli

NUMBER = re.compile(r"(?<![\w:.])[-+~]?(\d+(,\d{3})*)?\.?\d+(?![\w:])")  # none within a name such as multi:8
REVIEW = "This movie was boring but my sister loved it, and the acting (the whole cast) saved the rest of it."


@pytest.mark.parametrize(
    ("asked", "n_lines", "n_numbers"),
    [
        (("heatmap", REVIEW), 25, 60),
        (("compare", "single", "multi", "--text", REVIEW), 18, 25),
        (("compare", "single", "multi", "--dataset", "sample", "--split", "test"), 18, 25),
        (("compare", "multi", "--text", REVIEW), 18, 25),
        (("survey", "--dataset", "sample", "--split", "test"), 30, 60),
        (("predict", REVIEW), 15, 20),
    ],
)
def test_lines_and_numbers_of_a_first_screen(
    run_cli: RunCli, asked: tuple[str, ...], n_lines: int, n_numbers: int
) -> None:
    shown = worked(run_cli(*asked)).stdout
    assert len(shown.splitlines()) <= n_lines
    assert len(NUMBER.findall(shown)) <= n_numbers
    assert max(map(len, shown.splitlines())) <= 80


def test_a_difference_of_many_kinds_too(run_cli: RunCli, tmp_path: Path) -> None:
    weights = np.random.default_rng(0).dirichlet(np.ones(9), (3, 4, 9)).astype(np.float32)
    np.save(tmp_path / "a.npy", weights)
    np.save(tmp_path / "b.npy", np.roll(weights[1:, :3], 1, axis=2))
    run = run_cli("diff", "a.npy", "b.npy")
    assert run.exit_code == 3
    assert len(run.stdout.splitlines()) <= 15
    assert len(NUMBER.findall(run.stdout)) <= 20
