"""`attnviz measures` as a process."""

from __future__ import annotations

from pathlib import Path

from attnviz.measures import MEASURES
from tests.process import RunCli


def test_measures_are_listed(run_cli: RunCli, tmp_path: Path) -> None:
    run = run_cli("measures")
    assert (run.exit_code, run.stderr) == (0, "")
    lines = run.stdout.splitlines()
    assert lines[0] == "measures of attention"
    assert max(map(len, lines)) <= 80
    listed = [line.split()[0] for line in lines if line and not line.startswith(" ")]
    assert [name for name in listed if name in {measure.name for measure in MEASURES}] == [m.name for m in MEASURES]
    assert list(tmp_path.iterdir()) == []


def test_the_names_that_it_lists_complete(run_cli: RunCli) -> None:
    words = {"_ATTNVIZ_COMPLETE": "complete_bash", "COMP_WORDS": "attnviz heatmap --measure to_", "COMP_CWORD": "3"}
    run = run_cli(env=words)
    assert set(run.stdout.split()) == {measure.name for measure in MEASURES if measure.name.startswith("to_")}
