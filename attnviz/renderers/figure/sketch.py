"""What pictures that are no maps have in common: a plan in which everything has its place, which draws itself.

Lengths are inches from the upper left corner, text sizes points.
"""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from attnviz.renderers.figure.draw import axes_at, write
from attnviz.renderers.figure.layout import Box, Plan


@dataclass(frozen=True, eq=False)
class Sketch(Plan):
    """A picture that `paint` draws behind its texts."""

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
