"""The page in a browser: what it shows is what the record holds, by mouse, by keyboard and by link."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from itertools import product
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from PIL import Image

from attnviz.commands.compare.maps import similarity_picture
from attnviz.renderers.page import map_parts
from attnviz.report import Heatmap, HeatmapGrid, RenderedFrom, Report, Scale
from attnviz.specs import FigureOptions
from tests.attacks.endings import RunHere, worked
from tests.browser import WIDTHS, Open, Opened, number_in
from tests.made import HOSTILE, cross_maps, random_maps, record, report, tokens
from tests.renderers.page.test_html import attacked
from tests.renderers.page.test_look import uneven
from tests.views.test_mean import show

pytestmark = pytest.mark.slow
VIEWS = ("screen", "overview", "matrix", "table")
EXACT = "digits=all"
FIXED = FigureOptions(scale="fixed")
GROUND = "e => getComputedStyle(e).backgroundColor.match(/[\\d.]+/g).map(Number)"  # with the opacity, where it is not 1
VIRIDIS, RED_BLUE = (
    matplotlib.colormaps[name](np.arange(256), bytes=True)[:, :3].tolist() for name in ("viridis", "RdBu_r")
)
IS_LARGER = "frame => frame.scrollWidth > frame.clientWidth"
N = 14  # tokens of the made-up film review
CONTENT = "JSON.parse(document.querySelector('#content').textContent)"


@pytest.mark.parametrize(("cell", "ratio"), [((5, 9), 1), ((0, 13), 2)])
def test_the_cell_that_is_seen_is_the_cell_that_is_said(shown: Open, cell: tuple[int, int], ratio: int) -> None:
    """One bright cell in a dark map: where its pixels are on the screen, its name is told."""
    weights = np.full((1, 1, N, N), 1 / N, dtype=np.float32)
    weights[0, 0, cell[0]] = 0.01 / (N - 1)
    weights[(0, 0, *cell)] = 0.99
    page = shown(report(record(weights), FIXED), "view=matrix", device_scale_factor=ratio)
    left, top = page.seen((253, 231, 36))
    page.page.mouse.move(left, top)
    assert page.readout.endswith(f"query {cell[0]} t{cell[0]} attends to key {cell[1]} t{cell[1]}: 0.99")


def test_a_link_to_a_query_marks_the_key_that_it_attends_to_most(shown: Open) -> None:
    maps = random_maps(n_layers=4, n_heads=6)
    page = shown(report(maps), f"layer=2&head=5&query=7&{EXACT}")
    favourite = int(maps.weights[2, 5, 7].argmax())
    assert f"query 7 loved attends to key {favourite} " in page.readout
    assert np.float32(number_in(page.readout)) == maps.weights[2, 5, 7, favourite]
    page.go("view=matrix&layer=2&head=5&key=3")
    asking = int(maps.weights[2, 5, :, 3].argmax())
    assert f"query {asking} " in page.readout
    assert "attends to key 3 thin" in page.readout
    page.page.focus("canvas.matrix")
    page.page.keyboard.press("ArrowRight")
    assert f"query {asking} " in page.readout
    assert "attends to key 4 " in page.readout
    page.page.keyboard.press("Escape")
    assert "attends" not in page.readout


def test_the_address_is_a_link_to_what_is_shown(shown: Open) -> None:
    page = shown(report(random_maps(n_layers=2, n_heads=3)), "view=matrix&layer=1&head=2")
    page.page.focus("canvas.matrix")
    page.press("ArrowDown", "ArrowDown", "ArrowRight")
    page.page.wait_for_url("**#view=matrix&layer=1&head=2&query=1&key=1")
    there = page.page.url.partition("#")[2]
    told = page.readout
    page.go(there)
    assert page.readout == told


def test_a_link_to_what_is_not_there_opens_the_page(shown: Open) -> None:
    page = shown(report())
    for state in ("layer=99&head=-1&query=1e9", "%E0%A4%A", "view=__proto__&map=constructor", "&&=&"):
        page.go(state)
        assert page.page.locator("[role=tab][aria-selected=true]").count() == 1, state


def test_the_overview_has_every_head_and_opens_it(shown: Open) -> None:
    page = shown(report(random_maps(n_layers=2, n_heads=3)), "view=overview")
    assert page.page.locator(".map").count() == 6
    labels = [each.get_attribute("aria-label") for each in page.page.locator(".map").all()]
    assert labels[4].startswith("layer 1, head 1. looks at - in this text, strongest pair ")
    page.page.locator(".map").nth(4).click()
    page.ready()
    assert page.page.locator("#tab-matrix").get_attribute("aria-selected") == "true"
    assert page.page.get_by_role("combobox", name="Map").input_value() == "4"


def test_what_is_not_allowed_has_no_colour_of_the_scale(shown: Open) -> None:
    page = shown(report(random_maps(causal=True), FIXED), "view=matrix")
    assert "attention not allowed" in page.page.inner_text("#legend")
    assert page.colour(0, 0, N, N) == [253, 231, 36]
    red, green, blue = page.colour(0, 9, N, N)
    assert max(red, green, blue) - min(red, green, blue) < 10  # grey, which viridis never is
    page.go("view=matrix&query=2&key=9")
    assert number_in(page.readout) == "not allowed"


def test_each_pair_of_heads_has_one_cell(shown: Open) -> None:
    names = ("0.0", "0.1", "0.2")
    similar = similarity_picture(np.log(2) * (1 - np.eye(3)) / 2, names)
    page = shown(Report("", "", (similar,), Scale("fixed", 0.0, 1.0, "")), "view=matrix&query=0&key=1")
    assert "each pair has one cell" in page.readout
    assert "not allowed" not in page.page.inner_text("#legend")
    strongest = page.page.locator("details button.plain").all_text_contents()
    pairs = [tuple(sorted(re.findall(r"0\.[012]\b", each)[:2])) for each in strongest]
    assert sorted(pairs) == [("0.0", "0.1"), ("0.0", "0.2"), ("0.1", "0.2")]  # each two of them once
    assert "In words: the 3 strongest cells" in page.page.inner_text("#view")


def test_the_keyboard_reaches_every_view(shown: Open) -> None:
    page = shown(report())
    page.press("Tab", "Enter", "Tab")
    for view in (*VIEWS[1:], "table"):
        assert page.page.evaluate("document.activeElement.getAttribute('role')") == "tab"
        page.press("ArrowRight" if view != "table" else "End", "Enter")
        page.page.wait_for_selector(f"#view[data-ready={view}]")
    assert page.page.evaluate("document.activeElement.id") == "tab-table"


def test_the_keyboard_moves_and_zooms_in_the_matrix(shown: Open) -> None:
    maps = random_maps(n_heads=1)
    page = shown(report(maps), f"view=matrix&{EXACT}")
    page.page.focus("canvas.matrix")
    page.press("ArrowDown", "End", "ArrowDown", "PageDown", "ArrowUp", "ArrowLeft")
    assert "query 10 of attends to key 12 film" in page.readout
    assert np.float32(number_in(page.readout)) == maps.weights[0, 0, 10, 12]
    page.press("+", "+")
    assert page.page.locator(".frame").evaluate(IS_LARGER)
    page.press("-", "-", "Escape")
    assert not page.page.locator(".frame").evaluate(IS_LARGER)
    assert "Point, tap, or move" in page.readout


def test_a_zoomed_map_is_scrolled_and_still_says_the_right_number(shown: Open) -> None:
    maps = random_maps(["t"] * 60, n_heads=1)
    page = shown(report(maps), f"view=matrix&{EXACT}")
    page.page.get_by_role("button", name="zoom in").click(click_count=3)
    box = page.page.locator("canvas.matrix").bounding_box()
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.page.mouse.move(*middle)
    before = page.readout
    page.page.mouse.wheel(80, 60)
    page.page.wait_for_timeout(100)
    page.page.mouse.move(middle[0] + 1, middle[1])
    after = page.readout
    assert before != after
    row, column = (int(part.split()[0]) for part in after.split("query ")[1].split("key "))
    assert np.float32(number_in(after)) == maps.weights[0, 0, row, column]


def test_everything_that_can_be_chosen_can_be_reached_by_tab(shown: Open) -> None:
    of = replace(report(random_maps(n_layers=2, n_heads=2)), render=RenderedFrom("attention.safetensors", "", ""))
    page = shown(of, "view=matrix&layer=0&head=0")
    reached = []
    for _ in range(15):
        page.press("Tab")
        reached.append(
            page.page.evaluate(
                "(() => { const e = document.activeElement;"
                " return e.getAttribute('role') ?? e.closest('[role=group]')?.ariaLabel ?? e.type ?? e.id; })()"
            )
        )
    wanted = ["tab", *["select-one"] * 2, "checkbox", "search", *["button"] * 3, "application"]
    wanted += ["", "select-one", "queries", "command", "button"]
    assert reached[: len(wanted)] == wanted


def test_a_word_shades_what_it_attends_to(shown: Open) -> None:
    page = shown(uneven(), "view=matrix")
    words = page.page.locator(".word")
    words.nth(1).hover()
    shades = [each.evaluate(GROUND) for each in words.all()]
    assert page.page.locator(".listed td").all_inner_texts()[:2] == ["2 c", "0.7"]
    assert shades == [[0] * 4, [0] * 4, page.colour(1, 2, 4, 4), [0] * 4]  # as the map's cell, else none


def test_the_other_side_shades_what_attends_to_the_word(shown: Open) -> None:
    maps = random_maps(n_heads=1)
    page = shown(report(maps), f"view=matrix&key=5&side=to&{EXACT}")
    best = int(maps.weights[0, 0, :, 5].argmax())
    first, number = page.page.locator(".listed td").all_inner_texts()[:2]
    assert first == f"{best} {maps.queries.pieces[best]}"
    assert np.float32(number) == maps.weights[0, 0, best, 5]
    page.page.get_by_label("Shade").select_option("what the word attends to")
    assert "5 yet attends most to" in page.page.inner_text(".listed caption")


LIT = "words => words.flatMap((w, i) => (w.ariaCurrent || w.matches('.answer') ? [i] : []))"


def test_a_cell_lights_both_of_its_words(shown: Open) -> None:
    page = shown(report(random_maps(n_heads=1)), "view=matrix")
    words = page.page.locator(".word")
    page.hover(3, 8, N, N)
    assert words.evaluate_all(LIT) == [3, 8]
    page.page.focus("canvas.matrix")
    page.page.mouse.move(0, 0)
    page.press("ArrowDown", "ArrowDown", "ArrowRight")
    assert words.evaluate_all(LIT) == [1]  # query 1 to key 1
    page.press("ArrowRight", "ArrowRight")
    assert words.evaluate_all(LIT) == [1, 3]


@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_a_word_lights_its_row_and_its_column(shown: Open, by: str) -> None:
    """Whatever is in neither is covered with paper; what is in them keeps the colours of the scale."""
    cells = np.full((1, 1, 4, 4), 0.25, dtype=np.float32)
    page = shown(report(record(cells), FIXED), "view=matrix")
    full = page.colour(0, 0, 4, 4)
    places = [page._place(*cell, 4, 4) for cell in ((1, 3), (3, 1), (1, 1), (0, 0), (3, 3), (0, 3))]
    word = page.page.locator(".word").nth(1)
    page.page.mouse.move(0, 0)
    word.hover() if by == "mouse" else word.focus()
    page.page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    picture = np.asarray(Image.open(BytesIO(page.page.screenshot())).convert("RGB"))
    seen = [picture[round(y), round(x)].tolist() for x, y in places]
    assert seen[:3] == [full] * 3
    assert np.min(seen[3:]) > 180
    assert "query 1 t1 attends to key" in page.readout


def test_numbers_have_three_digits_until_all_are_asked_for(shown: Open) -> None:
    maps = random_maps(n_heads=1)
    page = shown(report(maps), "view=matrix&query=2&key=3")
    weight = maps.weights[0, 0, 2, 3]
    assert float(number_in(page.readout)) == float(f"{weight:.3g}") != weight
    page.page.get_by_label("full precision").check()
    page.ready()
    assert np.float32(number_in(page.readout)) == weight
    page.page.wait_for_url("**digits=all**")


def test_another_scale_redraws_map_text_and_legend(shown: Open) -> None:
    """0.7 of four keys is 2.8 equal shares, and with weights as they are 0.7 of the range."""
    page = shown(uneven(), "view=matrix")
    by_share = page.colour(1, 2, 4, 4)
    page.page.get_by_role("combobox", name="Scale").select_option("weights, 0 to 1")
    page.ready()
    assert "fixed scale, 0 to 1" in page.page.inner_text("#legend")
    assert by_share != page.colour(1, 2, 4, 4) == VIRIDIS[round(0.7 * 255)]
    assert page.page.locator(".word").nth(3).evaluate(GROUND) == VIRIDIS[round(0.7 * 255)]
    page.page.wait_for_url("**scale=fixed**")


def test_two_texts_are_two_passages(shown: Open) -> None:
    page = shown(report(cross_maps()), "view=matrix")
    assert page.page.locator(".passage").count() == 2
    page.page.locator(".passage").nth(0).locator(".word").nth(1).hover()
    assert "1 q1 attends most to" in page.page.inner_text(".listed caption")
    page.page.locator(".passage").nth(1).locator(".word").nth(4).hover()
    assert "4 k4 is attended to most by" in page.page.inner_text(".listed caption")


def test_a_text_with_a_number_per_token_is_shaded_word_by_word(shown: Open) -> None:
    of = record(np.full((1, 1, 3, 3), 1 / 3), tokens("not", "good", "either")).queries
    scores = Heatmap("attribution", "", np.array([[2.0, 0.0, -0.5]]), np.ones((1, 3), bool), ("by",), of.pieces, "by")
    data = {"tokens": {"pieces": of.pieces, "offsets": of.offsets, "special": of.special}}
    page = shown(Report("t", "", (scores,), Scale("diverging", -2.0, 2.0, "for and against"), data=data), "view=matrix")
    words = page.page.locator(".passage").nth(1).locator(".word")
    assert words.all_inner_texts() == ["not", "good", "either"]
    shades = [each.evaluate(GROUND) for each in words.all()]
    assert shades == [RED_BLUE[round(place * 255)] for place in (1, 0.5, 0.375)]
    assert "the largest, up or down" in page.page.inner_text(".listed caption")


def test_hostile_tokens_are_shown_and_run_nothing(shown: Open) -> None:
    page = shown(attacked())
    for view in VIEWS:
        page.go(f"view={view}")
        assert page.page.locator("img, b").count() == 0
        for place in ("title", "subtitle"):
            assert page.page.evaluate(f"document.querySelector('#{place}').textContent === {CONTENT}.{place}")
        if view == "matrix":
            shown_words = "JSON.stringify([...document.querySelectorAll('.word')].map((word) => word.textContent))"
            assert page.page.evaluate(f"{shown_words} === JSON.stringify({CONTENT}.axes[0].labels)")


@pytest.mark.parametrize(("pieces", "widths"), [(HOSTILE, WIDTHS), ("tt", [360]), ("t" * N, [360])])
def test_texts_of_every_length_fit_every_view(shown: Open, pieces: Sequence[str], widths: Sequence[int]) -> None:
    page = shown(report(random_maps(pieces)))
    for width, view in product(widths, VIEWS):
        page.check_width(width, f"view={view}")
        assert page.page.get_attribute("#view", "data-ready") == view


@pytest.mark.parametrize(("text", "direction"), [("这 部 电影", "ltr"), ("סרט טוב !", "rtl")])
def test_texts_run_as_their_script_does(shown: Open, text: str, direction: str) -> None:
    page = shown(report(random_maps(text.split())), "view=matrix")
    assert page.page.get_attribute(".passage", "dir") == direction
    rights = page.page.locator(".word").evaluate_all("words => words.map(word => word.getBoundingClientRect().right)")
    assert rights == sorted(rights, reverse=direction == "rtl")


def test_differences_and_maps_without_queries(shown: Open) -> None:
    """What `compare` draws: panels, a difference on a scale of its own, heads by tokens."""
    maps = random_maps(n_heads=2)
    panels = next(each for each in report(maps).pictures if isinstance(each, HeatmapGrid))
    cells = maps.weights[0, 0] - maps.weights[0, 1]
    scale = Scale("diverging", -1.0, 1.0, "difference of weight")
    difference = replace(panels.maps[0], name="difference", title="a minus b", values=cells, scale=scale)
    query = Heatmap(
        "q", "query 7", cells[:2] ** 2, np.ones((2, N), dtype=bool), ("a", "b"), panels.maps[0].columns, "head"
    )
    page = shown(
        Report("t", "s", (panels, difference, query)), f"picture=difference&map=difference&query=2&key=4&{EXACT}"
    )
    assert np.float32(number_in(page.readout)) == cells[2, 4]
    assert "difference of weight" in page.page.inner_text("#legend")
    for picture in ("difference", "q"):
        for view in VIEWS:
            page.go(f"view={view}&picture={picture}")
    page.go("view=matrix&picture=q&query=1&key=4")
    assert "query 7: head b, key 4 ,: " in page.readout


def _command(page: Opened) -> list[str]:
    return shlex.split(page.page.inner_text("#command"))


def test_the_command_that_a_page_shows_draws_what_is_seen(shown: Open, run_here: RunHere, tmp_path: Path) -> None:
    """By a process of its own, from the record beside the page."""
    asked = ["--text", "the film was not good", "--heads", "8", "--theme", "dark", "--scale", "fixed", "--drop-first"]
    asked += ["--head", "1-3", "--head", "5", "--rollout"]
    worked(run_here("heatmap", *asked, "--format", "html", "-q", "--out", str(tmp_path)))
    heads, whole = (
        ["--head", "1-3", "--head", "5"],
        ["overview.png", *(f"layer-{layer}-head-{n}.png" for layer in (0, 1) for n in (1, 2, 3, 5))],
    )
    for state, picture, files in (
        ("view=overview", [*heads, "--scale", "fixed"], whole),
        ("view=matrix&layer=0&head=2&query=3&scale=lift", ["--pick", "0.2", "--query", "3"], ["query-3.png"]),
        ("view=matrix&layer=0&head=1&key=4&side=to&scale=lift", ["--pick", "0.1", "--key", "4:5"], ["overview.png"]),
    ):
        page = shown(tmp_path / "attention.html", state)
        command = _command(page)
        assert command == ["attnviz", "render", "attention.safetensors", "--theme", "dark", "--drop-first", *picture]
        worked(run_here(*command[1:], "--out", "drawn", "-q"))
        drawn = sorted(Path("drawn").glob("*.png"))
        assert {each.name for each in drawn} == set(files), state
        for each in drawn:
            each.unlink()


def test_the_command_names_what_a_page_shows_in_its_order(shown: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    beside = RenderedFrom("attention.safetensors", "", "")
    page = shown(replace(report(random_maps(n_layers=2, n_heads=3)), render=beside), "view=overview&sort=6")
    seen = [each.get_attribute("aria-label") for each in page.page.locator(".map").all()]
    places = ",".join(".".join(re.findall(r"\d+", name.partition(". ")[0])) for name in seen)
    assert places != "0.0,0.1,0.2,1.0,1.1,1.2"
    assert _command(page) == ["attnviz", "render", "attention.safetensors", "--pick", places]
    page.page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.page.get_by_role("button", name="copy the command").click()
    assert shlex.split(page.page.input_value("#status textarea")) == _command(page)
    for name in ("MAX_SIDE", "POOLED_SIDE"):
        monkeypatch.setattr(map_parts, name, 7)
    blocks = shown(replace(report(random_maps()), render=beside), "view=matrix&query=2")
    assert _command(blocks)[3:] == ["--pick", "0.0", "--query", "2:4"]


def test_without_a_record_beside_it_a_page_shows_no_command(shown: Open) -> None:
    page = shown(report(random_maps(n_heads=2)))
    assert page.page.locator("#tools").inner_text() == ""


def test_doublings_are_said_as_times(shown: Open) -> None:
    cells = np.array([[1.0, -2.0], [0.0, 0.5]], dtype=np.float32)
    scale = Scale("diverging", -4.0, 4.0, "log₂ of the ratio", doublings=True)
    heatmap = Heatmap("d", "a over b", cells, np.ones((2, 2), dtype=bool), ("x", "y"), ("x", "y"), scale=scale)
    page = shown(Report("t", "s", (heatmap,)), "view=matrix")
    said = []
    for row, column in np.ndindex(2, 2):
        page.hover(row, column, 2, 2)
        said.append(number_in(page.readout))
    assert said == ["× 2", "÷ 4", "× 1", "× 1.41"]
    assert page.page.locator("#legend .ticks span").all_inner_texts() == ["−4", "−2", "0", "+2", "+4"]
    page.page.get_by_label("full precision").check()
    page.ready()
    page.hover(0, 1, 2, 2)
    assert page.readout.endswith("÷ 4 (log₂: -2)")


def test_a_mean_is_chosen_and_linked_to_as_a_head_is(shown: Open) -> None:
    maps = random_maps(n_layers=2, n_heads=3)
    of = replace(show(maps, head=("0,mean",)), render=RenderedFrom("a.safetensors", "--head 0,mean", ""))
    page = shown(of, "layer=1&head=0&digits=all")
    page.page.get_by_role("combobox", name="Map").select_option("layer 1, mean of 3 heads")
    page.page.wait_for_url("**#view=matrix&layer=1&head=mean&digits=all")
    page.hover(7, 3, N, N)
    mean = maps.weights[1, :, 7, 3].mean(dtype=np.float64)
    assert float(number_in(page.readout)) == pytest.approx(mean, abs=1e-7)
    assert page.page.locator("#command").inner_text() == "attnviz render a.safetensors --pick 1.mean"
    page.go("layer=0&head=mean&digits=all")
    assert page.page.get_by_role("combobox", name="Map").input_value() == "1"
    page.go("view=overview&sort=5")
    names = page.page.locator(".map").all_inner_texts()
    assert sorted(name.partition(":")[0] for name in names) == ["0.0", "0.mean", "1.0", "1.mean"]
