"""Tables in a terminal: no digit is cut, and what has no room in columns is written out."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from attnviz.renderers.terminal.show import Screen, render
from attnviz.report import Column, Report, Table
from attnviz.specs import FigureOptions, TableKind
from tests.made import FILM, HOSTILE, random_maps, record, report, tokens
from tests.renderers.terminal_reports import SGR, SHOWN, last, shown


@given(width=st.integers(1, 200), kind=st.sampled_from(SHOWN[1:]), colour=st.booleans())
def test_numbers_of_the_heads_are_whole_at_every_width(width: int, kind: TableKind, colour: bool) -> None:
    of = report()
    text = SGR.sub("", render(of, kind, Screen(width, colour)))
    (heads,) = (table for table in of.tables if table.role == "heads")
    for row in heads.rows:
        for cell, column in zip(row, heads.columns, strict=True):
            number = f"{cell:.{column.digits}f}" if isinstance(cell, float) else str(cell)
            assert re.search(rf"(?<![\d.]){re.escape(number)}(?![\d.])", text), number


def test_top_by_eye() -> None:
    weights = np.array([[[[0.2, 0.5, 0.3], [0.1, 0.1, 0.8], [0.4, 0.2, 0.4]]]])
    of = report(record(weights, tokens("a", "b", "猫")), FigureOptions(top_k=2))
    assert shown("top", of=of).startswith(
        "multi:2 attends to “a b 猫”\n"
        "untrained (random weights, seed 0) · 3 tokens\n"
        "\n"
        "layer 0, head 0: top 2 keys of each query\n"
        "query  token  key 1  weight 1  key 2  weight 2\n"
        "──────────────────────────────────────────────\n"
        "    0  a      1 b       0.500  2 猫      0.300\n"
        "    1  b      2 猫      0.800  0 a       0.100\n"
        "    2  猫     0 a       0.400  2 猫      0.400\n"
        "\n"
    )


def test_many_queries_are_counted_and_full_shows_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands below the rows that rich draws is as rich would draw it, also of hostile and of wide characters."""
    of = report(random_maps((*FILM, *HOSTILE, "猫坐") * 2, n_heads=1))
    found = shown("full", 80, of)
    monkeypatch.setattr("attnviz.renderers.terminal.tables.MAX_DRAWN", 3)
    assert shown("full", 80, of) == found
    of = report(random_maps(FILM * 2, n_heads=1))
    assert last(shown("top", of=of))[-1] == "… 4 more queries: --table full or --json shows all of them."
    one = report(random_maps((FILM * 2)[:25], n_heads=1))
    assert last(shown("top", of=one))[-1].startswith("… 1 more query:")
    assert "more quer" not in shown("top", of=report(random_maps((FILM * 2)[:24], n_heads=1)))
    assert "\n27 ." in shown("full", of=of)


def test_heads_are_as_many_tables_as_it_takes() -> None:
    of = report(random_maps(FILM, n_layers=3, n_heads=6), FigureOptions(sort="-entropy"))
    blocks = [block for block in shown("full", 70, of).split("\n\n") if "layer  head" in block]
    first, second = ([line.split() for line in block.splitlines()[-18:]] for block in blocks)
    assert [float(row[2]) for row in first] == sorted(float(row[2]) for row in first)
    assert [row[:2] for row in first] == [row[:2] for row in second]
    assert "→" in blocks[1]
    assert "Not shown" not in blocks[1]
    assert shown("full", 30, of).count("layer  head") == 6
    assert shown("full", 15, of).count("layer  head") == 7  # no room for one column


COSTS = Table(
    "costs",
    "Costs",
    "compared",
    (Column("what"), Column("single"), Column("multi:8"), Column("of both", minor=True)),
    (("95 % interval", "0.8812 to 0.8909", "0.8876 to 0.8961", "-"), ("猫坐在垫子上", "1", "8", "-")),
)


def test_texts_are_wrapped_where_they_do_not_fit_and_columns_repeated_after_what_they_are_of() -> None:
    assert render(Report("", "", (COSTS,)), "answer", Screen(40)) == (
        "\n\n\nCosts\n"
        "what          single       multi:8\n"
        "────────────────────────────────────────\n"
        "95 %          0.8812 to    0.8876 to\n"
        "interval      0.8909       0.8961\n"
        "猫坐在垫子上  1            8\n"
    )
    text = render(Report("", "", (COSTS,)), "top", Screen(20))
    assert text.count("Costs") == 1
    assert text.count("猫坐在") == text.count("95 %") == 3


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_no_line_of_a_table_is_wider_than_the_screen(width: int, encoding: str) -> None:
    hostile = replace(COSTS, rows=(*COSTS.rows, *((each, "\x1b[2J", "[/]", "a b " * 60) for each in HOSTILE)))
    text = render(Report("", "", (hostile,)), "full", Screen(width, encoding=encoding))
    assert "\x1b" not in text
    assert max(map(cell_len, text.splitlines())) <= width
