"""What pictures that are no maps have in common: a plan in which everything has its place, which draws itself.

Lengths are inches from the upper left corner, text sizes points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnviz.renderers.figure.draw import axes_at, write
from attnviz.renderers.figure.header import MARGIN, below, ceil_to_pixel, check_size, paragraph, title_of
from attnviz.renderers.figure.layout import PAD, POINT, Box, TextLine
from attnviz.renderers.figure.style import GREY, Theme, look_of
from attnviz.renderers.figure.text import wrap
from attnviz.report import Calculation, Charts, FigureStyle, Graph, Report


@dataclass(frozen=True, eq=False)
class Sketch:
    """A picture before it is drawn: `lines` are all its texts, and `paint` draws what stands behind them."""

    name: str
    title: str
    width: float
    height: float
    lines: tuple[TextLine, ...]
    theme: Theme

    def paint(self, axes: Axes) -> None:
        """Draw on axes that are as large as the figure, in inches."""

    def draw(self) -> Figure:
        """Return the figure. To be called, and the figure to be saved, within `style.drawing`."""
        figure = Figure(figsize=(self.width, self.height))
        axes = axes_at(figure, Box(0.0, 0.0, self.width, self.height))
        axes.set(xlim=(0, self.width), ylim=(self.height, 0))
        axes.set_axis_off()
        self.paint(axes)
        for line in self.lines:
            write(figure, line)
        return figure


def frame(
    picture: Charts | Calculation | Graph,
    report: Report,
    look: FigureStyle,
    place: tuple[float, float],
    lines: Sequence[TextLine],
    notes: Sequence[str],
) -> dict[str, Any]:
    """Return what every `Sketch` has once all has its place: `place` is its width, and where it ends but for notes.

    Raises TooLarge for too many pixels, and says what would work.
    """
    (theme, sizes), (width, end) = look_of(look.theme, look.font_size), place
    notes = [*notes, *([report.caveat] if report.caveat and not look.header else [])]
    small_print = wrap(" · ".join(notes), sizes.small, (width - 2 * MARGIN) / POINT)
    footer = paragraph(small_print, sizes.small, GREY, MARGIN, end + PAD)
    height = ceil_to_pixel(below(footer, end) + MARGIN, look.dpi)
    check_size(picture.name, width, height, look.dpi)
    inked = tuple(line._replace(colour=theme.find_ink(line.colour)) for line in (*lines, *footer))
    sized = {"name": picture.name, "width": width, "height": height}
    return {**sized, "title": title_of(picture, report), "lines": inked, "theme": theme}
