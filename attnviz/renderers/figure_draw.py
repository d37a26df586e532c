"""Plans as matplotlib figures. Decides nothing about sizes and places: they are in the plan."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.patheffects import Normal
from matplotlib.text import Text

from attnviz.renderers.figure_layout import DIGITS, POINT, TICK, Box, Labels, Line, Place, Plan
from attnviz.renderers.figure_scale import digits_of, norm_of
from attnviz.renderers.figure_text import drawable, is_plain
from attnviz.renderers.style import AXIS, DIVERGING, FORBIDDEN, FORBIDDEN_AMONG_PALE, HAIRLINE, INK, colour_map
from attnviz.report import Heatmap
from attnviz.shapes import Cells, Shown

PALE = 0.2  # relative luminance on which our ink and white stand out equally (WCAG 2 contrast)


def draw(plan: Plan, cmap: str) -> Figure:
    """The figure of one plan. To be called, and the figure to be saved, within `style.drawing`.

    A difference has its own colours whatever `cmap` is: others would make 0 look like something.
    """
    figure = Figure(figsize=(plan.width, plan.height))
    difference = plan.scale.kind == "diverging"
    colours, norm = colour_map(DIVERGING if difference else cmap), norm_of(plan.scale, plan.limits)
    for place in plan.places:
        _draw_map(axes_at(figure, place.box), place, plan, colours, norm)
    _draw_bar(axes_at(figure, plan.bar), plan, ScalarMappable(norm, colours))
    if plan.swatch is not None:
        _hatch(axes_at(figure, plan.swatch), difference).set_linewidth(HAIRLINE)
    for line in plan.lines:
        write(figure, line)
    return figure


def pooled(values: Cells, allowed: Shown, pools: tuple[int, int], difference: bool = False) -> np.ma.MaskedArray:
    """The maximum of each block of cells, or the largest difference; masked where no cell of the block is allowed."""
    if pools != (1, 1):
        highest = _of_blocks(np.maximum, np.where(allowed, values, -np.inf), pools)
        lowest = _of_blocks(np.minimum, np.where(allowed, values, np.inf), pools)
        values = np.where(-lowest > highest, lowest, highest) if difference else highest
        allowed = highest > -np.inf
    return np.ma.masked_array(values, ~allowed)


def _of_blocks(extreme: np.ufunc, values: np.ndarray, pools: tuple[int, int]) -> np.ndarray:
    for axis, pool in enumerate(pools):
        values = extreme.reduceat(values, np.arange(0, values.shape[axis], pool), axis=axis)
    return values


def draw_mesh(axes: Axes, cells: np.ma.MaskedArray, cmap: Colormap, norm: Normalize) -> None:
    """One coloured box per cell, the first row on top. The same pixels as `seaborn.heatmap`, without its import."""
    axes.pcolormesh(cells, cmap=cmap, norm=norm, linewidth=0, edgecolor="white")
    axes.set(xlim=(0, cells.shape[1]), ylim=(cells.shape[0], 0))


def axes_at(figure: Figure, box: Box) -> Axes:
    """Axes at `box`, empty."""
    width, height = figure.get_size_inches()
    left, bottom = box.left / width, 1 - (box.top + box.height) / height
    axes = figure.add_axes((left, bottom, box.width / width, box.height / height))
    axes.set(xticks=[], yticks=[])
    return axes


def _hatch(axes: Axes, difference: bool) -> Rectangle:
    """The ground on which forbidden cells lie open."""
    look = FORBIDDEN_AMONG_PALE if difference else FORBIDDEN
    ground = Rectangle((0, 0), 1, 1, transform=axes.transAxes, zorder=0, **look)
    axes.add_patch(ground)
    return ground


def _draw_map(axes: Axes, place: Place, plan: Plan, cmap: Colormap, norm: Normalize) -> None:
    heatmap = place.heatmap
    difference = plan.scale.kind == "diverging"
    rows, columns = plan.cells.rows.pool, plan.cells.columns.pool
    cells = pooled(heatmap.values, heatmap.allowed, (rows, columns), difference)
    if np.ma.is_masked(cells):
        _hatch(axes, difference)
    if isinstance(norm, LogNorm):  # a weight of 0 has no logarithm; what is below the range is drawn as its lower end
        cells = np.ma.maximum(cells, plan.limits[0])
    draw_mesh(axes, cells, cmap, norm)
    for collection in axes.collections:
        collection.set_rasterized(True)  # thousands of cells would make a vector file heavy, with seams between them
    for spine in axes.spines.values():
        spine.set(visible=True, linewidth=HAIRLINE)
    if place.row_labels:
        _label(axes.yaxis, heatmap.rows, plan.row_labels, rows)
    if place.column_labels:
        _label(axes.xaxis, heatmap.columns, plan.column_labels, columns)
    if plan.cells.annotated:
        _annotate(axes, heatmap, difference, cmap, norm)


def _label(axis: Axis, names: Sequence[str], labels: Labels, pool: int) -> None:
    """Tokens beside their rows or under their columns."""
    at = [(position + 0.5) / pool for position in range(len(names))]
    label_at(axis, at, names, labels)


def label_at(axis: Axis, at: Sequence[float], names: Sequence[str], labels: Labels) -> None:
    """Every name that `labels` leaves, at its place along an axis."""
    if labels.step == 0:
        return
    axis.set_ticks(at[:: labels.step], [drawable(name) for name in names[:: labels.step]])
    axis.set_tick_params(length=TICK / POINT, width=HAIRLINE, pad=1.5, labelsize=labels.size)
    for text in axis.get_ticklabels():
        if labels.rotated:
            text.set(rotation=90, rotation_mode="anchor", ha="right", va="center_baseline")
        _literal(text)


def _annotate(axes: Axes, heatmap: Heatmap, difference: bool, cmap: Colormap, norm: Normalize) -> None:
    """Each allowed cell's value, dark on pale and pale on dark."""
    for row, column in np.argwhere(heatmap.allowed):
        value = float(heatmap.values[row, column])
        red, green, blue = (_linear(part) for part in cmap(float(norm(max(value, norm.vmin or 0.0))))[:3])
        ink = INK if 0.2126 * red + 0.7152 * green + 0.0722 * blue > PALE else "white"
        text = digits_of(value, difference)
        axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", size=DIGITS, color=ink)


def _linear(part: float) -> float:
    """A colour component as light."""
    return part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4


def _draw_bar(axes: Axes, plan: Plan, colours: ScalarMappable) -> None:
    """The colour bar; an arrow downwards says that smaller values are drawn in the lowest colour."""
    figure = axes.figure
    assert isinstance(figure, Figure)
    extend = "min" if plan.scale.kind == "log" else "neither"
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
