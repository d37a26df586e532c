"""Charts and tables in a browser: what they say is what the report holds, by mouse and keyboard, on phone and paper."""

import csv
from dataclasses import replace
from io import StringIO
from math import inf, nan

import numpy as np
import pytest

from attnviz.report import Chart, Column, Heatmap, Note, Report, Scale, Table
from tests.browser import Open, Opened, check_axe
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
    line_chart,
    sample,
)
from tests.renderers.page.test_charts import FACTS, attacked_charts, of

pytestmark = pytest.mark.slow
OVERLAPPING = """all => all.flatMap((each, place) => {
  const box = each.getBoundingClientRect();
  return all.slice(place + 1).filter((other) => {
    const { left, top, right, bottom } = other.getBoundingClientRect();
    return each.ownerSVGElement === other.ownerSVGElement && left < box.right - 1 && box.left < right - 1
      && top < box.bottom - 3 && box.top < bottom - 3;
  }).map((other) => `${each.textContent} on ${other.textContent}`);
})"""


# Which views there are


def test_the_tabs_are_those_that_have_something_to_show(shown: Open) -> None:
    def tabs(whole: Report) -> list[str]:
        page = shown(whole)
        found = page.page.locator("[role=tab]").all_text_contents()
        page.close()  # its tab is for the next one
        return list(found)

    maps = ["Sentence", "Overview", "Map and text"]
    assert tabs(report()) == [*maps, "Table"]
    assert tabs(report(random_maps(n_heads=1))) == ["Sentence", "Map and text", "Table"]  # one map is its own overview
    numbers = Heatmap("q", "by token", np.ones((2, 3)), np.ones((2, 3), bool), ("a", "b"), ("x", "y", "z"), "head")
    assert tabs(Report("t", "", (numbers,), Scale("fixed", 0.0, 1.0, "number"))) == ["Map"]
    assert tabs(replace(report(), blocks=(*report().blocks, curves(LOSS)))) == [*maps, "Charts", "Table"]
    assert tabs(of(curves(LOSS), FACTS)) == ["Charts", "Table"]
    assert tabs(of(curves(LOSS))) == ["Charts"]
    assert tabs(of(FACTS)) == ["Table"]


# Charts


COSTS = Chart("point", "costs", "head", "lost", ("x", "y", "group"), ((0, 2.0, "a"), (1, -1.0, "b")), ("0.6", "1.2"))
EVERY_KIND = (curves(LOSS, ACCURACY), distributions(heads(40), heads(3)), curves(COSTS))


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1440, "light")])
def test_letters_of_every_kind_of_chart_can_be_read(shown: Open, width: int, scheme: str) -> None:
    page = shown(of(*EVERY_KIND), viewport={"width": width, "height": 844}, color_scheme=scheme)
    letters = page.page.locator("svg.chart text")
    sizes = letters.evaluate_all(
        "all => all.map(each => parseFloat(getComputedStyle(each).fontSize) * each.getScreenCTM().a"
        " || parseFloat(getComputedStyle(each).fontSize))"
    )
    assert len(sizes) > 30
    assert 11 <= min(sizes) <= max(sizes) <= 16
    assert letters.evaluate_all(OVERLAPPING) == []
    assert page.page.locator("figure").count() == 5
    check_axe(page, f"{width} {scheme}")


def test_what_cannot_be_drawn_is_said_and_breaks_a_line(shown: Open) -> None:
    broken = line_chart({"l": ((0.0, 1.0, 2.0, 3.0, 4.0), (1.0, 2.0, nan, inf, 3.0))})
    page = shown(of(curves(broken, line_chart({"none": ((0.0,), (nan,))}))))
    (path,) = page.page.locator("path.line").evaluate_all("all => all.map((each) => each.getAttribute('d'))")
    assert (path.count("M"), path.count("L")) == (2, 1)
    assert page.page.locator(".point").count() == 3
    assert "too large to be drawn: 2." in page.page.inner_text("figure >> nth=0")
    assert "no numbers" in page.page.locator("svg.chart >> nth=1").text_content()


def test_no_string_and_no_number_of_a_chart_harms_the_page(shown: Open) -> None:
    extremes = (0.1, 1 / 3, 5e-324, 1.7976931348623157e308, -1e99, 1e16, 1e16 + 2)
    charts = [line_chart({"l": ((0.0, 1.0), (value, value))}) for value in extremes]
    page = shown(
        of(*attacked_charts().blocks, curves(*charts, line_chart({"l": ((0.0, 1.0), (1e16, 1e16 + 2))}))),
        "view=charts",
    )
    assert page.page.locator("svg.chart").count() == 6 + len(charts) + 1
    assert page.page.locator("svg.chart :is(b, script, img)").count() == 0


def test_the_numbers_are_a_table_and_can_be_copied(shown: Open) -> None:
    page = shown(of(curves(LOSS), distributions(box_chart(sample(1.0, 2.0, nan, 0.1 + 0.2)))))
    page.page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    texts = []
    for place in range(2):
        page.page.locator("#view summary").nth(place).click()
        page.page.locator("figure").nth(place).get_by_role("button", name="copy").click()
        texts.append(list(csv.reader(StringIO(page.page.locator("#status textarea").input_value()))))
    assert texts[0][:2] == [["epoch", "cross-entropy (nats)", "of"], ["0.05", str(LOSSES[0]), TRAINING]]
    assert len(texts[0]) == 1 + len(STEPS) + 4
    assert [row[1] for row in texts[1]] == ["nats", "1", "2", "", "0.30000000000000004"]
    assert page.page.locator("figure >> nth=1").locator("tbody td").all_inner_texts() == [
        *("single", "0", "4", "0.3", "0.65", "1", "1.5", "2"),
    ]


# --- Tables of facts in a browser: in the order of any column, with links that lead nowhere else, to be copied ---


WIDTHS_OF_FRAMES = "all => all.map(each => getComputedStyle(each).borderTopWidth)"
PIXEL = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
WHY = "64 is not divisible by 7 (try 1, 2, 4, 8 …)"
COLUMNS = ("job", "command", "how it ended", "files", "why it failed")
ROWS = tuple(
    (f"job-{number}", f"heatmap --heads {number}", ("made", "failed")[number % 2], 50 - number % 7, WHY * (number % 2))
    for number in range(100)
)
JOBS = Table("jobs", "Jobs", "facts", tuple(map(Column, COLUMNS)), ROWS, tuple(f"{row[0]}/a b.html" for row in ROWS))


def column(page: Opened, number: int) -> list[str]:
    return list(page.page.locator(f"tbody td:nth-child({number + 1})").all_inner_texts())


def test_jobs_are_sorted_by_any_column(shown: Open) -> None:
    page = shown(of(JOBS))
    assert column(page, 0) == [row[0] for row in ROWS]
    page.page.locator("th button").first.click()
    assert column(page, 0) == [row[0] for row in ROWS]  # job-2 before job-10
    page.page.locator("th button").first.click()
    assert column(page, 0) == [row[0] for row in reversed(ROWS)]
    page.page.get_by_role("button", name="files").click()
    assert column(page, 3) == sorted((str(row[3]) for row in ROWS), reverse=True)  # numbers from the largest
    page.page.get_by_role("button", name="files").press("Enter")
    assert column(page, 3) == sorted(str(row[3]) for row in ROWS)
    assert page.page.locator("th[aria-sort]").count() == 1


def test_a_copy_is_in_the_order_that_is_seen(shown: Open) -> None:
    page = shown(of(JOBS))
    page.page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.page.get_by_role("button", name="how it ended").click()
    page.page.get_by_role("button", name="Copy as CSV: Jobs").click()
    copied = list(csv.reader(StringIO(page.page.input_value("#status textarea"))))
    assert tuple(copied[0]) == COLUMNS
    assert copied[1:] == [[*map(str, row)] for row in sorted(ROWS, key=lambda row: str(row[2]))]


def test_the_first_cell_leads_to_the_jobs_own_page(shown: Open) -> None:
    page = shown(of(JOBS))
    assert page.page.locator("a").count() == 100
    page.page.locator("th button").first.click(click_count=2)
    link = page.page.locator("tbody a").first
    assert (link.inner_text(), link.get_attribute("href")) == ("job-99", "job-99/a%20b.html")
    assert page.page.evaluate("document.querySelector('tbody a').href").endswith("/job-99/a%20b.html")


def test_long_texts_break_and_the_page_is_no_wider_than_a_phone(shown: Open) -> None:
    page = shown(of(JOBS), viewport={"width": 360, "height": 740})
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 360
    heights = page.page.locator("tbody tr").evaluate_all("rows => rows.map(row => row.getBoundingClientRect().height)")
    assert max(heights) <= 100  # four lines
    name = page.page.locator("tbody td").first.bounding_box()
    assert name["height"] == heights[0]


def test_a_row_with_a_picture_is_a_tile_and_what_failed_has_a_red_frame(shown: Open) -> None:
    """The policy of a page lets no picture in but those that it holds."""
    rows = (("a", "heatmap", "failed: no"), ("b", "heatmap", ""))
    columns = tuple(map(Column, ("job", "command", "what to know")))
    jobs = Table("jobs", "Jobs", "facts", columns, rows, ("", "b/i.html"), thumbs=("", PIXEL))
    differing = Table("all", "What differs", "compared", (Column("difference"),), (("x",),), thumbs=("",))
    page = shown(of(jobs, differing, Note("9 % <b>", leads=True))).page
    shown_texts = page.locator("header > p ~ p, .tile").all_inner_texts()
    assert shown_texts == ["9\xa0% <b>", "a heatmap failed: no", "b heatmap", "x"]
    assert page.locator("a.tile").get_attribute("href") == "b/i.html"
    assert page.locator(".tile img").evaluate("image => [image.complete, image.naturalWidth]") == [True, 1]
    assert page.locator(".tiles").last.evaluate("all => getComputedStyle(all).overflow") == "visible"  # no bar on paper
    assert page.locator(".tile").evaluate_all(WIDTHS_OF_FRAMES) == ["3px", "1px", "1px"]
