"""What the program says of itself, and what it does not import to say it.

`ATTNVIZ_WRITE_HELP=1 pytest tests/cli/test_help.py` writes the golden texts anew.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from attnviz.workflows import COMMANDS
from tests.process import ROOT, RunCli, bare_environment

GOLDEN = Path(__file__).parent / "help"
HEAVY = {"torch", "numpy", "matplotlib", "seaborn", "pandas", "datasets", "pyarrow", "transformers", "tokenizers"}
EIGHTY = {"COLUMNS": "80"}


@pytest.mark.parametrize("command", ["", *(command.name for command in COMMANDS)])
def test_help_is_the_golden_text(command: str, run_cli: RunCli) -> None:
    run = run_cli(*command.split(), "--help", env=EIGHTY)
    assert (run.exit_code, run.stderr) == (0, "")
    file = GOLDEN / f"{command or 'attnviz'}.txt"
    if os.environ.get("ATTNVIZ_WRITE_HELP"):
        file.write_text(run.stdout, encoding="utf-8")
    assert run.stdout == file.read_text(encoding="utf-8")
    assert max(map(len, run.stdout.splitlines())) <= 80


def test_the_help_is_the_same_between_other_words(run_cli: RunCli) -> None:
    """Where typer reads the words. Alone it is shown without typer, which takes most of the time of a help."""
    run = run_cli("heatmap", "--heads", "8", "-h", env=EIGHTY)
    assert (run.exit_code, run.stdout) == (0, (GOLDEN / "heatmap.txt").read_text(encoding="utf-8"))


def test_every_golden_text_is_of_a_command() -> None:
    assert {file.stem for file in GOLDEN.iterdir()} == {"attnviz", *(command.name for command in COMMANDS)}


def test_no_command_shows_the_help(run_cli: RunCli) -> None:
    run = run_cli(env=EIGHTY)
    assert run.exit_code == 2
    assert run.stdout.strip() == (GOLDEN / "attnviz.txt").read_text(encoding="utf-8").strip()
    assert run.stderr == ""


def test_version(run_cli: RunCli) -> None:
    from attnviz import __version__

    assert run_cli("--version").stdout == f"attnviz {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["heatmpa"], "No such command 'heatmpa'. Did you mean 'heatmap'"),
        (["heatmap", "--hads", "8"], "No such option: --hads"),
        (["heatmap", "--heads", "many"], "--heads"),
        (["heatmap", "--scale", "big"], "'fixed', 'shared', 'log'"),
        (["heatmap", "a text", "surplus"], "surplus"),
        (["render"], "FILE"),
    ],
)
def test_wrong_usage_is_one_line(arguments: list[str], said: str, run_cli: RunCli) -> None:
    run = run_cli(*arguments)
    assert run.exit_code == 2
    assert run.stdout == ""
    assert run.stderr.count("\n") == 1
    assert run.stderr.startswith("error: ")
    assert said in run.stderr


def imported(arguments: list[str], home: Path) -> set[str]:
    """The packages that one command line imports."""
    script = (
        "import sys\n"
        "from attnviz.cli.app import run\n"
        f"code = run({arguments!r})\n"
        "print(code, *{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=home, env=bare_environment(home), capture_output=True, check=True, text=True
    )
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["heatmap", "--help"],
        ["heatmpa"],
        ["heatmap", "--hads", "8"],
        ["heatmap", "--heads", "7"],
        ["heatmap", "--model", "mlti"],
        ["heatmap", "--head", "9"],
        ["heatmap", "--split", "tset"],
        ["heatmap", "--dataset", "imdb"],
    ],
)
def test_help_and_wrong_usage_import_nothing_heavy(arguments: list[str], tmp_path: Path) -> None:
    packages = imported(arguments, tmp_path)
    assert packages & HEAVY == set()
    assert ("typer" in packages) == (arguments != ["heatmap", "--help"])


def test_imports_would_be_noticed(tmp_path: Path) -> None:
    assert "tokenizers" in imported(["vocab", "--text", "a a"], tmp_path)
    assert {"torch", "matplotlib"} <= imported(["heatmap", "--text", "a", "--table", "none"], tmp_path)
    assert "numpy" in imported(["render", "missing.safetensors"], tmp_path)


def test_completion_offers_models_and_data_sets(run_cli: RunCli) -> None:
    models = {"single", "multi", "random", "dot", "recall"}
    for option, expected in (("--model", models), ("--dataset", {"sample", "imdb"})):
        run = run_cli(
            env={
                "_ATTNVIZ_COMPLETE": "complete_bash",
                "COMP_WORDS": f"attnviz heatmap {option} ",
                "COMP_CWORD": "3",
                "PATH": os.environ["PATH"],
            }
        )
        assert set(run.stdout.split()) == expected


def test_the_installed_command_is_the_program() -> None:
    done = subprocess.run(
        [Path(sys.executable).parent / "attnviz", "--version"], cwd=ROOT, capture_output=True, check=True, text=True
    )
    assert done.stdout.startswith("attnviz ")
