"""Texts one after the other: the same ones under the same names as in memory, and few of them there."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from attnviz.errors import InvalidSource
from attnviz.specs import TextOptions
from attnviz.text import load_corpus
from attnviz.text.dataset import stream_corpus

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
