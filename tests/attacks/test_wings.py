"""Each wing can be taken out: without its folder and its lines in the registry, everything else is green."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import attnviz
from attnviz.commands import COMMANDS

ROOT = Path(attnviz.__file__).parent
WINGS = sorted({command.where.split(".")[2] for command in COMMANDS})
TESTS = Path(__file__).parents[1]
# Of the core: its rules, numbers, options and views. The other tests of the core would take minutes for each wing.
CORE = ["tests/test_architecture.py", "tests/measures/test_measures.py", "tests/test_selection.py"]
CORE += ["tests/views/test_tokens.py"]
# Contracts name the libraries that a wing alone may use, which go with it.
CORE += ["--deselect", "tests/test_architecture.py::test_contracts_can_break"]
# Every module that is left, and tables and help of a command that is left.
PROGRAM = """
from importlib import import_module
from pathlib import Path
for path in sorted(Path("attnviz").rglob("*.py")):
    name = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
    if name != "attnviz.__main__":
        import_module(name)
"""


@pytest.mark.parametrize("wing", WINGS)
def test_without_a_wing_the_rest_is_whole(wing: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT, tmp_path / "attnviz", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.rmtree(tmp_path / "attnviz/commands" / wing)
    _take_out(tmp_path / "attnviz/commands/__init__.py", wing)
    run(tmp_path, "-c", PROGRAM)
    shutil.copytree(TESTS, tmp_path / "tests", ignore=shutil.ignore_patterns("__pycache__", "commands", "baseline"))
    shutil.copy(TESTS.parent / "pyproject.toml", tmp_path)
    run(tmp_path, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not slow", *CORE)
    said = run(tmp_path, "-m", "attnviz", "--help")
    gone = {command.name for command in COMMANDS if f".{wing}." in command.where}
    listed = {line.split()[0] for line in said.partition("Commands:")[2].splitlines() if line.strip()}
    assert listed == {command.name for command in COMMANDS} - gone
    other = next(command.name for command in COMMANDS if command.name not in gone)
    run(tmp_path, "-m", "attnviz", other, "--help")


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
