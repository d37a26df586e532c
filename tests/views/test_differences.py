"""Differences in words, and what changed from one record to another."""

import re
from dataclasses import replace
from math import log

import numpy as np
import pytest

from attnviz.measures.divergence import jsd
from attnviz.records import AttentionMaps, Tokens
from attnviz.records.differences import FILES, NUMBERS, OTHER_BYTES, Diff, Difference, Tolerances
from attnviz.renderers.cell_text import HIDDEN
from attnviz.renderers.documents import json as as_json
from attnviz.renderers.terminal.show import Screen, lines
from attnviz.report import Report
from attnviz.views.differences import MAX_ROWS, describe_difference, diff_report
from attnviz.views.record_changes import compare_maps, measure_changes
from tests.made import HOSTILE, random_maps, record, tokens, uniform_maps

SIDES, OTHER = ("baseline", "figures"), "weights of other tokens are not compared"
NUMBER = Difference("number", "a", "", "a text", "entropy", 0, 1, before=1.25, after=1.5)
PICTURE = Difference("file", "a", "a/x.png", said="7 pixels, by 2.5 of 255")


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
        (Difference("setting text", "a", before="a b", after="c d"), "a: setting text: “a b” became “c d”."),
        (Difference("texts", "a", before="0" * 64, after="1"), "a: texts: sha256 00000000… became 1."),
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
        (replace(NUMBER, before=None), "2 numbers are only in AFTER, such as a: entropy of layer 0, head"),
        (replace(NUMBER, what="weight"), "2 weights of heads differ by up to 0.25: a: weight of layer 0, head 1"),
        (PICTURE, "2 pictures have other pixels, such as a: x.png: 7 pixels, by 2.5 of 255."),
        (replace(PICTURE, before="2 × 3 pixels", after="4 × 3", said=""), "2 pictures have another size, such as a:"),
        (Difference("setting model", before=None, after="single"), "2 jobs: setting model: not set became single."),
        (replace(PICTURE, file="a/x.csv"), "2 csv files differ, such as a: x.csv: 7 pixels"),
        (Difference("job", "a", before=None), "2 jobs are only in AFTER, such as job a."),
        (Difference("seed", "a", before="4", after="5"), "2 facts (seed) differ, such as a: seed: 4 became 5"),
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
    kinds = [Difference(f"setting {names[n % 7]}", "a", before="1" * 99, after="2") for n in range(700)]
    many = [replace(NUMBER, head=head, after=2.0 + head) for head in range(MAX_ROWS + 2)]
    report = diff_report(Diff([*many, *kinds, PICTURE, replace(NUMBER, after=None)], many), SIDES, [])
    screen = "".join(lines(report, "answer", Screen(width=80)))
    assert len(screen.splitlines()) <= 15, screen
    assert len(re.findall(r"(?<![\w.])\d[\d.,]*", screen)) <= 20, screen
    assert "And 504 differences of 6 kinds: --print markdown lists them." in words(report)
    numbers, others = report.tables
    assert (others.title, len(others.rows)) == ("What differs, 200 of 702: --json has all", MAX_ROWS)
    assert (numbers.title, len(numbers.rows)) == ("Numbers of both sides, 200 of 202", MAX_ROWS)
    (asked,) = diff_report(Diff(many, many), SIDES, ["entropy"]).tables
    assert (numbers.is_detail, others.is_detail, asked.is_detail) == (True, True, False)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_name_is_anything_but_a_name(text: str) -> None:
    numbers = (replace(NUMBER, job=text, text=text, measure=text), replace(NUMBER, measure=text, of=text))
    sides = ((text, text), (None, text), (text, None))
    kinds = [Difference(text, text, text, text, text, 0, 0, text, before, after, text) for before, after in sides]
    found = Diff((*numbers, *kinds, *kinds), numbers, jobs=(text,), failed_alike=(text,), versions=((text,) * 3,))
    report = diff_report(found, (text, text), [text])
    cells = [str(cell) for table in report.tables for row in table.rows for cell in row]
    for said in (report.title, report.subtitle, *cells, *words(report)):
        assert not HIDDEN.search(said)
        assert len(said) < 1500
    assert "".join(as_json.write_alone(report)).isascii()


# --- From one record to another, with numbers that a reader can check by hand ---


EYE = np.eye(3)[None, None]
SHIFTED = np.eye(3)[[1, 2, 0]][None, None]


def test_nothing_in_common_is_ln_2_and_every_top_key_another() -> None:
    apart, turned = measure_changes(record(EYE), record(SHIFTED))
    assert (apart.measure, round(apart.change, 9)) == ("jsd", round(log(2), 9))
    assert (turned.measure, turned.after) == ("top_key", 1.0)


def test_each_head_is_compared_with_the_same_head() -> None:
    one, other = random_maps(n_layers=2, n_heads=3), random_maps(n_layers=2, n_heads=3, seed=1)
    found = measure_changes(one, other)[::2]
    for each, place in zip(found, np.ndindex(2, 3), strict=True):
        expected = jsd(one.weights[place].astype(float), other.weights[place].astype(float)).mean()
        assert each.after == pytest.approx(expected, rel=1e-5)
    assert [each.after for each in found] == pytest.approx([each.after for each in measure_changes(other, one)[::2]])


def test_a_tie_that_rounding_turns_round_is_no_change() -> None:
    one, other = (uniform_maps(4).weights.copy() for _ in range(2))
    one[0, 0, :, 1] += 1e-7
    other[0, 0, :, 2] += 1e-7
    assert measure_changes(record(one), record(other))[1].after == 0
    clearly = uniform_maps(4).weights.copy()
    clearly[0, 0, 0] = [0.2, 0.2, 0.3, 0.3]
    for by, n_changed in ((1, 0), (2, 1)):  # moved by one, key 3 is a favourite of both
        _, turned = measure_changes(record(clearly), record(np.roll(clearly, by, axis=-1)))
        assert turned.after == n_changed / 4


def test_padding_does_not_count() -> None:
    one, other = random_maps(padding=3), random_maps(padding=3, seed=1)
    apart, turned = measure_changes(one, other)[:2]
    expected = jsd(one.weights[0, 0, :14].astype(float), other.weights[0, 0, :14].astype(float)).mean()
    assert apart.after == pytest.approx(expected, rel=1e-5)
    assert turned.change * 14 == pytest.approx(round(turned.change * 14))
    (less,) = compared(one, hidden(one))
    assert less.endswith(f", padding ({OTHER}).")


def hidden(maps: AttentionMaps) -> AttentionMaps:
    """The same tokens, of which one more is padding."""
    attendable = maps.attendable[0].copy()
    attendable[:, 0] = False
    weights = np.where(attendable, maps.weights, 0)
    return replace(maps, attendable=attendable, weights=weights / weights.sum(axis=-1, keepdims=True))


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (tokens("the", "movie", "ends"), "token of position 1: 'film' became 'movie' (…)."),
        (tokens("the", "film"), "token of position 2 is only in BEFORE ('ends'; …)."),
        (tokens("the", "film", "ends", "."), "token of position 3 is only in AFTER ('.'; …)."),
        (tokens("the", "film", "ends", special=("ends",)), "token of position 2: 'ends' became 'ends', marker (…)."),
    ],
)
def test_tokens_that_differ_are_named_and_nothing_else_is_compared(other: Tokens, said: str) -> None:
    one = random_maps(("the", "film", "ends"))
    two = replace(random_maps(other.pieces, seed=1), queries=other, keys=other)
    assert compared(one, two) == [said.replace("…", OTHER)]


def compared(before: AttentionMaps, after: AttentionMaps) -> list[str]:
    return [describe_difference(each) for each in compare_maps(before, after, Tolerances())]
