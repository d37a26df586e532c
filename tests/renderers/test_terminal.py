"""Reports in a terminal: everything is said, no token is markup, nothing raw gets through."""

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
from attnviz.renderers.terminal.show import Screen, lines, render
from attnviz.report import Chart, Charts, Column, Report, Scale, Table
from attnviz.specs import FigureOptions, TableKind
from tests.made import FILM, HOSTILE, cross_maps, provenance, random_maps, report
from tests.renderers.terminal_reports import SGR, SHOWN, shown, words

KINDS: tuple[TableKind, ...] = get_args(TableKind)
SCREENS = [
    Screen(width, colour, encoding, true_colour)
    for width, colour, encoding, true_colour in product((80, 1), (False, True), ("utf-8", "ascii"), (False, True))
]


# What is shown


def test_none_is_empty() -> None:
    assert render(report(), "none", Screen()) == ""


@pytest.mark.parametrize("kind", SHOWN)
def test_every_kind_says_what_it_is_about(kind: TableKind) -> None:
    maps = random_maps(padding=2)
    text = words(shown(kind, of=report(maps)))
    assert text.startswith("multi:2 attends to “the plot was thin , yet i loved every…” untrained (random weights,")
    assert ("entropy" in text) == ("(nats)" in text) == (kind != "answer")
    padding = "2 of 16 tokens are padding: nothing attends to padding, and no number counts it."
    assert padding in text


@given(width=st.integers(1, 200), n=st.integers(1, 30), colour=st.booleans())
def test_no_line_is_wider_than_the_screen_unless_one_item_is(width: int, n: int, colour: bool) -> None:
    text = SGR.sub("", render(report(random_maps(FILM[:n] * (n // 14 + 1))), "heatmap", Screen(width, colour)))
    longest_item = len("strongest pair 10 minute → 10 minute without sinks")
    assert all(cell_len(line) <= max(width, longest_item + 2) for line in text.splitlines())


def test_ellipses_never_replace_digits() -> None:
    for kind, width in product(SHOWN, (1, 5, 20, 40, 80)):
        assert "…" not in shown(kind, width, report(random_maps(FILM[:4])))


def test_cross_attention_and_other_reports_are_shown_too() -> None:
    assert "q2" in shown("heatmap", of=report(cross_maps()))
    facts = Table(
        "facts", "size", "facts", (Column("what"), Column("value", digits=4)), (("entries", 12), ("share", 0.5))
    )
    for kind in SHOWN:
        text = shown(kind, of=Report("vocabulary", "sha256", (facts,)))
        assert "entries      12" in text
        assert "share    0.5000" in text


def test_charts_are_not_drawn_and_the_tables_beside_them_are() -> None:
    facts = Table("epochs", "epochs", "facts", (Column("epoch"), Column("loss", digits=4)), ((1, 0.5), (2, 0.25)))
    chart = Chart("line", "loss", "epoch", "nats", ("x", "y"), ((1.0, 0.5), (2.0, 0.25)), at=(2.0, "kept"))
    charts = Charts("learning-curve", "loss", (chart,))
    for kind in SHOWN:
        with_charts, without = (Report("run", "seed 0", blocks) for blocks in ((charts, facts), (facts,)))
        assert shown(kind, of=with_charts) == shown(kind, of=without)
        assert "2  0.2500" in shown(kind, of=with_charts)


def test_lines_are_the_text() -> None:
    assert "".join(lines(report(), "full", Screen())) == render(report(), "full", Screen())
    assert all(
        line.endswith("\n") and line.count("\n") == 1 for line in lines(report(), "top", Screen(30, colour=True))
    )


# Hostile tokens


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("kind", SHOWN)
def test_nothing_raw_gets_through(kind: TableKind, screen: Screen) -> None:
    made_by = provenance(model="m\x1b[2J", text_name="\u202e\n[/]")
    hostile = report(random_maps(HOSTILE, n_heads=1, made_by=made_by), FigureOptions(title="\x1b]0;t\x07[/]"))
    raw = replace(hostile, title="\x1b[2J\x9b", subtitle="\u202e\u2066\n\t\ud800")  # a report that forgot
    for of in (hostile, raw):
        text = render(of, kind, screen)
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


def test_without_colour_there_is_no_control_sequence() -> None:
    assert all("\x1b" not in shown(kind) for kind in SHOWN)
    assert all("\x1b[" in shown(kind, colour=True) for kind in SHOWN)


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
    cube = [0, 95, 135, 175, 215, 255]
    greys = [(8 + 10 * step,) * 3 for step in range(24)]
    colours = [(cube[n // 36], cube[n // 6 % 6], cube[n % 6]) for n in range(216)] + greys
    lights = [shades.luminance(colours[shades.colour_256(p, kind) - 16]) for p in np.linspace(0, 1, 101).tolist()]
    assert lights == sorted(lights, reverse=darker)


@pytest.mark.parametrize("kind", ["fixed", "lift"])
def test_digits_can_be_read_on_every_colour(kind: str) -> None:
    for place in np.linspace(0, 1, 101).tolist():
        background = shades.colour(place, kind)
        lights = sorted(shades.luminance(c) + 0.05 for c in (background, shades.ink(background)))
        assert lights[1] / lights[0] >= 4.5
