"""Reports in a terminal: all is said, no token is markup, nothing raw gets through, and maps and tables are whole."""

import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from attnviz.renderers import shades
from attnviz.renderers.terminal.show import Screen, lines
from attnviz.report import Column, Heatmap, Note, Report, Scale, Table
from attnviz.specs import FigureOptions, TableKind
from tests.made import FILM, HOSTILE, cross_maps, provenance, random_maps, record, report, tokens

SHOWN: tuple[TableKind, ...] = ("answer", "heads", "heatmap", "top", "full")
SGR = re.compile(r"\x1b\[[0-9;]*m")
LOOKS = [(False, "utf-8", False), (False, "ascii", False), (True, "utf-8", False), (True, "ascii", True)]
SCREENS = [Screen(width, *look) for width, look in product((80, 1), LOOKS)]


def shown(kind: TableKind, width: int = 80, of: Report | None = None, **screen: object) -> str:
    return "".join(lines(of or report(), kind, Screen(width, **screen)))  # type: ignore[arg-type]


def last(text: str) -> list[str]:
    """The lines of the last map, where there is one head and there are no notes: its numbers stand below it, in one or
    several tables.
    """
    blocks = SGR.sub("", text).split("\n\n")
    n_tables = max(1, sum("layer  head" in block for block in blocks))
    return blocks[-1 - n_tables].splitlines()


def words(text: str) -> str:
    return " ".join(text.split())


def uneven(n: int, *, causal: bool = False) -> Report:
    """Every weight has three digits of its own, so that one cannot stand for another."""
    weights = np.arange(1.0, n * n + 1).reshape(1, 1, n, n) ** 1.5
    attendable = np.tri(n, dtype=bool) if causal else np.ones((n, n), dtype=bool)
    weights = np.where(attendable, weights, 0)
    return report(record(weights / weights.sum(axis=-1, keepdims=True), attendable=attendable))


# What is shown


@pytest.mark.parametrize("kind", SHOWN)
def test_every_kind_says_what_it_is_about(kind: TableKind) -> None:
    maps = random_maps(padding=2)
    text = words(shown(kind, of=report(maps)))
    assert text.startswith("multi:2 attends to “the plot was thin , yet i loved every…” untrained (random weights,")
    assert ("entropy" in text) == ("(nats)" in text) == (kind != "answer")
    assert ("Strongest between words apart: " in text) == (kind in ("answer", "full"))
    assert "Nothing attends to padding (2 of 16 tokens), and no number counts it." in text


@settings(max_examples=12)
@given(width=st.integers(1, 200), n=st.integers(1, 30), colour=st.booleans())
def test_no_line_is_wider_than_the_screen_unless_one_item_is(width: int, n: int, colour: bool) -> None:
    text = SGR.sub("", "".join(lines(report(random_maps(FILM[:n] * (n // 14 + 1))), "heatmap", Screen(width, colour))))
    longest_item = len("strongest pair 10 minute → 10 minute without sinks")
    assert all(cell_len(line) <= max(width, longest_item + 2) for line in text.splitlines())


def test_cross_attention_and_other_reports_are_shown_too() -> None:
    assert "q2" in shown("heatmap", of=report(cross_maps()))
    columns = Column("what"), Column("value", digits=4)
    facts = Table("facts", "size", "facts", columns, (("entries", 12), ("share", 0.5)))
    for kind in SHOWN:
        text = shown(kind, of=Report("vocabulary", "sha256", (facts, Note(f"of {'99 % ' * 40}"))))
        assert not re.search("^%", text, re.MULTILINE)
        assert "entries      12\nshare    0.5000\n" in text


# Hostile tokens


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("kind", SHOWN)
def test_nothing_raw_gets_through(kind: TableKind, screen: Screen) -> None:
    made_by = provenance(model="m\x1b[2J", text_name="\u202e\n[/]")
    hostile = report(random_maps(HOSTILE, n_heads=1, made_by=made_by), FigureOptions(title="\x1b]0;t\x07[/]"))
    raw = replace(hostile, title="\x1b[2J\x9b", subtitle="\u202e\u2066\n\t\ud800")  # a report that forgot
    for of in (hostile, raw):
        text = "".join(lines(of, kind, screen))
        text.encode(screen.encoding)
        plain = SGR.sub("", text) if screen.colour else text
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]", plain)


@pytest.mark.parametrize("kind", ["answer", "heatmap", "top", "full"])
@pytest.mark.parametrize("token", ["[/]", "[bold]x[/bold]", ":smile:", r"$\frac$", "</script>", "[link=x]"])
def test_tokens_are_never_markup(kind: TableKind, token: str) -> None:
    for colour in (False, True):
        text = shown(kind, of=report(random_maps((token, "a"), n_heads=1)), colour=colour)
        assert token in text


# Screens


@pytest.mark.parametrize("kind", ["top", "full"])
def test_colour_changes_no_character(kind: TableKind) -> None:
    coloured = SGR.sub("", shown(kind, colour=True))
    bar = "0                  1  attention weight (fixed scale, 0 to 1)\n"
    assert [line.rstrip() for line in coloured.replace(bar, "").splitlines()] == shown(kind).splitlines()


def test_ascii_has_signs_of_its_own() -> None:
    of = report(random_maps(("\n", "", "猫"), causal=True, n_heads=1))
    text = shown("heatmap", of=of, encoding="ascii")
    assert "[ .:-=+*#%@]" in text
    assert "0 \\n" in text
    assert "1 (empty)" in text
    assert "2 \\u732b" in text
    assert "   x" in text
    assert "-----" in text


def test_of_very_many_heads_those_worth_a_look_are_listed_and_shaded() -> None:
    many = report(random_maps("abcd", n_layers=5, n_heads=6))
    heads = next(table for table in many.tables if table.name == "heads")
    listed = [re.match(r" +(\d) +(\d) +\d\.\d", line) for line in shown("heads", of=many).splitlines()]
    assert [(int(row[1]), int(row[2])) for row in listed if row] == [heads.rows[n][:2] for n in heads.first]
    assert len(heads.first) == 12
    for kind, number in (("heatmap", 12), ("top", 12), ("full", 30)):
        of = report(random_maps("abcd", n_layers=5, n_heads=6), FigureOptions(table=kind))  # type: ignore[arg-type]
        assert len(re.findall(r"^layer \d, head \d", shown(kind, of=of), re.MULTILINE)) == number  # type: ignore[arg-type]


# --- Shades can be told apart and read on, in pictures of characters as in 256 colours ---


def test_places_on_the_scales() -> None:
    values = np.array([[0.0, 0.01, 0.1, 1.0]])
    assert shades.places(values, Scale("log", 0.01, 1.0, "")).tolist() == [pytest.approx([0, 0, 0.5, 1])]
    assert shades.places(100 * values, Scale("lift", 1.0, 16.0, "")).tolist() == [
        pytest.approx([0, 0, np.log2(10) / 4, 1])
    ]
    assert shades.places(values, Scale("shared", 0.0, 0.1, "")).tolist() == [pytest.approx([0, 0.1, 1, 1])]
    assert shades.places(values, Scale("shared", 0.0, 0.0, "")).tolist() == [[0, 0.01, 0.1, 1]]


@pytest.mark.parametrize(("kind", "darker"), [("fixed", False), ("lift", True)])
def test_shades_never_turn(kind: str, darker: bool) -> None:
    lights = [shades.luminance(shades.colour(place, kind)) for place in np.linspace(0, 1, 101).tolist()]
    assert lights == sorted(lights, reverse=darker)


@pytest.mark.parametrize("kind", ["fixed", "lift"])
def test_digits_can_be_read_on_every_colour(kind: str) -> None:
    for place in np.linspace(0, 1, 101).tolist():
        background = shades.colour(place, kind)
        lights = sorted(shades.luminance(c) + 0.05 for c in (background, shades.ink(background)))
        assert lights[1] / lights[0] >= 4.5


# --- Maps and tables on a terminal: whole at every width, as bare text and in colour ---


@settings(max_examples=40)
@given(look=st.sampled_from(LOOKS), width=st.integers(1, 200), n=st.integers(2, 9), causal=st.booleans())
def test_full_shows_every_weight(look: tuple[bool, str, bool], width: int, n: int, causal: bool) -> None:
    of = uneven(n, causal=causal)
    text = "".join(lines(of, "full", Screen(width, *look)))
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


def test_a_map_with_a_scale_of_its_own_shows_it() -> None:
    of = report(random_maps(FILM[:3], n_heads=1), FigureOptions(rollout=True, scale="shared"))
    text = shown("heatmap", of=of)
    rollout = text[text.index("attention rollout through") :].split("\n\n")[0]
    high = max(block.values.max() for block in of.blocks if isinstance(block, Heatmap) and block.scale)
    assert f"0 [ ░▒▓█] {high:.3g}  share of the token after all layers (shared scale, 0 to {high:.3g})\n" in rollout
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


# --- Tables in a terminal: no digit is cut, and what has no room in columns is written out ---


@settings(max_examples=20)
@given(width=st.integers(1, 200), kind=st.sampled_from(SHOWN[1:]), colour=st.booleans())
def test_numbers_of_the_heads_are_whole_at_every_width(width: int, kind: TableKind, colour: bool) -> None:
    of = report()
    text = SGR.sub("", "".join(lines(of, kind, Screen(width, colour))))
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
    monkeypatch.setattr("attnviz.renderers.terminal.show.MAX_DRAWN", 3)
    assert shown("full", 80, of) == found
    of = report(random_maps(FILM * 2, n_heads=1))
    assert last(shown("top", of=of))[-1] == "… 4 more queries: --table full or --json shows all of them."
    one = report(random_maps((FILM * 2)[:25], n_heads=1))
    assert last(shown("top", of=one))[-1].startswith("… 1 more query:")
    assert "more quer" not in shown("top", of=report(random_maps((FILM * 2)[:24], n_heads=1)))
    assert "\n27 ." in shown("full", of=of)


COSTS = Table(
    "costs",
    "Costs",
    "compared",
    (Column("what"), Column("single"), Column("multi:8"), Column("of both", minor=True)),
    (("95 % interval", "0.8812 to 0.8909", "0.8876 to 0.8961", "-"), ("猫坐在垫子上", "1", "8", "-")),
)


def test_texts_are_wrapped_where_they_do_not_fit_and_columns_repeated_after_what_they_are_of() -> None:
    assert "".join(lines(Report("", "", (COSTS,)), "answer", Screen(40))) == (
        "\n\n\nCosts\n"
        "what          single       multi:8\n"
        "────────────────────────────────────────\n"
        "95 %          0.8812 to    0.8876 to\n"
        "interval      0.8909       0.8961\n"
        "猫坐在垫子上  1            8\n"
    )
    text = "".join(lines(Report("", "", (COSTS,)), "top", Screen(20)))
    assert text.count("Costs") == 1
    assert text.count("猫坐在") == text.count("95 %") == 3
    assert "multi:8" in "".join(lines(Report("", "", (COSTS,)), "answer", Screen(20)))


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_no_line_of_a_table_is_wider_than_the_screen(width: int, encoding: str) -> None:
    hostile = replace(COSTS, rows=(*COSTS.rows, *((each, "\x1b[2J", "[/]", "a b " * 60) for each in HOSTILE)))
    text = "".join(lines(Report("", "", (hostile,)), "full", Screen(width, encoding=encoding)))
    assert "\x1b" not in text
    assert max(map(cell_len, text.splitlines())) <= width
