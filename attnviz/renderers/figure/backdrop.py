"""All of a picture but its weights and its title, as pixels, drawn once for all heads of a text. Knows no weights.

matplotlib takes most of its time for ticks, of which each is several objects; here labels stand without them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.markers import TICKDOWN, TICKLEFT
from matplotlib.transforms import Transform

from attnviz.renderers.figure.canvas import Canvas, Pixels
from attnviz.renderers.figure.draw import (
    LABEL_PAD,
    ROTATED,
    axes_at,
    colours_of,
    draw_bar,
    draw_swatch,
    middles,
    move,
)
from attnviz.renderers.figure.label import Label, Style
from attnviz.renderers.figure.layout import POINT, TICK, Box, Cells, Labels, Line
from attnviz.renderers.figure.style import HAIRLINE, INK
from attnviz.renderers.figure.text import drawable
from attnviz.report import Scale


class Frame(NamedTuple):
    """One map without its weights. `rows` and `columns` are empty where they are not labelled."""

    box: Box
    shape: tuple[int, ...]  # rows and columns of cells
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    hatched: bool  # the ground is seen in some cells


class Backdrop(NamedTuple):
    """All that its pixels follow from, and so their key. Nothing else is at hand where they are drawn."""

    width: float
    height: float
    dpi: int
    cmap: str
    cells: Cells
    row_labels: Labels
    column_labels: Labels
    frames: tuple[Frame, ...]
    bar: Box
    scale: Scale
    ticks: tuple[tuple[float, str], ...]
    limits: tuple[float, float]
    lines: tuple[Line, ...]
    swatch: Box | None


class Drawn(NamedTuple):
    """A backdrop as pixels. Ticks reach into the maps; that part is still to be drawn, over cells and under frames."""

    pixels: Pixels
    ticks: tuple[Line2D, ...]


class Side(NamedTuple):
    """Ticks and labels along one side of a map."""

    box: Box
    ticks: Line2D
    labels: tuple[Label, ...]


def draw_backdrop(backdrop: Backdrop) -> Drawn | None:
    """None where cells are no whole pixels, or where one thing lies on another, so that it matters which comes first.

    All things have their room, so there are few such pictures. Those matplotlib has to draw.
    """
    canvas = Canvas(backdrop.width, backdrop.height, backdrop.dpi)
    maps = [canvas.within(frame.box) for frame in backdrop.frames]
    if any(map(_broken, maps, backdrop.frames)):
        return None
    for frame in backdrop.frames:
        if frame.hatched:
            canvas.hatch(frame.box, backdrop.scale)
    grounds = [pixels.copy() for pixels in maps]
    axes = axes_at(canvas.figure, backdrop.bar)  # a dear thing to make, so that this one is moved about
    sides = tuple(_sides(axes, backdrop))
    canvas.draw(side.ticks for side in sides)
    taken = canvas.taken(frame.box for frame in backdrop.frames)
    canvas.label(label for side in sides for label in side.labels)
    canvas.draw(_keys(axes, backdrop))
    canvas.write(backdrop.lines)
    if taken.changed(canvas):
        return None
    for pixels, ground in zip(maps, grounds, strict=True):
        pixels[:] = ground
    for side in sides:
        canvas.cut(side.ticks, side.box)
    return Drawn(canvas.pixels, tuple(side.ticks for side in sides))


def _broken(pixels: Pixels, frame: Frame) -> bool:
    """Whether cells are no whole pixels: where maps of several sizes stand side by side, in boxes of one size."""
    return any(size % number for size, number in zip(pixels.shape, frame.shape, strict=False))


def _keys(bar: Axes, backdrop: Backdrop) -> Iterator[Axes]:
    """The colour bar, and what forbidden cells look like."""
    move(bar, backdrop.bar, (1, 1))
    bar.invert_yaxis()  # the rows of a map go downwards, a scale upwards
    draw_bar(bar, backdrop.scale, backdrop.ticks, colours_of(backdrop.scale, backdrop.limits, backdrop.cmap))
    yield bar
    if backdrop.swatch is not None:
        figure = bar.figure
        assert isinstance(figure, Figure)
        swatch = axes_at(figure, backdrop.swatch)
        draw_swatch(swatch, backdrop.scale)
        yield swatch


def _sides(axes: Axes, backdrop: Backdrop) -> Iterator[Side]:
    """What `draw.label_at` has matplotlib draw, in its order."""
    rows, columns, _ = backdrop.cells
    pad = TICK / POINT + LABEL_PAD
    for frame in backdrop.frames:
        move(axes, frame.box, frame.shape)
        if frame.columns and backdrop.column_labels.step:
            x = middles(frame.columns, columns.pool)[:: backdrop.column_labels.step]
            ticks = _ticks(x, [0.0] * len(x), TICKDOWN, axes.get_xaxis_transform("tick1"))
            places = [(each, 0.0) for each in x]
            labels = _labels(places, frame.columns, backdrop.column_labels, *axes.get_xaxis_text1_transform(pad))
            yield Side(frame.box, ticks, labels)
        if frame.rows and backdrop.row_labels.step:
            y = middles(frame.rows, rows.pool)[:: backdrop.row_labels.step]
            ticks = _ticks([0.0] * len(y), y, TICKLEFT, axes.get_yaxis_transform("tick1"))
            places = [(0.0, each) for each in y]
            labels = _labels(places, frame.rows, backdrop.row_labels, *axes.get_yaxis_text1_transform(pad))
            yield Side(frame.box, ticks, labels)


def _labels(
    places: Sequence[tuple[float, float]], names: Sequence[str], labels: Labels, transform: Transform, va: str, ha: str
) -> tuple[Label, ...]:
    look: dict[str, Any] = {"va": va, "ha": ha, **(ROTATED if labels.rotated else {})}
    style = Style(labels.size, INK, **look)
    shown = names[:: labels.step]
    return tuple(
        Label(drawable(name), x, y, style) for (x, y), name in zip(transform.transform(places), shown, strict=True)
    )


def _ticks(x: Sequence[float], y: Sequence[float], marker: Any, transform: Transform) -> Line2D:
    """The markers of one line instead of a line per tick."""
    look: dict[str, Any] = {"markersize": TICK / POINT, "markeredgewidth": HAIRLINE, "markeredgecolor": INK}
    return Line2D(x, y, linestyle="none", marker=marker, transform=transform.frozen(), **look)
