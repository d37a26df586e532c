"""The rows of a calculation: which strips, bars and numbers stand in them, and where.

Lengths are inches from the upper left corner, text sizes points.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from attnviz.renderers.figure.header import MARGIN
from attnviz.renderers.figure.layout import PAD, POINT, Box, TextLine
from attnviz.renderers.figure.scale import write_sign
from attnviz.renderers.figure.style import GREY, INK, Sizes
from attnviz.report import Calculation, CalculationStep

PITCH, HIGH, APART = 1.75, 1.35, 1.4  # of the text's size: row to row, and a strip; rows to what is above and below
SIGN = 1.4  # of the text's size
CAPITAL = 0.36  # of a text's size: from its base line to its middle
MASKED = "−∞"
LEAST = 0.0005  # a share that is smaller would be written as 0.000


class Strip(NamedTuple):
    """A vector as cells from left to right; `most` has the darkest colours."""

    box: Box
    components: Float64[np.ndarray, " component"]
    most: float


class PlacedStep(NamedTuple):
    """One step, where it begins, and its heading broken into lines."""

    step: CalculationStep
    gap: float  # before it
    left: float
    inner: float  # how wide its cells or numbers are, or its longest bar
    width: float  # and all of it
    title: tuple[str, ...]
    formula: tuple[str, ...]

    @property
    def end(self) -> float:
        """Where it ends."""
        return self.left + self.width


def write_column(step: CalculationStep) -> list[str]:
    """Write the numbers of a step, "" where there are none."""
    written = []
    for value in step.values[:, 0].tolist():
        if not np.isfinite(value):
            written.append("" if np.isnan(value) else MASKED)
        elif step.look == "bar":
            written.append("< 0.001" if 0 < value < LEAST else f"{value:.3f}")
        else:
            written.append(write_sign(f"{value:.2f}"))
    return written


class RowPlan:
    """Where the rows of a calculation are, below `top`: with room above where a vector stands there, or below."""

    def __init__(self, chart: Calculation, sizes: Sizes, top: float) -> None:
        self.chart, self.size = chart, sizes.axis
        self.pitch, self.high = PITCH * self.size * POINT, HIGH * self.size * POINT
        self.above, rows = top, range(len(chart.rows))
        first = top + APART * self.pitch * any(step.above is not None for step in chart.steps)
        self.tops = [first + row * self.pitch for row in rows]
        self.inks = [GREY if chart.has_rest and row == rows[-1] else INK for row in rows]
        self.middle = first + (len(rows) - 1) / 2 * self.pitch
        self.below = first + (len(rows) - 1 + APART) * self.pitch
        has_sum = any(step.below is not None for step in chart.steps)
        self.end = (self.below if has_sum else self.tops[-1]) + self.high

    def label_rows(self) -> Iterator[TextLine]:
        """Write the name of each row at the left, that of the token which asks in bold."""
        for row, (name, top, ink) in enumerate(zip(self.chart.rows, self.tops, self.inks, strict=True)):
            yield self._write(name, MARGIN, top, ink)._replace(bold=row == self.chart.asked)

    def list_strips(self, placed: PlacedStep) -> Iterator[Strip]:
        """List the strips of one step."""
        step = placed.step
        if step.look != "strip":
            return
        pairs = zip(step.values, self.tops, strict=True)
        vectors = [(components, top) for components, top in pairs if not np.isnan(components).all()]
        ends = ((step.above, self.above), (step.below, self.below))
        for components, top in (*vectors, *((edge.components, top) for edge, top in ends if edge is not None)):
            yield Strip(Box(placed.left, top, placed.inner, self.high), components, step.most)

    def list_bars(self, placed: PlacedStep) -> Iterator[Box]:
        """List the bars of one step; that of several keys together has no length."""
        if placed.step.look == "bar":
            for value, top, ink in zip(placed.step.values[:, 0].tolist(), self.tops, self.inks, strict=True):
                length = 0.0 if ink == GREY else placed.inner * value / placed.step.most
                yield Box(placed.left, top, length, self.high)

    def write_numbers(self, placed: PlacedStep) -> Iterator[TextLine]:
        """Write the numbers of one step that stand in no cells, the right ends of a column's under each other."""
        if placed.step.look == "strip":
            return
        bars = [*self.list_bars(placed)]
        for row, (text, top, ink) in enumerate(zip(write_column(placed.step), self.tops, self.inks, strict=True)):
            if bars:
                yield self._write(text, bars[row].left + bars[row].width + PAD, top, ink)
            else:
                yield self._write(text, placed.left + placed.inner, top, ink)._replace(align="right")

    def write_beside(self, placed: PlacedStep) -> Iterator[TextLine]:
        """Write the sign before a step, and the names of what stands above and below its rows."""
        step = placed.step
        if step.sign:
            line = self._write(step.sign, placed.left - placed.gap / 2, self.middle, GREY)
            yield line._replace(size=SIGN * self.size, align="center")
        if step.above is not None:
            yield self._write(step.above.label, MARGIN, self.above, INK)._replace(bold=True)
        if step.below is not None:
            line = self._write(step.below.label, placed.left - 2 * PAD, self.below, INK)
            yield line._replace(bold=True, align="right")

    def _write(self, text: str, x: float, top: float, ink: str) -> TextLine:
        """A text in the middle of a row."""
        return TextLine(text, x, top + self.high / 2 + CAPITAL * self.size * POINT, self.size, ink)
