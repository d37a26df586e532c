"""Labels are where matplotlib puts its texts, pixel by pixel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import IdentityTransform

from attnviz.renderers.figure import label as labelling
from attnviz.renderers.figure.draw import literal
from attnviz.renderers.figure.label import Label, Style, draw_labels
from attnviz.renderers.figure.pen import Pen
from attnviz.renderers.figure.style import drawing

SIZE = 240, 180  # pixels
STYLES = st.builds(
    Style,
    size=st.sampled_from([6.0, 8.5, 11.0]),
    colour=st.sampled_from(["#1a1a1a", "white", "red"]),
    ha=st.sampled_from(["left", "center", "right"]),
    va=st.sampled_from(["baseline", "center", "center_baseline", "top", "bottom"]),
    rotation=st.sampled_from([0.0, 90.0, 45.0]),
    rotation_mode=st.sampled_from(["default", "anchor"]),
)
PLACES = st.floats(-20, 250) | st.integers(0, 480).map(lambda halves: halves / 2)
TEXTS = st.sampled_from(["the", "wonder", "$x$", "a b", "猫坐", "e\u0301\u0323", "سلام", ""]) | st.text(
    st.characters(codec="latin-1", exclude_categories=["Cc", "Cs"]), max_size=6
)
LABELS = st.builds(Label, TEXTS, PLACES, PLACES, STYLES)


def by_us(labels: Sequence[Label], dpi: int) -> np.ndarray:
    with drawing():
        pen: Any = Pen(*SIZE, dpi)  # type: ignore[no-untyped-call]
        return drawn(pen, lambda: draw_labels(labels, Figure(dpi=dpi), pen))


def by_matplotlib(labels: Sequence[Label], dpi: int) -> np.ndarray:
    with drawing():
        renderer: Any = RendererAgg(*SIZE, dpi)  # type: ignore[no-untyped-call]

        def draw() -> None:
            for text, x, y, style in labels:
                look: dict[str, Any] = style._asdict()
                artist = Text(x, y, text, transform=IdentityTransform(), color=look.pop("colour"), **look)
                literal(artist)
                artist.set_figure(Figure(dpi=dpi))
                artist.draw(renderer)

        return drawn(renderer, draw)


def drawn(renderer: Any, draw: Any) -> np.ndarray:
    pixels = np.asarray(renderer.buffer_rgba())
    pixels[:] = 255
    draw()
    return pixels.copy()


@settings(max_examples=150, deadline=None)
@given(st.lists(LABELS, max_size=5), st.sampled_from([60, 150]))
def test_labels_are_drawn_as_texts_of_matplotlib(labels: list[Label], dpi: int) -> None:
    assert np.array_equal(by_us(labels, dpi), by_matplotlib(labels, dpi))


def test_matplotlib_is_asked_once_for_a_text_and_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    artist = labelling._artist

    def counted(text: str, *rest: Any) -> Text:
        asked.append(text)
        return artist(text, *rest)

    monkeypatch.setattr(labelling, "_artist", counted)
    labelling._start.cache_clear()
    small, large = Style(6.0, "black"), Style(9.0, "black")
    by_us([Label("word", x, 50, style) for x in (40, 120, 200) for style in (small, large)], 100)
    assert asked == ["word"] * 2
