"""One screen of a text: words by what they did for the answer, arcs from a word to where heads look, heads by kind."""

import re
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from attnviz.models.attribution import Attributable
from attnviz.models.attribution.methods import leave_one_out
from attnviz.models.loading import find_model
from attnviz.records import Facts
from attnviz.records.attribution import Question
from attnviz.specs import ModelOptions
from tests.attacks.endings import RunHere, worked
from tests.browser import Open, Opened
from tests.made import page_content, provenance, random_maps, record, report, tokens
from tests.renderers.page.conftest import WritePage
from tests.renderers.page.test_html import content

pytestmark = pytest.mark.slow
TEXT = "the film was not good but the acting saved the film"
ARCS = """arcs => arcs.map((arc) => [arc.dataset.head, Number(arc.dataset.key), arc.getAttribute("d")])"""
MIDDLES = """words => words.map((word) => {
  const [own, all] = [word, word.closest(".sentence")].map((each) => each.getBoundingClientRect());
  return [own.left + own.width / 2 - all.left, own.top - all.top];
})"""
TINTS = "words => words.map((word) => getComputedStyle(word).backgroundColor.match(/[\\d.]+/g).map(Number))"


def ask(text: str, without: tuple[str, ...] = ()) -> tuple[float, list[float]]:
    """How probable multi:8 finds it that a text is negative, and how much of that goes with each word."""
    model = find_model(ModelOptions(model="multi", without=without)).open([text])
    assert isinstance(model, Attributable)
    subject = model.subject(text, "text", Question("negative"))
    return subject.target.value, leave_one_out(subject).scores.tolist()


@pytest.fixture
def answered(shown: Open, write_page: WritePage) -> Opened:
    return shown(write_page("heatmap", TEXT))


@pytest.mark.parametrize("width", [1200, 390])
def test_arcs_lead_from_a_word_to_the_words_that_heads_look_at(shown: Open, width: int) -> None:
    """Also where the text has several lines, by mouse and by keyboard."""
    maps = random_maps(n_layers=2, n_heads=3, sharpness=4)
    page = shown(report(maps), viewport={"width": width, "height": 900})
    words = page.page.locator(".sentence .word")
    words.nth(6).hover()
    for query in (6, 7):
        arcs = page.page.locator(".sentence path").evaluate_all(ARCS)
        looks = {(f"{layer}.{head}", key) for layer, head, key in np.argwhere(maps.weights[:, :, query] >= 0.25)}
        assert {(head, key) for head, key, _ in arcs} == {look for look in looks if look[1] != query} != set()
        middles = words.evaluate_all(MIDDLES)
        for _, key, path in arcs:
            places = np.array(re.findall(r"-?[\d.]+", path), dtype=float).reshape(-1, 2)
            for word in (query, key):
                assert np.abs(places - middles[word]).max(axis=1).min() < 0.1
        assert page.readout.startswith(f"{maps.queries.pieces[query]} looks at ")
        told = re.findall(r"\(([^)]*)\)", page.readout)
        assert {head for heads in told for head in heads.split(", ")} <= {"…", *(head for head, _ in looks)}
        words.nth(query).focus()
        page.press("ArrowRight")


def test_a_sentence_that_was_written_is_the_words_that_were_read(shown: Open) -> None:
    """A row is called by the word that it chose: the next one. What is looked at is what stands there."""
    made_by = provenance(facts=Facts(chosen=("kind", "film")))
    weights = np.tile(np.array([[1.0, 0, 0], [0.9, 0.1, 0], [0.1, 0, 0.9]]), (1, 1, 1, 1))
    page = shown(report(record(weights, tokens("a", "very", "kind"), made_by=made_by)), "query=2")
    assert page.page.locator(".sentence .word").all_inner_texts() == ["a", "very", "▸ kind"]
    assert page.readout == "▸ kind looks at itself (0.0)."
    assert page.page.locator(".heads .caption").inner_text().endswith("▸ film → ▸ kind 90\u00a0%")


def test_a_switch_moves_the_bar_to_the_models_answer_without_the_head(answered: Opened) -> None:
    bar, number = answered.page.get_by_role("meter"), answered.page.locator(".answer > b")
    whole, _ = ask(TEXT)
    for head in ("0.3", "1.5"):
        answered.page.get_by_role("switch", name=f"head {head} ").uncheck()
        value, _ = ask(TEXT, without=(head,))
        assert abs(value - whole) > 1e-3
        assert float(bar.get_attribute("aria-valuenow")) == pytest.approx(value, abs=1e-6)
        assert number.inner_text() == f"{value:.0%}".replace("%", "\u00a0%")
        filled, whole_bar = bar.evaluate("bar => [bar.children[0], bar].map((each) => each.clientWidth)")
        assert filled / whole_bar == pytest.approx(value, abs=0.02)
    answered.page.get_by_role("switch", checked=False).check()
    assert float(bar.get_attribute("aria-valuenow")) == pytest.approx(whole, abs=1e-6)


def test_words_have_the_colour_of_what_they_did_for_the_answer(answered: Opened) -> None:
    value, gains = ask(TEXT)
    first = int(np.abs(gains).argmax())
    said = f"{TEXT.split()[first]}: negative {value:.0%}, without it {value - gains[first]:.0%}; it looks at "
    assert answered.readout.startswith(said.replace("%", "\u00a0%"))
    tints = answered.page.locator(".sentence .word").evaluate_all(TINTS)
    shades = [alpha for *_, alpha in tints]
    assert shades == pytest.approx(0.5 * np.abs(gains) / np.abs(gains).max(), abs=0.001)
    assert [red > blue for red, _, blue, _ in tints] == [gain > 0 for gain in gains]


def test_words_have_the_colour_of_what_they_receive_where_nothing_is_answered(shown: Open) -> None:
    """Markers receive most of it, and are no words."""
    weights = np.tile(np.array([0.7, 0.05, 0.2, 0.05]), (1, 2, 4, 1))
    of = report(record(weights, tokens("[CLS]", "a", "b", "c", special=("[CLS]",))))
    page = shown(replace(of, hint=("Named so.", "Over 64 reviews: itself 0.0", "first token 0.1")))
    assert page.page.locator("p", has_text="Over 64").inner_text() == "Over 64 reviews: itself 0.0 · first token 0.1"
    tints = page.page.locator(".sentence .word").evaluate_all(TINTS)
    assert [alpha for *_, alpha in tints] == pytest.approx([0, 0.125, 0.5, 0.125], abs=1e-3)
    assert page.page.get_by_role("meter").count() == page.page.get_by_role("switch").count() == 0


def test_heads_stand_by_what_they_look_at_each_with_its_strongest_pair(answered: Opened) -> None:
    rows = page_content(answered.file)["tables"][0]["rows"]
    said = answered.page.locator(".heads .caption").all_inner_texts()
    kinds = answered.page.locator(".heads .kind").evaluate_all("(all) => all.map((a) => a.style.color + a.innerText)")
    assert len([kind for kind, _ in groupby(kinds)]) == len({*kinds})
    assert len(said) == len(rows) == 16
    for layer, head, looks, pair, weight, *_ in rows:
        words = " → ".join(each.partition(" ")[2] for each in pair.split(" → "))
        looks, _, here = looks.removesuffix(" (none)").partition("; here ")
        beside = f" ({here})" if here else ""
        looks = looks.replace(" %", "\u00a0%")  # no line begins with the sign
        assert f"{layer}.{head} {looks}{beside}\n{words} {round(100 * weight)}\u00a0%" in said
    assert any("; here previous token" in row[2] for row in rows)
    quiet = sum("%" not in row[2] or "; here" in row[2] for row in rows)
    assert sum(kind.startswith("var(--quiet)") for kind in kinds) == quiet


def test_a_phone_shows_at_once_which_heads_look_at_the_previous_word_and_leads_to_them(answered: Opened) -> None:
    answered.page.set_viewport_size({"width": 390, "height": 844})
    kind = answered.page.locator(".kinds > span", has_text="previous token")
    assert kind.inner_text().split() == ["previous", "token", "1.3", "0.4"]
    assert kind.bounding_box()["y"] < 800
    kind.get_by_role("button", name="0.4").click()
    assert answered.page.evaluate("document.activeElement.innerText").startswith("0.4 previous token")
    assert 0 < answered.page.evaluate("document.activeElement.getBoundingClientRect().top") < 844


def test_what_heads_do_over_many_texts_is_one_line_whatever_it_lists(shown: Open) -> None:
    hint = ("By this text.", "Over 64 reviews: itself 0.1 · next token 0.0")
    assert shown(replace(report(), hint=hint)).page.locator(".kinds ~ p").all_inner_texts() == [*hint[::-1]]


def test_a_character_of_chinese_stands_upright_above_a_small_map(shown: Open) -> None:
    page = shown(report(random_maps("好" * 20))).page
    assert page.locator(".heads canvas").first.evaluate("canvas => canvas.clientHeight") < 132 + 24


def test_twelve_heads_and_the_sentence_fit_a_laptop(shown: Open, write_page: WritePage) -> None:
    answered = shown(write_page("heatmap", TEXT), viewport={"width": 1280, "height": 800})
    ends = answered.page.locator(".heads .map").evaluate_all("all => all.map((x) => x.getBoundingClientRect().bottom)")
    assert ends[11] <= 800 < ends[12]


def test_the_screen_is_of_short_texts_and_of_many_heads_shows_twelve() -> None:
    assert content(report(random_maps(["t"] * 60, n_heads=2)))["screen"] == [0, 1]
    assert content(report(random_maps(["t"] * 61, n_heads=2)))["screen"] == []
    assert len(content(report(random_maps(n_layers=5, n_heads=6)))["screen"]) == 12


@pytest.mark.parametrize("options", [("the film", "--causal"), ("film",), ("the film", "--model", "random:2")])
def test_where_there_is_no_answer_none_is_shown(run_here: RunHere, tmp_path: Path, options: tuple[str, ...]) -> None:
    worked(run_here("heatmap", *options, "--format", "html", "-q", "--out", str(tmp_path)))
    assert page_content(tmp_path / "attention.html")["answer"] is None
