"""A long text on the page: cells are means of blocks, and beside them stand words with the record's own weights."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from attnviz.measures import rows
from attnviz.records.factored import FactoredMaps
from attnviz.records.factors import CAUSAL, EVERYWHERE, Factors, Window
from attnviz.renderers.page import map_parts
from attnviz.renderers.page.document import content
from attnviz.report import FigureStyle, Heatmap, Report
from attnviz.specs import FigureOptions
from attnviz.views.heatmap import make_report
from tests.browser import WIDTHS, Open
from tests.made import HOSTILE, provenance, tokens
from tests.records.formula import by_formula

N = 26  # tokens, of which every page shows all
MANY = 150  # of which three share a row of the page
KINDS: dict[str, dict[str, Any]] = {
    "bias of each head": {"bias": 2, "far": 4},
    "one bias, causal": {"bias": 1, "far": 30, "window": CAUSAL},
    "window": {"window": (5, 2)},
    "padding": {"n_padding": 4, "n_groups": 1},
}
# Chooses one query after the other, and collects what it attends to.
WALK = """(n) => {
  const beside = document.querySelector("#beside");
  const current = () => beside.querySelector("button[aria-current]");
  while (current().previousElementSibling) current().previousElementSibling.click();
  return Array.from({ length: n }, (_, at) => {
    if (at) current().nextElementSibling.click();
    const told = [...beside.querySelectorAll("tr")].map((row) => [...row.cells].map((cell) => cell.textContent));
    return [beside.querySelector("caption").textContent, told];
  });
}"""
CONTENT = "JSON.parse(document.querySelector('#content').textContent)"
PALETTE = f"[...atob({CONTENT}.colours.lift)].map((sign) => sign.charCodeAt(0))"
TOKENS = f"{CONTENT}.factored.tokens[0]"


def factored(
    n: int = N,
    *,
    n_heads: int = 2,
    n_groups: int = 2,
    bias: int = 0,
    far: int = 0,
    window: Window = EVERYWHERE,
    n_padding: int = 0,
) -> tuple[FactoredMaps, np.ndarray]:
    """A made-up record of one layer whose tokens are hostile, and its weights in float64 [head, query, key]."""
    random = np.random.default_rng(0)
    query = random.normal(0, 2, size=(n_heads, n, 3)).astype(np.float32)
    key = random.normal(0, 2, size=(min(n_groups, n_heads), n, 3)).astype(np.float32)
    of_bias = random.normal(size=(bias, 2 * far + 1)).astype(np.float32) if bias else None
    attendable = np.arange(n) < n - n_padding if n_padding else None
    unsummed = Factors(query, key, None, 0.5, of_bias, window, attendable)
    log_sum_exp, weights = by_formula(unsummed)
    of = replace(unsummed, log_sum_exp=log_sum_exp.astype(np.float32))
    pieces = tokens(*(HOSTILE[place % len(HOSTILE)] or "-" for place in range(n)))
    return FactoredMaps(pieces, pieces, provenance(), None, (0,), factors=(of,)), weights


def report(maps: FactoredMaps, scale: Any = "lift") -> Report:
    return make_report(maps, FigureOptions(scale=scale))


@pytest.fixture
def pooled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports whose maps have no more than ten rows."""
    monkeypatch.setattr(rows, "MAX_DRAWN_WEIGHTS", 1_000)
    monkeypatch.setattr(rows, "MAX_SIDE", 10)


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages whose maps have no more than fifty rows, of reports that have all weights."""
    for name in ("MAX_SIDE", "POOLED_SIDE"):
        monkeypatch.setattr(map_parts, name, 50)


@pytest.mark.slow
@pytest.mark.usefixtures("pooled")
@pytest.mark.parametrize("kind", KINDS)
def test_each_query_has_its_largest_weights_beside_the_text(shown: Open, kind: str) -> None:
    maps, weights = factored(**KINDS[kind])
    page = shown(report(maps), "digits=all")
    for head in range(2):
        page.go(f"layer=0&head={head}&query=0&key=0&digits=all")
        page.page.wait_for_selector("#beside caption")
        for query, (caption, told) in enumerate(page.page.evaluate(WALK, N)):
            row = weights[head, query]
            keys = [int(name.split()[0]) for name, _ in told]
            assert caption.split()[0] == str(query)
            assert len(keys) == min(10, (row > 0).sum())
            np.testing.assert_allclose([float(weight) for _, weight in told], row[keys], rtol=5e-6)
            np.testing.assert_allclose(row[keys], np.sort(row)[::-1][: len(keys)], rtol=5e-6)


@pytest.mark.slow
def test_cells_are_means_and_the_text_stands_there_at_once_around_the_largest_weight(shown: Open, cut: None) -> None:
    maps, weights = factored(MANY, n_heads=1)
    page = shown(report(maps), "layer=0&head=0")
    page.page.wait_for_selector("#beside caption")  # its weights are there, and drawn
    means = weights[0].reshape(MANY // 3, 3, MANY // 3, 3).mean(axis=(1, 3))
    row, column = np.unravel_index(means.argmax(), means.shape)
    part = weights[0, 3 * row : 3 * row + 3, 3 * column : 3 * column + 3]
    query, key = np.unravel_index(part.argmax(), part.shape)
    assert page.page.inner_text("#beside caption").startswith(f"{3 * row + query} ")
    assert page.page.text_content("#beside .answer") == page.page.evaluate(f"{TOKENS}[{3 * column + key}]")
    assert page.page.inner_text("#legend").endswith("≥ 16 ×")
    palette = page.page.evaluate(PALETTE)
    for row, column in ((10, 7), (25, 25), (45, 7), (18, 33)):
        part = weights[0, 3 * row : 3 * row + 3, 3 * column : 3 * column + 3]
        shade = 255 * np.log(part[part > 0].mean() * MANY) / np.log(16)
        at = 3 * int(np.clip(round(shade), 0, 255))
        np.testing.assert_allclose(page.colour(row, column, MANY // 3, MANY // 3), palette[at : at + 3], atol=2)
    page.hover(10, 7, MANY // 3, MANY // 3)
    assert page.readout.startswith("layer 0, head 0, the mean of 3 × 3 weights: query 30–32 ")


@pytest.mark.slow
def test_a_long_text_is_no_wider_than_the_screen(shown: Open, pooled: None) -> None:
    page = shown(report(factored(n_heads=12)[0]))
    for width, view in product(WIDTHS, ("matrix", "overview", "table")):
        page.check_width(width, f"view={view}&layer=0&head=9")


def test_what_is_not_pooled_has_no_factors() -> None:
    maps, _ = factored()
    shown = report(maps)
    assert all(isinstance(each, Heatmap) and each.factors for each in list(shown.pictures)[1:])
    assert content(shown, FigureStyle())[0]["factored"] is None
    part = make_report(maps, FigureOptions(tokens="2:9"))
    assert all(each.factors is None for each in part.pictures if isinstance(each, Heatmap))
