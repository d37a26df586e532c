"""Plans as matplotlib figures. Decides nothing about sizes and places: they are in the plan."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection, QuadMesh
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.patheffects import Normal
from matplotlib.text import Text

from attnviz.renderers.figure import layout
from attnviz.renderers.figure.layout import POINT, TICK, Box, FigurePlan, PlacedMap, Plan, TextLine
from attnviz.renderers.figure.scale import OVER_IMAGE, colours_of, ground, ink_on, numbers_in
from attnviz.renderers.figure.style import FONT_FILES, HAIRLINE
from attnviz.renderers.figure.text import drawable, is_plain
from attnviz.shapes import Grey

THIN, THICK = 0.3, 1.8  # points, of lines of weight 0 and 1
OUTLINE = 0.8  # points, around the token that attends


def draw(plan: FigurePlan, cmap: str, kind: type[Figure] = Figure) -> Figure:
    """Draw the figure of one plan. To be called, and the figure to be saved, within `style.drawing`."""
    figure = kind(figsize=(plan.width, plan.height))
    colours = colours_of(plan.scale, cmap, plan.theme)
    for place in plan.places:
        axes = axes_at(figure, place.box)
        if plan.kind == "lines":
            _draw_lines(axes, place, plan, colours)
        else:
            _draw_map(axes, place, plan, colours)
    if plan.words:
        _draw_words(figure, plan, colours)
    draw_bar(axes_at(figure, plan.bar), plan, colours)
    if plan.swatch is not None:
        _hatch(axes_at(figure, plan.swatch), plan).set_linewidth(HAIRLINE)
    for line in (*plan.lines, *plan.tokens):
        write(figure, line)
    return figure


def draw_mesh(axes: Axes, cells: np.ma.MaskedArray, colours: ScalarMappable, opacity: float | None) -> QuadMesh:
    """Draw one coloured box per cell, the first row on top.

    The same pixels as `seaborn.heatmap`, without its import.
    """
    look: dict[str, Any] = {"cmap": colours.cmap, "norm": colours.norm, "alpha": opacity}
    mesh = axes.pcolormesh(cells, **look, linewidth=0, edgecolor="white")
    axes.set(xlim=(0, cells.shape[1]), ylim=(cells.shape[0], 0))
    return mesh


def opacity_over(axes: Axes, backdrop: Grey | None, cells: np.ma.MaskedArray) -> float | None:
    """Draw the image under the cells and return the opacity of the cells over it; None where there is no image."""
    if backdrop is None:
        return None
    places = (np.arange(n) * number // n for n, number in zip(backdrop.shape, cells.shape, strict=True))
    shown = np.ma.masked_array(backdrop, np.ma.getmaskarray(cells)[np.ix_(*places)])  # what is not allowed is hatched
    extent = (0, cells.shape[1], cells.shape[0], 0)
    axes.imshow(shown, cmap="gray", vmin=0, vmax=255, extent=extent, aspect="auto")
    return OVER_IMAGE


def axes_at(figure: Figure, box: Box) -> Axes:
    """Add empty axes at `box`, without ticks, which cost more than all that is drawn here."""
    width, height = figure.get_size_inches()
    bounds = box.left / width, 1 - (box.top + box.height) / height, box.width / width, box.height / height
    axes = figure.add_axes(bounds)
    axes.xaxis.set_visible(False)
    axes.yaxis.set_visible(False)
    return axes


def _hatch(axes: Axes, plan: FigurePlan) -> Rectangle:
    patch = Rectangle((0, 0), 1, 1, transform=axes.transAxes, zorder=0, **ground(plan.scale, plan.theme))
    axes.add_patch(patch)
    return patch


def _draw_map(axes: Axes, place: PlacedMap, plan: FigurePlan, colours: ScalarMappable) -> None:
    heatmap = place.heatmap
    cells = plan.read_cells(place)
    if np.ma.is_masked(cells) and not heatmap.is_of_pairs:
        _hatch(axes, plan)
    mesh = draw_mesh(axes, cells, colours, opacity_over(axes, heatmap.backdrop, cells))
    mesh.set_rasterized(True)  # in a file of vectors thousands of boxes would be heavy, with seams between them
    if plan.cells.are_apart(cells.shape) and heatmap.backdrop is None:
        _draw_seams(axes, np.ma.getmaskarray(cells), plan.theme.ground)
    for spine in axes.spines.values():
        spine.set(visible=True, linewidth=HAIRLINE)
    if plan.cells.annotated:
        for x, y, text, ink in numbers_in(heatmap, plan.scale, colours):
            axes.text(x, y, text, ha="center", va="center", size=plan.sizes.smallest, color=ink)


def _draw_seams(axes: Axes, masked: Bool[np.ndarray, "row column"], ground: str) -> None:
    """Draw hairlines between the cells that are drawn, in the colour of the ground."""
    shown = np.pad(~masked, 1)
    beside, under = shown[1:-1, :-1] | shown[1:-1, 1:], shown[:-1, 1:-1] | shown[1:, 1:-1]
    beside[:, [0, -1]] = under[[0, -1]] = False  # the frame
    upright = [[(column, row), (column, row + 1)] for row, column in zip(*np.nonzero(beside), strict=True)]
    across = [[(column, row), (column + 1, row)] for row, column in zip(*np.nonzero(under), strict=True)]
    axes.add_collection(LineCollection([*upright, *across], colors=ground, linewidths=HAIRLINE), autolim=False)


def _draw_lines(axes: Axes, place: PlacedMap, plan: FigurePlan, colours: ScalarMappable) -> None:
    """Draw lines from each query to the keys that it attends to, the strongest on top, as thick as the weight is large.

    In a long text most keys that are attended to at all get many equal shares: their colours alone would be one black.
    """
    cells, pitch = plan.read_cells(place), plan.cells.rows.length
    weights = np.abs(place.heatmap.values)
    axes.set(xlim=(0, 1), ylim=(place.box.height / pitch, 0))
    axes.set_axis_off()
    shares = np.ma.filled(colours.norm(cells), 0.0)
    rows, columns = np.nonzero(shares > 0)
    order = np.argsort(shares[rows, columns], kind="stable")[-layout.MAX_LINES :]
    rows, columns = rows[order], columns[order]
    queries, keys = (max(cells.shape) / number for number in cells.shape)  # a few are spread over the height of many
    lefts = np.stack([np.zeros_like(rows), (rows + 0.5) * queries], -1)
    rights = np.stack([np.ones_like(columns), (columns + 0.5) * keys], -1)
    room = layout.line_room(plan.cells)
    weights = np.minimum(weights[rows, columns], 1.0)
    widths = THIN + (max(2 * THIN, THICK * room) - THIN) * weights
    inks = colours.cmap(shares[rows, columns])
    inks[:, 3] = room + (1 - room) * weights  # where lines lie close, small weights let large ones be seen
    lines = LineCollection([*zip(lefts, rights, strict=True)], colors=inks, linewidths=widths)
    axes.add_collection(lines, autolim=False)


def _draw_words(figure: Figure, plan: FigurePlan, colours: ScalarMappable) -> None:
    """Draw each token in its box, which is left out where it would have the colour of the ground."""
    axes = axes_at(figure, Box(0.0, 0.0, plan.width, plan.height))
    axes.set(xlim=(0, plan.width), ylim=(plan.height, 0))
    axes.set_axis_off()
    signed = plan.scale.family.is_signed
    for (left, top, width, height), value, line, outlined in plan.words:
        shown = value if signed else max(value, 1e-9)  # 0 has no logarithm
        share = float(np.clip(np.ma.filled(colours.norm(np.array(shown)), 0.0), 0.0, 1.0))
        colour = colours.cmap(share)
        boxed = value != 0 if signed else share > 0
        if boxed:
            axes.add_patch(Rectangle((left, top), width, height, facecolor=colour, linewidth=0))
        if outlined:
            around: dict[str, Any] = {"fill": False, "edgecolor": plan.theme.ink, "linewidth": OUTLINE}
            axes.add_patch(Rectangle((left, top), width, height, **around))
        write(figure, line._replace(colour=ink_on(colour) if boxed else plan.theme.ink))


def draw_bar(axes: Axes, plan: FigurePlan, colours: ScalarMappable) -> None:
    """Draw the colour bar."""
    figure = axes.figure
    assert isinstance(figure, Figure)
    across = "horizontal" if plan.bar.width > plan.bar.height else "vertical"
    bar = figure.colorbar(colours, cax=axes, ticks=[], orientation=across)
    (bar.ax.xaxis if across == "horizontal" else bar.ax.yaxis).set_visible(True)
    bar.ax.minorticks_off()
    bar.set_ticks([tick for tick, _ in plan.ticks], labels=[text for _, text in plan.ticks], minor=False)
    bar.ax.tick_params(length=TICK / POINT, width=HAIRLINE, pad=layout.NUMBER_PAD, labelsize=plan.sizes.axis)
    bar.ax.tick_params(color=plan.theme.frame, labelcolor=plan.theme.grey)
    bar.outline.set(linewidth=HAIRLINE, edgecolor=plan.theme.frame)
    assert bar.solids is not None
    bar.solids.set_rasterized(True)


def write(figure: Figure, line: TextLine) -> Text:
    """Write a line of text at its place on the figure."""
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
    if line.bold:
        text.set_fontfamily(list(FONT_FILES))
    literal(text)
    return text


def literal(text: Text) -> None:
    """Mark a text as data: no dollar sign starts a formula. Outlines keep joined or piled glyphs in their places."""
    text.set_parse_math(False)
    if not is_plain(text.get_text()):
        text.set_path_effects([Normal()])


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
