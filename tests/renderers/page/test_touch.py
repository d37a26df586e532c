"""The matrix under fingers: a tap reads a cell, and two zoom; one finger scrolls, which is left to the browser."""

import numpy as np
import pytest

from attnviz.renderers.shades import LIFT
from tests.browser import Open
from tests.made import record, report

pytestmark = pytest.mark.slow
PHONE = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True, "device_scale_factor": 2}
N = 40  # tokens
DARKEST = LIFT[-1]

# The size of the cell under a point, in pixels: by asking at every half pixel until another cell is named.
SIDE = """([x, y]) => {
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
  return (left + right + above + below) / 2;
}"""


def test_a_tap_reads_the_cell_that_is_seen_also_where_it_is_zoomed(shown: Open) -> None:
    """One dark cell in a white map: a finger where its pixels are on the screen gets its name."""
    weights = np.full((1, 1, N, N), 1 / N, dtype=np.float32)
    weights[0, 0, 23] = 0.01 / (N - 1)
    weights[0, 0, 23, 17] = 0.99
    page = shown(report(record(weights)), "view=matrix&digits=all", **PHONE)
    canvas, tap = page.page.locator("canvas.matrix"), page.page.touchscreen.tap
    canvas.scroll_into_view_if_needed()
    assert "Point, tap, or move" in page.readout
    named = "query 23 t23 attends to key 17 t17: 0.99000001, 40 × an equal share"
    point = page.seen(DARKEST)
    whole = page.page.evaluate(SIDE, point)
    tap(*point)
    assert page.readout.endswith(named)
    page.page.get_by_role("button", name="zoom in").tap()
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    for _ in range(2):  # another is chosen, and then none, whose labels would be dark, too
        page.page.wait_for_timeout(400)  # or the browser zooms the page
        tap(box["x"] + 0.3 * box["width"], box["y"] + 0.3 * box["height"])
    page.page.wait_for_timeout(400)
    point = page.seen(DARKEST)
    assert page.page.evaluate(SIDE, point) == pytest.approx(1.5 * whole, rel=0.1)
    tap(*point)
    assert page.readout.endswith(named)
