"""`attnviz compare` as a process: what goes where, and how bad requests end."""

from __future__ import annotations

import json
from pathlib import Path

from tests.attacks.endings import check_whole, worked
from tests.process import RunCli

TEXT = "not a good film , but the acting saves it"
QUIET = ("--text", TEXT)


def test_tables_and_a_verdict_on_stdout_and_files_on_stderr(run_cli: RunCli, tmp_path: Path) -> None:
    run = worked(run_cli("compare", "single", "multi", "--text", TEXT, "--theory", "--table", "full"))
    assert run.stderr.splitlines()[-1].startswith("note: wrote 10 files to comparison/ (")
    assert max(map(len, run.stdout.splitlines())) <= 80
    for words in (
        "effective_keys (keys)",
        "FLOP of projections",
        "O(log_k n)",
        "Over 1 text: whether a difference",
        "Heads most alike here",
    ):
        assert words in run.stdout
    assert len(check_whole(tmp_path)) == 8


def test_json_is_one_document_and_the_same_bytes(run_cli: RunCli) -> None:
    asked = ("compare", "single", "multi:2", *QUIET, "--json")
    run = worked(run_cli(*asked))
    found = json.loads(run.out)
    assert [each["name"] for each in found["models"]] == ["single", "multi:2"]
    assert found["measures"]["entropy"]["unit"] == "nats"
    assert run.out == run_cli(*asked, env={"PYTHONHASHSEED": "7"}).out
