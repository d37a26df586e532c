"""What of a data set is read, under which names, as a whole and as a stream."""

from __future__ import annotations

import re
import tracemalloc
from pathlib import Path

import pytest

from attnviz.errors import InvalidOption, InvalidSource
from attnviz.specs import TextOptions
from attnviz.text import load_corpus
from attnviz.text.dataset import stream_corpus
from tests.text.corpora import opened, texts_of, write_jsonl

SPLITS = (None, "train[:5]", "train[3:9]", "train[-5:]", "train[10%:30%]", "train+test[2:4]", "train[2:4]+train[3:5]")


def test_a_stream_gives_what_is_read_as_a_whole() -> None:
    for split in SPLITS:
        spec = TextOptions(dataset="sample", split=split)
        stream, corpus = stream_corpus(spec), load_corpus(spec)
        for _ in range(2):  # from the beginning each time
            found = [(each.text, each.name, each.label) for each in stream.documents()]
            assert found == [(each.text, each.name, each.label) for each in corpus.documents]
        assert stream.name == corpus.name


def test_a_split_that_is_not_there_is_refused_before_anything_is_read() -> None:
    with pytest.raises(InvalidSource, match="no split 'tset'"):
        stream_corpus(TextOptions(dataset="sample", split="tset"))


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_memory_does_not_grow_with_the_texts(kind: str, tmp_path: Path) -> None:
    """Twenty thousand texts of a thousand characters each, of which few are held at a time."""
    file = tmp_path / f"train.{kind}"
    if kind == "parquet":
        import pyarrow
        from pyarrow import parquet

        texts = pyarrow.table({"text": [f"{n} {'x' * 1000}" for n in range(20_000)]})
        parquet.write_table(texts, file, row_group_size=4_096)
    else:
        file.write_text("".join(f'{{"text": "{n} {"x" * 1000}"}}\n' for n in range(20_000)))
    stream = stream_corpus(TextOptions(dataset=str(file)))
    tracemalloc.start()
    try:
        assert sum(len(document.text) for document in stream.documents()) > 20_000_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10_000_000


# --- Splits of a source become named texts ---


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
