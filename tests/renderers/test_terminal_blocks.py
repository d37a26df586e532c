"""Maps and tables on a terminal: whole at every width, as bare text and in colour."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from attnviz.renderers.terminal.show import Screen, render
from attnviz.report import Column, Heatmap, Report, Scale, Table
from attnviz.specs import FigureOptions, TableKind
from tests.made import FILM, HOSTILE, random_maps, record, report, tokens
from tests.renderers.terminal_reports import SGR, SHOWN, last, shown, uneven, words


@pytest.mark.parametrize("colour", [False, True])
@given(width=st.integers(1, 200), n=st.integers(2, 9), causal=st.booleans(), ascii_only=st.booleans())
def test_full_shows_every_weight_at_every_width(
    colour: bool, width: int, n: int, causal: bool, ascii_only: bool
) -> None:
    of = uneven(n, causal=causal)
    text = render(of, "full", Screen(width, colour, "ascii" if ascii_only else "utf-8"))
    found = re.findall(r"(?<!\d)[01]\.\d{3}(?!\d)", SGR.sub("", "\n".join(last(text))))
    (heatmap,) = (block for block in of.blocks if isinstance(block, Heatmap))
    assert found == [f"{value:.3f}" for value in heatmap.values[heatmap.allowed].tolist()]


def test_full_by_eye() -> None:
    of = report(record(np.array([[[[0.25, 0.75], [0.5, 0.5]]]]), tokens("a", "b")))
    assert last(shown("full", of=of))[1:] == ["         0     1", "0 a  0.250 0.750", "1 b  0.500 0.500"]
    narrow = ["0 a", "  0 a 0.250", "  1 b 0.750", "1 b", "  0 a 0.500", "  1 b 0.500"]
    assert last(shown("full", 15, of))[1:] == narrow


def test_heatmap_by_eye() -> None:
    weights = np.array([[[[1, 0, 0], [0.25, 0.75, 0], [0.03, 0.47, 0.5]]]])
    of = report(record(weights, tokens("a", "b", "猫"), attendable=np.tri(3, dtype=bool)))
    assert shown("heatmap", of=of).split("\n\n", 3)[1:3] == [
        "1 × [ ░▒▓█] 3 ×  attention weight, × an equal share (1/n)\n"
        "rows: query (attends) · columns: key (is attended to), by position · × may not\n"
        "be attended to",
        "layer 0, head 0\n        0   1   2\n0 a   1.0   ×   ×\n1 b   .25░.75   ×\n2 猫  .03░.47░.50",
    ]
    assert last(shown("heatmap", 18, of, encoding="ascii"))[1:] == [
        "          0 1 2",
        "0 a     |   x x|",
        "1 b     |  -- x|",
        "2 \\u732b|  ----|",
    ]


def test_rows_that_are_heads_have_no_position_and_the_tokens_are_named_below() -> None:
    weights = np.array([[[[1, 0], [0.25, 0.75]], [[0, 1], [0.5, 0.5]]]])
    of = report(record(weights, tokens("a", "[/]")), FigureOptions(query="1"))
    text = shown("heatmap", of=of)
    assert "\n     0   1\n0  .25▒.75\n1  .50 .50\n0 a · 1 [/]\n" in text


def test_forbidden_cells_do_not_look_like_zero() -> None:
    of = uneven(4, causal=True)
    assert last(shown("full", of=of))[2].split() == ["0", "t0", "1.000", "×", "×", "×"]
    assert last(shown("full", 15, of))[1:3] == ["0 t0", "  0 t0 1.000"]
    assert "A key that is not listed may not be attended to." in words(shown("full", 15, of))
    assert "may not be attended to" in words(shown("heatmap", of=of))
    assert "may not be attended to" not in words(shown("heatmap"))


def test_a_map_that_is_too_wide_gives_way_to_its_top_keys_and_says_so() -> None:
    of = report(random_maps(FILM * 4, n_heads=1))
    text = shown("heatmap", of=of)
    assert "A map of 56 keys does not fit 80 columns; the strongest keys of each query" in text
    assert "layer 0, head 0: top 3 keys of each query" in text
    assert "█" not in shown("heatmap", of=of)
    assert "56 keys" not in shown("heatmap", 160, of)
    narrowest = words(shown("heatmap", 1, report(random_maps(("a", "b"), n_heads=1))))
    assert "A map of 2 keys does not fit 1 column; the strongest keys of each query instead." in narrowest


def test_positions_over_columns_never_touch() -> None:
    chosen = tuple(position for position in range(30) if position not in (0, 5, 29))
    size = len(chosen)
    picture = Heatmap(
        *("m", "map", np.full((size, size), 0.5), np.ones((size, size), dtype=bool), ("a",) * size, ("a",) * size),
        row_positions=chosen,
        column_positions=chosen,
    )
    heading = shown("heatmap", 80, Report("t", "s", (picture,))).split("map\n", 1)[1].splitlines()[0]
    assert heading.split() == ["6", "10", "15", "20", "25"]  # 6 comes after a gap
    line = shown("heatmap", 80, Report("t", "s", (picture,))).splitlines()[-1]
    assert line.startswith("28 a|")
    for place in (6, 10, 15, 20, 25):
        column = len("28 a|") + 2 * (chosen.index(place) + 1)
        assert heading[:column].endswith(str(place))


def test_wide_labels_align() -> None:
    of = report(random_maps(("猫坐在", "a", "👨\u200d👩\u200d👧\u200d👦", "e\u0301"), n_heads=1))
    starts = {cell_len(line[: line.index(".")]) for line in last(shown("full", of=of))[2:]}
    assert len(starts) == 1


def test_a_map_with_a_scale_of_its_own_shows_it() -> None:
    of = report(random_maps(FILM[:3], n_heads=1), FigureOptions(rollout=True, scale="shared"))
    text = shown("heatmap", of=of)
    rollout = text[text.index("attention rollout through") :].split("\n\n")[0]
    high = max(block.values.max() for block in of.blocks if isinstance(block, Heatmap) and block.scale)
    assert f"0 [ ░▒▓█] {high:.3g}  share of the token after all layers (0 to {high:.3g})\n" in rollout
    assert f"█.{high * 100:.0f}" in rollout  # the largest is the darkest, on its own scale and not on that of weights
    assert f"[{' ░▒▓█'}]" not in shown("full", of=of)
    assert "share of the token" in SGR.sub("", shown("full", of=of, colour=True))
    assert "attention rollout through all layers (Abnar & Zuidema 2020): top 3" in words(shown("top", of=of))


def test_values_that_are_no_weights_are_shaded_without_digits() -> None:
    values = np.array([[-0.5, 0.5], [0.0, 1.0]])
    heatmap = Heatmap("difference", "difference", values, np.ones((2, 2), dtype=bool), ("a", "b"), ("a", "b"))
    of = Report("t", "s", (heatmap,), Scale("shared", -1.0, 1.0, "difference"))
    assert shown("heatmap", of=of).splitlines()[-3:] == ["     0 1", "0 a|░░▓▓|", "1 b|▒▒██|"]
    assert "-0.500" in shown("full", of=of)


def test_colour_leaves_room_for_digits_where_shades_would_not() -> None:
    of = report(random_maps(FILM + FILM[:6], n_heads=1))
    assert ".00.01" in SGR.sub("", shown("heatmap", of=of, colour=True))
    assert "|" in shown("heatmap", of=of)


def test_256_colours_unless_the_screen_has_more() -> None:
    assert "48;5;" in shown("heatmap", colour=True)
    assert "48;2;" not in shown("heatmap", colour=True)
    assert "48;2;255;255;255" in shown("heatmap", colour=True, true_colour=True)
    assert "48;5;" in shown("heatmap", colour=True)  # and again, after the other


# --- Tables in a terminal: no digit is cut, and what has no room in columns is written out ---


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
