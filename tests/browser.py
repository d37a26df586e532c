"""A page in a real browser without a network, and what must be true of every page that was opened there."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files as resources
from io import BytesIO
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pytest
from PIL import Image

# The first that is there. Without what draws windows, a page is opened in two thirds of the time, by the same engine.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
NEEDED = "ATTNVIZ_NEEDS_BROWSER"  # set where these tests have to run: then a missing browser is a failure


def missing(what: str) -> Any:
    if os.environ.get(NEEDED):
        pytest.fail(f"{NEEDED} is set, and there is no {what}")
    pytest.skip(f"no {what}")


@contextmanager
def browser() -> Iterator[Any]:
    """Chromium without a window."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright")
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        missing(" or ".join(BROWSERS))
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found)
        yield started
        started.close()


# Tabs that nobody looks at any more, by browser and settings: to open one takes longer than most tests do in it.
FREE: WeakKeyDictionary[Any, dict[str, list[Any]]] = WeakKeyDictionary()

WIDTHS = (360, 700, 1024)  # pixels of screens that no page may be wider than: one for each layout of its style sheet

# What playwright has of its own for this brings a large script into every page.
READY = """async () => {
  for (const start = Date.now(); !document.querySelector("#view[data-ready]"); ) {
    if (Date.now() - start > 30_000) throw new Error("the page is not ready");
    await new Promise((done) => setTimeout(done, 10));
  }
}"""


# The texts that canvases were painted with since they were last cleared, and those that were not all in one.
RECORDING = """
const Pen = CanvasRenderingContext2D.prototype;
const { clearRect, fillText } = Pen;
globalThis.cut = [];
Pen.clearRect = function (...box) { this.canvas.painted = null; return clearRect.apply(this, box); };
Pen.fillText = function (text, x, y) {
  (this.canvas.painted ??= []).push(text);
  const { actualBoundingBoxLeft: before, actualBoundingBoxRight: behind } = this.measureText(text);
  const ends = [x - before, x + behind].map((at) => new DOMPoint(at, y).matrixTransform(this.getTransform()));
  const isIn = (at) => Math.min(at.x, at.y, this.canvas.width - at.x, this.canvas.height - at.y) > -1;
  if (this.canvas.isConnected && !ends.every(isIn)) cut.push(`${text} is cut`);
  return fillText.call(this, text, x, y);
};
"""
# Texts that were cut, and numbers of a legend that lie on the one before, on any screen but the narrowest.
UNREADABLE = """() => {
  const [left, right] = ["left", "right"].map((side) => (each) => each?.getBoundingClientRect()[side]);
  const ticks = innerWidth < 320 ? [] : [...document.querySelectorAll(".ticks span")];
  return [...cut, ...ticks.filter((each) => right(each.previousSibling) > left(each)).map((each) => each.outerHTML)];
}"""
PAINTED = """() => [...document.querySelectorAll("canvas")].flatMap((each) => each.painted ?? [])"""


class Opened:
    """One page, and everything that it did besides being shown.

    It stands in a tab that others with the same settings had before: of those nothing is left in it but the address.
    Its size is what was asked, also where a test made it another.
    """

    def __init__(self, browser: Any, file: Path, state: str = "", **settings: Any) -> None:
        self.file = file
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.heard = {
            "console": lambda message: self.errors.append(message.text),
            "pageerror": lambda error: self.errors.append(str(error)),
            "dialog": lambda dialog: self.errors.append(f"dialog {dialog.message}"),
            "request": lambda request: self.requests.append(request.url),
        }
        wanted = {"offline": True, "viewport": {"width": 1200, "height": 1100}, **settings}
        self.free = FREE.setdefault(browser, {}).setdefault(repr(wanted), [])
        self.page = self.free.pop() if self.free else self._new_page(browser, wanted)
        self.page.set_viewport_size(wanted["viewport"])  # a test may have made its tab another size
        for event, listener in self.heard.items():
            self.page.on(event, listener)
        self.go(state)

    @staticmethod
    def _new_page(browser: Any, wanted: dict[str, Any]) -> Any:
        context = browser.new_context(**wanted)
        context.add_init_script(RECORDING)
        return context.new_page()

    @property
    def painted_texts(self) -> list[str]:
        """What stands on all canvases, without marks of direction."""
        self.page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        return [text.strip("\u200e") for text in self.page.evaluate(PAINTED)]

    def go(self, state: str) -> None:
        """Opens a link to a state, as somebody who was sent it does."""
        if self.page.url.partition("#")[0] == self.file.as_uri():  # else the page that is there would go to the state
            self.page.goto("about:blank")
        self.page.goto(f"{self.file.as_uri()}#{state}")
        self.ready()

    def check_width(self, width: int, state: str) -> None:
        """On a screen of this width a state needs no more."""
        self.page.set_viewport_size({"width": width, "height": 844})
        self.go(state)
        assert self.page.evaluate("document.documentElement.scrollWidth") <= width, state

    def ready(self) -> None:
        self.page.evaluate(READY)

    @property
    def readout(self) -> str:
        return str(self.page.inner_text("#readout"))

    def hover(self, row: int, column: int, n_rows: int, n_columns: int) -> None:
        """Points at the middle of a cell: the map fills its canvas but for the margins, which are measured."""
        self.page.mouse.move(*self._place(row, column, n_rows, n_columns))

    def colour(self, row: int, column: int, n_rows: int, n_columns: int) -> list[int]:
        """Red, green and blue beside the middle of a cell."""
        x, y = self._place(row, column, n_rows, n_columns)
        self.page.mouse.move(0, 0)
        self.page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        pixel = self.page.screenshot(clip={"x": x + 3, "y": y + 3, "width": 1, "height": 1})
        return list(Image.open(BytesIO(pixel)).convert("RGB").tobytes())

    def seen(self, colour: tuple[int, int, int]) -> tuple[float, float]:
        """The middle of what has nearly this colour, in pixels of the page."""
        pixels = np.asarray(Image.open(BytesIO(self.page.screenshot(scale="css"))).convert("RGB")).astype(int)
        box = self.page.locator("canvas.matrix").bounding_box()
        x, y, right, bottom = (
            int(box[a] + box[b] * share) for share in (0, 1) for a, b in (("x", "width"), ("y", "height"))
        )
        rows, columns = np.nonzero((np.abs(pixels[y:bottom, x:right] - colour) < 8).all(axis=-1))
        return x + float(columns.mean()), y + float(rows.mean())

    def _place(self, row: int, column: int, n_rows: int, n_columns: int) -> tuple[float, float]:
        left, top, width, height = self.page.evaluate(AREA)
        return left + width * (column + 0.5) / n_columns, top + height * (row + 0.5) / n_rows

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def close(self) -> None:
        """Raises AssertionError if the page asked for anything but itself, complained, or says what cannot be read."""
        if self.heard:  # not a second time
            self.page.mouse.move(0, 0)
            self.errors += self.page.evaluate(UNREADABLE)
            self.free.append(self.page)
        while self.heard:
            self.page.remove_listener(*self.heard.popitem())
        assert self.errors == [], self.errors
        assert {request.partition("#")[0] for request in self.requests} == {self.file.as_uri()}


# Where the cells are: the box of all pixels that are neither paper nor label is not known from outside, but a cell at
# each end is: the first and the last place along a diagonal at which the page names a cell.
AREA = """() => {
  const canvas = document.querySelector("canvas.matrix");
  const box = canvas.getBoundingClientRect();
  const told = (x, y) => {
    const at = { pointerId: 1, clientX: x, clientY: y, bubbles: true };
    canvas.dispatchEvent(new PointerEvent("pointermove", at));
    return document.querySelector("#readout strong") !== null;
  };
  const edge = (outside, inside, at) => {  // to half a pixel
    while (Math.abs(inside - outside) > 0.5) {
      const middle = (outside + inside) / 2;
      if (at(middle)) inside = middle;
      else outside = middle;
    }
    return inside;
  };
  const ends = (from, to, at) => {
    let inside = from;
    while (!at(inside) && inside < to) inside += 8;
    return at(from) ? [from, edge(to, inside, at)] : [edge(from, inside, at), edge(to, inside, at)];
  };
  const [right, bottom] = [box.right - 8, box.bottom - 12];
  const [left, last] = ends(box.left, box.right, (x) => told(x, bottom));
  const [top, lowest] = ends(box.top, box.bottom, (y) => told(right, y));
  return [left, top, last - left, lowest - top];
}"""


def number_in(readout: str) -> str:
    """What stands after the last colon, without how many equal shares that is."""
    return readout.rpartition(": ")[2].partition(", ")[0].strip()


def check_axe(page: Opened, where: str) -> None:
    """Nothing that axe-core, which a package carries, finds in the state in which a page is."""
    try:
        script = resources("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    except ModuleNotFoundError:
        missing("axe-playwright-python")
    page.page.evaluate(script)
    found = page.page.evaluate("axe.run({ resultTypes: ['violations'], preload: false })")
    assert len(found["passes"]) > 15
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found["violations"]] == [], where


Open = Callable[..., Opened]
