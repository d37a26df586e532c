"""Many short texts, each where matplotlib would put it, without an object of matplotlib's for each. Knows no plans.

How far from its place a text begins follows from the text and its look alone, so matplotlib is asked once for each.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.text import Text
from matplotlib.transforms import IdentityTransform

from attnviz.renderers.figure.draw import literal
from attnviz.renderers.figure.pen import Pen
from attnviz.renderers.figure.text import is_plain


class Style(NamedTuple):
    """How matplotlib is to draw a text, in its words."""

    size: float  # points
    colour: str
    ha: str = "center"
    va: str = "center"
    rotation: float = 0.0
    rotation_mode: str = "default"


class Label(NamedTuple):
    """A text without line breaks, and its place in pixels from the lower left corner of the page."""

    text: str
    x: float
    y: float
    style: Style


class _Start(NamedTuple):
    """Where a text begins, in pixels from its place, and its font."""

    right: float
    up: float
    font: FontProperties


def draw_labels(labels: Iterable[Label], figure: Figure, pen: Pen) -> None:
    """The same pixels as of one `matplotlib.text.Text` each. To be called within `style.drawing`."""
    for label in labels:
        if is_plain(label.text):
            _draw(label, pen)
        else:  # as outlines, which no pen can copy
            artist = _artist(label.text, label.style, label.x, label.y)
            artist.set_figure(figure)
            artist.draw(pen)


def _draw(label: Label, pen: Pen) -> None:
    text, x, y, style = label
    if not text:
        return
    right, up, font = _start(pen.dpi, text, style)
    context = pen.new_gc()
    context.set_foreground(to_rgba(style.colour), isRGBA=True)
    pen.draw_text(context, x + right, pen.height - (y + up), text, font, style.rotation)
    context.restore()


def _artist(text: str, style: Style, x: float = 0, y: float = 0) -> Text:
    size, colour, *rest = style
    look: dict[str, Any] = dict(zip(Style._fields[2:], rest, strict=True))
    artist = Text(x, y, text, size=size, color=colour, transform=IdentityTransform(), **look)
    literal(artist)
    return artist


class _Listener(Pen):
    """Hears where a text is to be drawn, upwards, and draws nothing."""

    def flipy(self) -> bool:
        return False

    def draw_text(self, gc: Any, x: float, y: float, s: str, prop: FontProperties, *rest: Any, **more: Any) -> None:
        self.heard = _Start(x, y, prop)


@lru_cache(maxsize=1 << 14)
def _start(dpi: float, text: str, style: Style) -> _Start:
    artist = _artist(text, style)
    artist.set_figure(_figure(dpi))
    listener = _listener(dpi)
    artist.draw(listener)
    return listener.heard


@lru_cache(maxsize=1)
def _figure(dpi: float) -> Figure:
    return Figure(dpi=dpi)


@lru_cache(maxsize=1)
def _listener(dpi: float) -> _Listener:
    return _Listener(1, 1, dpi)  # type: ignore[no-untyped-call]
