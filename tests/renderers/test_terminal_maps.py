"""Maps in a terminal: every weight in its place, whatever the width, the colours and the characters."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from attnviz.renderers.terminal.show import Screen, render
from attnviz.report import Heatmap, Report, Scale
from attnviz.specs import FigureOptions
from tests.made import FILM, random_maps, record, report, tokens
from tests.renderers.terminal_reports import SGR, last, shown, uneven, words


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
