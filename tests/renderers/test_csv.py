"""CSV: what is written is what a reader gets back as it can be shown, whatever is in a cell."""

import csv
from io import StringIO
from math import nan
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from attnviz.display import escape_for_spreadsheet
from attnviz.renderers.documents.csv import lines
from tests.made import HOSTILE

CELLS = st.text(",;\"' \r\n\t=\0\x1c\u2028a猫", max_size=6) | st.sampled_from(HOSTILE)


def read(written: str) -> list[tuple[str, ...]]:
    return [tuple(row) for row in csv.reader(StringIO(written, newline=""), strict=True)]


def test_quoting_by_hand() -> None:
    texts = [("text", "label"), ("a, b", 'say "no"'), ("two\nlines", ""), ("x", "猫")]
    rows: list[tuple[Any, ...]] = [*texts, (0.1 + 0.2, None), (-1, nan), (["a", 0.5], [])]
    numbers = "0.30000000000000004,\n-1,\na; 0.5,\n"
    assert "".join(lines(rows)) == f'text,label\n"a, b","say ""no"""\ntwo⏎lines,\nx,猫\n{numbers}'


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "＝", "＋", "－", "＠"])
def test_what_looks_like_a_formula_is_text(sign: str) -> None:
    formula = f"{sign}HYPERLINK(A1)"
    assert list(lines([(formula, f"p_{formula}")])) == [f"'{formula},p_{formula}\n"]


def test_a_control_character_does_not_hide_a_formula() -> None:
    written = "".join(lines((name,) for name in ("\t=1", "\r=1", "\n=1", " =1", "\u200b=1")))
    assert written.split() == ["⇥=1", "\\x0d=1", "⏎=1", "␣=1", "\\u200b=1"]


def test_a_cell_is_never_cut() -> None:
    assert "".join(lines([("x" * 600 + "\x1b" * 9,)])) == "x" * 600 + "\\x1b" * 9 + "\n"


@settings(max_examples=50)
@example([("a\r\n",)])
@given(st.lists(st.lists(CELLS, min_size=1, max_size=3).map(tuple), max_size=3))
def test_any_cells_come_back(rows: list[tuple[str, ...]]) -> None:
    records = list(lines(rows))
    shown = [tuple(cell and escape_for_spreadsheet(cell) for cell in row) for row in rows]
    assert read("".join(records)) == shown
    assert [read(record) for record in records] == [[row] for row in shown]
    assert all(record.endswith("\n") and not record.endswith("\r\n") for record in records)
