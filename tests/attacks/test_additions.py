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


def printed(folder: Path, *words: str) -> Any:
    return json.loads(run(folder, "-m", "attnviz", *words, "--json", "--out", str(folder / words[0])))


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
    (drawn,) = printed(tmp_path, "heatmap", *asked, "--heads", "2")["texts"]
    weights = drawn["weights"]
    last = [[sum(row[-1] for row in head) / len(head) for head in layer] for layer in weights]
    assert np.array(drawn["measures"]["to_last"]["values"]) == pytest.approx(np.array(last), abs=1e-6)
    compared = printed(tmp_path, "compare", "multi:2", "single", *asked)
    assert "to_last" in json.dumps(compared)
    surveyed = printed(tmp_path, "survey", *asked, "--model", "multi:2", "--null", "none")
    means = [each["mean"] for each in surveyed["measures"]["to_last"]["numbers"]]
    assert means == pytest.approx([mean for layer in last for mean in layer], abs=1e-6)
    assert "to_last" in run(tmp_path, "-m", "attnviz", "measures")
