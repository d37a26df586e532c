"""The example that ships: its facts, its numbers by hand, and what is said of the numbers that are published for it."""

import tomllib
from pathlib import Path

import pytest

from attnviz.commands.lesson.example import FILE
from tests.browser import Open
from tests.commands.lesson.conftest import Write

pytestmark = pytest.mark.slow


def test_the_facts_are_those_of_the_source(shared: Path) -> None:
    source = tomllib.loads((shared / "data" / "worked-example.toml").read_text(encoding="utf-8"))
    ours = tomllib.loads(FILE.read_text(encoding="utf-8"))
    words = source["tokens"]
    assert ours["tokens"]["en"] == words
    theirs = (source["single"], *source["multi"])
    for their, our in zip(theirs, (*ours["single"], *ours["multi"]), strict=True):
        assert our["query"] == their["query"][words[0]]
        assert our["keys"] == [their["key"][word] for word in words]
        assert our["values"] == [their["value"][word] for word in words]


@pytest.mark.parametrize(
    ("language", "verdicts"),
    [("en", ["yes", "neither way", "only without / √d"]), ("zh", ["对", "怎样算都不对", "只有不除以 √d 才对"])],
)
def test_every_published_number_is_judged(opened: Open, write: Write, language: str, verdicts: list[str]) -> None:
    page = opened(write("--example", "--lang", language, text=None))
    rows = page.page.locator("#judge tbody tr").all()
    assert [row.locator("th, td").all_inner_texts()[1:] for row in rows] == [
        ["0.09, 0.24, 0.67", "0.11, 0.11, 0.78", "0.95, 0.05, 0.00"],
        ["0.09, 0.24, 0.67", "0.10, 0.10, 0.81", "0.88, 0.11, 0.01"],
        ["0.02, 0.12, 0.87", "0.05, 0.05, 0.91", "0.95, 0.05, 0.00"],
        verdicts,
        ["2.06, 0.85, 1.58, 0.85", "1.11, 1.11", "1.05, 0.10"],
        ["2.06, 0.85, 1.58, 0.85", "1.10, 1.10", "1.13, 0.22"],
        ["2.09, 0.90, 1.85, 0.90", "1.05, 1.05", "1.05, 0.10"],
        verdicts,
    ]


def test_each_step_is_what_one_gets_on_paper(opened: Open, write: Write) -> None:
    page = opened(write("--example", text=None))
    assert page.page.locator("[data-column=k] .strip").all_inner_texts() == ["0\n1\n1\n0", "2\n1\n0\n1", "1\n2\n1\n1"]
    page.page.locator(".step").nth(1).click()
    assert page.page.locator("[data-column=score] text[data-at]").all_text_contents() == ["1.500", "2.500", "3.500"]
    assert page.page.locator(".written .line").first.inner_text() == "q0 · k2 = 1 × 1 + 1 × 2 + 2 × 1 + 2 × 1 = 7"
    page.page.locator(".step").nth(2).click()
    assert page.page.locator("[data-column=weight] text[data-at]").all_text_contents() == ["0.090", "0.245", "0.665"]
    page.page.locator(".step").nth(3).click()
    assert page.page.locator(".written .line").last.inner_text() == "o = Σ a v = (2.065, 0.845, 1.575, 0.845)"


def test_only_the_query_that_is_given_is_asked(opened: Open, write: Write) -> None:
    page = opened(write("--example", text=None))
    page.page.get_by_text("2 mat").first.click()
    assert page.page.locator("[data-column=word] .chosen").all_text_contents() == ["0 cat"]
    assert not page.page.locator("#see select[data-choice=query]").is_visible()
    assert page.page.locator("[data-column=map] .row").count() == 1
