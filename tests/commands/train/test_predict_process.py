"""`attnviz predict` as a command: what goes where, and how each bad request ends."""

from __future__ import annotations

import json
from pathlib import Path

from tests.attacks.endings import worked
from tests.process import RunCli

PRAISE, BLAME = "a wonderful film , i loved it", "the worst film , a boring waste of time"


def test_a_table_on_stdout_and_nothing_else_anywhere(run_cli: RunCli, tmp_path: Path) -> None:
    run = worked(run_cli("predict", "--text", PRAISE, "--text", BLAME))
    assert run.stderr == ""
    positive, negative = (next(line for line in run.stdout.splitlines() if text in line) for text in (PRAISE, BLAME))
    assert "positive" in positive
    assert "negative" in negative
    assert "trained, weights sha256 " in run.stdout
    assert not list(tmp_path.iterdir())


def test_from_standard_input(run_cli: RunCli) -> None:
    run = worked(run_cli("predict", "--text-file", "-", "--json", stdin=PRAISE.encode()))
    (prediction,) = json.loads(run.out)["predictions"]
    assert prediction["label"] == "positive"
    assert prediction["tokens"] == 7
