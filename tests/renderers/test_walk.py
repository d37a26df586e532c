"""What is read from top to bottom, headings included, in a terminal and as Markdown."""

from __future__ import annotations

import re

from attnviz.renderers import numbers
from attnviz.renderers.documents import markdown
from attnviz.renderers.terminal import show as terminal
from attnviz.renderers.terminal.show import Screen
from attnviz.report import Column, Note, Report, Section, Table

TABLE = Table("t", "", "facts", (Column("key"), Column("s", digits=2)), (("0 a", 1.0), ("… 2 other keys", "…")))
STEPS = (Section("First"), Note("Why."), Section("Second", 2), TABLE, Note("End."))
WALK = Report("A walk", "of steps", STEPS)


def shown(report: Report, width: int = 80, encoding: str = "utf-8") -> str:
    return terminal.render(report, "top", Screen(width, encoding=encoding))


def test_a_terminal_shows_blocks_in_their_order() -> None:
    assert shown(WALK) == (
        "A walk\nof steps\n\nFirst\n─────\n\nWhy.\n\nSecond\n\n"
        "key                s\n────────────────────\n0 a             1.00\n… 2 other keys     …\n\nEnd.\n"
    )


def test_without_steps_tables_come_before_notes_as_ever() -> None:
    assert shown(Report("a", "b", (Note("first"), TABLE))).index("first") > shown(WALK).index("key")
    assert shown(Report("a", "b", (Note("first"), TABLE))).endswith("…\n\nfirst\n")


def test_markdown_has_headings() -> None:
    assert markdown.document(WALK) == (
        "# A walk\n\nof steps\n\n## First\n\nWhy.\n\n### Second\n\n"
        "| key | s |\n| --- | ---: |\n| 0 a | 1.00 |\n| … 2 other keys | … |\n\nEnd.\n"
    )


def test_numbers_that_are_left_out_leave_a_column_of_numbers() -> None:
    for cells in ((1, 2.5), (1, "…"), ("", 2.5), ()):
        assert numbers.numeric(Table("t", "", "facts", (Column("n"),), tuple((cell,) for cell in cells))) == [True]
    for texts in ((1, "a"), ("…", ""), ("a", "b")):
        assert numbers.numeric(Table("t", "", "facts", (Column("n"),), tuple((cell,) for cell in texts))) == [False]


def test_infinity_is_a_sign() -> None:
    column = Column("s", digits=4)
    written = [numbers.write_cell(value, column) for value in (float("inf"), float("-inf"), 0.5, 7)]
    assert written == ["∞", "-∞", "0.5000", "7"]
    assert not re.search("inf", shown(Report("a", "b", (Table("t", "", "facts", (column,), ((float("-inf"),),)),))))
