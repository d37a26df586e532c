"""A long text on the page: what is zoomed into is the record, weight by weight."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from attnviz.measures import rows
from attnviz.records.factored import FactoredMaps
from attnviz.records.factors import CAUSAL, EVERYWHERE, Factors
from attnviz.renderers.page import factor_parts as factors
from attnviz.renderers.page.bundle import IMPORT
from attnviz.renderers.page.document import content
from attnviz.report import FigureStyle, Heatmap, RenderedFrom, Report
from attnviz.specs import FigureOptions
from attnviz.views import head_pictures
from attnviz.views.heatmap import heatmap_report
from tests.browser import WIDTHS, Open, Opened, number_in
from tests.made import HOSTILE, provenance, tokens

N = 26  # tokens, of which every page shows all
MANY = 1500  # of which a screen shows single weights only of some
KINDS: dict[str, dict[str, Any]] = {
    "bias of each head": {"bias": 2, "far": 4},
    "one bias, causal": {"bias": 1, "far": 30, "window": CAUSAL},
    "window": {"window": (5, 2)},
    "padding": {"n_padding": 4, "n_groups": 1},
    "words that come again": {"n_words": 7, "bias": 1, "far": 3},
}
# Walks through a map by the arrow keys, row by row, and collects what is said of each weight.
WALK = """(n) => {
  const canvas = document.querySelector("canvas.matrix");
  const press = (key) => canvas.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  return Array.from({ length: n * n }, (_, at) => {
    if (at % n) press("ArrowRight");
    else if (at) press("Home"), press("ArrowDown");
    return document.querySelector("#readout").textContent;
  });
}"""


def factored(
    n: int = N,
    *,
    n_heads: int = 2,
    n_groups: int = 2,
    n_words: int = 0,
    bias: int = 0,
    far: int = 0,
    window: tuple[int | None, int | None] = EVERYWHERE,
    n_padding: int = 0,
    markers: Sequence[int] = (),
) -> tuple[FactoredMaps, np.ndarray]:
    """A made-up record of one layer whose tokens are hostile, and its weights in float64 [head, query, key]."""
    random = np.random.default_rng(0)
    alike = np.arange(n) if not n_words else random.integers(n_words, size=n)
    query, key = (
        random.normal(0, 2, size=(heads, n, 3)).astype(np.float32)[:, alike]
        for heads in (n_heads, min(n_groups, n_heads))
    )
    of_bias = random.normal(size=(bias, 2 * far + 1)).astype(np.float32) if bias else None
    attendable = np.arange(n) < n - n_padding
    keys = np.repeat(key, n_heads // len(key), axis=0).astype(np.float64)
    scores = 0.5 * query.astype(np.float64) @ keys.swapaxes(1, 2)
    apart = np.arange(n) - np.arange(n)[:, None]
    if of_bias is not None:
        scores += of_bias[:, np.clip(apart, -far, far) + far]
    back, forward = (n if reach is None else reach for reach in window)
    allowed = (apart >= -back) & (apart <= forward) & attendable
    scores[:, ~allowed] = -np.inf
    sums = np.log(np.exp(scores).sum(axis=-1)).astype(np.float32)
    of = Factors(query, key, sums, 0.5, of_bias, window, attendable if n_padding else None)
    words = ("[SEP]" if place in markers else HOSTILE[place % len(HOSTILE)] or "-" for place in range(n))
    pieces = tokens(*words, special=("[SEP]",))
    maps = FactoredMaps(pieces, pieces, provenance(), None, (0,), factors=(of,))
    return maps, np.exp(scores - sums.astype(np.float64)[:, :, None])


def report(maps: FactoredMaps, scale: Any = "lift") -> Report:
    return heatmap_report(maps, [], FigureOptions(scale=scale), range(maps.n_layers), range(maps.n_heads))


@pytest.fixture
def pooled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports whose maps have no more than ten rows."""
    for module in (rows, head_pictures):
        monkeypatch.setattr(module, "MAX_DRAWN_WEIGHTS", 1_000)
    monkeypatch.setattr(rows, "MAX_SIDE", 10)


def weight_in(said: str) -> float:
    number = number_in(said)
    return 0.0 if number == "not allowed" else float(number.split()[0])


@pytest.mark.slow
@pytest.mark.usefixtures("pooled")
@pytest.mark.parametrize("kind", KINDS)
def test_each_weight_on_the_page_is_that_of_float64(shown: Open, kind: str) -> None:
    maps, weights = factored(**KINDS[kind])
    page = shown(report(maps), "digits=all")
    for head in range(2):
        page.go(f"layer=0&head={head}&query=0&key=0&digits=all")
        said = page.page.evaluate(WALK, N)
        found = np.array([weight_in(each) for each in said]).reshape(N, N)
        np.testing.assert_allclose(found, weights[head], rtol=5e-6)
        assert [number_in(each) == "not allowed" for each in said] == (weights[head].ravel() == 0).tolist()
        positions = [re.findall(r"(?:query|key) (\d+)", each) for each in (said[3], said[N + 7])]
        assert positions == [["0", "3"], ["1", "7"]]


TILES = """
const given = JSON.parse(process.argv[1]);
const typed = (name, type) => given[name] && type.from(given[name]);
const givenSide = (name) => ({ n: given[name].n, places: given[name].places && Uint32Array.from(given[name].places) });
const made = new Factors(
  {
    ...given,
    query: givenSide("query"),
    key: givenSide("key"),
    bias: typed("bias", Float32Array),
    attendable: typed("attendable", Uint8Array),
    shares: typed("shares", Float32Array),
  },
  Float32Array.from(given.numbers), Float32Array.from(given.sums), null, 0);
const placeIn = (cells, at) => [Math.floor(at / cells.nColumns), at % cells.nColumns];
const told = (cells) => Array.from(cells.stored, (weight, at) => [weight, cells.isAllowed(...placeIn(cells, at))]);
console.log(JSON.stringify(given.windows.map((window) => told(made.tile(...window)))));
"""


@pytest.mark.parametrize("kind", KINDS)
def test_a_tile_holds_the_largest_weight_of_each_cell(kind: str) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node")
    maps, weights = factored(**KINDS[kind])
    of = maps.factors[0]
    held = next(each.factors for each in report(maps).pictures if isinstance(each, Heatmap))
    assert held is not None
    head = factors.PackedHead.from_factors(held)
    sides = {"query": head.query, "key": head.key}
    windows = [(0, N, 0, N, 1), (3, 20, 6, N, 3), (0, N, 0, N, 4), (8, 9, 0, 8, 8)]
    given = {
        **{name: {"n": len(of_side.rows), "places": _list(of_side.places)} for name, of_side in sides.items()},
        "width": 3,
        "scale": of.scale,
        "window": of.window,
        "size": 3,
        "windows": windows,
        "bias": _list(head.of.bias),
        "attendable": _list(of.attendable_keys),
        "shares": [1 / N] * N,
        "numbers": np.concatenate([of_side.rows.ravel() for of_side in sides.values()]).tolist(),
        "sums": head.of.log_sum_exp.tolist(),
    }
    parts = (files("attnviz.renderers.page").joinpath(name).read_text("utf-8") for name in ("cells.js", "factors.js"))
    script = [node, "--input-type=module", "--eval", IMPORT.sub("", "".join(parts)) + TILES, json.dumps(given)]
    done = subprocess.run(script, capture_output=True, text=True, timeout=60, check=True)
    for (top, bottom, left, right, pool), found in zip(windows, json.loads(done.stdout), strict=True):
        part = weights[0, top:bottom, left:right]
        expected = [
            part[row : row + pool, column : column + pool].max()
            for row in range(0, bottom - top, pool)
            for column in range(0, right - left, pool)
        ]
        np.testing.assert_allclose([weight for weight, _ in found], expected, rtol=5e-6)
        assert [allowed for _, allowed in found] == [weight > 0 for weight in expected]


def _list(numbers: np.ndarray | None) -> list[float] | None:
    return None if numbers is None else [float(number) for number in numbers]


@pytest.mark.slow
def test_the_other_heads_stand_above_a_map_that_is_zoomed_into(shown: Open, pooled: None) -> None:
    maps, weights = factored(n_heads=3, n_groups=1)
    page = shown(report(maps), "layer=0&head=1&query=7&key=4&window=5:9,3:7&digits=all")
    small, window = page.page.locator(".strip .map"), page.page.inner_text("#window")
    assert small.all_inner_texts() == ["0", "1", "2"]
    assert window.startswith("Queries 5 to ")
    box = small.nth(0).locator("canvas").bounding_box()
    page.page.mouse.move(box["x"] + 2, box["y"] + 2)
    assert page.readout.startswith("layer 0, head 0, the largest of 3 × 3 weights: query ")
    assert weight_in(page.readout) == pytest.approx(weights[0, :3, :3].max(), rel=5e-6)
    for press, head in ((lambda: small.nth(2).click(), 2), (lambda: page.press("ArrowLeft"), 1)):
        press()
        page.ready()
        assert page.page.inner_text(".strip [aria-current]") == str(head)
        page.page.mouse.move(0, 0)
        assert weight_in(page.readout) == pytest.approx(weights[head, 7, 4], rel=5e-6)
        assert page.page.inner_text("#window") == window


@pytest.mark.slow
def test_small_maps_and_the_whole_of_a_large_one_have_one_scale(shown: Open) -> None:
    page = shown(report(factored(MANY)[0]), "layer=0&head=0")
    of_map = page.page.inner_text("#legend")
    assert ": the largest of the many weights of each cell" in of_map
    page.page.click("#tab-overview")
    page.ready()
    assert page.page.inner_text("#legend") == of_map


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
def test_a_long_text_is_no_wider_than_the_screen(shown: Open, pooled: None, width: int) -> None:
    page = shown(report(factored(n_heads=12)[0]), "layer=0&head=9", viewport={"width": width, "height": 844})
    for view in ("matrix", "overview", "lines", "table"):
        page.page.click(f"#tab-{view}")
        page.ready()
        assert page.page.evaluate("document.documentElement.scrollWidth") <= width, view
        if view == "matrix":
            assert page.page.locator(".strip").bounding_box()["width"] > 150


ENDS = (0, N - 1)  # where markers are
LEFT_OUT = [
    ("bias of each head", "markers"),
    ("one bias, causal", "first"),
    ("window", "markers,first"),
    ("padding", "first"),
    ("words that come again", "markers"),
]


@pytest.mark.slow
@pytest.mark.usefixtures("pooled")
@pytest.mark.parametrize(("kind", "without"), LEFT_OUT)
def test_tokens_at_the_ends_can_be_left_out(shown: Open, kind: str, without: str) -> None:
    """Weights stay what they are, blocks are the largest of what is left, and the share of the others is said."""
    maps, weights = factored(**KINDS[kind], markers=ENDS)
    kept = slice(1, None if without == "first" else -1)
    left = weights[:, kept, kept]
    state = f"without={without}&digits=all"
    page = shown(report(maps), f"layer=0&head=1&query=1&key=1&{state}")
    said = page.page.evaluate(WALK, left.shape[1])
    np.testing.assert_allclose(np.reshape([*map(weight_in, said)], left.shape[1:]), left[1], rtol=5e-6)
    assert re.findall(r"(?:query|key) (\d+)", said[0]) == ["1", "1"]
    equal = left[1].sum(axis=-1, keepdims=True) / (left[1] > 0).sum(axis=-1, keepdims=True)
    times = np.array([float(each.split()[-5]) if each.endswith("share") else 0.0 for each in said])
    n = (N - KINDS[kind].get("n_padding", 0)) * left.shape[2] - left.shape[2]  # of padding there is no equal share
    np.testing.assert_allclose(times[:n], (left[1] / equal).ravel()[:n], rtol=0.051)
    hidden = f"{100 * (1 - left.sum(axis=-1)[1]).mean():.1f}% is hidden"
    assert hidden in page.page.inner_text("#left-out")
    page.go(f"view=overview&{state}")
    assert f"{100 * (1 - left.sum(axis=-1)).mean():.1f}% is hidden" in page.page.inner_text("#left-out")
    page.go(f"layer=0&head=1&{state}")
    box = page.page.locator(".strip .map canvas").nth(0).bounding_box()
    for row, column in ((0, 0), (0, 8), (8, 0), (4, 4), (8, 8)):
        across, down = (column + 0.5) / 9, (row + 0.5) / 9
        page.page.mouse.move(box["x"] + box["width"] * across, box["y"] + box["height"] * down)
        block = weights[0][kept, kept][*(slice(max(0, 3 * at - 1), 3 * at + 2) for at in (row, column))]
        assert weight_in(page.readout) == pytest.approx(block.max(), rel=5e-6), (row, column)
        assert ("1–2" in page.readout) == (0 in (row, column))


@pytest.mark.slow
@pytest.mark.usefixtures("pooled")
def test_what_cannot_be_left_out_of_a_long_text_is_not_offered(shown: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    def offered(markers: Sequence[int]) -> list[str]:
        page = shown(report(factored(markers=markers)[0]), "view=matrix&without=markers,first")
        found: list[str] = page.page.get_by_role("combobox", name="Tokens").locator("option").all_inner_texts()
        return found

    assert offered(ENDS) == ["all", "without markers", "without the first", "without both"]
    assert offered((0, 9, N - 1)) == ["all", "without the first"]  # blocks behind it would all be others
    monkeypatch.setattr(factors, "ROOM", 1_000)
    assert offered(ENDS) == []  # of the second head there is no single weight


@pytest.mark.slow
def test_a_window_names_positions_whatever_is_left_out(shown: Open) -> None:
    maps, weights = factored(MANY, markers=(0, MANY - 1))
    of = replace(report(maps), render=RenderedFrom("a.safetensors", "", ""))
    state = "view=matrix&layer=0&head=1&window=700:720,300:320&query=703&key=304&digits=all"
    page = shown(of, state)
    seen = window_of(page), page.readout.partition(", ")[0], page.page.inner_text("#command")
    page.page.get_by_role("combobox", name="Tokens").select_option("without both")
    page.ready()
    assert (window_of(page), page.readout.partition(", ")[0]) == seen[:2]
    command = seen[2].replace(" --pick", " --hide-special --drop-first --pick")
    assert page.page.inner_text("#command") == command != seen[2]
    assert "window=700:720,300:320" in page.page.evaluate("location.hash")
    page.go("view=matrix&layer=0&head=1&without=markers&window=0:30,0:30&digits=all")
    assert window_of(page).startswith("Queries 1 to 29, keys 1 to 29")
    page.page.get_by_role("button", name="show the whole map").click()
    for place in range(100, 1400, 200):  # blocks begin where they did
        page.hover(place, 1450 - place, MANY, MANY)
        assert ", the largest of 4 × 4 weights: query" in page.readout
        query, key = (int(each) // 4 * 4 for each in re.findall(r"(?:query|key) (\d+)", page.readout))
        largest = weights[1, query : query + 4, key : key + 4].max()
        assert weight_in(page.readout) == pytest.approx(largest, rel=5e-6)


@pytest.fixture
def far(shown: Open) -> tuple[Opened, np.ndarray]:
    """The page of many tokens, on which their map is open."""
    maps, weights = factored(MANY, n_heads=1)
    return shown(report(maps, "fixed"), "layer=0&head=0&digits=all"), weights[0]


def window_of(page: Opened) -> str:
    page.page.wait_for_timeout(300)
    return str(page.page.inner_text("#window"))


@pytest.mark.slow
def test_keys_zoom_to_single_weights_and_back(far: tuple[Opened, np.ndarray]) -> None:
    page, weights = far
    whole = window_of(page)
    assert (
        whole == "Queries 0 to 1,499, keys 0 to 1,499: each cell is the largest of 4 × 4 weights. Zoom in to see them."
    )
    page.page.focus("canvas.matrix")
    page.press("+", "+", "+")
    assert window_of(page).endswith("each cell is a single weight.")
    page.press("ArrowRight")
    query, key = (int(each) for each in re.findall(r"(?:query|key) (\d+)", page.readout))
    assert weight_in(page.readout) == pytest.approx(weights[query, key], rel=5e-6)
    page.press("-", "-", "-")
    assert window_of(page) == whole


@pytest.mark.slow
def test_the_address_keeps_the_window(far: tuple[Opened, np.ndarray]) -> None:
    page, _ = far
    page.go("layer=0&head=0&window=700:720,300:320&query=3&key=4")  # a pair elsewhere does not move it
    assert window_of(page) == "Queries 700 to 719, keys 300 to 319: each cell is a single weight."
    page.page.get_by_role("button", name="zoom out").click()
    zoomed, address = window_of(page), page.page.evaluate("location.hash.slice(1)")
    assert "window=690:730,290:330" in address
    page.go(address)
    assert window_of(page) == zoomed
    page.page.get_by_role("button", name="show the whole map").click()
    assert window_of(page).startswith("Queries 0 to 1,499")
    assert "window" not in page.page.evaluate("location.hash")
    for wrong in ("9:3,0:4", "0:4,0:1501", "0:4", "x"):
        page.go(f"layer=0&head=0&window={wrong}")
        assert window_of(page).startswith("Queries 0 to 1,499")


@pytest.mark.slow
def test_the_wheel_zooms_where_it_points_and_buttons_go_to_the_largest(far: tuple[Opened, np.ndarray]) -> None:
    page, weights = far
    page.page.get_by_role("button", name="zoom in to single weights").click()
    assert number_in(page.readout) == str(np.float32(weights.max()))
    page.page.get_by_role("button", name="show the whole map").click()
    page.page.focus("canvas.matrix")
    page.press("Escape")
    page.hover(1200, 300, MANY, MANY)
    assert ", the largest of 4 × 4 weights: query" in page.readout
    page.page.keyboard.down("Control")
    page.page.mouse.wheel(0, -1000)
    page.page.keyboard.up("Control")
    top, bottom, left, right = (int(each.replace(",", "")) for each in re.findall(r"[\d,]*\d", window_of(page))[:4])
    assert top - 5 < 1200 < bottom + 5 < top + 35
    assert left - 5 < 300 < right + 5 < left + 35


@pytest.mark.slow
def test_colours_are_those_of_the_weights_and_no_token_is_an_element(far: tuple[Opened, np.ndarray]) -> None:
    page, weights = far
    row, key = np.unravel_index(weights.argmax(), weights.shape)
    top, left = min(int(row), MANY - 20), min(int(key), MANY - 20)
    page.go(f"layer=0&head=0&window={top}:{top + 20},{left}:{left + 20}")
    shades = page.page.evaluate(
        f"(() => {{ const c = {PALETTE}; return [...atob(c)].map((s) => s.charCodeAt(0)); }})()"
    )
    for cell in ((0, 0), (7, 3), (19, 11)):
        shade = round(255 * weights[top + cell[0], left + cell[1]])
        assert page.colour(*cell, 20, 20) == shades[3 * shade : 3 * shade + 3]
    assert page.page.evaluate("document.querySelectorAll('*').length") < 400


PALETTE = "JSON.parse(document.querySelector('#content').textContent).colours.sequential"


@pytest.mark.slow
def test_where_there_is_little_room_numbers_are_rounded_and_it_is_said(
    shown: Open, pooled: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(factors, "ROOM", 1_000)
    maps, weights = factored()
    page = shown(report(maps), "layer=0&head=0&query=0&key=0&digits=all")
    said = page.page.evaluate(WALK, N)
    percent = float(re.fullmatch(r".* ± ([\d.]+) %, .*", said[0])[1])  # type: ignore[index]
    found = np.array([weight_in(each) for each in said]).reshape(N, N)
    apart = np.abs(found / weights[0] - 1).max()
    assert percent / 100 / 50 < apart < percent / 100 < 0.01
    assert "For 1 more head, from layer 0, head 1 on, there is no room" in page.page.inner_text("#about")
    page.go("layer=0&head=1")
    assert page.page.query_selector("#window") is None


def test_alike_rows_are_held_once(pooled: None) -> None:
    sizes = {}
    for n_words in (0, 5):
        maps, _ = factored(n_words=n_words)
        held = content(report(maps), FigureStyle())
        described: Any = held.document["factored"]
        sizes[n_words] = [each[side]["n"] for each in described["maps"] for side in ("query", "key")]
        assert len(described["arrays"]) == (2 if n_words else 1)  # equal shares, and one index for all
    assert sizes == {0: [N] * 4, 5: [5] * 4}


def test_what_is_not_pooled_has_no_factors() -> None:
    maps, _ = factored()
    shown = report(maps)
    assert all(isinstance(each, Heatmap) and each.factors for each in list(shown.pictures)[1:])
    assert content(shown, FigureStyle()).document["factored"] is None
    part = heatmap_report(maps, [], FigureOptions(tokens="2:9"), [0], [0, 1])
    assert all(each.factors is None for each in part.pictures if isinstance(each, Heatmap))
