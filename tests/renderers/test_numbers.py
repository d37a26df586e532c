"""Cells of a table as text: which columns are of numbers, and how numbers are written that are none."""

from __future__ import annotations

from attnviz.renderers import numbers
from attnviz.report import Column, Table


def test_numbers_that_are_left_out_leave_a_column_of_numbers() -> None:
    for cells in ((1, 2.5), (1, "…"), ("", 2.5), ()):
        assert numbers.numeric(Table("t", "", "facts", (Column("n"),), tuple((cell,) for cell in cells))) == [True]
    for texts in ((1, "a"), ("…", ""), ("a", "b")):
        assert numbers.numeric(Table("t", "", "facts", (Column("n"),), tuple((cell,) for cell in texts))) == [False]


def test_infinity_is_a_sign() -> None:
    column = Column("s", digits=4)
    written = [numbers.write_cell(value, column) for value in (float("inf"), float("-inf"), 0.5, 7)]
    assert written == ["∞", "-∞", "0.5000", "7"]
