"""A wing is taken out by its folder and its lines, a measure added by a function and a line: the rest is whole."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnviz
from attnviz.commands import COMMANDS
from tests.attacks.endings import ONE_AFTER_ANOTHER

ROOT = Path(attnviz.__file__).parent
WINGS = sorted({command.where.split(".")[2] for command in COMMANDS})
# Every module that is left, every name of a table, and the help of the program and of a command that is left. In a fork
# for each folder, after one import of what takes long.
PROGRAM = """
import os, sys
from importlib import import_module
from pathlib import Path
import matplotlib.figure, pyarrow.parquet, rich.table, seaborn, torch, typer
for folder in sys.argv[1:]:
    child = os.fork()
    if not child:
        break
    os.waitpid(child, 0)
else:
    sys.exit()
os.chdir(folder)
sys.path.insert(0, folder)
os.dup2(os.open("said", os.O_WRONLY | os.O_CREAT), 1)
os.dup2(1, 2)
for path in sorted(Path("attnviz").rglob("*.py")):
    name = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
    if name != "attnviz.__main__":
        import_module(name)
from attnviz.cli.app import run
from attnviz.commands import COMMANDS
from attnviz.registry import load
for command in COMMANDS:
    for address in filter(None, (command, command.spec, command.inputs)):
        load(address)
assert run([COMMANDS[0].name, "--help"]) == 0
assert run(["--help"]) == 0
"""


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """By wing, a folder with the package without it, and what a program said there."""
    folders = {wing: tmp_path_factory.mktemp(wing) for wing in WINGS}
    for wing, folder in folders.items():
        shutil.copytree(ROOT, folder / "attnviz", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.rmtree(folder / "attnviz/commands" / wing)
        _take_out(folder / "attnviz/commands/__init__.py", wing)
    run(ROOT.parents[1], "-c", PROGRAM, *map(str, folders.values()))
    return folders


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("wing", WINGS)
def test_without_a_wing_the_rest_is_whole(wing: str, without: dict[str, Path]) -> None:
    door = without[wing] / "attnviz/__init__.py"  # of Python, which names what it opens where somebody asks for it
    left = {*(without[wing] / "attnviz").rglob("*.py")} - {door}
    names = re.compile(rf"\bcommands(\.| import ){wing}\b")
    assert [file for file in left if names.search(file.read_text(encoding="utf-8"))] == []
    said = (without[wing] / "said").read_text(encoding="utf-8")
    gone = {command.name for command in COMMANDS if f".{wing}." in command.where}
    listed = {line.split()[0] for line in said.rpartition("Commands:")[2].splitlines() if line.strip()}
    assert listed == {command.name for command in COMMANDS} - gone


def _take_out(registry: Path, wing: str) -> None:
    """The lines of the wing: the commands whose code is in its folder."""
    source = registry.read_text(encoding="utf-8")
    lines = source.splitlines(keepends=True)
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    for call in sorted(calls, key=lambda call: -call.lineno):
        of = next((each.value for each in call.keywords if each.arg == "wing"), call.args[0] if call.args else None)
        if ast.unparse(call.func) == "_register" and isinstance(of, ast.Constant) and of.value == wing:
            del lines[call.lineno - 1 : call.end_lineno]
    registry.write_text("".join(lines), encoding="utf-8")


def run(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder), "PYTHONSAFEPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# --- What is added by a function and a line is found everywhere, in a copy of the package in which that was done ---


TEXT = "the film was not good but the acting saved the film"


def printed(folder: Path, *commands: tuple[str, ...]) -> list[Any]:
    """What each command prints as JSON, one after another in one process."""
    said = run(folder, "-c", ONE_AFTER_ANOTHER, *(json.dumps([*words, "--json"]) for words in commands))
    return [json.loads(json.loads(line)[1]) for line in said.splitlines()]


def test_a_measure_is_a_function_and_a_line(tmp_path: Path) -> None:
    """The weight on the last token: in every row its one number, so that heatmap, compare and survey agree."""
    copy = tmp_path / "attnviz"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns("__pycache__"))
    with (copy / "measures/shares.py").open("a", encoding="utf-8") as file:
        file.write(
            "\n\ndef to_last(maps):\n"
            "    last = np.arange(len(maps.keys)) == len(maps.keys) - 1\n"
            '    return Measurement("to_last", "share", measure_share_on(maps, last), (0.0, 1.0))\n'
        )
    line = 'Measure("to_last", "attnviz.measures.shares:to_last", "the share of the last token", SHARE, "none")'
    table = copy / "measures/__init__.py"
    source = table.read_text(encoding="utf-8")
    table.write_text(source.replace("MEASURES = (\n", f"MEASURES = (\n    {line},\n", 1), encoding="utf-8")
    asked = ("--text", TEXT, "--measure", "to_last")
    heatmap, compared, surveyed, listed = printed(
        tmp_path,
        ("heatmap", *asked, "--heads", "2"),
        ("compare", "multi:2", "single", *asked),
        ("survey", *asked, "--model", "multi:2", "--null", "none"),
        ("measures",),
    )
    (drawn,) = heatmap["texts"]
    weights = drawn["weights"]
    last = [[sum(row[-1] for row in head) / len(head) for head in layer] for layer in weights]
    assert np.array(drawn["measures"]["to_last"]["values"]) == pytest.approx(np.array(last), abs=1e-6)
    assert "to_last" in json.dumps(compared)
    means = [each["mean"] for each in surveyed["measures"]["to_last"]["numbers"]]
    assert means == pytest.approx([mean for layer in last for mean in layer], abs=1e-6)
    assert "to_last" in json.dumps(listed)
