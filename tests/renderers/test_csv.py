"""CSV: what is written is what a reader gets back, whatever is in a cell."""

from __future__ import annotations

import csv
from io import StringIO

from hypothesis import example, given, settings
from hypothesis import strategies as st

from attnviz.renderers.documents.csv import lines
from tests.made import HOSTILE

CELLS = st.text(",;\"' \r\n\t=\0\x1c\u2028a猫", max_size=6) | st.sampled_from(HOSTILE)


def read(written: str) -> list[tuple[str, ...]]:
    return [tuple(row) for row in csv.reader(StringIO(written, newline=""), strict=True)]


def test_quoting_by_hand() -> None:
    rows = [("text", "label"), ("a, b", 'say "no"'), ("two\nlines", ""), (" x ", "猫")]
    assert "".join(lines(rows)) == 'text,label\n"a, b","say ""no"""\n"two\nlines",\n x ,猫\n'


@settings(max_examples=50)
@example([("a\r\n",)])
@given(st.lists(st.lists(CELLS, min_size=1, max_size=3).map(tuple), max_size=3))
def test_any_cells_come_back(rows: list[tuple[str, ...]]) -> None:
    records = list(lines(rows))
    assert read("".join(records)) == rows
    assert [read(record) for record in records] == [[row] for row in rows]
    assert all(record.endswith("\n") and not record.endswith("\r\n") for record in records)
