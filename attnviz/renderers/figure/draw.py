"""Plans as matplotlib figures. Decides nothing about sizes and places: they are in the plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import ceil
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure
from matplotlib.markers import TICKDOWN, TICKLEFT
from matplotlib.patches import Rectangle
from matplotlib.patheffects import Normal
from matplotlib.text import Text
from matplotlib.transforms import ScaledTranslation

from attnviz.renderers.figure.layout import (
    MAX_LINES,
    POINT,
    TICK,
    Box,
    FigurePlan,
    Labels,
    PlacedMap,
    Statistic,
    TextLine,
    line_room,
)
from attnviz.renderers.figure.scale import digits_of, norm_of
from attnviz.renderers.figure.style import (
    AUTO,
    FORBIDDEN,
    FORBIDDEN_AMONG_BLACK,
    FORBIDDEN_AMONG_PALE,
    FORBIDDEN_AMONG_WHITE,
    HAIRLINE,
    INK,
    PAPER,
    SEQUENTIAL,
    Theme,
    colour_map,
)
from attnviz.renderers.figure.text import drawable, is_plain
from attnviz.renderers.shades import luminance
from attnviz.report import Heatmap, Scale
from attnviz.shapes import Cells, Grey, Shown

LABEL_PAD, NUMBER_PAD = 1.5, 2.0  # points between tick and label, on maps and on the colour bar
EXTENSION = 0.04  # of the colour bar: of the arrow that stands for smaller values, as a share of the bar
BESIDE: dict[str, Any] = {"ha": "right", "va": "center_baseline"}
UNDER: dict[str, Any] = {"ha": "center", "va": "top"}
ROTATED: dict[str, Any] = {"rotation": 90, "rotation_mode": "anchor", "ha": "right", "va": "center_baseline"}
THIN, THICK = 0.3, 1.8  # points, of lines of weight 0 and 1
MIN_CELL, MIN_IMAGE = 3, 600  # pixels of a cell and of a map in files of vectors
OVER_IMAGE = 0.6  # opacity of cells, so that the image is seen through them
PALE = 0.2  # relative luminance on which our ink and white stand out equally (WCAG 2 contrast)


def draw(plan: FigurePlan, cmap: str, kind: type[Figure] = Figure, vectors: bool = False) -> Figure:
    """The figure of one plan, for a file of `vectors` or of pixels.

    To be called, and the figure to be saved, within `style.drawing`.
    """
    figure = kind(figsize=(plan.width, plan.height))
    colours = colours_of(plan.scale, plan.limits, cmap, plan.theme)
    for place in plan.places:
        axes = axes_at(figure, place.box)
        if plan.kind == "lines":
            _draw_lines(axes, place, plan, colours)
        else:
            _draw_map(axes, place, plan, colours, draw_image if vectors else draw_mesh)
    if plan.words:
        _draw_words(figure, plan, colours)
    draw_bar(axes_at(figure, plan.bar), plan, colours)
    if plan.swatch is not None:
        _hatch(axes_at(figure, plan.swatch), plan).set_linewidth(HAIRLINE)
    for line in plan.lines:
        write(figure, line)
    return figure


class Colours(NamedTuple):
    """From values to 0..1 and on to colours."""

    cmap: Colormap
    norm: Normalize

    @property
    def mappable(self) -> ScalarMappable:
        """Both as matplotlib takes them together."""
        return ScalarMappable(self.norm, self.cmap)


def colours_of(scale: Scale, limits: tuple[float, float], cmap: str, theme: Theme = PAPER) -> Colours:
    """A difference has colours of its own, whatever `cmap` is: others would make 0 look like something."""
    of_scale = theme.lift if scale.kind == "lift" else SEQUENTIAL
    name = theme.diverging if is_signed(scale) else of_scale if cmap == AUTO else cmap
    return Colours(colour_map(name), norm_of(scale, limits))


def is_signed(scale: Scale) -> bool:
    """Whether the numbers are differences."""
    return scale.kind == "diverging"


def cells_of(place: PlacedMap, plan: FigurePlan) -> np.ma.MaskedArray:
    """What a map's cells show: pooled where there are too many tokens, masked where attention is not allowed."""
    heatmap, signed = place.heatmap, is_signed(plan.scale)
    cells = pooled(heatmap.shading(plan.scale), heatmap.allowed, plan.cells.pools, place.statistic, signed)
    if plan.scale.kind in ("log", "lift"):  # 0 has no logarithm; what is below the range is drawn as its lower end
        lowest = np.float64(plan.limits[0])
        if not np.ma.is_masked(cells):  # a third of the time
            return np.ma.masked_array(np.fmax(cells.data, lowest))
        return np.ma.maximum(cells, lowest)
    return cells


def pooled(
    values: Cells, allowed: Shown, pools: tuple[int, int], statistic: Statistic = "largest", signed: bool = False
) -> np.ma.MaskedArray:
    """One number for each block of cells, from those that are allowed; masked where none is.

    Of `signed` numbers, which are differences, the largest is the one that is farthest from 0.
    """
    if pools == (1, 1):
        return np.ma.masked_array(values, ~allowed)
    everywhere = bool(allowed.all())
    n_allowed = blocks_of(np.add, allowed.astype(np.int32), pools)
    if statistic == "mean":
        totals = blocks_of(np.add, values if everywhere else np.where(allowed, values, 0.0), pools)
        return np.ma.masked_array(totals / np.maximum(n_allowed, 1), n_allowed == 0)
    highest = blocks_of(np.maximum, values if everywhere else np.where(allowed, values, -np.inf), pools)
    if signed:
        lowest = blocks_of(np.minimum, values if everywhere else np.where(allowed, values, np.inf), pools)
        highest = np.where(-lowest > highest, lowest, highest)
    return np.ma.masked_array(highest, n_allowed == 0)


def blocks_of(reduce: np.ufunc, values: np.ndarray, pools: tuple[int, int]) -> np.ndarray:
    """One of each block of cells, the last of which may be smaller: what `reduceat` gives, bit by bit, sooner."""
    for axis, pool in enumerate(pools):
        if pool == 1:
            continue
        n_whole = values.shape[axis] // pool
        whole, rest = np.split(values, [n_whole * pool], axis=axis)
        shape = (*values.shape[:axis], n_whole, pool, *values.shape[axis + 1 :])
        first, others = np.split(whole.reshape(shape), [1], axis=axis + 1)
        found = [reduce(first.squeeze(axis + 1), reduce.reduce(others, axis=axis + 1))]
        if rest.shape[axis]:
            found.append(reduce.reduce(rest, axis=axis, keepdims=True))
        values = np.concatenate(found, axis=axis)
    return values


def draw_mesh(
    axes: Axes, cells: np.ma.MaskedArray, cmap: Colormap, norm: Normalize, opacity: float | None = None
) -> None:
    """One coloured box per cell, the first row on top. The same pixels as `seaborn.heatmap`, without its import."""
    axes.pcolormesh(cells, cmap=cmap, norm=norm, alpha=opacity, linewidth=0, edgecolor="white")
    axes.set(xlim=(0, cells.shape[1]), ylim=(cells.shape[0], 0))


def draw_image(
    axes: Axes, cells: np.ma.MaskedArray, cmap: Colormap, norm: Normalize, opacity: float | None = None
) -> None:
    """The same as a small image: thousands of boxes would make a vector file heavy, with seams between them.

    Each cell is several pixels, because many viewers blur where pixels meet.
    """
    n_rows, n_columns = cells.shape
    side = max(MIN_CELL, ceil(MIN_IMAGE / max(cells.shape)))
    pixels = cmap(norm(cells), bytes=True).repeat(side, axis=0).repeat(side, axis=1)
    axes.imshow(pixels, alpha=opacity, interpolation="none", aspect="auto", extent=(0, n_columns, n_rows, 0))


def opacity_over(axes: Axes, backdrop: Grey | None, cells: np.ma.MaskedArray) -> float | None:
    """How opaque cells are over the image that is drawn under them; None where there is no image."""
    if backdrop is None:
        return None
    places = (np.arange(n) * number // n for n, number in zip(backdrop.shape, cells.shape, strict=True))
    shown = np.ma.masked_array(backdrop, np.ma.getmaskarray(cells)[np.ix_(*places)])  # what is not allowed is hatched
    extent = (0, cells.shape[1], cells.shape[0], 0)
    axes.imshow(shown, cmap="gray", vmin=0, vmax=255, extent=extent, aspect="auto")
    return OVER_IMAGE


def axes_at(figure: Figure, box: Box) -> Axes:
    """Axes at `box`, empty; without ticks, which cost more than all that is drawn here."""
    width, height = figure.get_size_inches()
    bounds = box.left / width, 1 - (box.top + box.height) / height, box.width / width, box.height / height
    axes = figure.add_axes(bounds)
    axes.xaxis.set_visible(False)
    axes.yaxis.set_visible(False)
    return axes


def ground(scale: Scale, theme: Theme = PAPER) -> dict[str, Any]:
    """How the ground looks on which forbidden cells lie open."""
    if theme != PAPER:
        return FORBIDDEN_AMONG_BLACK
    return {"diverging": FORBIDDEN_AMONG_PALE, "lift": FORBIDDEN_AMONG_WHITE}.get(scale.kind, FORBIDDEN)


def _hatch(axes: Axes, plan: FigurePlan) -> Rectangle:
    patch = Rectangle((0, 0), 1, 1, transform=axes.transAxes, zorder=0, **ground(plan.scale, plan.theme))
    axes.add_patch(patch)
    return patch


def _draw_map(
    axes: Axes, place: PlacedMap, plan: FigurePlan, colours: Colours, draw_cells: Callable[..., None]
) -> None:
    heatmap = place.heatmap
    cells = cells_of(place, plan)
    if np.ma.is_masked(cells):
        _hatch(axes, plan)
    draw_cells(axes, cells, *colours, opacity_over(axes, heatmap.backdrop, cells))
    for spine in axes.spines.values():
        spine.set(visible=True, linewidth=HAIRLINE)
    if place.row_labels:
        _label(axes, heatmap.rows, plan.row_labels, plan.cells.rows.pool, down=False)
    if place.column_labels:
        _label(axes, heatmap.columns, plan.column_labels, plan.cells.columns.pool, down=True)
    if plan.cells.annotated:
        for x, y, text, ink in numbers_in(heatmap, plan.scale, colours):
            axes.text(x, y, text, ha="center", va="center", size=plan.sizes.smallest, color=ink)


def _draw_lines(axes: Axes, place: PlacedMap, plan: FigurePlan, colours: Colours) -> None:
    """From each query to the keys that it attends to, the strongest on top, each as thick as its weight is large.

    In a long text most keys that are attended to at all get many equal shares: their colours alone would be one black.
    """
    cells, pitch = cells_of(place, plan), plan.cells.rows.length
    heatmap, signed = place.heatmap, is_signed(plan.scale)
    weights = np.abs(pooled(heatmap.values, heatmap.allowed, plan.cells.pools, place.statistic, signed))
    axes.set(xlim=(0, 1), ylim=(place.box.height / pitch, 0))
    axes.set_axis_off()
    shares = np.ma.filled(colours.norm(cells), 0.0)
    rows, columns = np.nonzero(shares > 0)
    order = np.argsort(shares[rows, columns], kind="stable")[-MAX_LINES:]
    rows, columns = rows[order], columns[order]
    queries, keys = (max(cells.shape) / number for number in cells.shape)  # a few are spread over the height of many
    ends = np.stack(
        [
            np.stack([np.zeros(len(rows)), (rows + 0.5) * queries], -1),
            np.stack([np.ones(len(rows)), (columns + 0.5) * keys], -1),
        ],
        1,
    )
    room = line_room(plan.cells)
    weights = np.minimum(np.ma.filled(weights, 0.0)[rows, columns], 1.0)
    widths = THIN + (max(2 * THIN, THICK * room) - THIN) * weights
    inks = colours.cmap(shares[rows, columns])
    inks[:, 3] = room + (1 - room) * weights  # where lines lie close, small weights let large ones be seen
    lines = LineCollection(list(ends), colors=inks, linewidths=widths)
    axes.add_collection(lines, autolim=False)


def _draw_words(figure: Figure, plan: FigurePlan, colours: Colours) -> None:
    """Each token in its box, which is left out where it would have the colour of the ground."""
    axes = axes_at(figure, Box(0.0, 0.0, plan.width, plan.height))
    axes.set(xlim=(0, plan.width), ylim=(plan.height, 0))
    axes.set_axis_off()
    signed = is_signed(plan.scale)
    for (left, top, width, height), value, line in plan.words:
        shown = value if signed else max(value, 1e-9)  # 0 has no logarithm
        share = float(np.clip(np.ma.filled(colours.norm(shown), 0.0), 0.0, 1.0))
        colour = colours.cmap(share)
        boxed = value != 0 if signed else share > 0
        if boxed:
            axes.add_patch(Rectangle((left, top), width, height, facecolor=colour, linewidth=0))
        write(figure, line._replace(colour=ink_on(colour) if boxed else plan.theme.ink))


def _label(axes: Axes, names: Sequence[str], labels: Labels, pool: int, down: bool) -> None:
    """Tokens beside their rows or `down` below their columns, without ticks, each of which is five objects."""
    if labels.step == 0:
        return
    away = TICK + LABEL_PAD * POINT
    figure = axes.figure
    assert isinstance(figure, Figure)
    on_edge, outwards = (axes.get_xaxis_transform(), (0, -1)) if down else (axes.get_yaxis_transform(), (-1, 0))
    at = on_edge + ScaledTranslation(away * outwards[0], away * outwards[1], figure.dpi_scale_trans)
    to = ROTATED if labels.rotated else UNDER if down else BESIDE
    places = labels.of(middles(names, pool))
    for place, name in zip(places, labels.of(names), strict=True):
        text = axes.text(
            place if down else 0, 0 if down else place, drawable(name), transform=at, size=labels.size, **to
        )
        literal(text)
    edge = [0.0] * len(places)
    axes.plot(
        *((places, edge) if down else (edge, places)),
        marker=TICKDOWN if down else TICKLEFT,
        markersize=TICK / POINT,
        markeredgewidth=HAIRLINE,
        color=mpl.rcParams["xtick.color"],
        linestyle="",
        transform=on_edge,
        clip_on=False,
    )


def middles(names: Sequence[str], pool: int) -> list[float]:
    """Where along an axis of cells the middle of each token is."""
    return [(position + 0.5) / pool for position in range(len(names))]


def label_at(axis: Axis, at: Sequence[float], names: Sequence[str], labels: Labels) -> None:
    """Every name that `labels` leaves, at its place along an axis."""
    if labels.step == 0:
        return
    axis.set_ticks(labels.of(at), [drawable(name) for name in labels.of(names)])
    axis.set_tick_params(length=TICK / POINT, width=HAIRLINE, pad=LABEL_PAD, labelsize=labels.size)
    for text in axis.get_ticklabels():
        if labels.rotated:
            text.set(**ROTATED)
        literal(text)


def numbers_in(heatmap: Heatmap, scale: Scale, colours: Colours) -> Iterator[tuple[float, float, str, str]]:
    """For each allowed cell its middle, its value as text, and the ink: dark on pale and pale on dark."""
    cmap, norm = colours
    shading = heatmap.shading(scale)
    for row, column in np.argwhere(heatmap.allowed):
        value, shade = float(heatmap.values[row, column]), float(shading[row, column])
        ink = ink_on(cmap(float(norm(max(shade, norm.vmin or 0.0)))))
        yield column + 0.5, row + 0.5, digits_of(value, is_signed(scale)), ink


def ink_on(colour: Sequence[float]) -> str:
    """Dark on pale and pale on dark."""
    return INK if luminance([255 * part for part in colour[:3]]) > PALE else "white"


def draw_bar(axes: Axes, plan: FigurePlan, colours: Colours) -> None:
    """The colour bar; an arrow at its lower end says that smaller values are drawn in the lowest colour."""
    figure = axes.figure
    assert isinstance(figure, Figure)
    extend = "min" if plan.scale.kind == "log" else "neither"
    across = "horizontal" if plan.bar.width > plan.bar.height else "vertical"
    bar = figure.colorbar(colours.mappable, cax=axes, extend=extend, extendfrac=EXTENSION, ticks=[], orientation=across)
    (bar.ax.xaxis if across == "horizontal" else bar.ax.yaxis).set_visible(True)
    bar.ax.minorticks_off()
    bar.set_ticks([tick for tick, _ in plan.ticks], labels=[text for _, text in plan.ticks], minor=False)
    bar.ax.tick_params(length=TICK / POINT, width=HAIRLINE, pad=NUMBER_PAD, labelsize=plan.sizes.axis)
    bar.outline.set_linewidth(HAIRLINE)
    assert bar.solids is not None
    bar.solids.set_rasterized(True)


def write(figure: Figure, line: TextLine) -> Text:
    """A line of text at its place on the figure."""
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
    literal(text)
    return text


def literal(text: Text) -> None:
    """A token is data: no dollar sign starts a formula. Outlines keep joined or piled glyphs in their places."""
    text.set_parse_math(False)
    if not is_plain(text.get_text()):
        text.set_path_effects([Normal()])
