"""The page seen by those who see little contrast (WCAG 2.2, AA), and by axe-core: its colours, as they meet on it.

A text needs 4.5:1 against what is behind it (1.4.3), 3:1 where it is large; edges, rings and marks that one has to see
need 3:1 (1.4.11). axe-core looks at one state of a page; edges and rings, what is drawn and what changes while one
reads, we measure ourselves.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from attnviz.report import Heatmap, Report, Scale
from tests.browser import Open, Opened, check_axe
from tests.made import record, report, tokens
from tests.renderers.page.conftest import WritePage

pytestmark = pytest.mark.slow
TEXT = "the plot is thin , yet I loved every minute of this film"
SCHEMES = ("light", "dark")
N = 11  # words of the text that is shaded
GROUNDS = "words => words.map((word) => getComputedStyle(word).backgroundColor)"

# ratio(colours): of the first, on top, to all others as they lie on each other. behind(element): these, from the top.
MEASURES = """
const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
const share = (element) => (element ? getComputedStyle(element).opacity * share(element.parentElement) : 1);
const behind = (element) =>
  element ? [[getComputedStyle(element).backgroundColor, share(element)], ...behind(element.parentElement)] : [];
const luminance = (layers) => {
  for (const [colour, opacity] of layers.toReversed()) {
    Object.assign(pen, { globalAlpha: opacity, fillStyle: colour });
    pen.fillRect(0, 0, 1, 1);
  }
  const linear = [...pen.getImageData(0, 0, 1, 1).data.slice(0, 3)]
    .map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
};
const ratio = (top, layers) => {
  const [low, high] = [luminance([top, ...layers]), luminance(layers)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
};
const probe = document.body.appendChild(document.createElement("i"));
const named = (name) => Object.assign(probe, { style: `color: var(${name})` }) && getComputedStyle(probe).color;
const isSeen = (element) =>
  element.checkVisibility({ visibilityProperty: true }) && element.getClientRects().length > 0;
const described = (element) => `${element.tagName} ${element.className?.baseVal ?? element.className}`;
"""

# Edges of what can be used, and marks of what is chosen, against both what is inside of them and what is outside.
EDGES = r"""() => {
  const found = [];
  const measure = (element, name, colour) => {
    for (const ground of [element, element.parentElement]) {
      found.push([ratio([colour, share(element)], behind(ground)), 3, `${name} of ${described(element)}`]);
    }
  };
  for (const element of document.querySelectorAll("button, select, textarea, input, [aria-current]")) {
    if (!isSeen(element)) continue;
    const style = getComputedStyle(element);
    const colour = style.borderBottomColor;
    const has = parseFloat(style.borderBottomWidth) > 0 && style.borderBottomStyle !== "none";
    if (has && colour !== "rgba(0, 0, 0, 0)" && element.type !== "range") measure(element, "border", colour);
    const shadows = style.boxShadow.match(/[a-z]+\([^)]*\)/g) ?? [];
    if (shadows.length) {  // around the element, or around a gap
      const mark = [shadows.at(-1), share(element)];
      const inside = shadows.length > 1 ? [[shadows[0], 1]] : behind(element);
      for (const ground of [inside, behind(element.parentElement)]) {
        found.push([ratio(mark, ground), 3, `mark of ${described(element)}`]);
      }
    }
  }
  return found;
}"""

# The ring is drawn outside; of a word, which may have any shade, around a gap.
RINGS = r"""() => {
  const found = [];
  const stops = "button, select, input, textarea, summary, [tabindex='0']";
  for (const element of [...document.querySelectorAll(stops)].filter(isSeen)) {
    element.focus();
    const { outlineStyle, outlineWidth, outlineColor, boxShadow } = getComputedStyle(element);
    const hasRing = outlineStyle === "solid" && parseFloat(outlineWidth) >= 2;
    const gap = element.matches(".word") ? [[[/^[a-z]+\([^)]*\)/.exec(boxShadow)?.[0], 1]]] : [];
    for (const ground of [behind(element.parentElement), ...gap]) {
      found.push([hasRing ? ratio([outlineColor, 1], ground) : 0, 3, `ring of ${described(element)}`]);
    }
  }
  return found;
}"""

OPENED = "for (const details of document.querySelectorAll('details')) details.open = true"
Measured = list[tuple[float, float, str]]


def faint(measured: Measured) -> set[str]:
    """What has less contrast than it needs."""
    return {f"{ratio:.2f} instead of {needed} {what}" for ratio, needed, what in measured if ratio < needed}


def measure(page: Opened, script: str, *given: str | float) -> Measured:
    found: Measured = [
        tuple(each) for each in page.page.evaluate(f"(given) => {{{MEASURES} return ({script})(...given)}}", given)
    ]
    return found


def tabs(page: Opened) -> Iterator[str]:
    """Opens one view after the other, and all that opens there."""
    page.page.evaluate(OPENED)
    for name in page.page.locator("[role=tab]").evaluate_all("tabs => tabs.map((tab) => tab.id)"):
        page.page.click(f"#{name}")
        page.page.wait_for_selector(f"#view[data-ready={name.removeprefix('tab-')}]")
        page.page.evaluate(OPENED)
        yield name


COMMANDS = {
    "heatmap": ("heatmap", "--text", TEXT, "--heads", "8", "--causal"),  # heads that may not look ahead
    "answer": ("heatmap", "--text", TEXT, "--heads", "8"),
    "compare": ("compare", "single", "multi", "--text", TEXT),
    "spread": ("compare", "single", "multi", "--dataset", "sample", "--split", "test"),
}


@pytest.mark.parametrize(
    ("name", "scheme", "width"),
    [("heatmap", "dark", 360), ("answer", "light", 360), ("compare", "light", 1200), ("spread", "dark", 1200)],
)
def test_everything_is_seen(shown: Open, write_page: WritePage, name: str, scheme: str, width: int) -> None:
    """Every text and edge, where one points and elsewhere, and the focus wherever it is; and axe-core finds nothing."""
    page = shown(write_page(*COMMANDS[name]), viewport={"width": width, "height": 900}, color_scheme=scheme)
    for tab in tabs(page):
        pointed = page.page.locator(".map, .word, canvas.matrix")
        if pointed.count():
            pointed.first.hover()
        check_axe(page, tab)
        assert faint(measure(page, EDGES)) == set(), tab
        page.press("Tab")
        rings = measure(page, RINGS)
        assert len(rings) > 5
        assert faint(rings) == set(), tab


def test_the_ruler_is_right(shown: Open, write_page: WritePage) -> None:
    """Known ratios: the largest, the palest grey that will do on white, and half of black over white: #7f7f7f."""
    page = shown(write_page(*COMMANDS["heatmap"]))
    pairs = {"black": 21.0, "#767676": 4.54, "rgb(0 0 0 / 0.5)": 4.0, "color(srgb 1 1 1)": 1.0, "white": 1.0}
    for colour, wanted in pairs.items():
        ((measured, _, _),) = measure(page, "(colour) => [[ratio([colour, 1], [['white', 1]]), 3, '']]", colour)
        assert measured == pytest.approx(wanted, abs=0.02), colour


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("lowest", [0.0, -1.0])
def test_words_are_legible_on_every_shade(shown: Open, scheme: str, lowest: float) -> None:
    """From the lowest value to 1; so are markers of the model, and the frame of the chosen word is seen there."""
    page = shown(shaded(lowest), "view=matrix&query=0", color_scheme=scheme)
    grounds = page.page.locator(".word").evaluate_all(GROUNDS)
    assert len(set(grounds)) == N
    for place in (0, N - 1):
        page.page.locator(".word").nth(place).hover()
        check_axe(page, f"word {place}")
        assert faint(measure(page, EDGES)) == set()


def shaded(lowest: float) -> Report:
    """A text of which every word attends to the others with all values there are, and to the last word not at all."""
    words = tokens("[CLS]", *(f"t{place}" for place in range(1, N - 1)), "[SEP]", special=("[CLS]", "[SEP]"))
    values = np.tile(np.linspace(lowest, 1, N, dtype=np.float32)[::-1], (N, 1))
    allowed = np.tile(np.arange(N) < N - 1, (N, 1))
    scale = Scale("diverging" if lowest else "fixed", lowest, 1.0, "weight")
    drawn = Heatmap("m", "m", values, allowed, words.pieces, words.pieces, scale=scale)
    return replace(report(record(np.full((1, 1, N, N), 1 / N), words)), blocks=(drawn,))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_is_drawn_is_seen(shown: Open, write_page: WritePage, scheme: str) -> None:
    """Texts on a canvas and within drawings, kinds of heads by colour, and the hatching of what is not allowed."""
    page = shown(write_page(*COMMANDS["heatmap"]), color_scheme=scheme)
    pairs = [
        *((f"--{name}", "--paper", 4.5) for name in ("ink", "quiet", "accent")),
        *((f"--head-{place}", "--paper", 3) for place in range(6)),
        ("--hatch", "--forbidden", 3),
    ]
    for colour, ground, needed in pairs:
        on = measure(
            page, "(a, b, needed) => [[ratio([named(a), 1], [[named(b), 1]]), needed, a]]", colour, ground, needed
        )
        assert faint(on) == set()
