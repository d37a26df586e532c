"""The page as a file: what is in it, what cannot be in it, how large it is. What it does is tested in a browser."""

import json
import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from attnviz.renderers.page import map_parts
from attnviz.renderers.page.html import html
from attnviz.renderers.page.packing import Precision
from attnviz.report import Block, FigureStyle, Heatmap, HeatmapGrid, Note, Report, Scale
from tests import made
from tests.renderers.page.atlases import TEXT, WORDS, atlas, atlas_report, moment
from tests.renderers.page.test_cells import from_page, intervals, unpacked_exact

ATTACKS = (
    "</script><img src=x onerror=alert(1)>",
    "<!--",
    "<!--<script>",
    "]]>",
    "\u2028\u2029",
    "\ud800",
    "x" * 1000,  # wider than any screen
    "__proto__",
    "constructor",
    "\x00",
    "&lt;b&gt;",
    "${1}",
    "$style",
    "\\u003c",
    "'\"`",
)


class Parsed(HTMLParser):
    """A page as a browser takes it apart: its elements, and what stands in those that hold no others."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inner: dict[str, str] = {}
        self.within = ""
        self.feed(page)
        self.unpacker = self.inner["script"]
        self.inner |= made.unpack_page(page.encode())

    def cells(self) -> list[tuple[bytes, ...]]:
        """What was packed of each map."""
        return from_page(self.inner["cells"], json.loads(self.inner["content"])["parts"])

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))
        self.within = dict(attributes).get("id") or tag

    def handle_endtag(self, tag: str) -> None:
        self.within = ""

    def handle_data(self, data: str) -> None:
        self.inner[self.within] = self.inner.get(self.within, "") + data


def page(of: Report | None = None, look: FigureStyle | None = None) -> Parsed:
    ((name, data),) = html(of or made.report(), look or FigureStyle())
    assert name == "attention.html"
    return Parsed(data.decode("utf-8"))


def content(of: Report | None = None) -> dict[str, Any]:
    ((_, data),) = html(of or made.report(), FigureStyle())
    found: dict[str, Any] = made.page_content(data)
    return found


def attacked() -> Report:
    """Every string of a report hostile, as if no view had made it safe."""
    n = len(ATTACKS)
    heatmap = Heatmap(ATTACKS[0], ATTACKS[0], np.full((n, n), 1 / n), np.ones((n, n), dtype=bool), ATTACKS, ATTACKS)
    facts = tuple((attack, attack) for attack in ATTACKS)
    scale = Scale("fixed", 0.0, 1.0, ATTACKS[0])
    blocks: tuple[Block, ...] = (
        HeatmapGrid("p", ATTACKS[0], (heatmap, heatmap), 2),
        *(Note(attack) for attack in ATTACKS),
    )
    return Report("".join(ATTACKS), "".join(ATTACKS), blocks, scale, facts)


def test_weights_come_back_exactly() -> None:
    maps = made.random_maps(n_layers=2, n_heads=3)
    parsed = page(made.report(maps))
    for packed, weights in zip(parsed.cells(), maps.weights.reshape(6, 14, 14), strict=True):
        assert (unpacked_exact(packed, (14, 14)) == weights).all()
    assert json.loads(parsed.inner["content"])["precision"] is None


def test_many_weights_come_back_within_what_the_page_says() -> None:
    maps = made.random_maps(["t"] * 200, n_heads=12)
    parsed = page(made.report(maps))
    kept = Precision(**json.loads(parsed.inner["content"])["precision"])
    for packed, weights in zip(parsed.cells(), maps.weights[0], strict=True):
        low, high = intervals(packed, (200, 200), kept)
        assert (low <= weights).all()
        assert (weights < high).all()
    assert any("within 0.5 %" in sentence for sentence in content(made.report(maps))["exactness"])


def test_what_maps_share_is_there_once() -> None:
    found = content(made.report(made.random_maps(n_layers=2, n_heads=4, causal=True)))
    assert len(found["axes"]) == 1
    assert len(found["masks"]) == 1
    assert len(content(made.report(made.windowed_maps()))["masks"]) == 2
    assert len(content(made.report(made.cross_maps()))["axes"]) == 2


def test_spaces_and_markers_of_the_text() -> None:
    pieces = made.tokens("[CLS]", "sing", "##ing", "loud", special=("[CLS]",))
    joined = replace(pieces, offsets=((0, 0), (0, 4), (4, 7), (8, 12)))
    (axis,) = content(made.report(made.record(np.full((1, 1, 4, 4), 0.25), joined)))["axes"]
    assert axis["writing"] == {
        "spaced": [False, False, False, True],
        "special": [True, False, False, False],
    }


def test_only_our_script_and_style_are_allowed() -> None:
    parsed = page()
    (policy,) = (a["content"] for tag, a in parsed.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    for kind, own in {"script": (parsed.unpacker, parsed.inner["script"]), "style": (parsed.inner["style"],)}.items():
        digests = (b64encode(sha256(each.encode("utf-8")).digest()).decode("ascii") for each in own)
        assert rules[f"{kind}-src"] == " ".join(f"'sha256-{digest}'" for digest in digests)
    assert rules["base-uri"] == rules["form-action"] == "'none'"
    assert "unsafe" not in policy


def test_nothing_is_loaded_from_anywhere() -> None:
    parsed = page()
    for tag, attributes in parsed.elements:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "audio", "video", "source")
        assert not {"src", "href", "srcset", "style"} & attributes.keys()
        assert not any(name.startswith("on") for name in attributes)
    assert not re.search(r"url\(|@import|@font-face", parsed.inner["style"])
    names = set(re.findall(r"https?://[^\s\"'`]+", parsed.inner["script"]))
    assert names == {"http://www.w3.org/2000/svg"}  # a name, nothing that is asked for


def test_the_script_never_takes_text_for_markup() -> None:
    parsed = page()
    script = parsed.unpacker + parsed.inner["script"]
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", script)


def test_no_string_of_a_report_becomes_an_element() -> None:
    assert [tag for tag, _ in page(attacked()).elements] == [tag for tag, _ in page().elements]


def test_hostile_strings_come_back_as_they_were() -> None:
    found = content(attacked())
    assert tuple(found["axes"][0]["labels"]) == ATTACKS
    assert found["notes"] == list(ATTACKS)
    assert page(made.report(made.random_maps(made.HOSTILE))).inner["title"]


def test_long_texts_are_pooled_and_the_page_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MAX_SIDE", "POOLED_SIDE"):
        monkeypatch.setattr(map_parts, name, 5)
    maps = made.random_maps(n_heads=1, causal=True)
    parsed = page(made.report(maps))
    found = json.loads(parsed.inner["content"])
    (axis,) = found["axes"]
    assert axis["positions"] == ["0–2", "3–5", "6–8", "9–11", "12–13"]
    assert axis["labels"][0] == "the … was"
    pooled = unpacked_exact(parsed.cells()[0], (5, 5))
    weights = maps.weights[0, 0]
    assert pooled[1, 0] == pytest.approx(weights[3:6, 0:3].mean(), rel=1e-6)
    assert pooled[4, 4] == pytest.approx(weights[12:, 12:].sum() / 3, rel=1e-6)  # one of four is not allowed
    assert any("stands for 3 rows and 3 columns" in sentence for sentence in found["exactness"])


def test_a_pooled_difference_is_the_one_farthest_from_zero() -> None:
    cells = np.array([[0.1, -0.5], [0.2, 0.0]], dtype=np.float32)
    difference = Heatmap("d", "d", cells, np.array([[True, True], [False, False]]), ("a", "b"), ("c", "d"))
    small = map_parts.pool_heatmap(difference, 2)
    assert small.values.tolist() == [[-0.5]]
    assert small.allowed.tolist() == [[True]]


def test_however_many_cells_there_are_a_page_holds_no_more_than_it_can() -> None:
    maps = [Heatmap("m", "m", np.zeros((1000, 1000)), np.ones((1000, 1000), dtype=bool), ("r",), ("c",))] * 100
    block = map_parts.block_for(maps)
    assert block == 7
    assert map_parts.POOLED_CELLS >= 100 * 143**2
    assert map_parts.block_for(maps[:1]) == 1


def test_differences_are_exact_beside_weights_that_are_not() -> None:
    maps = made.random_maps(["t"] * 200, n_heads=12)
    panels = made.overview(made.report(maps))
    cells = maps.weights[0, 0] - maps.weights[0, 1]
    difference = replace(
        panels.maps[0], name="d", title="d", values=cells, scale=Scale("diverging", -1.0, 1.0, "difference")
    )
    parsed = page(Report("t", "s", (panels, difference)))
    found = json.loads(parsed.inner["content"])
    assert found["exact"] == [False] * 12 + [True]
    assert (unpacked_exact(parsed.cells()[12], (200, 200)) == cells).all()
    assert any("Differences are stored exactly" in sentence for sentence in found["exactness"])


@pytest.mark.parametrize(("n_layers", "n_heads"), [(2, 8), (6, 12), (30, 9)])
def test_short_texts_make_small_pages(n_layers: int, n_heads: int) -> None:
    """Of the heads of multi:8, MiniLM and SmolLM2."""
    maps = made.random_maps(["word"] * 11, n_layers=n_layers, n_heads=n_heads, causal=n_layers == 30)
    ((_, data),) = html(made.report(maps), FigureStyle())
    assert len(data) < 130_000


def test_an_atlas_is_read_back() -> None:
    weights = tuple(np.geomspace(1e-6, 1.0, 500).tolist())
    heads = [head | {"moments": (moment("random", weights=weights),)} for head in atlas()["heads"]]
    found = content(atlas_report(heads=heads))["atlas"]
    assert found["texts"][0] == {**TEXT, "positions": [*TEXT["positions"]], "tokens": [*WORDS]}
    assert found["heads"][4]["names"] == [["first token", "61 %"], ["induction on repeated tokens", "88 %"]]
    assert found["measures"][2]["values"][2] is None  # NaN
    assert found["heads"][0]["moments"][0]["weights"] == pytest.approx(weights, rel=0.0051, abs=6e-6)
