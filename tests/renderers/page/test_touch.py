"""The matrix under fingers: two zoom and move it, one moves it or scrolls the page, a tap reads a cell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from attnviz.records import AttentionMaps
from attnviz.renderers.page.html import html
from attnviz.renderers.shades import LIFT
from attnviz.report import FigureStyle
from tests.browser import Opened, files, number_in
from tests.made import random_maps, record, report

pytestmark = pytest.mark.slow
PHONE = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True, "device_scale_factor": 2}
N = 40  # tokens
DARKEST = LIFT[-1]
STEPS = 8  # of a movement

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

# The browser keeps a movement back until it draws the next frame.
FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))"


class Phone(Opened):
    """A page on a screen that is touched."""

    def __init__(self, browser: Any, file: Path, state: str = "") -> None:
        super().__init__(browser, file, state, **PHONE)
        self.fingers: dict[int, Point] = {}
        self.protocol = self.page.context.new_cdp_session(self.page)

    def down(self, **fingers: Point) -> None:
        """A finger each: a=(x, y)."""
        self.fingers.update({ord(name): at for name, at in fingers.items()})
        self._say("touchStart")

    def move(self, **fingers: Point) -> None:
        """Slowly enough to be seen on the way."""
        starts = dict(self.fingers)
        for step in range(1, STEPS + 1):
            for name, (x, y) in fingers.items():
                (from_x, from_y) = starts[ord(name)]
                share = step / STEPS
                self.fingers[ord(name)] = (from_x + share * (x - from_x), from_y + share * (y - from_y))
            self._say("touchMove")
        self.page.evaluate(FRAMES)

    def up(self, *names: str) -> None:
        self._say("touchEnd", {ord(name): self.fingers.pop(ord(name)) for name in names})

    def _say(self, kind: str, fingers: dict[int, Point] | None = None) -> None:
        points = [{"x": x, "y": y, "id": number} for number, (x, y) in (fingers or self.fingers).items()]
        self.protocol.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def tap(self, x: float, y: float) -> None:
        self.down(a=(x, y))
        self.up("a")

    def pinch(self, middle: Point, before: float, after: float, shift: Point = (0, 0)) -> None:
        """Two fingers on a level, `before` pixels apart, that end `after` pixels apart and are shifted on the way."""
        x, y = middle
        self.down(a=(x - before / 2, y), b=(x + before / 2, y))
        x, y = x + shift[0], y + shift[1]
        self.move(a=(x - after / 2, y), b=(x + after / 2, y))
        self.up("a", "b")

    def spot(self, point: Point) -> Spot:
        return Spot(*self.page.evaluate(SPOT, point))

    def at(self, across: float, down: float) -> Point:
        """A point of the page by its share of the canvas, most of which is the map."""
        box = self.page.locator("canvas.matrix").bounding_box()
        return box["x"] + across * box["width"], box["y"] + down * box["height"]

    @property
    def is_zoomed(self) -> bool:
        return "zoomed" in str(self.page.get_attribute("canvas.matrix", "class"))


Open = Callable[[AttentionMaps], Phone]


@pytest.fixture
def phone(opened: Callable[..., Any], tmp_path: Path) -> Open:
    def start(maps: AttentionMaps) -> Phone:
        file = files(tmp_path, list(html(report(maps), FigureStyle())))
        page: Phone = opened(file, "view=matrix&digits=all", Phone)
        page.page.locator("canvas.matrix").scroll_into_view_if_needed()
        return page

    return start


def maps_of(n: int = N) -> AttentionMaps:
    return random_maps(["t"] * n, n_heads=1)


def same(place: Spot, other: Spot) -> bool:
    """To a pixel, which is as exactly as a finger is reported."""
    return max(abs(place.row - other.row), abs(place.column - other.column)) * max(place.side, other.side) < 1.5


@pytest.mark.parametrize("place", [(0.3, 0.4), (0.8, 0.7)])
def test_two_fingers_zoom_about_their_middle(phone: Open, place: Point) -> None:
    page = phone(maps_of())
    assert "Pinch" in page.readout
    middle = page.at(*place)
    before = page.spot(middle)
    page.pinch(middle, before=40, after=120)
    after = page.spot(middle)
    assert same(before, after)
    assert after.side == pytest.approx(3 * before.side, rel=0.05)
    assert page.is_zoomed
    assert page.page.evaluate("visualViewport.scale") == 1  # the map was zoomed, and not the page


def test_what_lies_between_two_fingers_goes_with_them(phone: Open) -> None:
    page = phone(maps_of())
    middle = page.at(0.6, 0.6)
    before = page.spot(middle)
    page.pinch(middle, before=40, after=160, shift=(30, -25))
    assert same(before, page.spot((middle[0] + 30, middle[1] - 25)))


def test_fingers_that_close_show_the_whole_map_again(phone: Open) -> None:
    page = phone(maps_of())
    middle = page.at(0.5, 0.5)
    whole = page.spot(middle)
    page.pinch(middle, before=40, after=160)
    page.pinch(middle, before=160, after=20)
    assert not page.is_zoomed
    assert page.spot(middle) == whole


def test_fingers_that_come_and_go_move_nothing(phone: Open) -> None:
    """Whichever finger stays: the map moves with it, and only when it does."""
    page = phone(maps_of())
    x, y = page.at(0.5, 0.5)
    page.pinch((x, y), before=40, after=160)
    page.down(a=(x - 40, y))
    page.move(a=(x - 60, y - 20))
    settled = page.spot((x, y))
    page.down(b=(x + 50, y + 30))
    assert same(settled, page.spot((x, y)))
    page.up("a")
    assert same(settled, page.spot((x, y)))
    page.move(b=(x + 20, y + 50))
    assert same(settled, page.spot((x - 30, y + 20)))
    page.up("b")
    assert same(settled, page.spot((x - 30, y + 20)))


def test_the_finger_that_stays_after_a_pinch_moves_the_map_and_not_the_page(phone: Open) -> None:
    page = phone(maps_of())
    x, y = page.at(0.5, 0.6)
    page.down(a=(x - 20, y), b=(x + 20, y))
    page.move(a=(x - 80, y), b=(x + 80, y))
    page.up("b")
    scrolled, before = page.page.evaluate("scrollY"), page.spot((x, y))
    page.move(a=(x - 60, y - 70))
    assert same(before, page.spot((x + 20, y - 70)))
    page.up("a")
    page.page.wait_for_timeout(300)  # in which a page that was thrown would go on
    assert page.page.evaluate("scrollY") == scrolled


def test_a_third_finger_changes_nothing(phone: Open) -> None:
    page = phone(maps_of())
    x, y = page.at(0.5, 0.5)
    page.pinch((x, y), before=40, after=160)
    settled = page.spot((x, y))
    page.down(a=(x - 40, y), b=(x + 40, y))
    page.down(c=(x, y + 60))
    page.move(c=(x + 60, y + 90))
    page.up("c", "a", "b")
    assert same(settled, page.spot((x, y)))


def test_a_tap_reads_the_cell_that_is_there(phone: Open) -> None:
    """Also after a pinch; the pinch itself has chosen nothing."""
    maps = maps_of()
    page = phone(maps)
    middle = page.at(0.6, 0.5)
    page.pinch(middle, before=40, after=120)
    assert "Tap a cell" in page.readout
    for point in (middle, page.at(0.4, 0.7)):
        row, column, _ = (int(number) for number in page.spot(point))
        page.tap(*point)
        assert f"query {row} t attends to key {column} t" in page.readout
        assert np.float32(number_in(page.readout)) == maps.weights[0, 0, row, column]
        page.page.wait_for_timeout(400)  # or the next tap is the second of two


def test_the_cell_that_is_seen_after_a_pinch_is_the_cell_that_is_tapped(phone: Open) -> None:
    """One dark cell in a white map: a finger where its pixels are on the screen gets its name."""
    weights = np.full((1, 1, N, N), 1 / N, dtype=np.float32)
    weights[0, 0, 23] = 0.01 / (N - 1)
    weights[0, 0, 23, 17] = 0.99
    page = phone(record(weights))
    page.pinch(page.seen(DARKEST), before=40, after=150, shift=(20, 30))
    page.page.wait_for_timeout(100)
    page.tap(*page.seen(DARKEST))
    assert page.readout.endswith("query 23 t23 attends to key 17 t17: 0.99, 40 × an equal share")


def test_one_finger_scrolls_the_page_and_moves_a_zoomed_map(phone: Open) -> None:
    page = phone(maps_of())
    page.page.evaluate("scrollTo(0, 0)")
    x, y = page.at(0.5, 0.7)
    page.down(a=(x, y))
    page.move(a=(x, y - 150))
    page.up("a")
    page.page.wait_for_timeout(300)
    assert page.page.evaluate("scrollY") > 50
    assert not page.is_zoomed
    x, y = page.at(0.5, 0.5)
    page.pinch((x, y), before=40, after=160)
    scrolled, before = page.page.evaluate("scrollY"), page.spot((x, y))
    page.down(a=(x, y))
    page.move(a=(x - 30, y - 40))
    page.up("a")
    page.page.wait_for_timeout(300)
    assert page.page.evaluate("scrollY") == scrolled
    moved = page.spot((x, y))
    assert (moved.row - before.row) * moved.side == pytest.approx(40, abs=16)  # less what a finger may shake
    assert (moved.column - before.column) * moved.side == pytest.approx(30, abs=16)


def test_two_taps_zoom_in_and_two_more_zoom_out(phone: Open) -> None:
    page = phone(maps_of())
    point = page.at(0.6, 0.5)
    whole = page.spot(point)
    named = f"query {int(whole.row)} t attends to key {int(whole.column)} t"
    page.tap(*point)
    page.tap(*point)
    near = page.spot(point)
    assert same(whole, near)
    assert near.side > 2 * whole.side
    assert named in page.readout
    page.page.wait_for_timeout(400)
    page.tap(*point)
    page.tap(*point)
    assert not page.is_zoomed
    assert page.spot(point).side == pytest.approx(whole.side)
    assert named in page.readout


def test_two_taps_in_two_places_are_two_choices(phone: Open) -> None:
    page = phone(maps_of())
    page.tap(*page.at(0.4, 0.4))
    page.tap(*page.at(0.8, 0.8))
    assert not page.is_zoomed
    row, column, _ = (int(number) for number in page.spot(page.at(0.8, 0.8)))
    assert f"query {row} t attends to key {column} t" in page.readout
