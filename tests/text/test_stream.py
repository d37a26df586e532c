"""Which texts of a data set are read, under which names, as a whole, in slices and as a stream."""

import re
import tracemalloc
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.errors import InvalidOption, InvalidSource
from attnviz.specs import TextOptions
from attnviz.text import load_corpus
from attnviz.text.dataset import parse, stream_corpus
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


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_memory_does_not_grow_with_the_texts(kind: str, tmp_path: Path) -> None:
    """Four thousand texts of five thousand characters each, of which few are held at a time."""
    file = tmp_path / f"train.{kind}"
    if kind == "parquet":
        import pyarrow
        from pyarrow import parquet

        texts = pyarrow.table({"text": [f"{n} {'x' * 5000}" for n in range(4_000)]})
        parquet.write_table(texts, file, row_group_size=512)
    else:
        file.write_text("".join(f'{{"text": "{n} {"x" * 5000}"}}\n' for n in range(4_000)))
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


def test_without_a_split_it_is_train_or_the_only_one(tmp_path: Path) -> None:
    for name in ("test", "train"):
        write_jsonl(tmp_path / f"{name}.jsonl", [(name, 0)])
    assert texts_of(opened(tmp_path)) == ["train"]
    (tmp_path / "train.jsonl").unlink()
    assert texts_of(opened(tmp_path)) == ["test"]
    write_jsonl(tmp_path / "dev.jsonl", [("dev", 0)])
    with pytest.raises(InvalidSource, match=r"has no split train\. Choose with --split: test, dev\."):
        opened(tmp_path)


# --- The grammar of --split is Python's slicing, with percent and plus ---


BOUNDS = st.none() | st.integers(-60, 60)


def written(start: int | None, stop: int | None) -> str:
    return f"train[{'' if start is None else start}:{'' if stop is None else stop}]"


@given(BOUNDS, BOUNDS, st.integers(0, 50))
def test_a_slice_is_pythons(start: int | None, stop: int | None, count: int) -> None:
    (part,) = parse(written(start, stop))
    assert list(part.positions(count)) == list(range(count))[start:stop]


@given(BOUNDS, BOUNDS, st.integers(0, 50))
def test_what_is_needed_is_enough(start: int | None, stop: int | None, count: int) -> None:
    """To read only the first texts gives the same positions as to read all of them."""
    (part,) = parse(written(start, stop))
    read = count if part.needed is None else min(count, part.needed)
    assert list(part.positions(read)) == list(part.positions(count))


@given(st.lists(st.integers(0, 100), min_size=1).map(sorted), st.integers(0, 1000))
def test_neighbouring_shares_meet_without_overlapping(cuts: list[int], count: int) -> None:
    ends = [0, *cuts, 100]
    parts = parse("+".join(f"train[{a}%:{b}%]" for a, b in pairwise(ends)))
    assert [position for part in parts for position in part.positions(count)] == list(range(count))


@pytest.mark.parametrize(
    "asked",
    ["", " ", "+", "train+", "train[:10", "train:10]", "train[5]", "train[]", "train[::2]", "train[a:]", "train[1.5:]",
     "train[:1e3]", "[:5]", "train test", "train[:5][:2]", "train[:-]", "train[:%]", f"train[:{'9' * 5000}]", "../x",
     "train[:\u0663]"],
)  # fmt: skip
def test_anything_else_is_answered_with_the_grammar(asked: str) -> None:
    with pytest.raises(InvalidOption, match="is not a split") as error:
        parse(asked)
    assert "train[:1000]" in error.value.hint
