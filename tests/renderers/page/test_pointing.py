"""An image on a page: who points at a place of it sees what every head gives from there."""

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import attnviz
from attnviz.records import AttentionMaps
from attnviz.renderers.page.html import html
from attnviz.report import FigureStyle
from attnviz.views import patches
from attnviz.views.translate import translate
from tests.browser import Open, check_axe
from tests.made import report

PRINTED = """matchMedia("print").addEventListener("change", ({ matches }) => {
  const [canvas, hint] = ["canvas", ".hint"].map((each) => document.querySelector(`.image ${each}`));
  const isPainted = () => canvas.getContext("2d").getImageData(30, 30, 9, 9).data.some(Boolean);
  if (matches) globalThis.printed = [isPainted(), hint.checkVisibility()];
})"""
FRAME = "() => document.querySelector('.image canvas').getBoundingClientRect().top"


def over_image(n_rows: int, n_columns: int, n_heads: int) -> AttentionMaps:
    """Heads over a grey image, each of which looks from a patch at what is so many patches further on."""
    n = n_rows * n_columns
    weights = np.random.default_rng(0).dirichlet(np.full(n + 1, 0.1), (1, n_heads, n + 1)) / 2
    for head, patch in np.ndindex(n_heads, n):
        weights[0, head, 1 + patch, 1 + (patch + head + 1) % n] += 0.5
    weights[0, :, 0] *= 2
    image = Image.linear_gradient("L")
    return attnviz.from_attentions(weights, keys=attnviz.Grid(n_rows, n_columns, image=image, leading=["[CLS]"]))


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1200])
def test_heads_follow_who_points_at_a_place_of_the_image(shown: Open, width: int) -> None:
    maps = over_image(4, 5, 3)
    page = shown(report(maps), "view=overview&query=2&key=3", viewport={"width": width, "height": 900})
    heading, top = page.page.locator("#view h2"), page.page.evaluate(FRAME)

    def check(row: int, column: int) -> None:
        patch = 5 * row + column
        looks = [(maps.weights[0, head, 1 + patch, 1 + patch + head + 1], head) for head in range(3)]
        assert heading.inner_text() == f"what patch {row},{column} looks at"
        for weight, head in looks:
            row_at, column_at = divmod(patch + head + 1, 5)
            assert f"head {head} → {row_at},{column_at} ({weight:.3g})" in page.readout
        beside = maps.weights[0, :, 1 + patch, 0].mean()
        assert f"[CLS] {100 * beside:.0f} %" in page.readout or beside < 0.005
        assert page.page.evaluate(FRAME) == top  # it stays where it is pointed at

    check(2, 3)
    check_axe(page, "pointing")
    page.page.locator(".image canvas").press("ArrowUp")
    check(1, 3)
    page.page.locator(".image canvas").press("Escape")
    assert heading.inner_text().startswith("where “[CLS]” looks")
    canvas = page.page.locator(".map canvas").first
    box = canvas.bounding_box()
    canvas.hover(position={"x": box["width"] - 3, "y": box["height"] * 0.4})
    assert heading.inner_text() in ("what patch 1,4 looks at", "what patch 0,4 looks at")
    page.page.evaluate(PRINTED)
    page.page.pdf()
    assert page.page.evaluate("printed") == [True, False]  # paper has the image, and not how to point at it


def test_parts_of_an_image_hold_what_their_patches_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patches, "MAX_CELLS", 2 * 6**2)
    maps = over_image(4, 5, 2)
    found = patches.follow_places(maps, [(0, 0), (0, 1)])
    (look, _), rows = found.looks.values(), maps.weights[0, 0, 1:, 1:].reshape(4, 5, 4, 5)
    assert (found.block, look.shape) == (2, (6, 6))
    assert look[0, 5] == pytest.approx(rows[:2, :2, 2:, 4:].sum(axis=(2, 3)).mean())
    assert found.equal["layer-0-head-0"] == pytest.approx(4 / 21)


def test_a_page_of_a_large_grid_is_small_and_says_parts_in_chinese() -> None:
    chinese = translate(report(over_image(16, 16, 12)), "zh")
    ((_, page),) = html(chinese, replace(FigureStyle(), lang="zh"))
    assert len(page) <= 400_000
    said = " ".join(note.text for note in chinese.notes)
    assert "这些图像块以外平均" in said
    assert not any(part in said for part in ("top", "left", "right", "bottom", "centre", "beside"))
