"""`attnviz diff` on the command line: exit codes, and which stream holds what."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from attnviz.options import replace_values
from tests.attacks.endings import RunHere
from tests.commands.batch import batches
from tests.process import RunCli


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A batch of two jobs. Not to be changed."""
    folder = tmp_path_factory.mktemp("batch") / "made"
    batches.batch(
        folder, replace_values(batches.SPEC, format=("png",)), replace_values(batches.SPEC, format=("png",), seed=1)
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


DIFF = ("diff", "baseline", "figures")


def test_the_same_is_0(pair: Path, attnviz: RunHere) -> None:
    run = attnviz(*DIFF)
    assert (run.exit_code, run.stderr) == (0, "")
    assert run.stdout.startswith("No difference\n")
    assert attnviz(*DIFF, "-q").stdout == ""


def test_a_difference_is_3_and_told(pair: Path, attnviz: RunHere) -> None:
    spoil(pair)
    run = attnviz(*DIFF)
    assert run.exit_code == 3
    assert run.stdout.startswith("2 differences\nBEFORE baseline · AFTER figures\n")
    assert "second: overview.png in AFTER is gone." in run.stdout
    assert run.stderr == "error: 2 differences between baseline and figures\n"


def test_every_document_is_whole(pair: Path, attnviz: RunHere) -> None:
    spoil(pair)
    document = json.loads(attnviz(*DIFF, "--json").stdout)
    assert (document["same"], [each["job"] for each in document["differences"]]) == (False, ["first", "second"])
    assert attnviz(*DIFF, "--print", "markdown").stdout.startswith("# 2 differences\n")
    assert sorted(path.name for path in pair.iterdir()) == ["baseline", "figures"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("diff",), "BEFORE"),
        (("diff", "baseline", "."), "holds no manifest.json"),
        ((*DIFF, "--pixels", "x"), "--pixels"),
    ],
)
def test_wrong_usage_is_2_and_one_line(pair: Path, attnviz: RunHere, arguments: tuple[str, ...], said: str) -> None:
    run = attnviz(*arguments)
    assert (run.exit_code, run.stdout) == (2, "")
    assert run.stderr.count("\n") == 1
    assert said in run.stderr


def test_diff_of_records(pair: Path, attnviz: RunHere) -> None:
    run = attnviz("diff", "figures/first", "baseline/first", "--exact")
    assert (run.exit_code, run.stderr) == (0, "")
    batches.batch(pair / "other", replace_values(batches.SPEC, model="random:2", format=("png",)))
    run = attnviz("diff", "figures/first", "other/first/attention.safetensors", "--tolerance", "1,jsd=0.01", "--json")
    assert run.exit_code == 3
    found = json.loads(run.stdout)["differences"]
    assert [each["head"] for each in found if each["what"] == "jsd"] in ([0, 1], [1, 0])
    assert "multi:2" in [each["before"] for each in found if each["what"] == "model"]


def test_as_a_process(pair: Path, run_cli: RunCli) -> None:
    spoil(pair)
    run = run_cli(*DIFF, env={"LANG": "C", "PYTHONIOENCODING": "ascii"})
    assert run.exit_code == 3
    assert run.stderr.endswith("error: 2 differences between baseline and figures\n")
