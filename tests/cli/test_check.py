"""`attnviz check` and `attnviz diff` on the command line: exit codes, and which stream holds what."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from attnviz.options import with_values
from tests import batches
from tests.attacks.endings import RunHere
from tests.process import RunCli


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A batch of two jobs. Not to be changed."""
    folder = tmp_path_factory.mktemp("batch") / "made"
    batches.batch(
        folder, with_values(batches.SPEC, format=("png",)), with_values(batches.SPEC, format=("png",), seed=1)
    )
    return folder


@pytest.fixture
def pair(made: Path, tmp_path: Path) -> Path:
    for name in ("baseline", "figures"):
        shutil.copytree(made, tmp_path / name)
    return tmp_path


def spoil(pair: Path) -> None:
    batches.change(pair / "figures", "first", lambda entry: batches.shifted(entry, "entropy", 0, 1, 0.25))
    (pair / "figures" / "second" / "overview.png").unlink()


CHECK = ("check", "figures", "--baseline", "baseline")


def test_the_same_is_0_and_leaves_nothing(pair: Path, attnviz: RunHere) -> None:
    run = attnviz(*CHECK)
    assert (run.exit_code, run.stderr) == (0, "")
    assert run.stdout.startswith("2 jobs, none differs from the baseline\n")
    assert sorted(path.name for path in pair.iterdir()) == ["baseline", "figures"]


def test_a_difference_is_3_and_told(pair: Path, attnviz: RunHere) -> None:
    spoil(pair)
    run = attnviz(*CHECK)
    assert run.exit_code == 3
    assert run.stdout.startswith("2 of 2 jobs differ from the baseline\n")
    assert "1 file was changed after it was made: in second, overview.png is gone." in run.stdout
    assert run.stderr.splitlines() == [
        "note: wrote differences/differences.json",
        "error: 2 of 2 jobs differ from the baseline. differences holds what differs.",
    ]


def test_json_is_what_is_written(pair: Path, attnviz: RunHere) -> None:
    spoil(pair)
    run = attnviz(*CHECK, "--json", "--out", "elsewhere", "--annotations", "github")
    assert run.exit_code == 3
    assert run.stdout == (pair / "elsewhere" / "differences.json").read_text()
    assert json.loads(run.stdout)["unlike_jobs"] == ["first", "second"]
    assert not (pair / "differences").exists()


def test_what_a_server_gets(pair: Path, attnviz: RunHere) -> None:
    spoil(pair)
    (pair / "summary.md").write_text("# of a step before")
    run = attnviz(*CHECK, "--annotations", "github", "--junit", "junit.xml", "--summary", "summary.md")
    assert run.exit_code == 3
    commands = [line for line in run.stderr.splitlines() if line.startswith("::")]
    assert len(commands) == 2
    assert commands[0].startswith("::error file=figures.yaml,title=first%3A 1 number differs::entropy of layer 0")
    root = ElementTree.parse(pair / "junit.xml").getroot()
    assert [(case.get("name"), len(case.findall("failure"))) for case in root.iter("testcase")] == [
        ("first", 1),
        ("second", 1),
    ]
    summary = (pair / "summary.md").read_text()
    assert summary.startswith("# of a step before\n\n# 2 of 2 jobs differ from the baseline\n")


def test_a_server_hears_of_success_too(pair: Path, attnviz: RunHere) -> None:
    run = attnviz(*CHECK, "--annotations", "github", "--junit", "junit.xml", "--summary", "summary.md")
    assert (run.exit_code, run.stderr) == (0, "")
    assert (pair / "summary.md").read_text().startswith("# 2 jobs, none differs")
    root = ElementTree.parse(pair / "junit.xml").getroot()
    assert (root.get("tests"), root.get("failures")) == ("2", "0")
    run = attnviz(*CHECK, "--summary", "missing/summary.md")
    assert run.exit_code == 74


def test_a_summary_that_is_full_is_told(pair: Path, attnviz: RunHere) -> None:
    (pair / "summary.md").write_bytes(b"x" * 2**20)
    run = attnviz(*CHECK, "--summary", "summary.md")
    assert (run.exit_code, run.stderr) == (0, "note: summary.md is full: nothing was added to it\n")
    assert (pair / "summary.md").stat().st_size == 2**20


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("check", "figures"), "--baseline"),
        (("check", "--baseline", "baseline"), "DIR"),
        (("check", "figures", "--baseline", "."), "holds no manifest.json"),
        ((*CHECK, "--tolerance", "-1"), "is no tolerance"),
        ((*CHECK, "--annotations", "gitlab"), "github"),
        ((*CHECK, "--out", "figures/manifest.json"), "is not a folder"),
        (("diff", "figures"), "B"),
        (("diff", "figures", "baseline", "--threshold", "entropy"), "NAME=N"),
    ],
)
def test_wrong_usage_is_2_and_one_line(pair: Path, attnviz: RunHere, arguments: tuple[str, ...], said: str) -> None:
    run = attnviz(*arguments)
    assert (run.exit_code, run.stdout) == (2, "")
    assert run.stderr.count("\n") == 1
    assert said in run.stderr


def test_diff_of_records(pair: Path, attnviz: RunHere) -> None:
    run = attnviz("diff", "figures/first", "baseline/first", "--threshold", "jsd=0")
    assert (run.exit_code, run.stderr) == (0, "")
    other = with_values(batches.SPEC, model="random:2", format=("png",))
    batches.batch(pair / "other", other)
    run = attnviz("diff", "figures/first", "other/first/attention.safetensors", "--threshold", "jsd=0.01", "--json")
    assert (run.exit_code, run.stderr) == (3, "error: 2 of 2 heads changed more than --threshold allows\n")
    assert [head["beyond"] for head in json.loads(run.stdout)["heads"]] == [["jsd"], ["jsd"]]
    run = attnviz("diff", "figures/first", "other/first", "--print", "markdown")
    assert run.exit_code == 0
    assert run.stdout.startswith("# figures/first (A) to other/first (B)\n")


def test_diff_of_batches(pair: Path, attnviz: RunHere) -> None:
    spoil(pair)
    run = attnviz("diff", "baseline", "figures/manifest.json", "--measure", "entropy")
    assert (run.exit_code, run.stderr) == (0, "")
    assert "1 of 4 numbers changed" in run.stdout
    assert attnviz("diff", "baseline", "figures", "--threshold", "entropy=0.2").exit_code == 3


def test_as_a_process(pair: Path, run_cli: RunCli) -> None:
    spoil(pair)
    run = run_cli(*CHECK, env={"LANG": "C", "PYTHONIOENCODING": "ascii"})
    assert run.exit_code == 3
    assert run.stderr.endswith("error: 2 of 2 jobs differ from the baseline. differences holds what differs.\n")
