"""What is added by a function and a line is found everywhere, in a copy of the package in which that was done."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.attacks.test_wings import ROOT, run

TEXT = "the film was not good but the acting saved the film"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(ROOT, tmp_path / "attnviz", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "attnviz"


def write_over(file: Path, old: str, new: str) -> None:
    source = file.read_text(encoding="utf-8")
    assert source.count(old) == 1, f"{old!r} in {file.name}"
    file.write_text(source.replace(old, new), encoding="utf-8")


def printed(folder: Path, *words: str) -> Any:
    return json.loads(run(folder, "-m", "attnviz", *words, "--json", "--out", str(folder / words[0])))


def test_a_measure_is_a_function_and_a_line(copy: Path) -> None:
    """The weight on the last token: in every row its one number, so that heatmap, compare and survey agree."""
    with (copy / "measures/shares.py").open("a", encoding="utf-8") as file:
        file.write(
            "\n\ndef to_last(maps):\n"
            "    last = np.arange(len(maps.keys)) == len(maps.keys) - 1\n"
            '    return Measurement("to_last", "share", measure_share_on(maps, last), (0.0, 1.0))\n'
        )
    line = 'Measure("to_last", "attnviz.measures.shares:to_last", "the share of the last token", SHARE, "none")'
    write_over(copy / "measures/__init__.py", "MEASURES = (\n", f"MEASURES = (\n    {line},\n")
    folder = copy.parent
    (drawn,) = printed(folder, "heatmap", "--text", TEXT, "--heads", "2", "--measure", "to_last")["texts"]
    weights = drawn["weights"]
    last = [[sum(row[-1] for row in head) / len(head) for head in layer] for layer in weights]
    assert np.array(drawn["measures"]["to_last"]["values"]) == pytest.approx(np.array(last), abs=1e-6)
    compared = printed(folder, "compare", "multi:2", "single", "--text", TEXT, "--measure", "to_last", "--no-time")
    assert "to_last" in json.dumps(compared)
    surveyed = printed(folder, "survey", "--text", TEXT, "--model", "multi:2", "--measure", "to_last", "--null", "none")
    means = [each["mean"] for each in surveyed["measures"]["to_last"]["numbers"]]
    assert means == pytest.approx([mean for layer in last for mean in layer], abs=1e-6)
    assert "to_last" in run(folder, "-m", "attnviz", "measures")


def test_a_colour_scale_is_a_choice_a_line_and_its_limits(copy: Path) -> None:
    """Up to a half: drawn as PNG and, as data, on the page."""
    write_over(copy / "specs.py", '"shared", "log", "auto"]', '"shared", "log", "half", "auto"]')
    write_over(
        copy / "report.py",
        '    "log": ScaleFamily',
        '    "half": ScaleFamily(title="up to a half"),\n    "log": ScaleFamily',
    )
    write_over(
        copy / "views/head_pictures.py",
        '    if kind == "fixed":\n',
        '    if kind == "half":\n        return Scale(kind, 0.0, 0.5, "up to a half")\n    if kind == "fixed":\n',
    )
    words = ("heatmap", "--text", TEXT, "--heads", "2", "--scale", "half", "--format", "png,html")
    run(copy.parent, "-m", "attnviz", *words, "--out", str(copy.parent / "drawn"))
    assert (copy.parent / "drawn/overview.png").stat().st_size > 10_000
    page = (copy.parent / "drawn/attention.html").read_text(encoding="utf-8")
    assert '"kind":"half","low":0.0,"high":0.5' in page
    assert '"title":"up to a half"' in page
