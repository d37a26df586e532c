"""The other heads of a layer, small above the one that is large: seen, pointed at, and gone to."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.browser import Open, Opened, number_in
from tests.made import random_maps, report

pytestmark = pytest.mark.slow
N = 14  # tokens of the made-up film review
STRIP = ".strip .map"


def shown_head(page: Opened) -> tuple[int, int]:
    """The layer and the head of what is said of the chosen pair."""
    page.ready()
    found = re.match(r"layer (\d+), head (\d+): query 2 was attends to key 3 thin", page.readout)
    assert found is not None, page.readout
    return int(found[1]), int(found[2])


def test_arrows_go_to_other_heads_and_layers_and_keep_what_was_chosen(shown: Open) -> None:
    page = shown(report(random_maps(n_layers=2, n_heads=3)), "view=matrix&layer=0&head=1&query=2&key=3")
    assert page.page.locator(STRIP).all_inner_texts() == ["0", "1", "2"]
    page.page.locator(STRIP).nth(2).click()
    assert shown_head(page) == (0, 2)
    for key, place in (("ArrowDown", (1, 2)), ("ArrowLeft", (1, 1)), ("ArrowDown", (1, 1)), ("ArrowUp", (0, 1))):
        page.press(key)
        assert shown_head(page) == place
        focused = page.page.evaluate("document.activeElement.closest('.strip') && document.activeElement.ariaCurrent")
        assert focused == "true"
    assert page.page.get_by_role("combobox", name="Map").input_value() == "1"


def test_pointing_at_a_small_head_says_its_number_and_then_the_large_ones_again(shown: Open) -> None:
    maps = random_maps(n_heads=4)
    page = shown(report(maps), "view=matrix&layer=0&head=1&query=2&key=3&digits=all")
    before = page.readout
    box = page.page.locator(f"{STRIP} canvas").nth(3).bounding_box()
    page.page.mouse.move(box["x"] + box["width"] * 8.5 / N, box["y"] + box["height"] * 5.5 / N)
    assert page.readout.startswith("layer 0, head 3: query 5 yet attends to key 8 every")
    assert np.float32(number_in(page.readout)) == maps.weights[0, 3, 5, 8]
    page.page.mouse.move(0, 0)
    assert page.readout == before


def test_many_heads_move_the_strip_and_not_the_page(shown: Open) -> None:
    """The one that is large stays in sight, and the map no more than 80 pixels lower."""
    state, phone = "view=matrix&layer=0&head=14", {"width": 390, "height": 844}
    page = shown(report(random_maps(n_heads=16)), state, viewport=phone)
    box = page.page.locator(f"{STRIP}[aria-current]").bounding_box()
    assert 0 <= box["x"] <= 390 - box["width"]
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.page.locator(".strip").bounding_box()["height"] < 80
    alone = shown(report(random_maps(n_heads=1)), "view=matrix", viewport=phone)
    assert alone.page.locator(".strip").count() == 0
