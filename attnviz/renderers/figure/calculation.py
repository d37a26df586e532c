"""The steps of a calculation side by side, a row for each key: where everything goes, and drawn.

The query stands above the keys that it is multiplied with, and the sum below what is summed. Lengths are inches from
the upper left corner, text sizes points.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from attnviz.renderers.figure.draw import Sketch
from attnviz.renderers.figure.header import MARGIN, ceil_to_pixel, frame, header_of, height_of, paragraph, refuse_width
from attnviz.renderers.figure.layout import GAP, MIN_APART, PAD, POINT, Box, TextLine
from attnviz.renderers.figure.scale import write_sign
from attnviz.renderers.figure.style import AXIS, GREY, HAIRLINE, INK, Sizes, colour_map, look_of
from attnviz.renderers.figure.text import extent, wrap
from attnviz.report import Calculation, CalculationStep, FigureStyle, Report

# Inches of a strip and of the longest bar, and of what is between steps, 1 being the usual; less if all is too wide.
WISHED = ((1.5, 1.0, 1.0), (1.2, 0.8, 1.0), (1.0, 0.6, 0.8), (0.8, 0.5, 0.6))
MIN_CELL = 0.02  # inches
BETWEEN, BESIDE_SIGN = 0.16, 0.34  # inches between two steps, and where a sign stands there
HEADING = 0.78, 1.15  # inches that a heading has at least, and up to which a formula has them to stay on one line
N_SHADES, KEY = 33, 0.7  # cells of the key to the colours, and its inches
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


@dataclass(frozen=True, eq=False)
class CalculationPlan(Sketch):
    """A calculation before it is drawn."""

    strips: tuple[Strip, ...]
    bars: tuple[Box, ...]

    def paint(self, axes: Axes) -> None:
        """Draw vectors as coloured cells, and weights as bars."""
        cmap = colour_map(self.theme.diverging)
        for (left, top, width, height), components, most in self.strips:
            edges = np.linspace(left, left + width, len(components) + 1)
            apart = HAIRLINE * (width / len(components) >= MIN_APART)
            look: dict[str, Any] = {"edgecolor": self.theme.ground, "linewidth": apart}
            axes.pcolormesh(edges, [top, top + height], components[None], cmap=cmap, vmin=-most, vmax=most, **look)
        for left, top, width, height in self.bars:
            axes.add_patch(Rectangle((left, top), width, height, facecolor=self.theme.grey, linewidth=0))


def plan_calculation(chart: Calculation, report: Report, look: FigureStyle) -> CalculationPlan:
    """Plan where everything is placed. Raises TooLarge where the width asked for is too small."""
    sizes = look_of(look.theme, look.font_size)[1]
    steps, width = _across(chart, look, sizes)
    lines, start = header_of(chart, report, width, look, sizes)
    first = start + GAP * bool(lines)
    second = first + max(height_of(step.title, sizes.axis) for step in steps) + PAD
    top = second + max(height_of(step.formula, sizes.axis) for step in steps) + PAD + GAP
    for step in steps:  # above each what it is in words, and its formula
        lines += paragraph(step.title, sizes.axis, INK, step.left, first, bold=True)
        lines += paragraph(step.formula, sizes.axis, GREY, step.left, second)
    strips, bars, texts, end = _place_rows(chart, steps, top, sizes)
    keys, of_keys, end = _place_keys(steps, end + PAD, sizes)
    return CalculationPlan(
        **frame(chart, report, look, (width, end, GAP), [*lines, *texts, *of_keys], chart.notes),
        strips=(*strips, *keys),
        bars=tuple(bars),
    )


def _place_rows(
    chart: Calculation, steps: Sequence[PlacedStep], top: float, sizes: Sizes
) -> tuple[list[Strip], list[Box], list[TextLine], float]:
    """Place what stands in rows below `top`, with room for vectors above or below them; also return where it ends."""
    em, rest = sizes.axis * POINT, len(chart.rows) - 1 if chart.has_rest else None
    pitch, high = PITCH * em, HIGH * em
    begin = top + APART * pitch * any(placed.step.above for placed in steps)
    tops = [begin + row * pitch for row in range(len(chart.rows))]
    below = tops[-1] + APART * pitch * any(placed.step.below for placed in steps)
    strips, bars, lines = list[Strip](), list[Box](), list[TextLine]()

    def write(text: str, x: float, at: float, ink: str = INK, **more: Any) -> None:  # in the middle of a row
        line = TextLine(text, x, at + high / 2 + CAPITAL * em, sizes.axis, ink)
        lines.append(line._replace(**more))

    for row, (name, at) in enumerate(zip(chart.rows, tops, strict=True)):
        write(name, MARGIN, at, GREY if row == rest else INK, bold=row == chart.asked)
    for step, gap, left, inner, *_ in steps:
        if step.sign:
            write(step.sign, left - gap / 2, (tops[0] + tops[-1]) / 2, GREY, size=SIGN * sizes.axis, align="center")
        vectors = [*zip(step.values, tops, strict=True)]
        if step.above:
            write(step.above.label, MARGIN, top, bold=True)
            vectors.append((step.above.components, top))
        if step.below:
            write(step.below.label, left - 2 * PAD, below, bold=True, align="right")
            vectors.append((step.below.components, below))
        if step.look == "strip":
            seen = [each for each in vectors if not np.isnan(each[0]).all()]
            strips += [Strip(Box(left, at, inner, high), components, step.most) for components, at in seen]
            continue
        for row, (text, (value, at)) in enumerate(zip(write_column(step), vectors, strict=True)):
            ink, x, align = GREY if row == rest else INK, left + inner, "right"
            if step.look == "bar":  # of several keys together it has no length
                length = 0.0 if row == rest else inner * float(value[0]) / step.most
                bars.append(Box(left, at, length, high))
                x, align = left + length + PAD, "left"
            write(text, x, at, ink, align=align)
    return strips, bars, lines, below + high


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


def _across(chart: Calculation, look: FigureStyle, sizes: Sizes) -> tuple[tuple[PlacedStep, ...], float]:
    """Place every step, as wide as they want to be or as the requested width allows; also return the width."""
    names = (*chart.rows, *(step.above.label for step in chart.steps if step.above))
    left = MARGIN + max(extent(each, sizes.axis, bold=True).width for each in names) * POINT + 2 * PAD
    for wished in WISHED:
        steps = tuple(_place_steps(chart.steps, left, wished, sizes))
        width = steps[-1].left + steps[-1].width + MARGIN
        if look.width is None or width <= look.width:
            break
    else:
        raise refuse_width(chart.name, look, sizes, width)
    more = 0.0 if look.width is None else (look.width - width) / max(1, len(steps) - 1)
    spread = tuple(
        step._replace(left=step.left + place * more, gap=step.gap + more) for place, step in enumerate(steps)
    )
    return spread, ceil_to_pixel(look.width or width, look.dpi)


def _place_steps(
    steps: Sequence[CalculationStep], left: float, wished: tuple[float, float, float], sizes: Sizes
) -> Iterator[PlacedStep]:
    """Yield the steps with their places, from left to right, each as wide as its content and its heading need."""
    factor, size = sizes.axis / AXIS, sizes.axis
    strip, bar, between = (factor * each for each in wished)
    for place, step in enumerate(steps):
        gap = between * (BESIDE_SIGN if step.sign else BETWEEN) if place else 0.0
        if step.look == "strip":
            inner = content = max(strip, step.values.shape[1] * MIN_CELL)
        else:
            numbers = max(extent(text, size).width for text in write_column(step)) * POINT
            inner = bar if step.look == "bar" else numbers
            content = inner + (PAD + numbers) * (step.look == "bar")
        words = [extent(word, size, bold=True).width * POINT for word in step.title.split()]
        formulas = [extent(line, size).width * POINT for line in step.formula]
        least, most = (between * inches for inches in HEADING)
        width = max(content, least, *words, *(each for each in formulas if each <= most))
        formula = tuple(line for text in step.formula for line in wrap(text, size, width / POINT + 1))
        title = wrap(step.title, size, width / POINT, bold=True)
        yield PlacedStep(step, gap, left + gap, inner, width, title, formula)
        left += gap + width


def _place_keys(steps: Sequence[PlacedStep], top: float, sizes: Sizes) -> tuple[list[Strip], list[TextLine], float]:
    """Place the colour keys below the strips; also return where they end."""
    strips, lines, high = [], [], 0.6 * sizes.small * POINT
    coloured = [step for step in steps if step.step.look == "strip"]
    for step in coloured:
        most = step.step.most
        low, end = (write_sign(f"{number:+.2g}") for number in (-most, most))
        widths = [extent(text, sizes.small).width * POINT + PAD for text in (low, end)]
        left, length = step.left + widths[0], min(KEY * sizes.axis / AXIS, step.width - sum(widths))
        strips.append(Strip(Box(left, top + high / 2, length, high), np.linspace(-most, most, N_SHADES), most))
        for text, x in ((low, step.left), (end, left + length + PAD)):
            lines.append(TextLine(text, x, top + 1.5 * high, sizes.small, GREY))
    return strips, lines, top + 2.5 * high * bool(coloured)
