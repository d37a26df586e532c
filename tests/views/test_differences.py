"""What differs, in words: kinds of change first."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import get_args

import pytest

from attnviz.records.differences import FILES, NUMBERS, OTHER_BYTES, Diff, Difference, Kind
from attnviz.renderers.documents import json as as_json
from attnviz.renderers.hidden import HIDDEN
from attnviz.renderers.terminal.show import Screen, render
from attnviz.report import Report
from attnviz.views.differences import MAX_ROWS, describe_difference, diff_report
from tests.made import HOSTILE

SIDES = ("baseline", "figures")
NUMBER = Difference("differs", "number", "a", "", "a text", "entropy", 0, 1, 1.25, 1.5)
PICTURE = Difference("differs", "file", "a", "a/x.png", said="7 pixels, by 2.5 of 255")


def words(report: Report) -> list[str]:
    return [note.text for note in report.notes]


def shown(*differences: Difference) -> Report:
    numbers = [each for each in differences if each.what == "number"]
    return diff_report(Diff(differences, numbers), SIDES, ["entropy", "peak"])


def test_where_nothing_differs_it_says_how_much_was_compared() -> None:
    counts = {NUMBERS: 16, FILES: 8, OTHER_BYTES: 2}
    found = Diff((), jobs=("a", "b"), counts=counts, failed_alike=("b",), versions=(("torch", "2.12", "2.13"),))
    report = diff_report(found, SIDES, [])
    assert (report.title, report.data["same"]) == ("No difference", True)
    assert words(report) == [
        "Made by other versions: torch 2.12 → 2.13.",
        "Failed on both sides with the same error: b.",
        "Compared: 2 jobs, 16 numbers, 8 files.",
        "Other bytes that say the same: 2 files.",
    ]


@pytest.mark.parametrize(
    ("difference", "said"),
    [
        (NUMBER, "a: entropy of layer 0, head 1 in a text: 1.25 became 1.5."),
        (replace(NUMBER, layer=None, head=None, of="multi:2"), "a: entropy of multi:2 in a text: 1.25 became 1.5."),
        (Difference("differs", "texts", "a", before="0" * 64, after="1"), "a: texts: sha256 00000000… became 1."),
        (Difference("only before", "setting dpi", "a", before="40"), "a: setting dpi is only in BEFORE (40)."),
    ],
)
def test_each_difference_is_one_sentence(difference: Difference, said: str) -> None:
    """Those of other kinds are read where batches and records differ."""
    assert describe_difference(difference) == said
    assert words(shown(difference)) == [said]


@pytest.mark.parametrize(
    ("difference", "said"),
    [
        (NUMBER, "2 numbers differ by up to 0.25: a: entropy of layer 0, head 1 in a text."),
        (replace(NUMBER, kind="only after"), "2 numbers are only in AFTER, such as a: entropy of layer 0, head"),
        (replace(NUMBER, what="weight"), "2 weights of heads differ by up to 0.25: a: weight of layer 0, head 1"),
        (PICTURE, "2 pictures have other pixels, such as a: x.png."),
        (replace(PICTURE, before="2 × 3 pixels", after="4 × 3"), "2 pictures have another size, such as a: x."),
        (replace(PICTURE, kind="unreadable"), "2 pictures are not as they were made, such as a: x.png."),
        (replace(PICTURE, kind="only before"), "2 pictures are only in BEFORE, such as a: x.png."),
        (replace(PICTURE, file="a/x.csv"), "2 csv files differ, such as a: x.csv."),
        (replace(PICTURE, file="a/x"), "2 other files differ, such as a: x."),
        (Difference("only after", "job", "a"), "2 jobs are only in AFTER, such as job a."),
        (
            Difference("differs", "seed", "a", before="4", after="5"),
            "2 facts (seed) differ, such as a: seed: 4 became 5",
        ),
    ],
)
def test_what_is_alike_is_one_sentence(difference: Difference, said: str) -> None:
    (sentence,) = words(shown(difference, replace(difference, job="b")))
    assert sentence.startswith(said)


def test_the_largest_comes_first_and_is_named() -> None:
    small, large = replace(NUMBER, head=0, after=1.3), replace(NUMBER, head=2, measure="peak", after=0.25)
    report = shown(PICTURE, small, large, NUMBER)
    assert words(report) == [
        "3 numbers differ by up to 1: a: peak of layer 0, head 2 in a text.",
        describe_difference(PICTURE),
    ]
    (numbers,) = report.tables
    assert [column.header for column in numbers.columns] == ["number", "before", "after", "change"]
    assert numbers.rows[1] == ("a: peak of layer 0, head 2 in a text", 1.25, 0.25, -1.0)


def test_the_first_screen_is_small_and_a_document_has_all() -> None:
    """At most 15 lines and 20 numbers, however many differences of however many kinds."""
    names = ("model", "dpi", "text", "seed", "format", "width", "title")
    kinds = [Difference("differs", f"setting {names[n % 7]}", "a", before="1" * 99, after="2") for n in range(700)]
    many = [replace(NUMBER, head=head, after=2.0 + head) for head in range(MAX_ROWS + 2)]
    report = diff_report(Diff([*many, *kinds, PICTURE], many), SIDES, [])
    screen = render(report, "answer", Screen(width=80))
    assert len(screen.splitlines()) <= 15, screen
    assert len(re.findall(r"(?<![\w.])\d[\d.,]*", screen)) <= 20, screen
    assert "And 503 differences of 5 kinds: --print markdown lists them." in words(report)
    numbers, others = report.tables
    assert (others.title, len(others.rows)) == ("What differs, 200 of 701: --json has all", MAX_ROWS)
    assert (numbers.title, len(numbers.rows)) == ("Numbers of both sides, 200 of 202", MAX_ROWS)
    (asked,) = diff_report(Diff(many, many), SIDES, ["entropy"]).tables
    assert (numbers.is_detail, others.is_detail, asked.is_detail) == (True, True, False)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_name_is_anything_but_a_name(text: str) -> None:
    numbers = (replace(NUMBER, job=text, text=text, measure=text), replace(NUMBER, measure=text, of=text))
    kinds = [Difference(kind, text, text, text, text, text, 0, 0, text, text, text) for kind in get_args(Kind)]
    found = Diff((*numbers, *kinds, *kinds), numbers, jobs=(text,), failed_alike=(text,), versions=((text,) * 3,))
    report = diff_report(found, (text, text), [text])
    cells = [str(cell) for table in report.tables for row in table.rows for cell in row]
    for said in (report.title, report.subtitle, *cells, *words(report)):
        assert not HIDDEN.search(said)
        assert len(said) < 1500
    assert b"".join(as_json.write_alone(report)).isascii()
