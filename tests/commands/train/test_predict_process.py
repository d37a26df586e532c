"""`attnviz predict` as a command: what goes where, and how each bad request ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.attacks.endings import RunHere, worked
from tests.process import RunCli

PRAISE, BLAME = "a wonderful film , i loved it", "the worst film , a boring waste of time"


def test_a_table_on_stdout_and_nothing_else_anywhere(run_forked: RunCli, tmp_path: Path) -> None:
    run = worked(run_forked("predict", "--text", PRAISE, "--text", BLAME))
    assert run.stderr == ""
    positive, negative = (next(line for line in run.stdout.splitlines() if text in line) for text in (PRAISE, BLAME))
    assert "positive" in positive
    assert "negative" in negative
    assert "trained, weights sha256 " in run.stdout
    assert not list(tmp_path.iterdir())


def test_json_is_one_document_with_the_accuracy(attnviz: RunHere) -> None:
    run = worked(attnviz("predict", "--dataset", "sample", "--split", "test", "--json"))
    found = json.loads(run.out)
    right = [
        each["label"] == {0: "negative", 1: "positive"}.get(each["given"], each["given"])
        for each in found["predictions"]
        if each["label"]
    ]
    assert found["accuracy"] == pytest.approx(sum(right) / len(right))
    assert len(right) == 17  # three are of unknown words
    assert sum(map(sum, found["confusion"])) == 17


def test_from_standard_input(run_forked: RunCli) -> None:
    run = worked(run_forked("predict", "--text-file", "-", "--json", stdin=PRAISE.encode()))
    (prediction,) = json.loads(run.out)["predictions"]
    assert prediction["label"] == "positive"
    assert prediction["tokens"] == 7
