"""What the program says of itself, and what it does not import to say it.

`ATTNVIZ_WRITE_HELP=1 pytest tests/cli/test_help.py` writes the golden text anew.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from attnviz.cli.help import write_command_help
from attnviz.commands import COMMANDS
from attnviz.options import ARGUMENT, list_options
from attnviz.registry import load
from attnviz.running import Command
from tests.process import ROOT, RunCli, bare_environment

GOLDEN = Path(__file__).parent / "help/heatmap.txt"
HEAVY = {"torch", "numpy", "matplotlib", "seaborn", "pandas", "datasets", "pyarrow", "transformers", "tokenizers"}
HEAVY |= {"pydantic"}
EIGHTY = {"COLUMNS": "80"}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_option_has_help_within_eighty_columns(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    spec = load(command.spec)
    lines = write_command_help(command.name, spec).splitlines()
    assert lines[0].startswith(f"Usage: attnviz {command.name} [OPTIONS]")
    assert max(map(len, lines)) <= 80
    for option in list_options(spec):
        written = option.option.metavar if option.option.panel == ARGUMENT else option.flag
        assert any(written in line.split() for line in lines), option.name
        assert option.option.write_command_line_help() in " ".join(" ".join(lines).split()), option.name
        assert option.option.help.endswith((".", "}", "…")), option.name


def test_the_programs_help_names_every_command(run_cli: RunCli) -> None:
    run = run_cli("--help", env=EIGHTY)
    assert (run.exit_code, run.stderr) == (0, "")
    assert max(map(len, run.stdout.splitlines())) <= 80
    shown = " ".join(run.stdout.split())
    assert [command.name for command in COMMANDS if f" {command.name} {command.help}" not in shown] == []


def test_one_help_to_the_letter(run_cli: RunCli) -> None:
    """How usage, panels, values and defaults are written."""
    run = run_cli("heatmap", "--help", env=EIGHTY)
    assert (run.exit_code, run.stderr) == (0, "")
    if os.environ.get("ATTNVIZ_WRITE_HELP"):
        GOLDEN.write_text(run.stdout, encoding="utf-8")
    assert run.stdout == GOLDEN.read_text(encoding="utf-8")


def test_the_help_is_the_same_between_other_words(run_cli: RunCli) -> None:
    """Where typer reads the words. Alone it is shown without typer, which takes most of the time of a help."""
    run = run_cli("heatmap", "--heads", "8", "-h", env=EIGHTY)
    assert (run.exit_code, run.stdout) == (0, GOLDEN.read_text(encoding="utf-8"))


def test_no_command_shows_the_help(run_cli: RunCli) -> None:
    run = run_cli(env=EIGHTY)
    assert (run.exit_code, run.stderr) == (2, "")
    assert run.stdout == run_cli("--help", env=EIGHTY).stdout


def test_version(run_cli: RunCli) -> None:
    from attnviz import __version__

    assert run_cli("--version").stdout == f"attnviz {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["heatmpa"], "No such command 'heatmpa'. Did you mean 'heatmap'"),
        (["heatmap", "--hads", "8"], "No such option: --hads"),
        (["heatmap", "--heads", "many"], "--heads: write a whole number, not 'many'"),
        (["heatmap", "--scale", "big"], "--scale: write one of lift, fixed, shared, log, auto, not 'big'"),
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
        ["heatmap", "--help"],
        ["heatmap", "--hads", "8"],
        ["heatmap", "--heads", "7"],
        ["heatmap", "--model", "mlti"],
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
    models = {"single", "multi", "random", "dot", "recall", "minilm", "smollm2"}
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
