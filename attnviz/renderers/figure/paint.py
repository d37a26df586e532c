"""Plans of maps as pixels: the same that `draw` and matplotlib make, in a small part of the time.

Heads of one text share a backdrop; and as cells lie on whole pixels, painting them is repeating their colours. What
matplotlib draws stays the measure, and the tests hold pictures of every kind against it. Knows no reports.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from attnviz.renderers.figure.backdrop import Backdrop, Frame, draw_backdrop
from attnviz.renderers.figure.canvas import Canvas, Pixels, paint
from attnviz.renderers.figure.draw import Colours, axes_at, cells_of, colours_of, move, numbers_in
from attnviz.renderers.figure.label import Label, Style
from attnviz.renderers.figure.layout import DIGITS, Line, Plan
from attnviz.renderers.figure.style import TITLE


class Painter:
    """Paints one plan after the other and keeps the last backdrop. To be used within `style.drawing`."""

    def __init__(self, cmap: str, dpi: int) -> None:
        self._cmap, self._dpi = cmap, dpi
        self._draw_backdrop = lru_cache(maxsize=1)(draw_backdrop)  # the heads of a text follow one another

    def pixels(self, plan: Plan) -> Pixels | None:
        """The picture of a plan; None for the few that have to be drawn by matplotlib (see `draw_backdrop`)."""
        cells = [cells_of(place, plan) for place in plan.places]
        backdrop = self._draw_backdrop(_backdrop(plan, cells, self._cmap, self._dpi))
        if backdrop is None:
            return None
        canvas = Canvas(plan.width, plan.height, self._dpi)
        canvas.pixels[:] = backdrop.pixels
        colours = colours_of(plan.scale, plan.limits, self._cmap)
        mappable = colours.mappable
        for place, shown in zip(plan.places, cells, strict=True):
            paint(canvas.within(place.box), mappable.to_rgba(np.ma.masked_invalid(shown)))
        canvas.draw(backdrop.ticks)
        for place in plan.places:
            canvas.frame(place.box)
        if plan.cells.annotated:
            canvas.label(_numbers(axes_at(canvas.figure, plan.bar), plan, colours))
        taken = canvas.taken(down_to=plan.places[0].box.top)
        canvas.write(line for line in plan.lines if _is_title(line))
        return None if taken.changed(canvas) else canvas.pixels


def _is_title(line: Line) -> bool:
    """Nothing else is as large."""
    return line.size == TITLE


def _backdrop(plan: Plan, cells: Sequence[np.ma.MaskedArray], cmap: str, dpi: int) -> Backdrop:
    """What a plan shares with those of other heads."""
    frames = (
        Frame(
            box=place.box,
            shape=shown.shape,
            rows=place.heatmap.rows if place.row_labels else (),
            columns=place.heatmap.columns if place.column_labels else (),
            hatched=bool(np.ma.is_masked(shown)),
        )
        for place, shown in zip(plan.places, cells, strict=True)
    )
    return Backdrop(
        width=plan.width,
        height=plan.height,
        dpi=dpi,
        cmap=cmap,
        cells=plan.cells,
        row_labels=plan.row_labels,
        column_labels=plan.column_labels,
        frames=tuple(frames),
        bar=plan.bar,
        scale=plan.scale,
        ticks=plan.ticks,
        limits=plan.limits,
        lines=tuple(line for line in plan.lines if not _is_title(line)),
        swatch=plan.swatch,
    )


def _numbers(axes: Axes, plan: Plan, colours: Colours) -> Iterator[Label]:
    """Those in the cells, which are not pooled."""
    for place in plan.places:
        move(axes, place.box, place.heatmap.values.shape)
        at: Any = axes.transData.frozen()
        for x, y, text, ink in numbers_in(place.heatmap, plan.scale, colours):
            right, up = at.transform((x, y))
            yield Label(text, right, up, Style(DIGITS, ink))
