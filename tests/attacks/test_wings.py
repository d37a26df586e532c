"""A wing is taken out by its folder and its lines, a measure added by a function and a line: the rest is whole."""

import json
import os
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import attnviz
from attnviz.commands import COMMANDS
from tests.attacks.endings import ONE_AFTER_ANOTHER
from tests.process import said_by

ROOT = Path(attnviz.__file__).parent
WINGS = sorted({command.where.split(".")[2] for command in COMMANDS})
TEXT = "the film was not good but the acting saved the film"
TO_LAST = """

def to_last(maps):
    last = np.arange(len(maps.keys)) == len(maps.keys) - 1
    return Measurement("to_last", "share", measure_share_on(maps, last), (0.0, 1.0))
"""
ITS_LINE = '_measure("shares:to_last", "the share of the last token", SHARE, "none"),'


@pytest.mark.parametrize("wing", WINGS)
def test_a_wing_is_named_in_no_other_room(wing: str) -> None:
    """Imports are held by import-linter; no address in a text leads there either, but for those two that list all."""
    lists = {ROOT / "commands/__init__.py", ROOT / "__init__.py"}
    elsewhere = {*ROOT.rglob("*.py")} - lists - {*(ROOT / "commands" / wing).rglob("*.py")}
    names = re.compile(rf"\bcommands(\.| import ){wing}\b")
    assert [file for file in elsewhere if names.search(file.read_text(encoding="utf-8"))] == []


def change(file: Path, old: str, new: str) -> None:
    """One line of the copy."""
    source = file.read_text(encoding="utf-8")
    assert re.search(old, source, re.MULTILINE)
    file.write_text(re.sub(old, new, source, count=1, flags=re.MULTILINE), encoding="utf-8")


def test_a_measure_is_a_function_and_a_line_and_a_wing_a_folder_and_a_line(tmp_path: Path) -> None:
    """The weight on the last token: in every row its one number, so that heatmap, compare and survey agree."""
    copy = tmp_path / "attnviz"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.rmtree(copy / "commands/lesson")
    change(copy / "commands/__init__.py", r'^    _register\("lesson".*\n', "")
    change(copy / "measures/shares.py", r"\Z", TO_LAST)
    change(copy / "measures/__init__.py", r"^MEASURES = \(\n", f"MEASURES = (\n    {ITS_LINE}\n")
    asked = ("--text", TEXT, "--measure", "to_last", "--json")
    commands = (
        ("heatmap", *asked, "--heads", "2"),
        ("compare", "multi:2", "single", *asked),
        ("survey", *asked, "--model", "multi:2", "--null", "none"),
        ("measures", "--json"),
        ("--help",),
    )
    program = [sys.executable, "-c", ONE_AFTER_ANOTHER, *map(json.dumps, commands)]
    done = said_by(program, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path), "PYTHONSAFEPATH": ""})
    *printed, shown = (json.loads(line)[1] for line in done.stdout.splitlines())
    heatmap, compared, surveyed, listed = map(json.loads, printed)
    weights = np.array(heatmap["texts"][0]["weights"])
    last = weights[..., -1].mean(axis=-1)
    assert np.array(heatmap["texts"][0]["measures"]["to_last"]["values"]) == pytest.approx(last, abs=1e-6)
    assert "to_last" in json.dumps(compared)
    means = [each["mean"] for each in surveyed["measures"]["to_last"]["numbers"]]
    assert means == pytest.approx(last.ravel(), abs=1e-6)
    assert "to_last" in json.dumps(listed)
    shown_names = re.findall(r"^  (\w+) ", shown.rpartition("Commands:")[2], re.MULTILINE)
    assert {*shown_names} == {command.name for command in COMMANDS} - {"lesson"}
