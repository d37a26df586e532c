"""Tables in a terminal: no digit is cut, and what has no room in columns is written out."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from attnviz.renderers.terminal import Screen, render
from attnviz.report import Column, Report, Table
from attnviz.specs.figure import FigureOptions, TableKind
from tests.made import FILM, random_maps, record, report, tokens
from tests.renderers.terminal_reports import SGR, SHOWN, last, shown, words


@given(width=st.integers(1, 200), kind=st.sampled_from(SHOWN), colour=st.booleans())
def test_numbers_of_the_heads_are_whole_at_every_width(width: int, kind: TableKind, colour: bool) -> None:
    of = report()
    text = SGR.sub("", render(of, kind, Screen(width, colour)))
    (heads,) = (table for table in of.tables if table.role == "heads")
    for row in heads.rows:
        for cell, column in zip(row, heads.columns, strict=True):
            number = f"{cell:.{column.digits}f}" if isinstance(cell, float) else str(cell)
            assert re.search(rf"(?<![\d.]){re.escape(number)}(?![\d.])", text), number


@given(width=st.integers(1, 200), colour=st.booleans())
def test_top_keys_are_whole_at_every_width(width: int, colour: bool) -> None:
    of = report(random_maps(FILM[:6], n_heads=1))
    text = SGR.sub("", render(of, "top", Screen(width, colour)))
    (top,) = (table for table in of.tables if table.role == "top")
    listed = words("\n".join(last(text))).replace("· ", "")
    for row in top.rows:
        for key, weight in zip(row[2::2], row[3::2], strict=True):
            assert f"{key} {weight:.3f}" in listed


def test_top_by_eye() -> None:
    weights = np.array([[[[0.2, 0.5, 0.3], [0.1, 0.1, 0.8], [0.4, 0.2, 0.4]]]])
    of = report(record(weights, tokens("a", "b", "猫")), FigureOptions(top_k=2))
    assert shown("top", of=of) == (
        "multi:2 attends to sample train[0]\n"
        "untrained (random weights, seed 0) · 3 tokens\n"
        "\n"
        "layer 0, head 0: top 2 keys of each query\n"
        "query  key 1         key 2\n"
        "─────  ─────  ─────  ─────  ─────\n"
        "0 a    1 b    0.500  2 猫   0.300\n"
        "1 b    2 猫   0.800  0 a    0.100\n"
        "2 猫   0 a    0.400  2 猫   0.400\n"
        "\n"
        "             entropy  effective  distance     peak  strongest\n"
        "layer  head   (nats)       keys  (tokens)  (share)  pair        weight\n"
        "─────  ────  ───────  ─────────  ────────  ───────  ──────────  ──────\n"
        "    0     0    0.908       2.52      1.00    0.567  1 b → 2 猫   0.800\n"
    )


def test_many_queries_are_counted_and_full_shows_them() -> None:
    of = report(random_maps(FILM * 2, n_heads=1))
    assert last(shown("top", of=of))[-1] == "… 4 more queries: --table full or --json shows all of them."
    one = report(random_maps((FILM * 2)[:25], n_heads=1))
    assert last(shown("top", of=one))[-1] == "… 1 more query: --table full or --json shows all of them."
    assert "more quer" not in shown("top", of=report(random_maps((FILM * 2)[:24], n_heads=1)))
    assert "\n23 minute" in shown("top", of=of)
    assert "\n24 of" not in shown("top", of=of)
    assert "\n27 ." in shown("full", of=of)


def test_of_many_heads_each_has_one_line() -> None:
    of = report(random_maps(FILM, n_layers=3, n_heads=6), FigureOptions(sort="-entropy"))
    text = shown("top", 70, of)
    rows = [line.split() for line in text.split("\n\n")[1].splitlines()[3:-2]]
    assert len(rows) == 18
    assert [float(row[2]) for row in rows] == sorted(float(row[2]) for row in rows)
    assert {len(row) for row in rows} == {6}
    assert "For want of room without strongest pair, weight: a wider screen shows it." in words(text)
    assert "→" in shown("top", 100, of)
    assert shown("top", 30, of).count("strongest pair") == 18  # no room for the numbers either
    few = report(random_maps(FILM, n_layers=2, n_heads=8))
    assert shown("top", 70, few).count("strongest pair") == 16


def test_a_table_of_things_compared_names_its_cells_where_it_does_not_fit() -> None:
    """Without their names nobody could tell whose numbers they are."""
    columns = (Column("what"), Column("single"), Column("multi:8"))
    costs = Table("costs", "costs", "compared", columns, (("heads", "1 of 32", "8 of 4"), ("d_model", "32", "")))
    text = render(Report("run", "seed 0", (costs,)), "top", Screen(width=20))
    assert "single 1 of 32" in text
    assert "multi:8 8 of 4" in text
    assert text.rstrip().endswith("single 32")
