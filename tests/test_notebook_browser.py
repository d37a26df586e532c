"""A page within a notebook's cell: as high as what it shows, whatever that is, and reaching nothing outside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.made import random_maps

pytestmark = pytest.mark.slow
FITS = """(name) => new Promise((done) => {
  const measure = () => [document.documentElement.scrollHeight, innerHeight];
  const isDone = () => document.querySelector(`#view[data-ready=${name}]`) && measure()[0] <= innerHeight;
  const wait = (left) => (isDone() || !left ? done(measure()) : setTimeout(wait, 20, left - 1));
  wait(250);
})"""


@pytest.fixture
def cells(chromium: Any, tmp_path: Path) -> Any:
    """A notebook of two cells, which show records of few tokens and of many."""
    shown = (random_maps(n_heads=3)._repr_html_(), random_maps(["t"] * 60, n_heads=3)._repr_html_())
    file = tmp_path / "notebook.html"
    file.write_text(f"<!doctype html><title>notebook</title>{''.join(shown)}", encoding="utf-8")
    page = chromium.new_page(viewport={"width": 1000, "height": 700})
    page.goto(file.as_uri())
    yield page
    page.close()


def test_nothing_scrolls_within_a_cell(cells: Any) -> None:
    heights = {}
    for place, frame in enumerate(cells.frames[1:]):
        frame.click("#more summary")
        for view in ("matrix", "table", "overview"):
            frame.click(f"#tab-{view}")
            found, heights[place, view] = frame.evaluate(FITS, view)
            assert found <= heights[place, view], view
        assert not frame.is_visible("#about dl")
    assert heights[1, "matrix"] > heights[1, "overview"]  # it becomes lower again


def test_a_cell_heeds_no_height_of_others(cells: Any) -> None:
    frame = cells.locator("iframe").first
    before = frame.bounding_box()
    cells.evaluate("postMessage({ attnviz: 5000 }, '*')")
    cells.evaluate("new Promise((done) => setTimeout(done, 100))")
    assert frame.bounding_box() == before
