"""What changed, as tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from attnviz.differences import BatchDiff, Difference, HeadChange, Kind, head_beyond, is_beyond
from attnviz.renderers.terminal import HIDDEN
from attnviz.specs.batch import DiffSpec
from attnviz.views.diff import MAX_HEADS, MAX_ROWS, batches_report, records_report
from tests.made import HOSTILE, random_maps

ONLY: tuple[Kind, ...] = ("missing job", "new job", "missing numbers", "new numbers", "heads")
SPEC = DiffSpec(before="a", after="b")
CHANGE = Difference("number", "job", "", "a text", "entropy", 0, 1, 1.0, 1.25)
HEAD = HeadChange(0, 1, 0.125, 3, 12, (CHANGE,))


def test_a_change_is_beyond_a_threshold_when_it_is_further_either_way() -> None:
    for change in (CHANGE, replace(CHANGE, expected=1.25, actual=1.0)):
        assert is_beyond(change, {"entropy": 0.2})
        assert not is_beyond(change, {"entropy": 0.25})
        assert not is_beyond(change, {"peak": 0.0})
    assert is_beyond(replace(CHANGE, actual=float("nan")), {"entropy": 9.0})
    assert head_beyond(HEAD, {"jsd": 0.1, "top_key": 0.2, "entropy": 0.1}) == ("jsd", "top_key", "entropy")
    assert head_beyond(HEAD, {"jsd": 0.125, "top_key": 0.25, "entropy": 0.25}) == ()


def test_a_line_per_head() -> None:
    one, other = random_maps(), random_maps(seed=1)
    report = records_report(one, other, [HEAD], {"jsd": 0.1}, SPEC)
    heads, queries = report.tables
    assert [column.header for column in heads.columns] == [
        "layer",
        "head",
        "JSD",
        "top key changed",
        "entropy A",
        "entropy B",
        "entropy change",
        "beyond",
    ]
    assert heads.rows == ((0, 1, 0.125, "3 of 12 (25%)", 1.0, 1.25, 0.25, "jsd"),)
    assert queries.title == "layer 0, head 1: the queries that changed most"
    assert report.title == "a (A) to b (B)"


def test_the_keys_are_those_of_the_largest_weights() -> None:
    one, other = random_maps(n_heads=2), random_maps(n_heads=2, seed=1)
    _, queries = records_report(one, other, [HEAD], {}, replace(SPEC, top_k=1)).tables
    for query, _, before, after in queries.rows:
        position = int(str(query).split()[0])
        for cell, maps in ((before, one), (after, other)):
            weights = maps.weights[0, 1, position]
            key = int(weights.argmax())
            assert cell == f"{key} {maps.keys.pieces[key]} {weights[key]:.2f}"


def test_more_than_a_screen_holds_is_counted() -> None:
    many = [replace(HEAD, head=head) for head in range(MAX_HEADS + 2)]
    report = records_report(random_maps(), random_maps(seed=1), many, {}, SPEC)
    assert len(next(report.tables).rows) == MAX_HEADS
    assert "2 more heads changed less; --json lists them." in [note.text for note in report.notes]
    report = records_report(random_maps(), random_maps(seed=1), many[1:], {}, SPEC)
    assert "1 more head changed less; --json lists it." in [note.text for note in report.notes]
    changes = tuple(replace(CHANGE, head=head, actual=2.0 + head) for head in range(MAX_ROWS + 1))
    shown = batches_report(BatchDiff((), changes), {}, SPEC)
    (table,) = shown.tables
    assert [row[2] for row in table.rows] == [f"layer 0, head {head}" for head in range(MAX_ROWS, 0, -1)]
    assert "1 more number of entropy changed less; --json lists it." in [note.text for note in shown.notes]


def test_one_token_and_one_number_are_counted_as_one() -> None:
    one, other = random_maps("a", n_heads=2), random_maps("a", n_heads=2, seed=1)
    assert records_report(one, other, [HEAD], {}, SPEC).subtitle.endswith(" · 1 token")
    assert batches_report(BatchDiff((), (CHANGE,)), {}, SPEC).subtitle == "1 of 1 number changed"


def test_a_number_that_is_not_beyond_is_not_flagged() -> None:
    changes = (CHANGE, replace(CHANGE, head=0, actual=1.1))
    (table,) = batches_report(BatchDiff((), changes), {"entropy": 0.2}, SPEC).tables
    assert [row[-1] for row in table.rows] == ["yes", ""]
    (plain,) = batches_report(BatchDiff((), changes), {}, SPEC).tables
    assert len(plain.columns) == 6


@pytest.mark.parametrize("text", HOSTILE)
def test_no_name_and_no_token_is_anything_but_text(text: str) -> None:
    maps = [random_maps(("a", text, "b"), seed=seed, n_heads=2) for seed in (0, 1)]
    hostile = replace(CHANGE, job=text, text=text, measure=text)
    changes = (hostile, *(replace(hostile, kind=kind, expected=text, actual=text) for kind in ONLY))
    reports = (
        records_report(maps[0], maps[1], [HEAD], {"jsd": 0.1}, replace(SPEC, before=text)),
        batches_report(BatchDiff((), changes), {}, SPEC),
    )
    for report in reports:
        cells = [str(cell) for table in report.tables for row in table.rows for cell in row]
        for told in (report.title, report.subtitle, *cells, *(note.text for note in report.notes)):
            assert not HIDDEN.search(told)
            assert len(told) < 500
