"""Maps painted quickly are those that matplotlib draws, pixel by pixel, whatever was painted before."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.font_manager import FontProperties

from attnviz.renderers.figure import draw as drawing_maps
from attnviz.renderers.figure import files as figure
from attnviz.renderers.figure import paint
from attnviz.renderers.figure.backdrop import Backdrop, Drawn, draw_backdrop
from attnviz.renderers.figure.layout import Line
from attnviz.renderers.figure.paint import Painter
from attnviz.renderers.figure.pen import KEPT, KEPT_LONG, LONG, MARGIN, SHORT, Pen, _long_stamp, _stamp
from attnviz.renderers.figure.plan import plan
from attnviz.renderers.figure.style import TITLE, drawing
from attnviz.report import Heatmap, Look, Panels, Report, Scale
from attnviz.report import Picture as Shape
from tests.renderers.figure.reports import (
    FIXED,
    HOSTILE,
    LOG,
    SCRIPTS,
    by_matplotlib,
    difference,
    first_map,
    heatmap,
    labelled,
    panels,
    report,
    rgba,
    softmax,
    words,
)

SHARED = Scale("shared", 0.0, 0.37, "shared")
NARROW = Scale("diverging", -0.2, 0.2, "difference")
HEADS: tuple[Shape, ...] = (panels(7), *panels(7).maps)
UNEQUAL = Panels("overview", "two models", (heatmap(5), heatmap(7)), 2)  # that cut a text differently


@pytest.fixture
def matplotlib_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a picture cannot be right by having been drawn the slow way."""
    monkeypatch.setattr(figure, "_drawn", lambda *_: pytest.fail("drawn by matplotlib"))


def files(shown: Report, look: Look) -> list[bytes]:
    return [content for _, content in figure.png(shown, look)]


def check(shown: Report, look: Look) -> None:
    ours, theirs = files(shown, look), by_matplotlib(shown, look)
    assert len(ours) == len(theirs) > 0
    for one, other in zip(ours, theirs, strict=True):
        assert np.array_equal(rgba(one), rgba(other))
        assert len(one) <= 1.1 * len(other)
        assert told(one) == told(other)


def told(content: bytes) -> list[tuple[bytes, bytes]]:
    """All that a PNG holds but its pixels and their format."""
    return [chunk for chunk in chunks(content) if chunk[0] not in (b"IHDR", b"IDAT")]


def chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    start = 8
    while start < len(content):
        (length,) = struct.unpack(">I", content[start : start + 4])
        yield content[start + 4 : start + 8], content[start + 8 : start + 8 + length]
        start += 12 + length


SIZES = [(number, 150) for number in (1, 2, 5, 12, 20, 64, 100, 300)]


@pytest.mark.usefixtures("matplotlib_fails")
@pytest.mark.parametrize(
    ("n_tokens", "dpi"), [*SIZES, (5, 60), (20, 60), (100, 60), (5, 300), (20, 300), (30, 300), (100, 300)]
)
def test_same_pixels_in_any_size(n_tokens: int, dpi: int) -> None:
    check(report(heatmap(n_tokens)), Look(dpi=dpi))


@pytest.mark.usefixtures("matplotlib_fails")
@pytest.mark.parametrize("scale", [FIXED, SHARED, LOG, NARROW], ids=lambda scale: scale.kind)
@pytest.mark.parametrize("look", [Look(dpi=60), Look("mako", 150, True), Look("Greys", 101, True)], ids=str)
def test_same_pixels_on_any_scale_in_any_look(scale: Scale, look: Look) -> None:
    own = replace(difference(9), scale=None) if scale.kind == "diverging" else heatmap(9, causal=True)
    check(report(heatmap(6), own, scale=scale), look)


@pytest.mark.usefixtures("matplotlib_fails")
@pytest.mark.parametrize(
    "picture",
    [
        *(heatmap(*shape) for shape in ((1, 12), (3, 40), (40, 2), (9, 60), (17, 512))),
        *(heatmap(number, causal=True) for number in (2, 20, 100)),
        heatmap(1100, causal=True),  # pooled
        *(panels(number) for number in (1, 5, 20)),
        panels(5, 7, 3, causal=True),
        panels(100, 2, 2, causal=True),
    ],
    ids=lambda picture: f"{picture.name}-{picture.title}",
)
def test_same_pixels_of_any_shape(picture: Shape) -> None:
    check(report(picture), Look(dpi=100))


@pytest.mark.slow
@pytest.mark.usefixtures("matplotlib_fails")
def test_same_pixels_of_144_heads() -> None:
    check(report(panels(16, 144, 12, causal=True)), Look(dpi=100))


@pytest.mark.usefixtures("matplotlib_fails")
@pytest.mark.parametrize(
    "labels", [HOSTILE, SCRIPTS, ("W" * 24,), ("",), ("好", "看", "吗")], ids=lambda labels: labels[0]
)
@pytest.mark.parametrize("dpi", [60, 150])
def test_same_pixels_whatever_the_tokens(labels: tuple[str, ...], dpi: int) -> None:
    title = " ".join(labels) or "Z\u0302\u0303\u0304\u0305algo " * 9
    check(report(labelled(labels), Panels("overview", title, (labelled(labels),) * 2, 2), title=title), Look(dpi=dpi))


@settings(max_examples=15)
@given(
    st.lists(st.text(max_size=6).filter(str.isprintable), min_size=1, max_size=9),
    st.text(max_size=40).filter(str.isprintable),
    st.integers(30, 110),
)
def test_same_pixels_for_made_up_tokens(labels: list[str], title: str, dpi: int) -> None:
    check(report(labelled(labels), title=title), Look(dpi=dpi))


@pytest.mark.usefixtures("matplotlib_fails")
def test_same_pixels_where_some_values_are_no_numbers_and_any_cell_may_be_forbidden() -> None:
    weights, _ = softmax(7, 19)
    weights[0, 3, 4], weights[0, 5, 6] = np.nan, np.inf
    allowed = np.random.default_rng(1).random((7, 19)) > 0.4
    check(report(Heatmap("a", "", weights[0], allowed, words(7), words(19))), Look(dpi=72))


def test_what_lies_on_something_else_or_has_broken_cells_is_drawn_by_matplotlib() -> None:
    """Then the order of drawing matters, and for so few pictures we do not repeat it."""
    shown = report(heatmap(5))
    whole = plan(first_map(shown), shown, Look())
    left, top, *_ = whole.places[0].box
    (title, *_), others = ([line for line in whole.lines if (line.size == TITLE) == large] for large in (True, False))
    on_map = replace(whole, lines=(*whole.lines, Line("over", left, top + 0.5, 8)))
    on_frame = replace(whole, lines=(*whole.lines, Line("_", left + 0.5, top - 0.02, 8)))
    on_title = replace(whole, lines=(*whole.lines, others[0]._replace(y=title.y)))
    broken = plan(UNEQUAL, report(UNEQUAL), Look())
    with drawing():
        assert Painter("viridis", 150).pixels(whole) is not None
        for other in (on_map, on_frame, on_title, broken):
            assert Painter("viridis", 150).pixels(other) is None
    check(report(UNEQUAL), Look())


@pytest.mark.parametrize("dpi", [30, 40])
def test_same_pixels_where_so_few_of_them_make_labels_touch_ticks(dpi: int) -> None:
    for labels in (("*",), ("a",), ("a", "b"), ("*", "g")):
        check(report(labelled(labels), title=""), Look(dpi=dpi))


def test_no_colour_map_is_transparent() -> None:
    assert all((mpl.colormaps[name](np.linspace(0, 1, 300))[:, 3] == 1).all() for name in mpl.colormaps)


def test_heads_of_a_text_share_one_backdrop(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Backdrop] = []

    def counted(backdrop: Backdrop) -> Drawn | None:
        drawn.append(backdrop)
        return draw_backdrop(backdrop)

    monkeypatch.setattr(paint, "draw_backdrop", counted)
    check(report(*HEADS), Look(dpi=60))
    assert len(drawn) == 2


def test_a_backdrop_of_another_picture_is_never_taken() -> None:
    """Pictures that differ in one thing each, one after the other with one painter, and each with its own."""
    first = heatmap(5)
    other = tuple(reversed(first.rows))
    changed: list[Shape] = [
        first,
        replace(first, rows=other),
        replace(first, columns=other),
        heatmap(5, causal=True),
        replace(first, row_axis="from"),
        replace(first, scale=SHARED),
        replace(first, scale=replace(SHARED, high=0.38)),
        replace(first, scale=replace(SHARED, label="other")),
        replace(first, values=first.values[::-1]),
        replace(first, title="layer 0, head 4"),
        panels(5, 2),
        panels(5, 2, 1),
        first,
    ]
    look = Look(dpi=72)
    together = files(report(*changed), look)
    assert together == [content for picture in changed for content in files(report(picture), look)]
    assert len(set(together)) == len(together) - 1


def test_same_bytes_whatever_was_drawn_before() -> None:
    look = Look(dpi=72)
    forwards, backwards = files(report(*HEADS), look), files(report(*reversed(HEADS)), look)
    assert forwards == backwards[::-1]
    halfway = figure.png(report(*HEADS), look)
    assert next(halfway)[1] == forwards[0]
    files(report(labelled(HOSTILE)), Look("mako", 150))
    assert [content for _, content in halfway] == forwards[1:]


class Text(NamedTuple):
    """Where on a page of 160 times 120 pixels, which it may leave."""

    text: str
    x: float
    y: float
    angle: float = 0
    size: float = 7.5
    colour: str = "#1a1a1a"


PLACES = st.floats(-9, 170) | st.integers(0, 20480).map(lambda step: step / 128)  # halves are rounded up and down
WORDS = st.sampled_from(["the", "of", "Ayj", "wonder", "fi", "猫坐", "∅", " ", "long " * 9, "longer " * 40]) | st.text(
    max_size=5
)
TEXTS = st.builds(
    Text,
    WORDS.filter(str.isprintable),
    PLACES,
    PLACES,
    st.sampled_from([0, 90, 0, 90, 45, 180]),
    st.sampled_from([6.0, 7.3, 30.0]),
    st.sampled_from(["#1a1a1a", "white", "red"]),
)


def written(kind: Any, texts: Sequence[Text], dpi: int) -> np.ndarray:
    with drawing():
        renderer = kind(160, 120, dpi)
        pixels = np.asarray(renderer.buffer_rgba())
        pixels[:] = 255
        for text, x, y, angle, size, colour in texts:
            pen = renderer.new_gc()
            pen.set_foreground(colour)
            renderer.draw_text(pen, x, y, text, FontProperties(size=size), angle)
        return pixels.copy()


@settings(max_examples=150)
@given(st.lists(TEXTS, max_size=6), st.sampled_from([60, 150, 101]))
@example([Text("wonderful", 7 + 1 / 128, 100, 90, 6.0)], 60)  # on a half, where the cosine of 90° is seen to be none
@example([Text("", 5, 5), Text("white", 5, 50, colour="white"), Text("x", 9 + 1 / 128, 20 + 3 / 128)], 60)
def test_texts_are_copied_to_any_place_as_matplotlib_draws_them(texts: list[Text], dpi: int) -> None:
    for _ in range(2):  # what was drawn before is copied at the latest now
        assert np.array_equal(written(Pen, texts, dpi), written(RendererAgg, texts, dpi))


def test_a_text_is_drawn_once_and_copied_only_to_white(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    draw_text: Any = RendererAgg.draw_text

    def counted(self: RendererAgg, gc: object, x: float, y: float, s: str, *rest: object) -> None:
        drawn.append(s)
        draw_text(self, gc, x, y, s, *rest)

    monkeypatch.setattr(RendererAgg, "draw_text", counted)
    _stamp.cache_clear()
    written(Pen, [Text("word", x, y, angle) for x, angle in ((5, 0), (60, 90), (90, 0)) for y in (50, 99)], 100)
    assert drawn == ["word"] * 2  # once along and once upwards
    written(Pen, [Text("word", 5, 50), Text("word", 6, 50), Text("word", 158, 50), Text("w" * 999, 5, 99)], 100)
    assert drawn[2:] == ["word", "word", "w" * 999]  # on another, over the edge, too long
    written(Pen, [Text("word", 5, 50, size=7), Text("word", 5, 90, colour="red"), Text("word", 5.5, 70)], 100)
    assert drawn[5:] == ["word"] * 3


@pytest.mark.parametrize(
    ("stamp", "longest", "n_kept", "n_bytes"), [(_stamp, SHORT, KEPT, 45e6), (_long_stamp, LONG, KEPT_LONG, 18e6)]
)
def test_texts_that_are_kept_stay_small(stamp: Any, longest: int, n_kept: int, n_bytes: float) -> None:
    most = (longest + 4) * MARGIN * 4
    with drawing():
        font = FontProperties(size=20)
        texts = ["W" * n_letters for n_letters in range(1, 99) if 30 * n_letters < longest]
        kept = [stamp(150, text, font, angle, (0, 0, 0, 1), 0, 0) for text in texts for angle in (0, 90)]
        assert stamp(150, "W" * 99, font, 0, (0, 0, 0, 1), 0, 0) is None
    assert 0 < max(each.pixels.nbytes for each in kept if each is not None) <= most
    assert stamp.cache_info().maxsize == n_kept
    assert most * n_kept < n_bytes


def test_only_titles_are_as_large_as_titles() -> None:
    for picture in (heatmap(5, causal=True), panels(30), heatmap(300)):
        shown = report(picture)
        planned = plan(picture, shown, Look())
        large = " ".join(line.text for line in planned.lines if line.size == TITLE)
        assert large.replace("·", "").split() == planned.title.replace("·", "").split()


def test_matplotlib_is_still_what_is_compared_with() -> None:
    """Were both to come out of one place, nothing here could fail."""
    shown, look = report(heatmap(5)), Look(dpi=60)
    before = by_matplotlib(shown, look)
    mesh = drawing_maps.draw_mesh
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawing_maps, "draw_mesh", lambda axes, cells, *rest: mesh(axes, cells[::-1], *rest))
        assert by_matplotlib(shown, look) != before
        assert not np.array_equal(rgba(files(shown, look)[0]), rgba(by_matplotlib(shown, look)[0]))
