"""Heads in the order of what one looks for, and a box that finds a head or a word."""

import numpy as np
import pytest

from attnviz.measures.patterns import measure_patterns
from attnviz.records import AttentionMaps
from attnviz.report import Report
from tests.browser import Open, Opened
from tests.made import random_maps, record, report, tokens, with_notes

pytestmark = pytest.mark.slow
WORDS = ("[CLS]", "the", "film", "and", "The", "plot", "[SEP]")


def marked() -> AttentionMaps:
    """A text with a marker at each end, and one word twice."""
    maps = random_maps(WORDS, n_layers=2, n_heads=3)
    return record(maps.weights, tokens(*WORDS, special=("[CLS]", "[SEP]")))


def known(of: Report) -> Report:
    """The last head is known for an own bracket, the one before it for the end."""
    return with_notes(of, {4: "sentence end", 5: "own bracket"})


def looking(*shares: float) -> AttentionMaps:
    """Heads of one layer that give these shares to the token before, or to the first token where there is none."""
    n = len(WORDS)
    before = np.eye(n)[[0, *range(n - 1)]]
    return record(np.stack([share * before + (1 - share) / n for share in shares])[None].astype("float32"))


def find(page: Opened, text: str) -> None:
    page.page.get_by_label("Find").fill(text)
    page.press("Enter")
    page.ready()


def test_heads_are_sorted_by_what_they_look_at_and_by_any_measure(shown: Open) -> None:
    source = report(maps := looking(0.3, 0.0, 0.9, 0.5))
    entropy = np.array([row[2] for each in source.tables if each.role == "heads" for row in each.rows], dtype=float)
    (previous,) = (shares[0] for name, shares, _ in measure_patterns(maps) if name == "previous token")
    for name, numbers in (("previous token", np.asarray(previous)), ("entropy", entropy)):
        page = shown(source, "view=overview")
        page.page.get_by_role("combobox", name="Sort by").select_option(name)
        page.ready()
        captions = page.page.locator(".caption").all_inner_texts()
        order = np.argsort(-numbers).tolist()
        assert [float(each[8:12]) for each in captions] == pytest.approx(numbers[order], abs=0.01)
        assert page.page.inner_text("#view h2") == f"by {name}, the largest first"
        page.page.wait_for_url("**sort=**")
        page.go(page.page.url.partition("#")[2])
        assert page.page.locator(".caption").all_inner_texts() == captions


def test_a_head_is_found_by_its_place_and_by_its_name(shown: Open) -> None:
    page = shown(known(report(marked())))
    for text in ("1.2", "Own", "own bracket", "1.2 own bracket"):
        page.go("view=overview")
        find(page, text)
        assert page.page.get_attribute("#view", "data-ready") == "matrix", text
        assert page.page.get_by_role("combobox", name="Map").input_value() == "5", text


def test_a_word_is_found_in_all_heads_and_stays_chosen_in_one(shown: Open) -> None:
    maps = marked()
    page = shown(known(report(maps)), "view=overview")
    find(page, "film")
    assert page.page.get_attribute("#view", "data-ready") == "screen"
    assert "film" in page.readout
    page.page.get_by_role("button", name="layer 1, head 1").click()
    page.page.mouse.move(0, 0)
    page.ready()
    assert f"query 2 film attends to key {maps.weights[1, 1, 2].argmax()} " in page.readout
    find(page, "4 The")
    assert f"query 4 The attends to key {maps.weights[1, 1, 4].argmax()} " in page.readout


def test_what_is_not_there_is_said(shown: Open) -> None:
    page = shown(report(marked()), "view=overview")
    find(page, "xyz")
    assert page.page.inner_text("#found") == "Nothing is found for “xyz”."
    page.page.get_by_role("tab", name="Table").click()
    page.ready()
    assert page.page.inner_text("#found") == ""
