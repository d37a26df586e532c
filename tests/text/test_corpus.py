"""Splits of a source become named texts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from attnviz.errors import InvalidOption, InvalidSource
from attnviz.specs import TextOptions
from attnviz.text import load_corpus
from tests.text.corpora import opened, texts_of, write_jsonl


def test_names_hold_the_place_in_the_whole_split(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "reviews.jsonl", [(f"t{number}", 0) for number in range(30)])
    corpus = opened(path, "train[ 17 : 19 ]+train[-1:]")
    assert corpus.name == "reviews.jsonl train[17:19]+train[-1:]"
    assert [(d.name, d.slug, d.text) for d in corpus.documents] == [
        ("reviews.jsonl train[17]", "train-17", "t17"),
        ("reviews.jsonl train[18]", "train-18", "t18"),
        ("reviews.jsonl train[29]", "train-29", "t29"),
    ]


def test_slugs_are_names_of_folders_and_differ_even_where_slices_overlap() -> None:
    corpus = opened("sample", "train[:2]+train[1:3]+train[1:2]+test[3:4]")
    slugs = [document.slug for document in corpus.documents]
    assert slugs == ["train-0", "train-1", "train-1-again-2", "train-2", "train-1-again-3", "test-3"]
    assert all(re.fullmatch("[A-Za-z0-9][A-Za-z0-9._-]{0,63}", slug) for slug in slugs)
    assert texts_of(corpus)[1] == texts_of(corpus)[2] == texts_of(corpus)[4]


@pytest.mark.parametrize("split", ["train[0:0]", "train[40:]", "train[:-99]", "train[:0%]", "train[5:3]"])
def test_a_slice_without_texts(split: str) -> None:
    with pytest.raises(InvalidSource, match="selects no texts") as error:
        opened("sample", split)
    assert error.value.hint == "The split train has 40 texts."
    assert load_corpus(TextOptions()).name == "sample train"


def test_a_split_that_is_not_there() -> None:
    with pytest.raises(InvalidSource, match=r"sample has no split 'tset'\. Did you mean 'test'\?"):
        opened("sample", "tset")
    with pytest.raises(InvalidSource, match=r"sample has no split 'xyz'\. There are train, test, ja, zh\."):
        opened("sample", "train+xyz[:5]")


def test_a_wrong_split_is_answered_before_anything_is_opened() -> None:
    with pytest.raises(InvalidOption, match="is not a split"):
        opened("missing.csv", "train[5]")


def test_without_a_split_it_is_train_or_the_only_one(tmp_path: Path) -> None:
    for name in ("test", "train"):
        write_jsonl(tmp_path / f"{name}.jsonl", [(name, 0)])
    assert texts_of(opened(tmp_path)) == ["train"]
    (tmp_path / "train.jsonl").unlink()
    assert texts_of(opened(tmp_path)) == ["test"]
    write_jsonl(tmp_path / "dev.jsonl", [("dev", 0)])
    with pytest.raises(InvalidSource, match=r"has no split train\. Choose with --split: test, dev\."):
        opened(tmp_path)
