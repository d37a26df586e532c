"""What differs, in words and tables."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from attnviz.commands.batch.diff_report import (
    MAX_HEADS,
    MAX_ROWS,
    diff_report,
    heads_table,
    means_table,
    numbers_table,
)
from attnviz.commands.batch.spec import DiffSpec
from attnviz.records.differences import Diff, Difference, HeadChange, Kind
from attnviz.renderers.documents import json as as_json
from attnviz.renderers.terminal.show import HIDDEN
from attnviz.report import Report
from attnviz.views.differences import describe_difference
from tests.made import HOSTILE

SPEC = DiffSpec(before="baseline", after="figures")
NUMBER = Difference("differs", "number", "a", "", "a text", "entropy", 0, 1, 1.25, 1.5)
PICTURE = Difference("differs", "file", "a", "a/x.png", said="7 pixels, by 2.5 of 255")
HEAD = HeadChange(0, 1, 0.125, 3, 12, (NUMBER,))


def words(report: Report) -> list[str]:
    return [note.text for note in report.notes]


def test_where_nothing_differs_it_says_how_much_was_compared() -> None:
    found = Diff((), ("a", "b"), 16, 8, 2, ("b",), (("torch", "2.12", "2.13"),))
    report = diff_report(found, SPEC)
    assert (report.title, report.data["same"]) == ("No difference", True)
    assert words(report) == [
        "Made by other versions: torch 2.12 → 2.13.",
        "Failed on both sides with the same error: b.",
        "Compared: 2 jobs, 16 numbers, 8 files.",
        "Other bytes that say the same: 2 files.",
    ]


def test_a_number_is_called_by_its_head_or_by_what_it_is_of() -> None:
    """Sentences of all other kinds are read where batches and records differ."""
    assert describe_difference(NUMBER) == "a: entropy of layer 0, head 1 in a text: 1.25 became 1.5."
    of_model = replace(NUMBER, layer=None, head=None, of="multi:2")
    assert describe_difference(of_model) == "a: entropy of multi:2 in a text: 1.25 became 1.5."


def test_numbers_are_a_table_and_all_else_sentences() -> None:
    found = Diff((NUMBER, replace(NUMBER, head=0, measure="peak", after=0.25), PICTURE), ("a",))
    report = diff_report(found, SPEC, list(numbers_table(found, [])))
    assert report.title == "3 differences"
    (table,) = report.tables
    assert [row[2:] for row in table.rows] == [
        ("peak", "layer 0, head 0", 1.25, 0.25, -1.0),
        ("entropy", "layer 0, head 1", 1.25, 1.5, 0.25),
    ]
    assert words(report)[0] == describe_difference(PICTURE)
    assert [row[2] for row in next(numbers_table(found, ["entropy"])).rows] == ["entropy"]
    assert list(numbers_table(found, ["to_next"])) == []


def test_more_than_a_screen_holds_is_counted() -> None:
    many = [replace(NUMBER, head=head, after=2.0 + head) for head in range(MAX_ROWS + 2)]
    (table,) = numbers_table(Diff(tuple(many)), [])
    assert (len(table.rows), table.title[-8:]) == (MAX_ROWS, "20 of 22")
    report = diff_report(Diff((PICTURE,) * (MAX_ROWS + 3)), SPEC)
    assert words(report)[MAX_ROWS:] == ["And 3 more: see --json."]
    (table,) = heads_table([replace(HEAD, head=head) for head in range(MAX_HEADS + 2)])
    assert (len(table.rows), table.title[-8:]) == (MAX_HEADS, "64 of 66")
    assert table.rows[0] == (0, 0, 0.125, "3 of 12 (25%)", 1.25, 1.5, 0.25)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_name_is_anything_but_a_name(text: str) -> None:
    numbers = (replace(NUMBER, job=text, text=text, measure=text), replace(NUMBER, measure=text, of=text))
    kinds = [Difference(kind, text, text, text, text, text, 0, 0, text, text, text) for kind in get_args(Kind)]
    found = Diff((*numbers, *kinds), (text, "a"), failed_alike=(text,), versions=((text, text, text),))
    tables = [*numbers_table(found, []), means_table([(each, 1.0) for each in numbers], [text])]
    report = diff_report(found, replace(SPEC, before=text), tables)
    cells = [str(cell) for table in report.tables for row in table.rows for cell in row]
    for said in (report.title, report.subtitle, *cells, *words(report)):
        assert not HIDDEN.search(said)
        assert len(said) < 1500
    assert b"".join(as_json.write_alone(report)).isascii()
