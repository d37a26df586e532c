"""The matrix under fingers: a tap reads a cell, and two zoom; one finger scrolls, which is left to the browser."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from attnviz.records import AttentionMaps
from attnviz.renderers.page.html import html
from attnviz.renderers.shades import LIFT
from attnviz.report import FigureStyle
from tests.browser import Opened, files
from tests.made import record, report

pytestmark = pytest.mark.slow
PHONE = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True, "device_scale_factor": 2}
N = 40  # tokens
DARKEST = LIFT[-1]

Point = tuple[float, float]


class Spot(NamedTuple):
    """What lies under a point of the page: the place on the map in cells, and the size of a cell there in pixels."""

    row: float
    column: float
    side: float


# By asking at every half pixel around the point until another cell is named.
SPOT = """([x, y]) => {
  const canvas = document.querySelector("canvas.matrix");
  const named = (x, y) => {
    const at = { pointerId: 1, pointerType: "mouse", clientX: x, clientY: y, bubbles: true };
    canvas.dispatchEvent(new PointerEvent("pointermove", at));
    const told = [...document.querySelectorAll("#readout strong")].slice(0, 2);
    return told.map((each) => parseInt(each.textContent)).join();
  };
  const here = named(x, y);
  const end = (dx, dy) => {
    let steps = 0;
    while (steps < 400 && named(x + dx * steps, y + dy * steps) === here) steps++;
    return steps / 2 - 0.25;
  };
  const [left, right, above, below] = [end(-0.5, 0), end(0.5, 0), end(0, -0.5), end(0, 0.5)];
  canvas.dispatchEvent(new PointerEvent("pointerleave", { pointerId: 1, pointerType: "mouse" }));
  const [row, column] = here.split(",").map(Number);
  return [row + above / (above + below), column + left / (left + right), (left + right + above + below) / 2];
}"""


class Phone(Opened):
    """A page on a screen that is touched."""

    def __init__(self, browser: Any, file: Path, state: str = "") -> None:
        super().__init__(browser, file, state, **PHONE)

    def tap(self, x: float, y: float) -> None:
        self.page.touchscreen.tap(x, y)

    def spot(self, point: Point) -> Spot:
        return Spot(*self.page.evaluate(SPOT, point))

    def at(self, across: float, down: float) -> Point:
        """A point of the page by its share of the canvas, most of which is the map."""
        box = self.page.locator("canvas.matrix").bounding_box()
        return box["x"] + across * box["width"], box["y"] + down * box["height"]


Open = Callable[[AttentionMaps], Phone]


@pytest.fixture
def phone(opened: Callable[..., Any], tmp_path: Path) -> Open:
    def start(maps: AttentionMaps) -> Phone:
        file = files(tmp_path, list(html(report(maps), FigureStyle())))
        page: Phone = opened(file, "view=matrix&digits=all", Phone)
        page.page.locator("canvas.matrix").scroll_into_view_if_needed()
        return page

    return start


def test_a_tap_reads_the_cell_that_is_seen_also_where_it_is_zoomed(phone: Open) -> None:
    """One dark cell in a white map: a finger where its pixels are on the screen gets its name."""
    weights = np.full((1, 1, N, N), 1 / N, dtype=np.float32)
    weights[0, 0, 23] = 0.01 / (N - 1)
    weights[0, 0, 23, 17] = 0.99
    page = phone(record(weights))
    assert "tap it" in page.readout
    named = "query 23 t23 attends to key 17 t17: 0.99000001, 40 × an equal share"
    point = page.seen(DARKEST)
    whole = page.spot(point)
    page.tap(*point)
    assert page.readout.endswith(named)
    page.page.get_by_role("button", name="zoom in").tap()
    page.page.locator("canvas.matrix").scroll_into_view_if_needed()
    for _ in range(2):  # another is chosen, and then none, whose labels would be dark, too
        page.page.wait_for_timeout(400)  # or the browser zooms the page
        page.tap(*page.at(0.3, 0.3))
    page.page.wait_for_timeout(400)
    point = page.seen(DARKEST)
    assert page.spot(point).side == pytest.approx(1.5 * whole.side, rel=0.1)
    page.tap(*point)
    assert page.readout.endswith(named)
