"""The steps of a calculation side by side, a row for each key: where everything goes, and drawn.

The query stands above the keys that it is multiplied with, and the sum below what is summed. Lengths are inches from
the upper left corner, text sizes points.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from attnviz.renderers.figure.calculation_rows import (
    MASKED,
    PlacedStep,
    RowPlan,
    Strip,
    write_cells,
    write_column,
    write_number,
)
from attnviz.renderers.figure.draw import axes_at, write
from attnviz.renderers.figure.header import (
    MARGIN,
    below,
    ceil_to_pixel,
    check_size,
    header_of,
    height_of,
    paragraph,
    refuse_width,
    title_of,
)
from attnviz.renderers.figure.layout import GAP, MIN_APART, PAD, POINT, Box, TextLine
from attnviz.renderers.figure.scale import write_sign
from attnviz.renderers.figure.style import AXIS, GREY, HAIRLINE, INK, Sizes, Theme, colour_map, look_of
from attnviz.renderers.figure.text import extent, wrap
from attnviz.report import Calculation, CalculationStep, FigureStyle, Report

# Inches of a strip and of the longest bar, and of what is between steps, 1 being the usual; less if all is too wide.
WISHED = ((1.5, 1.0, 1.0), (1.2, 0.8, 1.0), (1.0, 0.6, 0.8), (0.8, 0.5, 0.6))
MAX_WRITTEN = 5  # components of a strip whose numbers stand in its cells
MIN_CELL, WRITTEN_CELL = 0.02, 0.32  # inches, and of a cell with its number
BETWEEN, BESIDE_SIGN = 0.16, 0.34  # inches between two steps, and where a sign stands there
HEADING = 0.78, 1.15  # inches that a heading has at least, and up to which a formula has them to stay on one line
N_SHADES, KEY = 33, 0.7  # cells of the key to the colours, and its inches


@dataclass(frozen=True, eq=False)
class CalculationPlan:
    """A calculation before it is drawn."""

    name: str
    title: str
    width: float
    height: float
    strips: tuple[Strip, ...]
    bars: tuple[Box, ...]
    lines: tuple[TextLine, ...]
    theme: Theme


def plan_calculation(chart: Calculation, report: Report, look: FigureStyle) -> CalculationPlan:
    """Everything with its place. Raises TooLarge where the width asked for is too small, and for too many pixels."""
    theme, sizes = look_of(look.theme, look.font_size)
    steps, width = _across(chart, look, sizes)
    header, start = header_of(chart, report, width, look, sizes)
    headings, top = _place_headings(steps, start + GAP * bool(header), sizes)
    rows = RowPlan(chart, sizes, top + GAP)
    strips = [strip for step in steps for strip in rows.list_strips(step)]
    lines = [*rows.label_rows()]
    for step in steps:
        lines += [*rows.write_numbers(step), *rows.write_beside(step)]
        if step.has_digits:
            lines += [line for strip in rows.list_strips(step) for line in write_cells(strip, theme, sizes)]
    keys, texts, end = _place_keys(steps, rows.end + PAD, sizes)
    notes = (*chart.notes, *([report.caveat] if report.caveat and not look.header else ()))
    small_print = wrap(" · ".join(notes), sizes.small, (width - 2 * MARGIN) / POINT)
    footer = paragraph(small_print, sizes.small, GREY, MARGIN, end + GAP)
    height = ceil_to_pixel(below(footer, end) + MARGIN, look.dpi)
    check_size(chart.name, width, height, look.dpi)
    written = (*header, *headings, *lines, *texts, *footer)
    return CalculationPlan(
        name=chart.name,
        title=title_of(chart, report),
        width=width,
        height=height,
        strips=(*strips, *keys),
        bars=tuple(bar for step in steps for bar in rows.list_bars(step)),
        lines=tuple(line._replace(colour=theme.find_ink(line.colour)) for line in written),
        theme=theme,
    )


def draw_calculation(plan: CalculationPlan) -> Figure:
    """The figure of one plan. To be called, and the figure to be saved, within `style.drawing`."""
    figure = Figure(figsize=(plan.width, plan.height))
    axes = axes_at(figure, Box(0.0, 0.0, plan.width, plan.height))
    axes.set(xlim=(0, plan.width), ylim=(plan.height, 0))
    axes.set_axis_off()
    cmap = colour_map(plan.theme.diverging)
    for (left, top, width, height), components, most in plan.strips:
        edges = np.linspace(left, left + width, len(components) + 1)
        apart = HAIRLINE * (width / len(components) >= MIN_APART)
        look: dict[str, Any] = {"edgecolor": plan.theme.ground, "linewidth": apart}
        axes.pcolormesh(edges, [top, top + height], components[None], cmap=cmap, vmin=-most, vmax=most, **look)
    for left, top, width, height in plan.bars:
        axes.add_patch(Rectangle((left, top), width, height, facecolor=plan.theme.grey, linewidth=0))
    for line in plan.lines:
        write(figure, line)
    return figure


def list_texts(chart: Calculation) -> Iterator[str]:
    """List everything that is written in the picture, but not its own title."""
    yield from (*chart.rows, *chart.notes, MASKED)
    for step in chart.steps:
        yield from (step.title, *step.formula, step.sign)
        yield from (edge.label for edge in (step.above, step.below) if edge is not None)


def _across(chart: Calculation, look: FigureStyle, sizes: Sizes) -> tuple[tuple[PlacedStep, ...], float]:
    """Every step with its place, as wide as they want to be or as the width asked for has room for, and the width."""
    names = (*chart.rows, *(step.above.label for step in chart.steps if step.above is not None))
    left = MARGIN + max(extent(each, sizes.axis, bold=True).width for each in names) * POINT + 2 * PAD
    for wished in WISHED:
        steps = tuple(_place_steps(chart.steps, left, wished, sizes))
        width = steps[-1].end + MARGIN
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
    """From left to right, each as wide as what it shows and its heading want."""
    factor, size = sizes.axis / AXIS, sizes.axis
    strip, bar, between = (factor * each for each in wished)
    for place, step in enumerate(steps):
        gap = between * (BESIDE_SIGN if step.sign else BETWEEN) if place else 0.0
        has_digits = step.look == "strip" and step.values.shape[1] <= MAX_WRITTEN
        if step.look == "strip":
            inner = strip
            if has_digits:  # cells have room for their numbers
                edges = [edge.components for edge in (step.above, step.below) if edge is not None]
                written = np.concatenate([step.values.ravel(), *edges])
                texts = map(write_number, written[~np.isnan(written)].tolist())
                widest = max(extent(text, sizes.small).width for text in texts) * POINT + 2 * PAD
                inner = max(widest, factor * WRITTEN_CELL) * step.values.shape[1]
            inner = content = max(inner, step.values.shape[1] * MIN_CELL)
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
        yield PlacedStep(step, gap, left + gap, inner, width, title, formula, has_digits)
        left += gap + width


def _place_headings(steps: Sequence[PlacedStep], top: float, sizes: Sizes) -> tuple[list[TextLine], float]:
    """Above each step its number, what it is in words and its formula; where they end."""
    lines: list[TextLine] = []
    second = top + height_of(["step"], sizes.small)
    third = second + max(height_of(step.title, sizes.axis) for step in steps) + PAD
    for step in steps:
        lines += paragraph([step.step.label], sizes.small, GREY, step.left, top)
        lines += paragraph(step.title, sizes.axis, INK, step.left, second, bold=True)
        lines += paragraph(step.formula, sizes.axis, GREY, step.left, third)
    return lines, third + max(height_of(step.formula, sizes.axis) for step in steps) + PAD


def _place_keys(steps: Sequence[PlacedStep], top: float, sizes: Sizes) -> tuple[list[Strip], list[TextLine], float]:
    """Below strips what their colours mean, unless numbers say it; where that ends."""
    strips, lines, high = [], [], 0.6 * sizes.small * POINT
    coloured = [step for step in steps if step.step.look == "strip" and not step.has_digits]
    for step in coloured:
        most = step.step.most
        low, end = (write_sign(f"{number:+.2g}") for number in (-most, most))
        widths = [extent(text, sizes.small).width * POINT + PAD for text in (low, end)]
        left, length = step.left + widths[0], min(KEY * sizes.axis / AXIS, step.width - sum(widths))
        strips.append(Strip(Box(left, top + high / 2, length, high), np.linspace(-most, most, N_SHADES), most))
        for text, x in ((low, step.left), (end, left + length + PAD)):
            lines.append(TextLine(text, x, top + 1.5 * high, sizes.small, GREY))
    return strips, lines, top + 2.5 * high * bool(coloured)
