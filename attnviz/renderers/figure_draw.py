"""Plans as matplotlib figures. Decides nothing about sizes and places: they are in the plan."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.patheffects import Normal
from matplotlib.text import Text

from attnviz.renderers.figure_layout import DIGITS, POINT, TICK, Box, Labels, Line, Place, Plan
from attnviz.renderers.figure_text import drawable, is_plain
from attnviz.renderers.style import AXIS, FORBIDDEN, HAIRLINE, INK, colour_map
from attnviz.report import Heatmap, Scale
from attnviz.shapes import Cells, Shown

PALE = 0.2  # relative luminance on which our ink and white stand out equally (WCAG 2 contrast)


def draw(plan: Plan, scale: Scale, cmap: str) -> Figure:
    """The figure of one plan. To be called, and the figure to be saved, within `style.drawing`."""
    figure = Figure(figsize=(plan.width, plan.height))
    colours, norm = colour_map(cmap), norm_of(scale, plan.limits)
    for place in plan.places:
        _draw_map(axes_at(figure, place.box), place, plan, colours, norm)
    _draw_bar(axes_at(figure, plan.bar), plan, ScalarMappable(norm, colours), scale)
    if plan.swatch is not None:
        _hatch(axes_at(figure, plan.swatch)).set_linewidth(HAIRLINE)
    for line in plan.lines:
        write(figure, line)
    return figure


def norm_of(scale: Scale, limits: tuple[float, float]) -> Normalize:
    """From values to 0..1, nothing stretched beyond the limits."""
    return (LogNorm if scale.kind == "log" else Normalize)(*limits)


def pooled(values: Cells, allowed: Shown, pool: int) -> np.ma.MaskedArray:
    """The maximum of each block of `pool` × `pool` cells; masked where no cell of the block is allowed."""
    if pool > 1:
        starts = [np.arange(0, length, pool) for length in values.shape]
        low = np.where(allowed, values, -np.inf)
        values = np.maximum.reduceat(np.maximum.reduceat(low, starts[0], axis=0), starts[1], axis=1)
        allowed = values > -np.inf
    return np.ma.masked_array(values, ~allowed)


def draw_mesh(axes: Axes, cells: np.ma.MaskedArray, cmap: Colormap, norm: Normalize) -> None:
    """One coloured square per cell, the first row on top. The same pixels as `seaborn.heatmap`, without its import."""
    axes.pcolormesh(cells, cmap=cmap, norm=norm, linewidth=0, edgecolor="white")
    axes.set(xlim=(0, cells.shape[1]), ylim=(cells.shape[0], 0))


def axes_at(figure: Figure, box: Box) -> Axes:
    """Axes at `box`, empty."""
    width, height = figure.get_size_inches()
    left, bottom = box.left / width, 1 - (box.top + box.height) / height
    axes = figure.add_axes((left, bottom, box.width / width, box.height / height))
    axes.set(xticks=[], yticks=[])
    return axes


def _hatch(axes: Axes) -> Rectangle:
    """The ground on which forbidden cells lie open."""
    ground = Rectangle((0, 0), 1, 1, transform=axes.transAxes, zorder=0, **FORBIDDEN)
    axes.add_patch(ground)
    return ground


def _draw_map(axes: Axes, place: Place, plan: Plan, cmap: Colormap, norm: Normalize) -> None:
    heatmap = place.heatmap
    cells = pooled(heatmap.values, heatmap.allowed, plan.cells.pool)
    if np.ma.is_masked(cells):
        _hatch(axes)
    if isinstance(norm, LogNorm):  # a weight of 0 has no logarithm; what is below the range is drawn as its lower end
        cells = np.ma.maximum(cells, plan.limits[0])
    draw_mesh(axes, cells, cmap, norm)
    for collection in axes.collections:
        collection.set_rasterized(True)  # thousands of cells would make a vector file heavy, with seams between them
    for spine in axes.spines.values():
        spine.set(visible=True, linewidth=HAIRLINE)
    if place.row_labels:
        _label(axes, heatmap.rows, plan.labels, plan.cells.pool, rows=True)
    if place.column_labels:
        _label(axes, heatmap.columns, plan.labels, plan.cells.pool, rows=False)
    if plan.cells.annotated:
        _annotate(axes, heatmap, cmap, norm)


def _label(axes: Axes, names: Sequence[str], labels: Labels, pool: int, rows: bool) -> None:
    """Tokens beside their rows or under their columns."""
    if labels.step == 0:
        return
    axis = axes.yaxis if rows else axes.xaxis
    shown = range(0, len(names), labels.step)
    axis.set_ticks([(position + 0.5) / pool for position in shown], [drawable(names[position]) for position in shown])
    axis.set_tick_params(length=TICK / POINT, width=HAIRLINE, pad=1.5, labelsize=labels.size)
    for text in axis.get_ticklabels():
        if labels.rotated and not rows:
            text.set(rotation=90, rotation_mode="anchor", ha="right", va="center_baseline")
        _literal(text)


def _annotate(axes: Axes, heatmap: Heatmap, cmap: Colormap, norm: Normalize) -> None:
    """Each allowed cell's value, dark on pale and pale on dark."""
    for row, column in np.argwhere(heatmap.allowed):
        value = float(heatmap.values[row, column])
        red, green, blue = (_linear(part) for part in cmap(float(norm(max(value, norm.vmin or 0.0))))[:3])
        ink = INK if 0.2126 * red + 0.7152 * green + 0.0722 * blue > PALE else "white"
        axes.text(column + 0.5, row + 0.5, f"{value:.2f}", ha="center", va="center", size=DIGITS, color=ink)


def _linear(part: float) -> float:
    """A colour component as light."""
    return part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4


def _draw_bar(axes: Axes, plan: Plan, colours: ScalarMappable, scale: Scale) -> None:
    """The colour bar; an arrow downwards says that smaller values are drawn in the lowest colour."""
    figure = axes.figure
    assert isinstance(figure, Figure)
    extend = "min" if scale.kind == "log" else "neither"
    bar = figure.colorbar(colours, cax=axes, extend=extend, extendfrac=0.04, ticks=[])
    bar.ax.minorticks_off()
    bar.set_ticks([tick for tick, _ in plan.ticks], labels=[text for _, text in plan.ticks], minor=False)
    bar.ax.tick_params(length=TICK / POINT, width=HAIRLINE, pad=2, labelsize=AXIS)
    bar.outline.set_linewidth(HAIRLINE)
    assert bar.solids is not None
    bar.solids.set_rasterized(True)


def write(figure: Figure, line: Line) -> None:
    width, height = figure.get_size_inches()
    text = figure.text(
        line.x / width,
        1 - line.y / height,
        drawable(line.text),
        size=line.size,
        color=line.colour,
        ha=line.align,
        va="baseline",
        rotation=line.rotation,
        rotation_mode="anchor",
    )
    _literal(text)


def _literal(text: Text) -> None:
    """A token is data: no dollar sign starts a formula. Outlines keep joined or piled glyphs in their places."""
    text.set_parse_math(False)
    if not is_plain(text.get_text()):
        text.set_path_effects([Normal()])
