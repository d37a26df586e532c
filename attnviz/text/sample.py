"""The packaged reviews, written for attnviz. Knows only where they are stored."""

from __future__ import annotations

from pathlib import Path

from attnviz.text.source import Row, Source, Wanted
from attnviz.text.tables import read_table

FOLDER = Path(__file__).parents[1] / "data" / "sample"


def open_sample(wanted: Wanted) -> Source:
    """Open the packaged reviews."""

    def read(split: str, needed: int | None) -> list[Row]:
        return list(read_table(FOLDER / f"{split}.jsonl", wanted, needed))

    return Source("sample", ("train", "test"), read)
