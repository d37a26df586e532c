"""A lesson is for everybody: on a phone, by keyboard, in the dark, and to axe-core."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from typing import Any

import pytest

from tests.browser import Opened, missing
from tests.commands.lesson.conftest import Write
from tests.renderers.page.test_contrast import EDGES, RINGS, TEXTS, faint, measure

pytestmark = pytest.mark.slow
Open = Callable[..., Opened]
LONG = "i can not say that this was the very best film of all time but the acting of the whole cast saved it"


@pytest.fixture(scope="module")
def axe() -> str:
    try:
        return files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    except ModuleNotFoundError:
        return str(missing("axe-playwright-python"))


def check_axe(page: Opened, where: str) -> None:
    found = page.page.evaluate("axe.run({ resultTypes: ['violations'], preload: false })")
    assert len(found["passes"]) > 15
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found["violations"]] == [], where


@pytest.mark.parametrize(("language", "scheme", "width"), [("en", "light", 390), ("zh", "dark", 1200)])
def test_axe_finds_nothing(opened: Open, write: Write, axe: str, language: str, scheme: str, width: int) -> None:
    """As the page opens, where keys are masked, and with all that opens: of other steps only the lit columns differ."""
    page = opened(write("--lang", language), color_scheme=scheme, viewport={"width": width, "height": 900})
    page.page.evaluate(axe)
    check_axe(page, "the first step")
    page.page.locator(".step").nth(3).click()
    page.page.locator("#causal").check()
    check_axe(page, "masked")
    page.page.locator(".step").nth(6).click()
    page.page.locator("#hand summary").click()
    page.page.wait_for_selector(".components tbody tr")
    page.page.locator("#off .switch-head").nth(2).click()
    check_axe(page, "all that opens")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_is_seen(opened: Open, write: Write, scheme: str) -> None:
    """Every text, edge and ring of focus has the contrast that it needs, also where something is masked or off."""
    page = opened(write(), color_scheme=scheme)
    for step in (3, 6):
        page.page.locator(".step").nth(step).click()
        if step == 3:
            page.page.locator("#causal").check()
            page.page.locator("#off .switch-head").nth(2).click()
            page.page.locator("#recall .switch-head").nth(2).click()
        texts, edges = measure(page, TEXTS, "body"), measure(page, EDGES)
        assert len(texts) > 500
        assert faint(texts) | faint(edges) == set()
    page.press("Tab")
    rings = measure(page, RINGS)
    assert len(rings) > 50
    redrawn = ("BUTTON key", "DIV wide")  # while rings are measured, by the steps
    assert faint([each for each in rings if not any(name in each[2] for name in redrawn)]) == set()
    for place in (".key[aria-pressed=true]", ".wide"):
        page.page.locator(place).first.focus()
        assert "solid 2px" in page.page.evaluate("getComputedStyle(document.activeElement).outline")


@pytest.mark.parametrize("text", ["good film", LONG, f"{'a' * 3000} film \u202e \x1b"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_nothing_is_wider_than_a_phone(opened: Open, write: Write, text: str, language: str) -> None:
    page = opened(write("--lang", language, text=text), viewport={"width": 390, "height": 800})
    for step in range(7):
        page.page.locator(".step").nth(step).click()
        assert page.page.evaluate("document.documentElement.scrollWidth") <= 390, step


def focused(page: Opened) -> Any:
    return page.page.evaluate("document.activeElement.textContent")


def test_the_steps_and_the_keys_by_keyboard(opened: Open, write: Write) -> None:
    page = opened(write())
    page.page.locator(".step").nth(0).focus()
    page.press("ArrowRight", "ArrowRight")
    assert page.page.locator(".step[aria-current=step]").inner_text() == "2 ÷ √d"
    assert focused(page) == "2 ÷ √d"
    for _ in range(6):
        page.page.locator("[data-next]").press("Enter")
    assert focused(page) == "Next step"
    assert page.page.locator("[data-next]").get_attribute("aria-disabled") == "true"
    page.page.locator(".step").nth(2).click()
    page.page.locator(".key[aria-pressed=true]").focus()
    before = int(focused(page).split()[0])
    page.press("ArrowUp")
    assert int(focused(page).split()[0]) == before - 1
    assert page.page.locator(".written h3").inner_text().endswith(focused(page))
    page.page.locator("#off .switch-head").nth(1).focus()
    page.press("Enter")
    assert page.page.locator("#off .switch-head").nth(1).get_attribute("aria-pressed") == "false"
    assert focused(page).startswith("head 1")
    page.page.locator(".head button").nth(4).focus()
    page.press("Enter")
    assert focused(page) == "head 4"
    assert page.page.locator("#hand select[data-choice=head]").input_value() == "4"


def test_what_did_not_change_is_not_read_aloud_again(opened: Open, write: Write) -> None:
    page = opened(write())
    page.page.evaluate("""() => {
      window.heard = [];
      const note = (changes) => window.heard.push(...changes.map((each) => each.target.closest("section").id));
      for (const live of document.querySelectorAll("[aria-live]")) {
        new MutationObserver(note).observe(live, { childList: true });
      }
    }""")
    page.page.locator(".step").nth(1).click()
    assert set(page.page.evaluate("window.heard")) == {"hand"}
    page.page.locator("#off .switch-head").nth(1).click()
    assert set(page.page.evaluate("window.heard")) == {"hand", "off"}


def test_a_token_is_never_markup(opened: Open, write: Write) -> None:
    page = opened(write(text="a <b> **x** `y` {n} </script> film"))
    assert page.page.locator(".chip").all_inner_texts()[1].split()[1] == "<"
    assert page.page.locator(".sentence").inner_text() == "a <b> **x** `y` {n} </script> film"


def test_unknown_words_are_marked(opened: Open, write: Write) -> None:
    page = opened(write("--lang", "zh", text="猫 坐 垫子"))
    assert page.page.locator(".chip small").count() == 4
    assert "4 个词元里有 4 个不在模型的词表里" in page.page.locator("#tokens .warning").inner_text()


def test_a_model_without_answers_says_so(opened: Open, write: Write) -> None:
    page = opened(write("--model", "random:4", "--layers", "2", "--d-model", "32"))
    assert "gives no answers" in page.page.locator("#off").inner_text()
    assert "is untrained" in page.page.locator("#header").inner_text()
    assert page.page.locator("#hand select[data-choice=layer]").input_value() == "1"  # the last
