"""The atlas in a browser: heads are found, chosen, compared and linked to, by mouse, by keyboard and on a phone."""

from itertools import product
from math import nan
from typing import Any

import pytest

from attnviz.renderers.shades import LIFT
from tests.browser import WIDTHS, Open, Opened, check_axe
from tests.renderers.page.atlases import INDUCTION, PREVIOUS, atlas, atlas_report

pytestmark = pytest.mark.slow
POINTS = "view=atlas&draw=points"
PHONE = {"viewport": {"width": 390, "height": 844}}


def cards(page: Opened) -> list[str]:
    return list(page.page.locator(".card > h2").all_inner_texts())


def test_a_page_opens_at_its_first_head_with_its_moments(shown: Open) -> None:
    page = shown(atlas_report())
    assert page.page.locator("[role=tab]").all_inner_texts() == ["Heads", "Table"]
    assert page.page.locator(".point rect").count() == 6  # layers × heads
    assert page.page.locator(".point .letter").all_text_contents() == ["", "P", "", "", "I", ""]
    assert cards(page) == ["Head 1.1"]
    assert page.page.locator(".names li").all_inner_texts() == ["F first token 61 %", f"I {INDUCTION} 88 %"]
    words = page.page.locator(".moment").first
    assert words.inner_text() == "… film was … was <b>good</b>"
    assert words.locator("[aria-current]").inner_text() == "<b>good</b>"
    assert words.locator(".word[style]").all_inner_texts() == ["was"]  # only what receives more than an equal share
    assert "2 “was” 0.9 (14 ×)" in page.page.locator(".of-moment .hint").first.inner_text()
    curve = page.page.get_by_role("img", name="attention of head 1.1 by offset, the most at −1: 0.5")
    assert curve.count() == 1
    assert page.page.locator(".of-moment:visible").count() == 6  # three of each kind, until more are asked for
    page.page.get_by_text("3 more").first.click()
    page.page.locator(".of-moment").nth(5).wait_for(state="visible")


ENDS = """() => {
  const middle = (word) => word.getBoundingClientRect().left + word.getBoundingClientRect().width / 2;
  const moment = document.querySelector(".moment");
  const [arc, query] = ["path", "[aria-current]"].map((each) => moment.querySelector(each));
  const at = (length) => arc.getPointAtLength(length).matrixTransform(arc.getScreenCTM()).x;
  return [at(0) - middle(query), at(arc.getTotalLength()) - middle(moment.querySelectorAll(".word")[1])];
}"""


def test_an_arc_goes_from_the_word_that_looks_to_the_one_it_looks_at(shown: Open) -> None:
    """Also on paper, which is as wide as it is."""
    page = shown(atlas_report(), **PHONE).page
    page.locator(".moment path[d^=M]").first.wait_for(state="attached")
    assert page.evaluate(ENDS) == pytest.approx([0, 0], abs=1)
    page.set_viewport_size({"width": 160, "height": 844})  # where both words do not fit a line
    page.evaluate(f"matchMedia('print').addEventListener('change', () => {{ globalThis.printed ??= ({ENDS})(); }})")
    page.pdf()
    assert page.evaluate("printed") == pytest.approx([0, 0], abs=1)


def test_a_print_of_a_dark_screen_is_shaded_as_paper_is(shown: Open) -> None:
    page = shown(atlas_report(), color_scheme="dark").page
    page.emulate_media(media="print")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    ink = page.locator(".moment .word[style]").first.evaluate("word => getComputedStyle(word).color")
    page.emulate_media(media="screen")  # for who has the tab next
    assert ink == "rgb(255, 255, 255)"


def test_heads_are_found_by_pattern_measure_word_and_number(shown: Open) -> None:
    page = shown(atlas_report())

    def find(asked: str) -> list[str]:
        page.page.get_by_label("Find").fill(asked)
        return list(page.page.locator("[aria-label='heads that are found'] button").all_inner_texts())

    assert find("previous token") == ["0.1 93 %"]
    assert cards(page) == ["Head 0.1"]  # the best is opened
    assert find("to prev") == ["0.1 to previous 90 %"]
    assert find("was") == ["1.2 “was” 4 ×", "0.0 “was” 2 ×"]
    assert find("film") == ["0.2 “film” 3 ×"]
    assert find("L1H2") == ["1.2"]
    assert cards(page) == ["Head 1.2"]
    assert page.page.locator(".point.pale").count() == 5
    assert find("nothing of the kind") == []
    assert "Nothing is found" in page.page.inner_text("#found")
    assert page.page.locator(".point.pale").count() == 0
    page.page.get_by_role("button", name=f"I {INDUCTION}").click()
    assert page.page.get_by_label("Find").input_value() == INDUCTION
    assert page.page.locator("[aria-label='heads that are found'] button").all_inner_texts() == ["1.1 88 %"]
    page.page.get_by_role("button", name=f"P {PREVIOUS}").click()
    assert cards(page) == ["Head 0.1"]  # the strongest of them
    find("was")
    page.page.locator("[aria-label='heads that are found'] button").nth(1).click()
    assert cards(page) == ["Head 0.0"]


def test_a_head_is_chosen_and_a_link_keeps_it(shown: Open) -> None:
    page = shown(atlas_report())
    page.page.locator("#point-1").click()
    assert cards(page) == ["Head 0.1"]
    assert "+0.0210 of the right answer" in page.page.inner_text(".card")
    page.page.get_by_role("combobox", name="Heads").select_option("by a measure")
    page.page.get_by_role("combobox", name="Measure").select_option("entropy")
    page.page.wait_for_url("**y=entropy**")
    other = shown(page.file, page.page.url.partition("#")[2])
    assert cards(other) == ["Head 0.1"]
    assert other.page.get_by_role("combobox", name="Measure").input_value() == "entropy"
    fills = other.page.locator(".point rect").evaluate_all("all => all.map((each) => each.style.fill)")
    assert fills[1] == f"rgb({', '.join(map(str, LIFT[-1]))})"  # the largest, by the ramp of figures


def test_heads_without_names_say_whether_they_were_tested(shown: Open) -> None:
    without: dict[str, Any] = {"heads": [head | {"names": ()} for head in atlas()["heads"]], "letters": {}}
    page = shown(atlas_report(**without))
    assert "none follows a single pattern beyond chance" in page.page.inner_text("#view")
    assert page.page.get_by_role("combobox", name="Heads").input_value() == "measure"  # no letters to show
    other = shown(atlas_report(**without, measures=[each | {"chance": nan} for each in atlas()["measures"]]))
    assert other.page.inner_text("main").count("that takes --null random") == 2


def test_what_a_link_says_that_is_not_there_is_left_out(shown: Open) -> None:
    page = shown(atlas_report(), "view=atlas&head=9.9<b>&x=nothing&y=entropy&draw=points")
    assert cards(page) == ["Head 1.1"]
    assert page.page.get_by_role("combobox", name="Measure").input_value() == "entropy"
    assert page.page.get_by_label("Across").input_value() == "to previous"
    assert shown(atlas_report(), "view=atlas&draw=flowers").page.locator(".point rect").count() == 6


def test_points_are_chosen_with_the_keyboard(shown: Open) -> None:
    page = shown(atlas_report())
    page.page.locator(".point[tabindex='0']").focus()
    before = page.page.evaluate("document.activeElement.id")
    page.press("ArrowRight", "Enter")
    after = page.page.evaluate("document.activeElement.id")
    assert before != after
    name = page.page.get_attribute(f"#{after}", "aria-label")
    assert cards(page)[0].removeprefix("Head ") in str(name)
    assert page.page.get_attribute(f"#{after}", "aria-pressed") == "true"


def test_a_moment_says_the_command_that_draws_it(shown: Open) -> None:
    page = shown(atlas_report())
    page.page.get_by_text("Draw this").first.click()
    code = page.page.locator(".of-moment code").first
    assert code.inner_text() == "attnviz heatmap --dataset sample --index 7 --model m --pick 1.1 --query 14"
    assert "attnviz survey --dataset sample --model m --ablate zero" in page.page.inner_text("#view")
    assert shown(atlas_report(commands=())).page.locator(".of-moment details").count() == 0


def test_a_phone_shows_all_of_it(shown: Open) -> None:
    page = shown(atlas_report(), f"view=atlas&head=0.1&find={PREVIOUS}", **PHONE)
    assert cards(page) == ["Head 0.1"]
    page.page.set_viewport_size({"width": 240, "height": 844})
    ends = page.page.locator(".card .wide").evaluate_all("all => all.map(each => each.getBoundingClientRect().right)")
    assert 0 < max(ends) <= 240  # numbers scroll in their own box


def test_no_screen_is_too_narrow(shown: Open) -> None:
    page = shown(atlas_report())
    for width, draw in product(WIDTHS, ("kinds", "measure", "points")):
        page.check_width(width, f"view=atlas&head=0.1&find={PREVIOUS}&draw={draw}")


def test_points_have_the_numbers_of_heads_where_there_is_room(shown: Open) -> None:
    """Of a crowd in one place a few have it."""
    page = shown(atlas_report(), POINTS)
    assert sorted(page.page.locator(".called").all_text_contents()) == ["0.0", "0.1", "1.0", "1.1", "1.2"]
    crowd = [atlas()["heads"][0] | {"head": head} for head in range(9)]
    of_crowd = [each | {"values": (0.5,) * 8 + (1.0,), "halves": ()} for each in atlas()["measures"]]
    page = shown(atlas_report(heads=crowd, measures=of_crowd, first="0.0"), POINTS)
    numbers = page.page.locator(".called").all_text_contents()
    assert "0.8" in numbers
    assert len(numbers) < 9


@pytest.mark.parametrize(
    ("draw", "scheme"), [("kinds", "light"), ("kinds", "dark"), ("measure", "light"), ("points", "dark")]
)
def test_all_of_an_atlas_can_be_read(shown: Open, draw: str, scheme: str) -> None:
    page = shown(atlas_report(), f"view=atlas&draw={draw}", color_scheme=scheme, **PHONE)
    check_axe(page, f"{draw} {scheme}")
    sizes = page.page.locator("svg text").evaluate_all(
        "all => all.map((each) => parseFloat(getComputedStyle(each).fontSize))"
    )
    assert min(sizes) >= 11
