"""`vocab` as a function: the file, and the numbers against counting by hand."""

import json
from pathlib import Path

import pytest

from attnviz.commands.train.spec import VocabSpec
from attnviz.options import build
from tests.events import data, report, result
from tests.starting import vocab


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    folder = tmp_path / "reviews"
    folder.mkdir()
    (folder / "train.txt").write_text("good film good\nbad film\n", encoding="utf-8")
    return folder


def test_numbers_are_those_counted_by_hand(reviews: Path, tmp_path: Path) -> None:
    numbers = data(result(vocab(build(VocabSpec, dataset=str(reviews), min_frequency=1, out=str(tmp_path / "v")))))
    assert (numbers["texts"], numbers["tokens"], numbers["entries"]) == (2, 5, 3 + 3)
    assert numbers["commonest"] == [["good", 2], ["film", 2], ["bad", 1]]


def test_every_tenth_text_is_held_out(tmp_path: Path) -> None:
    (tmp_path / "all.txt").write_text("seen\n" * 5 + "unseen\n" + "seen\n" * 14, encoding="utf-8")
    spec = build(VocabSpec, dataset=str(tmp_path / "all.txt"), min_frequency=1, out=str(tmp_path / "v"))
    found = data(result(vocab(spec)))
    assert found["coverage"] == 1.0
    (tmp_path / "all.txt").write_text("new\n" + "seen\n" * 19, encoding="utf-8")
    found = data(result(vocab(spec)))
    assert found["coverage"] == 0.5  # "new" is only in the held-out tenth
    assert "new" in json.loads((tmp_path / "v/tokenizer.json").read_bytes())["model"]["vocab"]  # what is saved knows it


def test_few_texts_are_not_measured_and_that_is_said(tmp_path: Path) -> None:
    built = result(vocab(build(VocabSpec, text=("one film", "two films"), min_frequency=1, out=str(tmp_path / "v"))))
    assert data(built)["coverage"] is None
    assert [note.text for note in report(built).notes] == ["Coverage was not measured: there are fewer than ten texts."]
