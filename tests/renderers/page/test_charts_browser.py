"""Charts in a browser: what they say is what the report holds, by mouse, by keyboard, on a phone and on paper."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from io import StringIO
from itertools import pairwise
from math import inf, nan
from typing import Any

import numpy as np
import pytest

from attnviz.report import Block, Curve, Distribution, Distributions, Line, Report
from tests.made import report
from tests.renderers.figure.reports import ACCURACY, HELD_OUT, LOSS, TRAINING, curves, distributions, heads, sample
from tests.renderers.page.browser import Open, Opened, number_in
from tests.renderers.page.test_charts import FACTS, attacked_charts, of

pytestmark = pytest.mark.slow
PHONE = {"viewport": {"width": 360, "height": 740}}
GAPS = Line("gaps", (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0), (0.5, nan, 0.4, 0.45, inf, 0.1 + 0.2, 0.2))


@pytest.fixture
def shown(shown: Open) -> Open:
    """Opens the page of a report, or of some blocks."""

    def start(*blocks: Block | Report, state: str = "", **settings: Any) -> Opened:
        (whole,) = blocks if isinstance(blocks[0], Report) else (of(*blocks),)  # type: ignore[arg-type]
        return shown(whole, state, **settings)

    return start


def focus(page: Opened, chart: int = 0) -> None:
    page.page.locator("svg.chart").nth(chart).focus()


def drawn(page: Opened, name: str) -> list[str]:
    paths = page.page.locator(f"svg.chart {name}")
    return [str(each) for each in paths.evaluate_all("paths => paths.map(path => path.getAttribute('d'))")]


def point(page: Opened, x: float, y: float, chart: int = 0) -> None:
    """Points at a place of a chart, in its own pixels."""
    box = page.page.locator("svg.chart").nth(chart).bounding_box()
    assert box is not None
    page.page.mouse.move(box["x"] + x, box["y"] + y)


# Which views there are


def test_the_tabs_are_those_that_have_something_to_show(shown: Open) -> None:
    def tabs(*blocks: Block | Report) -> list[str]:
        return list(shown(*blocks).page.locator("[role=tab]").all_inner_texts())

    maps = ["Overview", "Matrix", "Lines", "Text"]
    assert tabs(report()) == [*maps, "Table"]
    assert tabs(replace(report(), blocks=(*report().blocks, curves(LOSS)))) == [*maps, "Charts", "Table"]
    assert tabs(curves(LOSS), FACTS) == ["Charts", "Table"]
    assert tabs(curves(LOSS)) == ["Charts"]
    assert tabs(FACTS) == ["Table"]


def test_a_page_opens_at_its_maps_else_at_its_charts_else_at_its_tables(shown: Open) -> None:
    def first(*blocks: Block | Report) -> str | None:
        return str(shown(*blocks).page.get_attribute("#view", "data-ready"))

    assert first(replace(report(), blocks=(curves(LOSS), *report().blocks))) == "overview"
    assert first(FACTS, curves(LOSS)) == "charts"
    assert first(FACTS) == "table"


@pytest.mark.parametrize("state", ["view=matrix", "layer=0&head=3", "view=__proto__", "picture=x&query=1", "view="])
def test_a_link_to_maps_that_are_not_there_opens_the_charts(shown: Open, state: str) -> None:
    page = shown(curves(LOSS), FACTS, state=state)
    assert page.page.get_attribute("#view", "data-ready") == "charts"


def test_a_link_opens_the_charts_and_the_address_is_one(shown: Open) -> None:
    page = shown(replace(report(), blocks=(*report().blocks, curves(LOSS))), state="view=charts")
    assert page.page.get_attribute("#view", "data-ready") == "charts"
    assert not page.page.is_visible("#choosers")
    page.page.click("#tab-table")
    page.page.wait_for_url("**#view=table*")
    page.go("view=charts")
    assert page.page.get_attribute("#tab-charts", "aria-selected") == "true"
    alone = shown(curves(LOSS), FACTS)
    alone.page.click("#tab-table")
    alone.page.wait_for_url("**#view=table")


# Lines


def test_the_keyboard_says_every_number_of_every_line(shown: Open) -> None:
    page = shown(curves(LOSS, ACCURACY))
    focus(page)
    said = [page.readout]
    for _ in TRAINING.x[1:]:
        page.press("ArrowRight")
        said.append(page.readout)
    assert [float(number_in(each)) for each in said] == list(TRAINING.y)
    assert [float(str(re.findall(r"epoch ([\d.]+)", each)[0])) for each in said] == list(TRAINING.x)
    page.press("ArrowRight", "ArrowDown")  # at its end a line is left only for another one
    assert page.readout == f"loss, held out: epoch 4, cross-entropy (nats): {HELD_OUT.y[3]}"
    page.press("Home")
    assert page.readout.startswith("loss, held out: epoch 1, ")
    page.press("ArrowUp")
    assert page.readout.startswith("loss, training (with dropout): epoch 1, ")
    page.press("Tab", "Tab")
    assert page.readout.startswith("accuracy, training (with dropout): epoch 0.05, ")


def test_a_number_that_is_none_is_a_gap_and_said(shown: Open) -> None:
    page = shown(curves(Curve("c", "x", "y", (GAPS,))))
    (path,) = drawn(page, ".curve")
    assert [len(part.split("L")) for part in path[1:].split("M")] == [1, 2, 2]
    (alone,) = drawn(page, ".sign")  # no line leads to the first
    assert alone.count("M") == 1
    assert "2 points cannot be drawn: not a number, or too large" in page.page.inner_text("figure")
    focus(page)
    numbers = []
    for _ in GAPS.x:
        numbers.append(number_in(page.readout))
        page.press("ArrowRight")
    assert numbers == ["0.5", "not a number", "0.4", "0.45", "infinity", "0.30000000000000004", "0.2"]
    page.press("Home", "ArrowRight")
    assert page.page.locator(".ring").count() == 0  # nowhere
    page.press("ArrowRight")
    assert page.page.locator(".ring").count() == 1


def test_lines_are_drawn_where_their_numbers_lie(shown: Open) -> None:
    """Between the two ticks that enclose it, a point lies as far as its number does."""
    line = Line("l", (0.0, 2.0, 10.0), (0.0, 8.0, 4.0), marked=True)
    page = shown(curves(Curve("c", "x", "y", (line,))))
    (path,) = drawn(page, ".curve")
    (left, bottom), (x, top), (right, y) = (map(float, part.split(" ")) for part in re.split("[ML]", path)[1:])
    assert (x - left) / (right - left) == pytest.approx(0.2, abs=0.001)
    assert (y - top) / (bottom - top) == pytest.approx(0.5, abs=0.001)
    labels = page.page.locator("svg.chart text")
    at = {
        each.text_content(): (float(each.get_attribute("x")), float(each.get_attribute("y"))) for each in labels.all()
    }
    assert at["10"][0] == pytest.approx(right, abs=0.01)
    assert at["6"][1] == pytest.approx(top + 0.25 * (bottom - top) + 4, abs=0.01)  # 4: half of a digit's height


def test_pointing_at_a_point_says_it_and_rings_it(shown: Open) -> None:
    page = shown(curves(LOSS))
    (_, path) = drawn(page, ".curve")
    places = [tuple(map(float, part.split(" "))) for part in re.split("[ML]", path)[1:]]
    for place, (x, y) in enumerate(places):
        point(page, x, y)
        assert page.readout == f"loss, held out: epoch {place + 1}, cross-entropy (nats): {HELD_OUT.y[place]}"
        ring = page.page.locator(".ring")
        assert (float(ring.get_attribute("cx")), float(ring.get_attribute("cy"))) == pytest.approx((x, y), abs=0.01)
    page.page.mouse.move(0, 0)
    assert page.readout.startswith("Point at a chart")
    assert page.page.locator(".ring").count() == 0


def test_lines_of_one_name_look_alike_and_others_differ_without_colour(shown: Open) -> None:
    lines = tuple(Line(f"line {n}", (0.0, 1.0), (float(n), float(n))) for n in range(6))
    page = shown(curves(Curve("a", "x", "y", lines), Curve("b", "x", "y", lines[::-1])))
    look = "paths => paths.map(p => [getComputedStyle(p).stroke, p.getAttribute('stroke-dasharray')])"
    charts = [page.page.locator("svg.chart").nth(n).locator(".curve").evaluate_all(look) for n in (0, 1)]
    assert charts[0] == charts[1][::-1]
    assert len({colour for colour, _ in charts[0]}) == len({dashes for _, dashes in charts[0]}) == 6
    names = page.page.locator(".names li")
    assert names.all_inner_texts() == [line.name for line in lines]
    assert names.locator("path").evaluate_all(look) == charts[0]


def test_the_mark_stands_at_its_place_with_its_name(shown: Open) -> None:
    page = shown(curves(LOSS))
    (mark,) = drawn(page, ".at")
    (_, path) = drawn(page, ".curve")
    third = float(re.split("[ML]", path)[3].split(" ")[0])
    assert float(mark[1:].split(" ")[0]) == pytest.approx(third, abs=0.01)
    assert "kept" in page.page.locator("svg.chart text").all_text_contents()
    assert not drawn(shown(curves(replace(LOSS, at=None))), ".at")


def test_a_chart_without_points_says_so(shown: Open) -> None:
    page = shown(curves(Curve("c", "x", "y", (Line("l", (0.0,), (nan,)),)), Curve("d", "x", "y", ())))
    assert page.page.locator("svg.chart").all_text_contents() == ["no points", "no points"]
    focus(page, 1)
    page.press("ArrowRight", "ArrowDown", "Home")
    assert page.readout.startswith("Point at a chart")


# Samples


def test_every_number_of_a_sample_is_a_dot_and_is_said(shown: Open) -> None:
    chart = heads(40)
    page = shown(distributions(chart))
    assert [path.count("M") for path in drawn(page, ".dots")[:9]] == [40] * 9
    focus(page)
    page.press("ArrowRight", "ArrowRight", "Home")
    values = chart.samples[2].values
    said = []
    for _ in values:
        said.append(page.readout)
        page.press("ArrowUp")
    assert [float(number_in(each)) for each in said] == sorted(values)
    numbers = [int(re.findall(r"number (\d+) \(of 0 to 39\)", each)[0]) for each in said]
    assert [values[number] for number in numbers] == sorted(values)
    assert said[0].startswith("effective keys (tokens), multi:8, head 1: ")


def test_a_sample_says_its_middle_as_numpy_has_it(shown: Open) -> None:
    chart = heads(61)
    page = shown(distributions(chart))
    focus(page)
    for each in chart.samples:
        low, median, high = np.percentile(each.values, [25, 50, 75]).tolist()
        assert f"61 numbers, {min(each.values)} to {max(each.values)}, " in page.readout
        assert page.readout.endswith(f"the middle half {low} to {high}, median: {median}")
        page.press("ArrowRight")


def test_pointing_at_a_dot_says_it_and_beside_the_dots_their_sample(shown: Open) -> None:
    chart = Distribution("d", "head", "y", (sample(1.0, 5.0, label="0"), sample(2.0, 2.0, label="1")))
    page = shown(distributions(chart))
    first, second = drawn(page, ".dots")[-2:]
    x, y = map(float, first.split("M")[2].removesuffix("h.01").split(" "))
    point(page, x, y)
    assert page.readout == "y, single, head 0: number 1 (of 0 to 1): 5"
    point(page, x, y + 40)
    assert page.readout.startswith("y, single, head 0: 2 numbers, 1 to 5")
    dots = [tuple(map(float, dot.removesuffix("h.01").split(" "))) for dot in second.split("M")[1:]]
    assert dots[0][1] == dots[1][1]
    assert abs(dots[0][0] - dots[1][0]) >= 4  # beside each other, not on each other


def test_groups_stand_apart_and_look_different(shown: Open) -> None:
    page = shown(distributions(heads(40)))
    look = "paths => paths.map(p => [getComputedStyle(p).stroke, p.getAttribute('stroke-linecap')])"
    looks = page.page.locator("svg.chart .dots").evaluate_all(look)
    assert looks[1:] == [looks[1]] * 8
    assert looks[0][0] != looks[1][0]
    assert looks[0][1] != looks[1][1]
    middles = [float(path[1:].split(" ")[0]) for path in drawn(page, ".half")]
    steps = np.diff(middles)
    assert steps[1:] == pytest.approx([steps[1]] * 7)
    assert steps[0] == pytest.approx(1.8 * steps[1])


def test_few_many_and_no_numbers(shown: Open) -> None:
    samples = (sample(1.0), sample(1.0, 2.0), sample(), sample(nan, 1.0, inf), sample(*[2.0] * 40))
    page = shown(distributions(Distribution("d", "x", "y", samples)))
    assert (len(drawn(page, ".level")), len(drawn(page, ".half"))) == (1, 1)
    assert page.page.locator("svg.chart text").all_text_contents().count("no numbers") == 1
    assert "2 numbers cannot be drawn: not a number, or too large" in page.page.inner_text("figure")
    focus(page)
    page.press("ArrowRight", "ArrowRight")
    assert page.readout == "y, single, x 0: 0 numbers"
    page.press("ArrowUp")
    assert page.readout == "y, single, x 0: 0 numbers"
    page.press("ArrowRight", "End")
    assert number_in(page.readout) == "infinity"


# All charts


def test_each_chart_has_words(shown: Open) -> None:
    page = shown(curves(LOSS), distributions(heads(40)))
    charts = page.page.locator("svg.chart")
    assert [each.get_attribute("role") for each in charts.all()] == ["img", "img"]
    lines, samples = (str(each.get_attribute("aria-label")) for each in charts.all())
    assert lines.startswith("loss: cross-entropy (nats) by epoch. training (with dropout), 80 points, from 0.6")
    assert "held out, 4 points, from 0.431 to 0.341. kept at 3. " in lines
    median = float(np.median(heads(40).samples[3].values))
    assert f"multi:8 2: median {median:.3g}; " in samples


def test_the_numbers_are_a_table_and_can_be_copied(shown: Open) -> None:
    page = shown(curves(Curve("c", "x", "y", (GAPS,))), distributions(heads(40)))
    page.page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    for summary in page.page.locator("summary").all():
        summary.click()
    page.page.locator("figure table").nth(1).wait_for()
    lines, samples = page.page.locator("figure table").all()
    assert lines.locator("td").all_inner_texts()[:6] == ["gaps", "0", "0.5", "gaps", "1", "not a number"]
    assert samples.locator("tbody tr").count() == 9
    assert float(samples.locator("td").all_inner_texts()[8 + 5]) == np.median(heads(40).samples[1].values)
    page.page.locator("figure button").nth(1).click()
    copied = list(csv.reader(StringIO(page.page.input_value("#status textarea"))))
    assert copied[0] == ["of", "head", "number", "effective keys (tokens)"]
    assert [float(row[3]) for row in copied[41:81]] == list(heads(40).samples[1].values)


def test_the_focus_is_seen_and_the_keyboard_reaches_all(shown: Open) -> None:
    page = shown(curves(LOSS, ACCURACY), FACTS)
    reached = []
    for _ in range(5):
        page.press("Tab")
        reached.append(page.page.evaluate("document.activeElement.tagName.toLowerCase()"))
        assert page.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert reached == ["button", "svg", "summary", "svg", "summary"]


@pytest.mark.parametrize("settings", [{}, PHONE])
@pytest.mark.parametrize("view", ["charts", "table"])
def test_hostile_names_are_shown_and_run_nothing(shown: Open, view: str, settings: dict[str, Any]) -> None:
    page = shown(attacked_charts(), state=f"view={view}", **settings)
    assert page.page.locator("img, b").count() == 0
    width = settings.get("viewport", {"width": 1200})["width"]
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width
    if view == "charts":
        for chart in range(6):
            focus(page, chart)
            page.press("ArrowRight", "ArrowDown", "ArrowUp")
        for summary in page.page.locator("summary").all():
            summary.click()
        page.page.locator("figure table").nth(5).wait_for()
        assert page.page.locator("img, b").count() == 0
        assert "</script><img src=x onerror=alert(1)>" in page.page.inner_text(".names >> nth=0")


def test_on_a_phone_charts_stand_below_each_other(shown: Open) -> None:
    page = shown(curves(LOSS, ACCURACY), distributions(heads(60), heads(60)), **PHONE)
    boxes = page.page.locator("figure").evaluate_all(
        "all => all.map(e => e.getBoundingClientRect()).map(b => [b.left, b.top, b.right, b.bottom])"
    )
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 360
    assert {left for left, *_ in boxes} == {boxes[0][0]}
    assert all(above[3] <= below[1] for above, below in pairwise(boxes))
    assert all(right <= 360 for _, _, right, _ in boxes)
    _no_two_meet(page)


@pytest.mark.parametrize("n_samples", [1, 9, 32])
@pytest.mark.parametrize("label", ["{}", "layer {}, head {}", "شبكة {}"])
@pytest.mark.parametrize("settings", [{}, PHONE])
def test_no_two_labels_meet(shown: Open, n_samples: int, label: str, settings: dict[str, Any]) -> None:
    samples = tuple(sample(1.0, 2.0, label=label.format(n, n)) for n in range(n_samples))
    page = shown(distributions(Distribution("d", "x", "y", samples)), **settings)
    assert (
        page.page.evaluate("document.documentElement.scrollWidth") <= settings.get("viewport", {"width": 1200})["width"]
    )
    _no_two_meet(page)


def _no_two_meet(page: Opened) -> None:
    """No two texts of a chart, and none cut by its edge."""
    for chart in page.page.locator("svg.chart").all():
        edge, *boxes = chart.evaluate(
            """chart => [chart, ...chart.querySelectorAll("text")].map(e => e.getBoundingClientRect())
              .map(b => [b.left, b.top, b.right, b.bottom])"""
        )
        for place, (left, top, right, bottom) in enumerate(boxes):
            assert edge[0] <= left
            assert right <= edge[2]
            assert edge[1] <= top
            assert bottom <= edge[3]
            for other in boxes[place + 1 :]:
                assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top


def test_a_name_that_runs_from_right_to_left_keeps_to_itself(shown: Open) -> None:
    line = Line("شبكة!", (0.0, 1.0), (0.25, 0.5))
    page = shown(
        curves(Curve("عنوان", "زمن", "قيمة", (line, replace(line, name="b")))), viewport={"width": 900, "height": 800}
    )
    focus(page)
    assert page.readout == "عنوان, شبكة!: زمن 0, قيمة: 0.25"
    parts = "document.querySelectorAll('#readout > *')"
    places = page.page.evaluate(f"[...{parts}].map(e => e.getBoundingClientRect().left)")
    assert places == sorted(places)  # from left to right, as the sentence is
    assert page.page.evaluate("getComputedStyle(document.querySelector('svg.chart text')).unicodeBidi") == "plaintext"


def test_dark_and_light_and_paper(shown: Open) -> None:
    colours = []
    for scheme in ("light", "dark"):
        page = shown(curves(LOSS), color_scheme=scheme)
        colours.append(page.page.evaluate("getComputedStyle(document.querySelector('.curve')).stroke"))
    assert colours[0] != colours[1]
    page.page.emulate_media(media="print", color_scheme="dark")
    assert page.page.evaluate("getComputedStyle(document.querySelector('.curve')).stroke") == colours[0]
    assert page.page.is_visible("svg.chart")
    assert not page.page.is_visible("summary")
    assert len(page.page.pdf()) > 10_000


def test_charts_are_drawn_anew_when_the_window_changes(shown: Open) -> None:
    page = shown(curves(LOSS))
    focus(page)
    page.press("End")
    before = page.readout
    page.page.set_viewport_size({"width": 500, "height": 800})
    page.page.wait_for_selector("svg.chart[viewBox^='0 0 4']")  # 400 to 499 wide
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 500
    assert page.readout == before
    page.press("ArrowLeft")
    assert page.readout.startswith("loss, training (with dropout): epoch 3.95, ")


def test_a_tap_stays_when_the_finger_is_lifted(shown: Open) -> None:
    page = shown(curves(LOSS), has_touch=True, **PHONE)
    box = page.page.locator("svg.chart").bounding_box()
    assert box is not None
    page.page.touchscreen.tap(box["x"] + box["width"] * 0.6, box["y"] + box["height"] / 2)
    assert page.readout.startswith("loss, ")
    assert page.page.locator(".ring").count() == 1
    assert "epoch 0.05," not in page.readout


def test_many_numbers_are_quick(shown: Open) -> None:
    """Four measures of nine heads over 2,000 texts."""
    page = shown(Distributions("d", "d", (heads(2000),) * 4, 2))
    took = page.page.evaluate(
        """async () => {
          const chart = document.querySelector("svg.chart");
          const box = chart.getBoundingClientRect();
          const times = [];
          for (let i = 1; i < 20; i++) {
            const start = performance.now();
            const at = { clientX: box.left + (box.width * i) / 20, clientY: box.top + box.height / 2 };
            chart.dispatchEvent(new PointerEvent("pointermove", at));
            await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
            times.push(performance.now() - start);
          }
          return times.sort((a, b) => a - b)[9];
        }"""
    )
    assert took < 200  # milliseconds, the median; one frame on a free machine
