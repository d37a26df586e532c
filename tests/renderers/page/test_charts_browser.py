"""Charts in a browser: what they say is what the report holds, by mouse, by keyboard, on a phone and on paper."""

from __future__ import annotations

import csv
from dataclasses import replace
from io import BytesIO, StringIO
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from attnviz.report import Block, Chart, Heatmap, Report, Scale
from tests.browser import Open, Opened
from tests.made import random_maps, report
from tests.renderers.figure.reports import (
    ACCURACY,
    LOSS,
    LOSSES,
    STEPS,
    TRAINING,
    box_chart,
    curves,
    distributions,
    heads,
    sample,
)
from tests.renderers.page.test_charts import FACTS, of

pytestmark = pytest.mark.slow


@pytest.fixture
def shown(shown: Open) -> Open:
    """Opens the page of a report, or of some blocks; or a file."""

    def start(*blocks: Block | Report | Path, state: str = "", **settings: Any) -> Opened:
        (whole,) = blocks if isinstance(blocks[0], Report | Path) else (of(*blocks),)  # type: ignore[arg-type]
        return shown(whole, state, **settings)

    return start


# Which views there are


def test_the_tabs_are_those_that_have_something_to_show(shown: Open) -> None:
    def tabs(*blocks: Block | Report) -> list[str]:
        page = shown(*blocks)
        found = page.page.locator("[role=tab]").all_text_contents()
        page.close()  # its tab is for the next one
        return list(found)

    maps = ["Sentence", "Overview", "Map and text"]
    assert tabs(report()) == [*maps, "Table"]
    assert tabs(report(random_maps(n_heads=1))) == ["Sentence", "Map and text", "Table"]  # one map is its own overview
    numbers = Heatmap("q", "by token", np.ones((2, 3)), np.ones((2, 3), bool), ("a", "b"), ("x", "y", "z"), "head")
    assert tabs(Report("t", "", (numbers,), Scale("fixed", 0.0, 1.0, "number"))) == ["Map and text"]
    assert tabs(replace(report(), blocks=(*report().blocks, curves(LOSS)))) == [*maps, "Charts", "Table"]
    assert tabs(curves(LOSS), FACTS) == ["Charts", "Table"]
    assert tabs(curves(LOSS)) == ["Charts"]
    assert tabs(FACTS) == ["Table"]


def test_a_page_opens_at_its_maps_else_at_its_charts_else_at_its_tables(shown: Open) -> None:
    def first(*blocks: Block | Report) -> str | None:
        page = shown(*blocks)
        found = page.page.get_attribute("#view", "data-ready")
        page.close()
        return str(found)

    assert first(replace(report(), blocks=(curves(LOSS), *report().blocks))) == "screen"
    assert first(FACTS, curves(LOSS)) == "charts"
    assert first(FACTS) == "table"


def test_a_link_opens_the_charts_and_the_address_is_one(shown: Open) -> None:
    page = shown(replace(report(), blocks=(*report().blocks, curves(LOSS))), state="view=charts")
    assert page.page.get_attribute("#view", "data-ready") == "charts"
    assert not page.page.is_visible("#choosers")
    page.page.click("#tab-table")
    page.page.wait_for_url("**#view=table*")
    page.go("view=charts")
    assert page.page.get_attribute("#tab-charts", "aria-selected") == "true"
    alone = shown(curves(LOSS), FACTS)
    alone.page.click("#tab-table")
    alone.page.wait_for_url("**#view=table")


# Charts


def test_letters_of_a_lone_chart_are_no_larger_than_those_of_the_page(shown: Open) -> None:
    for blocks in ((curves(LOSS),), (curves(LOSS, ACCURACY),)):
        page = shown(*blocks)
        body = page.page.evaluate("parseFloat(getComputedStyle(document.body).fontSize)")
        heights = page.page.locator("#view svg.chart text, #view svg.chart use").evaluate_all(
            "all => all.map(each => each.getBoundingClientRect().height)"
        )
        assert 0 < max(heights) <= body
        page.close()


def test_charts_stay_when_another_view_is_looked_at(shown: Open) -> None:
    page = shown(curves(LOSS, ACCURACY), FACTS)
    assert page.page.locator("#view svg.chart").count() == 2
    assert page.page.get_by_role("img", name="accuracy").count() == 1
    page.page.click("#tab-table")
    page.page.wait_for_selector("#view[data-ready=table]")
    assert page.page.locator("svg.chart").count() == 0
    page.page.click("#tab-charts")
    page.page.wait_for_selector("#view[data-ready=charts]")
    assert page.page.locator("#view svg.chart").count() == 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_ink_and_lines_stand_out_from_the_paper(shown: Open, scheme: str) -> None:
    page = shown(curves(LOSS), distributions(heads(40)), color_scheme=scheme)
    picture = Image.open(BytesIO(page.page.locator("#chart-0").screenshot())).convert("L")
    pixels = np.asarray(picture).astype(int)
    paper = int(np.median(pixels))
    assert (paper > 128) == (scheme == "light")
    assert np.abs(pixels - paper).max() > 180  # ink
    assert (np.abs(pixels - paper) > 60).mean() > 0.01


def test_the_numbers_are_a_table_and_can_be_copied(shown: Open) -> None:
    page = shown(curves(LOSS), distributions(box_chart(sample(1.0, 2.0, nan, 0.1 + 0.2))))
    page.page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    texts = []
    for place in range(2):
        page.page.locator("#view summary").nth(place).click()
        page.page.locator("figure").nth(place).get_by_role("button", name="copy").click()
        texts.append(list(csv.reader(StringIO(page.page.locator("#status textarea").input_value()))))
    assert texts[0][:2] == [["epoch", "cross-entropy (nats)", "of"], ["0.05", str(LOSSES[0]), TRAINING]]
    assert len(texts[0]) == 1 + len(STEPS) + 4
    assert [row[1] for row in texts[1]] == ["nats", "1", "2", "NaN", "0.30000000000000004"]
    assert page.page.locator("figure >> nth=1").locator("tbody td").all_inner_texts() == [
        *("single", "0", "4", "0.3", "0.65", "1", "1.5", "2"),
    ]


def test_a_wide_chart_scrolls_on_a_phone_and_has_a_wide_screen_to_itself(shown: Open) -> None:
    columns = ("x", "y", "group", "label", "key", "weight", "until")
    rows = ((9, 0.1, "looks", "0.1", 3, 0.5, 1.0),)
    over_words = Chart("arc", "", "token", "layer", columns, rows, ("word",) * 32, y_range=(-0.5, 1.5))
    for width, scrolls in ((360, True), (1440, False)):
        page = shown(curves(over_words), viewport={"width": width, "height": 740})
        chart = page.page.locator("svg.chart")
        share = chart.evaluate("chart => chart.getBoundingClientRect().width / chart.getAttribute('width')")
        assert share >= 0.399  # letters of 6 pixels and more
        assert chart.evaluate("({ parentElement: box }) => box.scrollWidth > box.clientWidth") == scrolls
        assert page.page.evaluate("document.documentElement.scrollWidth") <= width
        assert scrolls or chart.bounding_box()["width"] > 900
        page.close()
