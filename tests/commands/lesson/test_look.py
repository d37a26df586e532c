"""A lesson is for everybody: on a phone, by keyboard, in the dark, and to axe-core."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from attnviz.commands.lesson.content import EXAMPLE
from tests.browser import Open, Opened, check_axe
from tests.commands.lesson.conftest import Write
from tests.renderers.page.test_contrast import EDGES, RINGS, faint, measure

pytestmark = pytest.mark.slow
MAX_WORDS, MAX_NUMBERS = 450, 120
LONG = "i can not say that this was the very best film of all time but the acting of the whole cast saved it"


@pytest.mark.parametrize(("language", "scheme", "width"), [("en", "light", 390), ("zh", "dark", 1200)])
def test_everything_is_seen(opened: Open, write: Write, language: str, scheme: str, width: int) -> None:
    """By axe-core, as the page opens, and with all that opens and something off; then every edge and ring.

    Of other steps only the lit columns differ.
    """
    page = opened(write("--lang", language), color_scheme=scheme, viewport={"width": width, "height": 900})
    check_axe(page, "the first step")
    page.page.locator(".step").nth(2).click()
    page.page.locator("#off .switch-head").nth(2).click()
    page.page.locator("#recall .switch-head").nth(2).click()
    for summary in page.page.locator("summary").all():
        summary.click()
    check_axe(page, "all that opens")
    assert faint(measure(page, EDGES)) == set()
    page.press("Tab")
    rings = measure(page, RINGS)
    assert len(rings) > 40
    assert faint(rings) == set()


def test_axe_finds_nothing_in_the_example(opened: Open, write: Write) -> None:
    page = opened(write("--example", text=None), viewport={"width": 390, "height": 900})
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 390
    check_axe(page, "the example")


@pytest.mark.parametrize(("text", "language"), [("film", "en"), (LONG, "zh"), (f"{'a' * 3000} film \u202e \x1b", "en")])
def test_nothing_is_wider_than_a_phone_or_cut(opened: Open, write: Write, text: str, language: str) -> None:
    page = opened(write("--lang", language, text=text), viewport={"width": 390, "height": 800})
    for step in range(5):
        page.page.locator(".step").nth(step).click()
        assert page.page.evaluate("document.documentElement.scrollWidth") <= 390, step
        assert page.page.locator(".picture").evaluate("(all) => all.getBBox().height <= all.viewBox.baseVal.height")


def test_on_paper_every_step_is_lit(page: Opened) -> None:
    page.page.emulate_media(media="print")
    drawn = page.page.locator(".picture :is(rect, text, foreignObject)")
    looks = drawn.evaluate_all("all => all.map((x) => getComputedStyle(x)).map((x) => x.opacity + x.visibility)")
    page.page.emulate_media(media="screen")  # for who has the tab next
    assert set(looks) == {"1visible"}


def focused(page: Opened) -> Any:
    return page.page.evaluate("document.activeElement.textContent")


def test_the_steps_and_the_keys_by_keyboard(page: Opened) -> None:
    page.press("ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft", "l")  # from anywhere, as in a class
    assert page.page.locator(".step[aria-current=step]").inner_text() == "weights"
    assert page.page.evaluate("getComputedStyle(document.body).zoom") == "1.5"
    page.page.locator(".step").nth(0).focus()
    page.press("ArrowRight", "ArrowRight")
    assert page.page.locator(".step[aria-current=step]").inner_text() == focused(page) == "weights"
    page.page.get_by_text("Next", exact=True).press("Enter")
    assert page.page.locator(".step[aria-current=step]").inner_text() == "sum"
    page.page.locator("#see select[data-choice=key]").focus()
    page.press("ArrowUp")
    key = page.page.locator("#see select[data-choice=key]").input_value()
    assert page.page.evaluate("document.activeElement.dataset.choice") == "key"
    assert page.page.locator(".written .line").first.inner_text().startswith(f"a{key} v{key}")
    page.page.locator("#off .switch-head").nth(1).focus()
    page.press("Enter")
    assert page.page.locator("#off .switch-head").nth(1).get_attribute("aria-checked") == "false"
    assert focused(page) == "1"
    page.page.locator(".head button").nth(4).focus()
    page.press("Enter")
    assert focused(page) == "head 4"
    assert page.page.locator("#see select[data-choice=head]").input_value() == "4"


def test_a_word_and_a_key_are_chosen_in_the_picture(page: Opened) -> None:
    page.page.locator("[data-column=word] text[data-at='3']").click()
    page.page.locator(".step").nth(2).click()  # only the numbers of a step are there
    page.page.locator("[data-column=weight] text[data-at='7']").click()
    page.page.locator(".step").nth(1).click()
    assert page.page.locator(".written .line").first.inner_text().startswith("q3 · k7 = ")


def test_what_did_not_change_is_not_read_aloud_again(page: Opened) -> None:
    page.page.evaluate("""() => {
      window.heard = [];
      const note = (changes) => window.heard.push(...changes.map((each) => each.target.closest("section").id));
      for (const live of document.querySelectorAll("[aria-live]")) {
        new MutationObserver(note).observe(live, { childList: true });
      }
    }""")
    page.page.locator(".step").nth(1).click()
    assert set(page.page.evaluate("window.heard")) == {"see"}
    page.page.locator("#off .switch-head").nth(1).click()
    assert set(page.page.evaluate("window.heard")) == {"see", "off"}


def test_a_token_is_never_markup(opened: Open, write: Write) -> None:
    page = opened(write(text="a <b> **x** `y` {n} </script> film"))
    assert page.page.locator("[data-column=word] text[data-at='1']").inner_html() == "1 &lt;"
    assert page.page.locator(".sentence").inner_text() == "a <b> **x** `y` {n} </script> film"


def test_it_opens_on_what_the_head_is_named_for(page: Opened) -> None:
    """The head with the clearest name, and a row on which it does that; and a sequence that one head fails."""
    assert page.page.locator(".head button[aria-pressed=true]").inner_text() == "head 6"
    assert "next token" in page.page.locator(".head").nth(6).inner_text()
    choice = {
        name: int(page.page.locator(f"#see select[data-choice={name}]").input_value()) for name in ("query", "key")
    }
    assert choice["key"] == choice["query"] + 1
    assert page.page.locator("#recall .wrong").count() > 0


def test_a_page_is_short(page: Opened) -> None:
    """Words and numbers that are seen as it opens, the lists of choices left out."""
    page.page.evaluate("for (const list of document.querySelectorAll('select')) list.remove()")
    text = page.page.locator("body").inner_text()
    assert len([word for word in text.split() if word.strip("()·").isalpha()]) <= MAX_WORDS
    assert len(re.findall(r"\d+(?:\.\d+)?", text)) <= MAX_NUMBERS


def test_more_answers_than_are_drawn_are_counted(opened: Open, write: Write) -> None:
    page = opened(write("--model", "recall:8", text="5 a3 b7 12"))
    assert "Drawn are the 3 most probable of 128 answers." in page.page.locator("#off").inner_text()
    assert page.page.locator("[data-column=answer] rect").count() == 3


def test_a_model_without_answers_says_so(opened: Open, write: Write) -> None:
    page = opened(write("--model", "random:4", "--layers", "2", "--d-model", "32"))
    assert "gives no answers" in page.page.locator("#off").inner_text()
    assert "is untrained" in page.page.locator("#header").inner_text()
    assert page.page.locator("#see select[data-choice=layer]").input_value() == "1"  # the last


# --- The example that ships: its facts, its numbers by hand, and what is said of those that are published for it ---


def test_the_facts_are_those_of_the_source(shared: Path) -> None:
    source = tomllib.loads((shared / "data" / "worked-example.toml").read_text(encoding="utf-8"))
    ours = tomllib.loads(EXAMPLE.read_text(encoding="utf-8"))
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
