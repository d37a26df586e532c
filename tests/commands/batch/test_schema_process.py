"""`attnviz batch --schema`, and problems of configs as the terminal sees them."""

from __future__ import annotations

import json
from pathlib import Path

from attnviz.commands.batch.jobs import JOBS
from attnviz.commands.batch.schema import json_schema
from tests.process import RunCli


def test_the_schema_is_printed_and_describes_every_setting_without_flags(run_cli: RunCli, tmp_path: Path) -> None:
    run = run_cli("batch", "--schema")
    assert (run.exit_code, run.stderr) == (0, "")
    document = json.loads(run.stdout)
    assert run.stdout.isascii()
    assert document["$defs"].keys() == json_schema()["$defs"].keys()
    assert list(tmp_path.iterdir()) == []
    definitions = document["$defs"]
    said = {
        (command, name): setting.get("description", "")
        for command in JOBS
        for name, setting in definitions[f"{command.title()}Settings"]["properties"].items()
    }
    assert [where for where, text in said.items() if not text] == []
    of_flags = [text for text in said.values() if any(word in text for word in ("--", "; repeat", "stdin"))]
    assert of_flags == []
    assert said["heatmap", "layer"] == "Which layers: 0, 0-3,7. Default: all."
    assert said["explain", "layer"] == "By hand: which layer; -1 is the last."
    assert said["heatmap", "max_tokens"] == "At most N tokens of a text; keep says which."


def test_each_problem_of_a_config_is_a_line(run_cli: RunCli, tmp_path: Path) -> None:
    (tmp_path / "c\n.yaml").write_text('jobs: [heatmap: {heads: x, "a\\e[31m": 1, dpi: y}, {explain: , name: ../../x}]')
    run = run_cli("batch", "c\n.yaml")
    assert (run.exit_code, run.stdout) == (2, "")
    assert run.stderr.splitlines() == [
        "error: c⏎.yaml:1:25: jobs[0].heatmap.heads: write a whole number, not 'x'",
        *[line for line in run.stderr.splitlines() if "x1b[31m" in line],
        "error: c⏎.yaml:1:47: jobs[0].heatmap.dpi: write a whole number, not 'y'",
        "error: c⏎.yaml:1:69: jobs[1].name: '../../x' cannot be a name: write A-Z a-z 0-9 . _ - only, and a letter or "
        "digit first",
    ]
    assert len(run.stderr.splitlines()) == 4
