"""Tables of facts in a browser: in the order of any column, with links that lead nowhere else, to be copied."""

from __future__ import annotations

import csv
from dataclasses import replace
from io import StringIO

import pytest

from attnviz.report import Column, Table
from tests.browser import Open, Opened
from tests.renderers.figure.reports import LOSS, curves
from tests.renderers.page.test_charts import of

pytestmark = pytest.mark.slow
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


def test_what_is_missing_comes_last_whichever_way(shown: Open) -> None:
    page = shown(of(JOBS))
    for _ in range(2):
        page.page.get_by_role("button", name="why it failed").click()
        assert column(page, 4) == [WHY] * 50 + [""] * 50
        assert column(page, 0)[:2] == ["job-1", "job-3"]  # what is alike stays in its order


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


def test_an_index_opens_on_what_leads_on(shown: Open) -> None:
    index = of(JOBS)
    page = shown(replace(index, blocks=(curves(LOSS), *index.blocks)))
    assert page.page.get_attribute("#view", "data-ready") == "table"
    assert page.page.locator("[role=tab]").all_inner_texts() == ["Charts", "Table"]


def test_a_link_opens_the_file_beside_the_page(shown: Open) -> None:
    page = shown(of(JOBS))
    beside = page.file.parent / "job-0" / "a b.html"
    beside.parent.mkdir()
    beside.write_text("<title>the job</title>", encoding="utf-8")
    page.page.locator("tbody a").first.click()
    page.page.wait_for_url("**/job-0/a%20b.html")
    assert page.page.title() == "the job"
    page.requests = [address for address in page.requests if "job-0" not in address]


def test_long_texts_break_and_the_page_is_no_wider_than_a_phone(shown: Open) -> None:
    page = shown(of(JOBS), viewport={"width": 360, "height": 740})
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 360
    heights = page.page.locator("tbody tr").evaluate_all("rows => rows.map(row => row.getBoundingClientRect().height)")
    assert max(heights) <= 100  # four lines
    name = page.page.locator("tbody td").first.bounding_box()
    assert name["height"] == heights[0]
    assert page.page.locator("tbody tr").first.evaluate("row => getComputedStyle(row.cells[0]).whiteSpace") == "nowrap"


def test_facts_that_are_one_row_or_compared_have_no_order(shown: Open) -> None:
    one = Table("t", "one", "facts", (Column("a"), Column("b")), (("x", 1),))
    compared = Table("u", "two", "compared", (Column("a"), Column("b")), (("x", 1), ("y", 2)))
    page = shown(of(one, compared))
    assert page.page.locator("th button").count() == 0


def test_a_row_with_a_picture_is_a_tile_and_what_failed_has_a_red_frame(shown: Open) -> None:
    """The policy of a page lets no picture in but those that it holds."""
    rows = (("a", "heatmap", "failed: no tokens"), ("b", "heatmap", ""))
    columns = tuple(map(Column, ("job", "command", "what to know")))
    page = shown(of(Table("jobs", "Jobs", "facts", columns, rows, ("", "b/i.html"), thumbs=("", PIXEL)))).page
    assert page.locator(".tile").all_inner_texts() == ["a heatmap failed: no tokens", "b heatmap"]
    assert page.locator("a.tile").get_attribute("href") == "b/i.html"
    assert page.locator(".tile img").evaluate("image => [image.complete, image.naturalWidth]") == [True, 1]
    assert page.locator(".tile").evaluate_all(WIDTHS_OF_FRAMES) == ["3px", "1px"]
