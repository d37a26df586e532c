"""`vocab` as a function: the file, and the numbers against counting by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from attnviz.commands.train.spec import VocabSpec
from attnviz.errors import InvalidSource
from attnviz.options import build
from tests.events import data, report, result
from tests.starting import vocab


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    folder = tmp_path / "reviews"
    folder.mkdir()
    (folder / "train.txt").write_text("good film good\nbad film\n", encoding="utf-8")
    (folder / "test.txt").write_text("good good play\n", encoding="utf-8")
    return folder


def test_numbers_are_those_counted_by_hand(reviews: Path, tmp_path: Path) -> None:
    numbers = data(result(vocab(build(VocabSpec, dataset=str(reviews), min_frequency=1, out=str(tmp_path / "v")))))
    assert (numbers["texts"], numbers["tokens"], numbers["entries"]) == (2, 5, 3 + 3)
    assert numbers["coverage"] == {"share": 2 / 3, "tokens": 3, "where": "reviews test"}
    assert numbers["commonest"] == [["film", 2], ["good", 2], ["bad", 1]]
    assert numbers["rarest"] == [["bad", 1], ["good", 2], ["film", 2]]


def test_without_a_held_out_split_every_tenth_text_is_held_out(tmp_path: Path) -> None:
    (tmp_path / "all.txt").write_text("seen\n" * 5 + "unseen\n" + "seen\n" * 14, encoding="utf-8")
    spec = build(VocabSpec, dataset=str(tmp_path / "all.txt"), min_frequency=1, out=str(tmp_path / "v"))
    found = data(result(vocab(spec)))
    assert found["coverage"] == {
        "share": 1.0,
        "tokens": 2,
        "where": "every tenth text, with a vocabulary made from the others",
    }
    (tmp_path / "all.txt").write_text("new\n" + "seen\n" * 19, encoding="utf-8")
    found = data(result(vocab(spec)))
    assert found["coverage"]["share"] == 0.5  # "new" is only in the held-out tenth
    assert "new" in json.loads((tmp_path / "v/tokenizer.json").read_bytes())["model"]["vocab"]  # what is saved knows it


def test_few_texts_are_not_measured_and_that_is_said(tmp_path: Path) -> None:
    built = result(vocab(build(VocabSpec, text=("one film", "two films"), min_frequency=1, out=str(tmp_path / "v"))))
    assert data(built)["coverage"] is None
    assert [note.text for note in report(built).notes] == ["Coverage was not measured: there are fewer than ten texts."]


def test_a_split_that_was_learned_from_is_not_held_out(reviews: Path, tmp_path: Path) -> None:
    built = result(
        vocab(build(VocabSpec, dataset=str(reviews), split="train+test", min_frequency=1, out=str(tmp_path / "v")))
    )
    assert data(built)["coverage"] is None
    built = result(
        vocab(build(VocabSpec, dataset=str(reviews), held_out="train", min_frequency=1, out=str(tmp_path / "v")))
    )
    assert isinstance(data(built)["coverage"], dict)
    assert data(built)["coverage"]["where"] == "reviews train"


def test_a_held_out_split_that_is_not_there_is_an_error(reviews: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidSource, match="no split 'dev'"):
        vocab(build(VocabSpec, dataset=str(reviews), held_out="dev", out=str(tmp_path / "v")))
    assert not (tmp_path / "v").exists()
