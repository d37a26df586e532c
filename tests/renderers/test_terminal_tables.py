"""Tables in a terminal: no digit is cut, and what has no room in columns is written out."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from attnviz.measures import measure_maps
from attnviz.renderers.terminal.show import Screen, render
from attnviz.report import Column, Report, Table
from attnviz.specs import FigureOptions, TableKind
from attnviz.views.heatmap import heatmap_report
from tests.made import FILM, random_maps, record, report, tokens
from tests.renderers.terminal_reports import SGR, SHOWN, last, shown, words


@given(width=st.integers(1, 200), kind=st.sampled_from(SHOWN[1:]), colour=st.booleans())
def test_numbers_of_the_heads_are_whole_at_every_width(width: int, kind: TableKind, colour: bool) -> None:
    of = report()
    text = SGR.sub("", render(of, kind, Screen(width, colour)))
    (heads,) = (table for table in of.tables if table.role == "heads")
    for row in heads.rows:
        for cell, column in zip(row, heads.columns, strict=True):
            if kind == "heads" and column.minor and column.header in words(text).split("Not shown for want")[-1]:
                continue
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
    assert shown("top", of=of).startswith(
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


def test_heads_are_as_many_tables_as_it_takes() -> None:
    of = report(random_maps(FILM, n_layers=3, n_heads=6), FigureOptions(sort="-entropy"))
    blocks = [block for block in shown("full", 70, of).split("\n\n") if "layer  head" in block]
    first, second = ([line.split() for line in block.splitlines()[-18:]] for block in blocks)
    assert [float(row[2]) for row in first] == sorted(float(row[2]) for row in first)
    assert [row[:2] for row in first] == [row[:2] for row in second]
    assert "→" in blocks[1]
    assert "Not shown" not in blocks[1]
    assert shown("full", 30, of).count("layer  head") == 6
    assert shown("full", 15, of).count("strongest pair") == 18  # no room for one column


def test_a_compact_table_of_heads_has_one_line_for_each() -> None:
    maps = random_maps(FILM, n_layers=3, n_heads=6)
    for width, n_columns in ((80, 7), (120, 9)):
        text = shown("heads", width, report(maps))
        assert text.count("layer  head") == 1
        assert text.count("→") == 18
        assert max(map(len, text.splitlines())) <= width
        assert len(next(line for line in text.splitlines() if line.startswith("──")).split()) == n_columns
        assert ("No room to show distance, peak:" in words(text)) == (width == 80)
    sorted_by = shown("heads", 80, report(maps, FigureOptions(sort="distance")))
    assert "No room to show entropy, peak: --measure NAME shows one." in words(sorted_by)
    named = heatmap_report(maps, measure_maps(maps), FigureOptions(measure=("entropy", "peak")), [0], [0])
    assert "Not shown" not in shown("heads", 80, named)


def test_a_table_of_things_compared_names_its_cells_where_it_does_not_fit() -> None:
    """Without their names nobody could tell whose numbers they are."""
    columns = (Column("what"), Column("single"), Column("multi:8"))
    costs = Table("costs", "costs", "compared", columns, (("heads", "1 of 32", "8 of 4"), ("d_model", "32", "")))
    text = render(Report("run", "seed 0", (costs,)), "top", Screen(width=20))
    assert "single 1 of 32" in text
    assert "multi:8 8 of 4" in text
    assert text.rstrip().endswith("single 32")


def test_a_table_of_several_columns_names_its_cells_too_and_does_without_minor_ones() -> None:
    columns = (Column("pattern"), Column("heads"), Column("equal", minor=True), Column("by chance"))
    table = Table("t", "Patterns", "facts", columns, (("induction " * 3, "18.6, 17.3", "-", 0.021),), first=(0,))
    text = words(render(Report("m", "", (table,)), "heads", Screen(40)))
    assert "heads 18.6, 17.3 · by chance 0.021" in text
    assert "equal" not in text
    pair = Table("t", "Facts", "facts", columns[:2], (("induction " * 3, "18.6, 17.3"),))
    assert "heads" not in render(Report("m", "", (pair,)), "heads", Screen(40))
