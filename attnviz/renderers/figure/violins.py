"""Plans of distributions as matplotlib figures: violins and points by seaborn. Decides nothing about places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from math import ceil

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from attnviz.renderers.figure.chart import SAMPLE, Key, draw_frame
from attnviz.renderers.figure.distributions import Chart, DistributionsPlan, Placed, Tint
from attnviz.renderers.figure.draw import axes_at, label_at, write
from attnviz.renderers.figure.layout import POINT
from attnviz.renderers.figure.style import INK, import_seaborn

BROAD = 0.8  # of a violin; points are spread as far
DOT = 3.6  # points, of a number's point
EDGE_LINE, MEDIAN_LINE, BAR_LINE, MEDIAN_DOT = 0.8, 1.2, 2.4, 3.2  # points


def draw_distributions(plan: DistributionsPlan) -> Figure:
    """The figure of one plan. To be called, and the figure to be saved, within `style.drawing`."""
    figure = Figure(figsize=(plan.width, plan.height))
    for chart in plan.charts:
        _draw_chart(axes_at(figure, chart.frame.box), chart, plan.tints)
    for key in plan.keys:
        figure.add_artist(_drawn_key(key, plan, figure))
    for line in plan.lines:
        write(figure, line)
    return figure


def _draw_chart(axes: Axes, chart: Chart, tints: Mapping[str, Tint]) -> None:
    for name, samples in groupby(chart.samples, lambda each: each.sample.group):
        group, tint = list(samples), tints[name]
        _draw_violins(axes, [each for each in group if each.kind == "violin"], tint)
        _draw_points(axes, [each for each in group if each.kind == "points"], chart, tint)
        for each in group:
            if each.kind == "violin":
                _draw_middle(axes, each)
            elif each.kind == "level":
                _draw_level(axes, each, BROAD, tint.edge)
            elif len(each.values) > 1:
                _draw_level(axes, each, BROAD * 0.75, INK)
    draw_frame(axes, chart.frame)
    axes.set(xlim=chart.limits, xlabel="", ylabel="")
    label_at(
        axes.xaxis, [each.x for each in chart.samples], [each.sample.label for each in chart.samples], chart.labels
    )


def _draw_violins(axes: Axes, samples: Sequence[Placed], tint: Tint) -> None:
    """Cut off at the smallest and largest number, each as wide as the others."""
    if not samples:
        return
    import_seaborn().violinplot(
        x=np.repeat([each.x for each in samples], [len(each.values) for each in samples]),
        y=np.concatenate([each.values for each in samples]),
        ax=axes,
        orient="x",
        native_scale=True,
        cut=0,
        density_norm="width",
        width=BROAD / _nearest(samples),
        color=tint.face,
        saturation=1,
        linecolor=tint.edge,
        linewidth=EDGE_LINE,
        inner=None,
        legend=False,
    )


def _draw_points(axes: Axes, samples: Sequence[Placed], chart: Chart, tint: Tint) -> None:
    """Beside each other where they would lie on each other; not shuffled, so that the same numbers look the same."""
    if not samples:
        return
    is_hollow = to_rgb(tint.face) == (1, 1, 1)
    chances = np.random.get_state()  # seaborn throws its dice even for no jitter at all
    import_seaborn().stripplot(
        x=np.concatenate([each.x + _spread(chart.height_of(each.values), chart.slot) for each in samples]),
        y=np.concatenate([each.values for each in samples]),
        ax=axes,
        orient="x",
        native_scale=True,
        jitter=False,
        color="white" if is_hollow else tint.edge,
        edgecolor=tint.edge if is_hollow else "white",
        size=DOT,
        linewidth=0.4,
        legend=False,
    )
    np.random.set_state(chances)


def _draw_middle(axes: Axes, each: Placed) -> None:
    """A small box for the middle half, a dot for the median."""
    low, middle, high = np.percentile(each.values, [25, 50, 75])
    axes.plot([each.x] * 2, [low, high], color=INK, linewidth=BAR_LINE, solid_capstyle="butt", zorder=3)
    dot = axes.plot([each.x], [middle], marker="o", color=INK, markersize=MEDIAN_DOT, zorder=4)[0]
    dot.set(markerfacecolor="white", markeredgewidth=0.7)


def _draw_level(axes: Axes, each: Placed, broad: float, colour: str) -> None:
    """A line at the median, which is the only number where all are the same."""
    ends, middle = [each.x - broad / 2, each.x + broad / 2], float(np.median(each.values))
    axes.plot(ends, [middle] * 2, color=colour, linewidth=MEDIAN_LINE, solid_capstyle="butt", zorder=4)


def _drawn_key(key: Key, plan: DistributionsPlan, figure: Figure) -> Rectangle:
    tint, height = plan.tints[key.name], 0.09
    corner = (key.x / plan.width, 1 - (key.y + height / 2) / plan.height)
    patch = Rectangle(corner, SAMPLE / plan.width, height / plan.height, transform=figure.transFigure)
    patch.set(facecolor=tint.face, edgecolor=tint.edge, linewidth=EDGE_LINE)
    return patch


def _nearest(samples: Sequence[Placed]) -> float:
    """From sample to sample: what seaborn takes for the width of one."""
    return min((after.x - before.x for before, after in pairwise(samples)), default=1.0)


def _spread(heights: np.ndarray, slot: float) -> np.ndarray:
    """How far from the middle each point stands, in slots: as near to it as the points under it leave."""
    columns = np.zeros(len(heights), dtype=int)
    placed: list[int] = []
    side = 1
    for index in np.argsort(heights, kind="stable"):
        taken = {int(columns[each]) for each in placed if heights[index] - heights[each] < DOT * POINT}
        columns[index] = next(column for column in _outwards(len(heights), side) if column not in taken)
        side = -side if columns[index] else side  # else points would pile up on one side
        placed.append(int(index))
    step = DOT * POINT / slot
    return columns * float(min(step, BROAD / 2 / max(1, np.abs(columns).max(initial=0))))


def _outwards(number: int, side: int) -> Iterator[int]:
    """0, 1, -1, 2, -2, … or 0, -1, 1, -2, 2, …"""
    return (side * (1 if place % 2 else -1) * ceil(place / 2) for place in range(number))
