"""The graph of an answer in a browser: a node shows its row of the map and its knock-out, and names stand apart."""

import json
import re
from itertools import combinations
from pathlib import Path

import pytest

import attnviz
from tests.attacks.endings import RunHere, worked
from tests.browser import Open, Opened, check_axe
from tests.made import page_content
from tests.renderers.page.conftest import WritePage

pytestmark = pytest.mark.slow
TEXT = "the acting saved the film but it was not good at all"
BOXES = """all => all.map((each) => {
  const { left, top, right, bottom } = each.getBoundingClientRect();
  return [left, top, right, bottom, parseFloat(getComputedStyle(each).fontSize), each.textContent];
})"""
NAMES = ".node, .node small, .graph .word, .graph .word small, .graph .hint"
ENDS = """paths => paths.map((path) => [path.getAttribute("d"), path.getAttribute("stroke-width")])"""


def write(weight: float) -> str:
    return f"{weight:.2f}".replace("0.", ".", 1) if weight >= 0.005 else ""


def test_a_node_shows_the_row_of_the_record(
    shown: Open, write_page: WritePage, run_here: RunHere, tmp_path: Path
) -> None:
    file = write_page("explain", TEXT)
    graph = page_content(file)["graph"]
    worked(run_here("heatmap", TEXT, "--table", "none", "--out", str(tmp_path / "of")))
    weights = attnviz.load(tmp_path / "of" / "attention.safetensors").weights
    page = shown(file)
    heads = [(number, node) for number, node in enumerate(graph["nodes"]) if node["weights"]]
    assert len(heads) >= 5
    for number, node in heads:
        page.page.click(f"#node-{number}")
        layer, head = map(int, node["name"].split("."))
        row = weights[layer, head, node["token"]]
        assert page.page.locator(".graph .word small").all_inner_texts() == [*map(write, row.tolist())]
        assert page.readout.startswith(f"{node['name']} reads ")
        assert "from" in page.page.locator(".graph .word").nth(node["token"]).get_attribute("class").split()
    page.page.wait_for_url(f"**#view=graph&node={heads[-1][0]}")
    page.go("view=graph&node=1")
    assert page.page.get_attribute("#node-1", "aria-current") == "true"


def test_who_wrote_the_answer_and_why_is_the_first_screen(
    shown: Open, write_page: WritePage, run_here: RunHere
) -> None:
    (found,) = json.loads(worked(run_here("explain", TEXT, "--json")).out)["texts"]
    page = shown(write_page("explain", TEXT), viewport={"width": 1440, "height": 900})
    lines = page.page.locator("#beside p").all_inner_texts()
    before = found["logit_difference"]
    for line, head in zip(lines, found["heads"], strict=True):
        after = re.sub(r"^(-?)0\.", r"\1.", f"{before + head['removal']:.2f}")
        assert line.startswith(f"from {head['head']} ")
        assert line.endswith(f"; without it {write(before)} → {after}")
        assert re.search(r"because of|many hands|no reason", line)
    assert page.page.locator("#beside p").last.bounding_box()["y"] < 900
    page.page.emulate_media(media="print")
    assert all(each.is_visible() for each in page.page.locator(".node").all())
    page.page.emulate_media(media="screen")  # for who has the tab next


def test_keys_walk_over_nodes_and_along_arrows(shown: Open, write_page: WritePage) -> None:
    file = write_page("explain", TEXT)
    graph = page_content(file)["graph"]
    page = shown(file)
    first, second = [node for row in graph["rows"] for node in row][:2]
    page.page.focus(f"#node-{first}")
    page.press("ArrowRight", "Enter")
    assert page.page.get_attribute(f"#node-{second}", "aria-current") == "true"
    page.page.set_viewport_size({"width": 500, "height": 800})  # arrows are drawn anew
    lit = page.page.locator(".graph path:not(.pale)").evaluate_all("lit => lit.map((path) => path.dataset.ends)")
    ends = [(edge["source"], edge["target"]) for edge in graph["edges"]]
    assert {*lit} == {f"{source} {target}" for source, target in ends if second in (source, target)}
    page.page.locator(".steps button").last.focus()
    page.press("Enter")
    assert page.page.evaluate("document.activeElement.id") == f"node-{first}"
    assert page.page.get_attribute(f"#node-{first}", "aria-current") == "true"


@pytest.mark.parametrize("text", ["not good", TEXT, f"{TEXT} and " * 4])
@pytest.mark.parametrize("width", [390, 1440])
def test_names_stand_apart_and_arrows_lead_up(text: str, width: int, shown: Open, write_page: WritePage) -> None:
    file = write_page("explain", text)
    graph = page_content(file)["graph"]
    page = shown(file, viewport={"width": width, "height": 900})
    for node in [row[0] for row in graph["rows"]]:
        page.page.click(f"#node-{node}")
        boxes = page.page.locator(NAMES).evaluate_all(BOXES)
        assert min(box[4] for box in boxes if box[5]) >= 11
        assert max(box[2] for box in boxes) <= width
        for one, other in combinations(page.page.locator(".node, .graph .word, .graph .hint").evaluate_all(BOXES), 2):
            assert min(one[2], other[2]) <= max(one[0], other[0]) or min(one[3], other[3]) <= max(one[1], other[1])
    left, top, *_ = page.page.locator(".graph").evaluate_all(BOXES)[0]
    places = {at: page.page.locator(f"#node-{at}").bounding_box() for at in range(len(graph["nodes"]))}
    arrows = page.page.locator(".graph path").evaluate_all(ENDS)[::2]  # the others are their tips
    for edge, (path, thickness) in zip(graph["edges"], arrows, strict=True):
        numbers = [float(each) for each in re.findall(r"-?[\d.]+", path)]
        source, target = places[edge["source"]], places[edge["target"]]
        assert source["x"] <= numbers[0] + left <= source["x"] + source["width"]
        assert numbers[1] + top == pytest.approx(source["y"], abs=0.1)
        assert target["x"] <= numbers[-2] + left <= target["x"] + target["width"]
        assert target["y"] + target["height"] < numbers[-1] + top < source["y"]
        assert float(thickness) == pytest.approx(1 + 5 * edge["share"])


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1024, "light")])
def test_axe_finds_nothing(width: int, scheme: str, shown: Open, write_page: WritePage) -> None:
    file = write_page("explain", TEXT)
    graph = page_content(file)["graph"]
    page: Opened = shown(file, viewport={"width": width, "height": 900}, color_scheme=scheme, has_touch=width < 400)
    for node in (0, 1, len(graph["nodes"]) - 1):
        place = page.page.locator(f"#node-{node}")
        place.tap() if width < 400 else place.click()
        check_axe(page, f"node {node}")
        assert page.page.evaluate("document.documentElement.scrollWidth") <= width
