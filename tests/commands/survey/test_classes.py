"""What differs between classes of texts, as a survey shows it of texts that were made to differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from attnviz.commands.survey.files import load_files
from tests.commands.survey.made import run
from tests.events import data, report


def test_texts_whose_classes_differ_say_so_and_others_do_not(tmp_path: Path) -> None:
    """Texts of class 1 say one word again and again; the table, the data and the atlas name what differs."""
    words = "the film was long and the end was not good but i liked the songs of it very much"
    draws = np.random.default_rng(1)
    lines = []
    for place in range(40):
        chosen = (
            draws.choice(words.split(), 12).tolist()
            if place % 2 == 0
            else ["film"] * 6 + draws.choice(words.split(), 6).tolist()
        )
        lines.append(f'{{"text": "{" ".join(chosen)}", "label": {place % 2}}}\n')
    file = tmp_path / "texts.jsonl"
    file.write_text("".join(lines), encoding="utf-8")
    whole = run(tmp_path / "out", dataset=str(file), split=None, measure=("all",))
    (table,) = (table for table in report(whole).tables if table.name == "classes")
    assert ("to same word", 1) in {(row[2], row[3]) for row in table.rows}
    said: Any = data(whole)["classes"]
    assert said["labels"] == {"0": 20, "1": 20}
    assert len(said["differences"]) == len(table.rows) < said["tested"]
    assert all(each["p_value"] < 0.05 for each in said["differences"])
    atlas = report(whole).atlas
    assert atlas is not None
    assert any("to same word" in value for head in atlas["heads"] for _, value in head["facts"])
    assert load_files(tmp_path / "out").tables.classes.sizes == {0: 20, 1: 20}
    alike = run(tmp_path / "alike", split=None)
    notes = [note.text for note in report(alike).notes]
    assert any("none is beyond chance (Holm)" in note for note in notes)
