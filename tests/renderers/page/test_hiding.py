"""Maps of a page without markers, or without the first token: what figures and pages made with the options show."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from attnviz.records import AttentionMaps
from attnviz.renderers.page import packing
from attnviz.report import RenderedFrom, Report
from attnviz.specs import FigureOptions
from attnviz.views.heatmap import heatmap_report
from tests.browser import Open, Opened, number_in
from tests.made import cross_maps, random_maps, record, report, tokens

pytestmark = pytest.mark.slow
WORDS = ("[CLS]", "the", "film", "and", "The", "plot", "[SEP]")
TALL = {"viewport": {"width": 1200, "height": 1600}}  # so that maps are as large as they may be
WITHOUT = {
    "markers": FigureOptions(hide_special=True),
    "first": FigureOptions(drop_first=True),
    "markers,first": FigureOptions(hide_special=True, drop_first=True),
}


def marked(causal: bool = False) -> AttentionMaps:
    """A text with a marker at each end, and one word twice."""
    maps = random_maps(WORDS, n_layers=2, n_heads=3, causal=causal)
    return record(maps.weights, tokens(*WORDS, special=("[CLS]", "[SEP]")), attendable=maps.attendable)


def drawn(maps: AttentionMaps, spec: FigureOptions) -> Report:
    return heatmap_report(maps, [], spec, range(maps.n_layers), range(maps.n_heads))


def percent(said: str) -> str:
    found = re.search(r"Not drawn: .* Of what the queries drawn attend to, ([\d.]+%) is hidden with that", said)
    assert found is not None, said
    return found[1]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("without", WITHOUT)
def test_maps_and_what_is_said_are_those_of_the_option(shown: Open, without: str, causal: bool) -> None:
    maps = marked(causal)
    option = drawn(maps, WITHOUT[without])
    pages = [
        shown(of, f"view=matrix&layer=1&head=2{state}", **TALL)
        for of, state in ((report(maps), f"&without={without}"), (option, ""))
    ]
    pictures = [page.page.locator("canvas.matrix").screenshot() for page in pages]
    assert pictures[0] == pictures[1]
    assert [page.page.inner_text("#legend .scale p") for page in pages] == [option.scale.label] * 2
    of_one = drawn(maps, replace(WITHOUT[without], pick=("1.2",)))
    (note,) = (note.text for note in of_one.notes if note.text.startswith("Not drawn"))
    assert percent(pages[0].page.inner_text("#left-out")) == percent(note)
    pages[0].page.click("#tab-overview")
    pages[0].ready()
    (note,) = (note.text for note in option.notes if note.text.startswith("Not drawn"))
    assert percent(pages[0].page.inner_text("#left-out")) == percent(note)
    assert pages[0].page.inner_text("#left-out").partition(")")[0] == note.partition(")")[0]


def test_the_choice_keeps_what_is_chosen_and_is_in_the_link_and_the_command(shown: Open) -> None:
    of = replace(report(marked()), render=RenderedFrom("a.safetensors", "", ""))
    page = shown(of, "view=matrix&layer=0&head=1&query=4&key=3&digits=all")
    said = page.readout.partition(", 0")[0]
    choose(page, "without markers")
    assert page.readout.partition(", 0")[0] == said != page.readout  # which is more of an equal share
    assert page.page.locator(".word").all_inner_texts() == [*WORDS[1:-1]]
    assert page.page.locator(".word[aria-current]").inner_text() == "The"
    page.page.wait_for_url("**#view=matrix&without=markers&layer=0&head=1&query=4&key=3&digits=all")
    assert page.page.inner_text("#command") == "attnviz render a.safetensors --hide-special --pick 0.1 --query 4"
    page.page.click("#tab-lines")
    page.ready()
    assert page.page.locator(".tokens.key button").count() == len(WORDS) - 2
    assert percent(page.page.inner_text("#left-out"))
    choose(page, "all")
    assert page.page.locator(".tokens.key button").count() == len(WORDS)
    assert not page.page.is_visible("#left-out")


def choose(page: Opened, tokens: str) -> None:
    page.page.get_by_role("combobox", name="Tokens").select_option(tokens)
    page.ready()


def test_a_token_that_is_left_out_is_chosen_no_more(shown: Open) -> None:
    page = shown(report(marked()), "view=matrix&query=0")
    choose(page, "without the first")
    assert "Point at a cell" in page.readout
    assert page.page.get_by_label("Find").input_value() == ""


def test_heads_are_sorted_by_all_tokens(shown: Open) -> None:
    page = shown(report(marked()), "view=overview&sort=markers")
    captions = page.page.locator(".caption").all_inner_texts()
    choose(page, "without both")
    assert page.page.locator(".caption").all_inner_texts() == captions


def test_only_what_is_there_can_be_left_out(shown: Open) -> None:
    def offered(of: Report) -> list[str]:
        page = shown(of, "view=matrix&without=markers,first")
        found: list[str] = page.page.get_by_role("combobox", name="Tokens").locator("option").all_inner_texts()
        return found

    assert offered(report(random_maps(n_heads=2))) == ["all", "without the first"]
    assert offered(report(random_maps(["one"]))) == []
    assert offered(drawn(marked(), FigureOptions(drop_first=True))) == []  # what is not on the page cannot be counted
    assert offered(report(cross_maps())) == ["all", "without the first"]


def test_numbers_that_are_rounded_are_said_to_be(shown: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "ROOM", 0)
    maps = marked()
    key = int(maps.weights[0, 0, 2, 1:].argmax()) + 1
    page = shown(report(maps), f"view=matrix&layer=0&head=0&query=2&key={key}&without=first")
    assert re.search(r"about \d+% is hidden", page.page.inner_text("#left-out"))
    weight = float(maps.weights[0, 0, 2, key])
    assert float(number_in(page.readout)) == pytest.approx(weight, rel=0.01)
