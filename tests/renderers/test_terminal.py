"""Reports in a terminal: no digit is cut, no token is markup, nothing raw gets through."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from itertools import product
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from attnviz.renderers import shades
from attnviz.renderers.terminal import Screen, lines, render
from attnviz.report import Column, Curve, Curves, Heatmap, Line, Report, Scale, Table
from attnviz.specs import DrawSpec, TableKind
from tests.made import FILM, HOSTILE, cross_maps, provenance, random_maps, record, report, tokens

KINDS: tuple[TableKind, ...] = get_args(TableKind)
SHOWN: tuple[TableKind, ...] = ("heatmap", "top", "full")
SGR = re.compile(r"\x1b\[[0-9;]*m")
SCREENS = [
    Screen(width, colour, encoding, true_colour)
    for width, colour, encoding, true_colour in product((80, 40, 1), (False, True), ("utf-8", "ascii"), (False, True))
]


def shown(kind: TableKind, width: int = 80, of: Report | None = None, **screen: object) -> str:
    return render(of or report(), kind, Screen(width, **screen))  # type: ignore[arg-type]


def last(text: str) -> list[str]:
    """The lines of the last map, where there is one head and there are no notes: its numbers stand below it."""
    return text.rsplit("\n\n", 2)[1].splitlines()


def words(text: str) -> str:
    return " ".join(text.split())


def uneven(n: int, *, causal: bool = False) -> Report:
    """Every weight has three digits of its own, so that one cannot stand for another."""
    weights = np.arange(1.0, n * n + 1).reshape(1, 1, n, n) ** 1.5
    attendable = np.tri(n, dtype=bool) if causal else np.ones((n, n), dtype=bool)
    weights = np.where(attendable, weights, 0)
    return report(record(weights / weights.sum(axis=-1, keepdims=True), attendable=attendable))


def allowed_digits(of: Report) -> list[str]:
    (heatmap,) = (block for block in of.blocks if isinstance(block, Heatmap))
    return [f"{value:.3f}" for value in heatmap.values[heatmap.allowed].tolist()]


# Digits


@pytest.mark.parametrize("colour", [False, True])
@given(width=st.integers(1, 200), n=st.integers(1, 9), causal=st.booleans(), ascii_only=st.booleans())
def test_full_shows_every_weight_at_every_width(
    colour: bool, width: int, n: int, causal: bool, ascii_only: bool
) -> None:
    of = uneven(n, causal=causal)
    text = render(of, "full", Screen(width, colour, "ascii" if ascii_only else "utf-8"))
    found = re.findall(r"(?<!\d)[01]\.\d{3}(?!\d)", SGR.sub("", "\n".join(last(text))))
    assert found == allowed_digits(of)


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


@given(width=st.integers(1, 200), n=st.integers(1, 30), colour=st.booleans())
def test_no_line_is_wider_than_the_screen_unless_one_item_is(width: int, n: int, colour: bool) -> None:
    text = SGR.sub("", render(report(random_maps(FILM[:n] * (n // 14 + 1))), "heatmap", Screen(width, colour)))
    longest_item = len("strongest pair 10 minute → 10 minute")
    assert all(cell_len(line) <= max(width, longest_item + 2) for line in text.splitlines())


def test_ellipses_never_replace_digits() -> None:
    for kind, width in product(SHOWN, (1, 5, 20, 40, 80)):
        assert "…" not in shown(kind, width)


# What is shown


@pytest.mark.parametrize("screen", SCREENS)
def test_none_is_empty(screen: Screen) -> None:
    assert render(report(), "none", screen) == ""


@pytest.mark.parametrize("kind", SHOWN)
def test_every_kind_says_what_it_is_about(kind: TableKind) -> None:
    maps = random_maps(padding=2)
    text = words(shown(kind, of=report(maps)))
    assert text.startswith("multi:2 attends to sample train[0] untrained (random weights, seed 0) · 14 tokens")
    assert "entropy" in text
    assert "(nats)" in text
    assert text.endswith("2 of 16 tokens are padding: nothing attends to padding, and no number counts it.")


def test_top_by_eye() -> None:
    weights = np.array([[[[0.2, 0.5, 0.3], [0.1, 0.1, 0.8], [0.4, 0.2, 0.4]]]])
    of = report(record(weights, tokens("a", "b", "猫")), DrawSpec(top_k=2))
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


def test_heatmap_by_eye() -> None:
    weights = np.array([[[[1, 0, 0], [0.25, 0.75, 0], [0.03, 0.47, 0.5]]]])
    of = report(record(weights, tokens("a", "b", "猫"), attendable=np.tri(3, dtype=bool)))
    assert shown("heatmap", of=of).split("\n\n", 1)[1].rsplit("\n\n", 1)[0] + "\n" == (
        "0 [ ░▒▓█] 1  attention weight (fixed scale, 0 to 1)\n"
        "rows: query (attends) · columns: key (is attended to), by position · × may not\n"
        "be attended to\n"
        "\n"
        "layer 0, head 0\n"
        "        0   1   2\n"
        "0 a  █1.0   ×   ×\n"
        "1 b  ░.25▓.75   ×\n"
        "2 猫  .03▒.47▒.50\n"
    )
    assert last(shown("heatmap", 18, of, encoding="ascii"))[1:] == [
        "          0 1 2",
        "0 a     |@@ x x|",
        "1 b     |::## x|",
        "2 \\u732b|  ====|",
    ]


def test_full_by_eye() -> None:
    of = report(record(np.array([[[[0.25, 0.75], [0.5, 0.5]]]]), tokens("a", "b")))
    assert last(shown("full", of=of))[1:] == ["         0     1", "0 a  0.250 0.750", "1 b  0.500 0.500"]
    narrow = ["0 a", "  0 a 0.250", "  1 b 0.750", "1 b", "  0 a 0.500", "  1 b 0.500"]
    assert last(shown("full", 15, of))[1:] == narrow


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


def test_many_queries_are_counted_and_full_shows_them() -> None:
    of = report(random_maps(FILM * 2, n_heads=1))
    assert last(shown("top", of=of))[-1] == "… 4 more queries: --table full or --json shows all of them."
    assert "\n23 minute" in shown("top", of=of)
    assert "\n24 of" not in shown("top", of=of)
    assert "\n27 ." in shown("full", of=of)


def test_long_token_lists_number_their_columns() -> None:
    of = report(random_maps(FILM * 2, n_heads=1))
    assert last(shown("heatmap", of=of))[1].split() == ["0", "5", "10", "15", "20", "25"]


def test_cross_attention_and_other_reports_are_shown_too() -> None:
    assert "q2" in shown("heatmap", of=report(cross_maps()))
    facts = Table(
        "facts", "size", "facts", (Column("what"), Column("value", digits=4)), (("entries", 12), ("share", 0.5))
    )
    for kind in SHOWN:
        text = shown(kind, of=Report("vocabulary", "sha256", (facts,)))
        assert "entries      12" in text
        assert "share    0.5000" in text


def test_a_table_of_things_compared_names_its_cells_where_it_does_not_fit() -> None:
    """Without their names nobody could tell whose numbers they are."""
    columns = (Column("what"), Column("single"), Column("multi:8"))
    costs = Table("costs", "costs", "compared", columns, (("heads", "1 of 32", "8 of 4"), ("d_model", "32", "")))
    text = render(Report("run", "seed 0", (costs,)), "top", Screen(width=20))
    assert "single 1 of 32" in text
    assert "multi:8 8 of 4" in text
    assert text.rstrip().endswith("single 32")


def test_a_token_keeps_its_position_where_others_are_left_out() -> None:
    weights = np.array([[[[1, 0, 0], [0.25, 0.5, 0.25], [0.5, 0.125, 0.375]]]])
    of = report(record(weights, tokens("a", "b", "c")), DrawSpec(drop_first=True))
    assert shown("full", 80, of).split("\n\n")[2].splitlines()[1:] == [
        "         1     2",
        "1 b  0.500 0.250",
        "2 c  0.125 0.375",
    ]
    narrow = ["1 b", "  1 b 0.500", "  2 c 0.250", "2 c", "  1 b 0.125", "  2 c 0.375"]
    assert shown("full", 12, of).split("\n\n")[2].splitlines()[-6:] == narrow
    assert "1 b    1 b    0.500  2 c    0.250\n" in shown("top", 80, of)


def test_positions_over_columns_never_touch() -> None:
    chosen = tuple(position for position in range(30) if position not in (0, 5, 29))
    size = len(chosen)
    picture = Heatmap(
        *("m", "map", np.full((size, size), 0.5), np.ones((size, size), dtype=bool), ("a",) * size, ("a",) * size),
        row_positions=chosen,
        column_positions=chosen,
    )
    heading = shown("heatmap", 80, Report("t", "s", (picture,))).split("map\n", 1)[1].splitlines()[0]
    assert heading.split() == ["10", "15", "20", "25"]  # 5 is left out
    line = shown("heatmap", 80, Report("t", "s", (picture,))).splitlines()[-1]
    assert line.startswith("28 a|")
    for place in (10, 15, 20, 25):
        column = len("28 a|") + 2 * (chosen.index(place) + 1)
        assert heading[:column].endswith(str(place))


def test_a_map_with_a_scale_of_its_own_shows_it() -> None:
    of = report(random_maps(FILM[:3], n_heads=1), DrawSpec(rollout=True))
    text = shown("heatmap", of=of)
    rollout = text[text.index("attention rollout through") :].split("\n\n")[0]
    high = max(block.values.max() for block in of.blocks if isinstance(block, Heatmap) and block.scale)
    assert f"0 [ ░▒▓█] {high:.3g}  share of the token after all layers (0 to {high:.3g})\n" in rollout
    assert f"█.{high * 100:.0f}" in rollout  # the largest is the darkest, on its own scale and not on that of weights
    assert f"[{' ░▒▓█'}]" not in shown("full", of=of)
    assert "share of the token" in SGR.sub("", shown("full", of=of, colour=True))
    assert "attention rollout through all layers (Abnar & Zuidema 2020): top 3" in words(shown("top", of=of))


def test_of_many_heads_each_has_one_line() -> None:
    of = report(random_maps(FILM, n_layers=3, n_heads=6), DrawSpec(sort="-entropy"))
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


def test_charts_are_not_drawn_and_the_tables_beside_them_are() -> None:
    facts = Table("epochs", "epochs", "facts", (Column("epoch"), Column("loss", digits=4)), ((1, 0.5), (2, 0.25)))
    line = Line("training", (1.0, 2.0), (0.5, 0.25))
    charts = Curves("learning-curve", "loss", (Curve("loss", "epoch", "nats", (line,), 2.0, "kept"),))
    for kind in SHOWN:
        with_charts, without = (Report("run", "seed 0", blocks) for blocks in ((charts, facts), (facts,)))
        assert shown(kind, of=with_charts) == shown(kind, of=without)
        assert "2  0.2500" in shown(kind, of=with_charts)


def test_values_that_are_no_weights_are_shaded_without_digits() -> None:
    values = np.array([[-0.5, 0.5], [0.0, 1.0]])
    heatmap = Heatmap("difference", "difference", values, np.ones((2, 2), dtype=bool), ("a", "b"), ("a", "b"))
    of = Report("t", "s", (heatmap,), Scale("shared", -1.0, 1.0, "difference"))
    assert shown("heatmap", of=of).splitlines()[-3:] == ["     0 1", "0 a|░░▓▓|", "1 b|▒▒██|"]
    assert "-0.500" in shown("full", of=of)


def test_one_token() -> None:
    for kind, width in product(SHOWN, (1, 80)):
        text = shown(kind, width, report(random_maps(("a",), n_heads=1)))
        assert re.search(r"1\.0(00)?\b", text)


# Hostile tokens


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("kind", SHOWN)
def test_nothing_raw_gets_through(kind: TableKind, screen: Screen) -> None:
    made_by = provenance(model="m\x1b[2J", text_name="\u202e\n[/]")
    hostile = report(random_maps(HOSTILE, n_heads=1, made_by=made_by), DrawSpec(title="\x1b]0;t\x07[/]"))
    raw = replace(hostile, title="\x1b[2J\x9b", subtitle="\u202e\u2066\n\t\ud800")  # a report that forgot
    for of in (hostile, raw):
        text = render(of, kind, screen)
        text.encode(screen.encoding)
        plain = SGR.sub("", text) if screen.colour else text
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]", plain)


@pytest.mark.parametrize("kind", SHOWN)
@pytest.mark.parametrize(
    "token", ["[/]", "[red]", "[bold]x[/bold]", "[unk]", ":smile:", "$$", r"$\frac$", "</script>", "[link=x]"]
)
def test_tokens_are_never_markup(kind: TableKind, token: str) -> None:
    for colour in (False, True):
        text = shown(kind, of=report(random_maps((token, "a"), n_heads=1)), colour=colour)
        assert f"0 {token}" in text


@given(
    st.lists(st.text(st.characters(), max_size=8), min_size=1, max_size=5),
    st.sampled_from(KINDS),
    st.integers(1, 100),
    st.booleans(),
)
def test_any_token_in_any_table(pieces: list[str], kind: TableKind, width: int, colour: bool) -> None:
    for encoding in ("utf-8", "ascii", "latin-1", "cp437"):
        text = render(report(random_maps(pieces, n_heads=1)), kind, Screen(width, colour, encoding))
        text.encode(encoding)
        assert "\x1b" not in (SGR.sub("", text) if colour else text)


# Colours and screens


def test_without_colour_there_is_no_control_sequence() -> None:
    assert all("\x1b" not in shown(kind) for kind in SHOWN)
    assert all("\x1b[" in shown(kind, colour=True) for kind in SHOWN)


@pytest.mark.parametrize("kind", ["top", "full"])
def test_colour_changes_no_character(kind: TableKind) -> None:
    coloured = SGR.sub("", shown(kind, colour=True))
    bar = "0                  1  attention weight (fixed scale, 0 to 1)\n"
    assert [line.rstrip() for line in coloured.replace(bar, "").splitlines()] == shown(kind).splitlines()


def test_colour_leaves_room_for_digits_where_shades_would_not() -> None:
    of = report(random_maps(FILM + FILM[:6], n_heads=1))
    assert ".00.01" in SGR.sub("", shown("heatmap", of=of, colour=True))
    assert "|" in shown("heatmap", of=of)


def test_256_colours_unless_the_screen_has_more() -> None:
    assert "48;5;" in shown("heatmap", colour=True)
    assert "48;2;" not in shown("heatmap", colour=True)
    assert "48;2;68;1;84" in shown("heatmap", colour=True, true_colour=True)
    assert "48;5;" in shown("heatmap", colour=True)  # and again, after the other


def test_digits_can_be_read_on_every_colour() -> None:
    for place in np.linspace(0, 1, 101).tolist():
        background = shades.colour(place)
        lights = sorted(shades.luminance(c) + 0.05 for c in (background, shades.ink(background)))
        assert lights[1] / lights[0] >= 4.5


def test_shades_never_turn_darker() -> None:
    lights = [shades.luminance(shades.colour(place)) for place in np.linspace(0, 1, 101).tolist()]
    assert lights == sorted(lights)
    cube = [0, 95, 135, 175, 215, 255]
    numbers = [shades.colour_256(place) - 16 for place in np.linspace(0, 1, 101).tolist()]
    lights = [shades.luminance((cube[n // 36], cube[n // 6 % 6], cube[n % 6])) for n in numbers]
    assert lights == sorted(lights)


def test_places_on_the_scales() -> None:
    values = np.array([[0.0, 0.01, 0.1, 1.0]])
    assert shades.places(values, Scale("log", 0.01, 1.0, "")).tolist() == [pytest.approx([0, 0, 0.5, 1])]
    assert shades.places(values, Scale("shared", 0.0, 0.1, "")).tolist() == [pytest.approx([0, 0.1, 1, 1])]
    assert shades.places(values, Scale("shared", 0.0, 0.0, "")).tolist() == [[0, 0.01, 0.1, 1]]


def test_ascii_has_signs_of_its_own() -> None:
    of = report(random_maps(("\n", "", "猫"), causal=True, n_heads=1))
    text = shown("heatmap", of=of, encoding="ascii")
    assert "[ .:-=+*#%@]" in text
    assert "0 \\n" in text
    assert "1 (empty)" in text
    assert "2 \\u732b" in text
    assert "   x" in text
    assert "-----" in text
    assert shown("heatmap", of=of, encoding="no such encoding") == text


@pytest.mark.parametrize(
    "environment",
    [{"NO_COLOR": "1"}, {"FORCE_COLOR": "1"}, {"TERM": "dumb"}, {"COLUMNS": "7"}, {"COLORTERM": "truecolor"}],
)
def test_the_environment_has_no_say(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    before = [shown(kind, colour=colour) for kind in SHOWN for colour in (False, True)]
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert os.environ.items() >= environment.items()
    assert [shown(kind, colour=colour) for kind in SHOWN for colour in (False, True)] == before


def test_wide_labels_align() -> None:
    of = report(random_maps(("猫坐在", "a", "👨\u200d👩\u200d👧\u200d👦", "e\u0301"), n_heads=1))
    starts = {cell_len(line[: line.index(".")]) for line in last(shown("full", of=of))[2:]}
    assert len(starts) == 1


def test_lines_are_the_text() -> None:
    assert "".join(lines(report(), "full", Screen())) == render(report(), "full", Screen())
    assert all(
        line.endswith("\n") and line.count("\n") == 1 for line in lines(report(), "top", Screen(30, colour=True))
    )
