"""Summaries that fit."""

from __future__ import annotations

from attnviz.renderers.markdown import document
from attnviz.renderers.summary import LIMIT, summary
from attnviz.report import Column, Note, Report, Table

REPORT = Report(
    "a title",
    "a subtitle",
    (Table("t", "a table", "facts", (Column("n"),), tuple((n,) for n in range(50))), Note("猫" * 20), Note("b" * 20)),
)
WHOLE = len(document(REPORT).encode())


def test_a_report_that_fits_is_the_document() -> None:
    assert summary(REPORT) == document(REPORT)
    assert summary(REPORT, limit=WHOLE) == document(REPORT)
    assert summary(REPORT, held=10) == "\n\n" + document(REPORT)
    assert LIMIT == 2**20


def test_whole_blocks_are_left_out_and_counted() -> None:
    cut = summary(REPORT, limit=WHOLE - 200)  # the table is too large, what follows it is not
    assert cut == document(
        Report(
            "a title",
            "a subtitle",
            (*REPORT.blocks[1:], Note("1 of 3 parts is left out here: a summary holds at most 1 MiB.")),
        )
    )


def test_it_never_is_larger_than_the_room() -> None:
    lengths = set()
    for room in range(WHOLE + 20):
        found = summary(REPORT, held=1000, limit=1000 + room)
        assert len(found.encode()) <= room
        assert not found or found.startswith("\n\n# a title")
        lengths.add(len(found))
    assert len(lengths) >= 4  # nothing, the heading alone, more and more parts
    assert summary(REPORT, held=LIMIT) == summary(REPORT, held=LIMIT + 5) == ""
