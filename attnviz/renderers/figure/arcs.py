"""One sentence with heads as arcs over it, on matplotlib's axes: tokens along x, layers along y.

An arc begins at the token that a head looks at and ends in a dot at the token that it writes to. From there a dotted
line leads up to the layer where that is read. Lengths are inches, text sizes points.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.ticker import MaxNLocator

from attnviz.renderers.figure.draw import clear_behind, label_at
from attnviz.renderers.figure.layout import POINT, Labels, fit_labels
from attnviz.renderers.figure.style import COLOURS, GREY, HAIRLINE, PAPER, Theme
from attnviz.report import Arc, ArcDiagram, Arcs

SLOT, EDGE = 0.42, 0.6  # inches from token to token; slots from either end of the axis to the nearest token
THIN, THICK = 0.6, 2.6  # points, of lines of weight 0 and 1
RISE = 0.12  # of the axis, of the longest arc over its ends
DOT = 4.0  # points across
BELOW = 1.5  # layers that are shown below the lowest arc
STREAM: dict[str, Any] = {"linewidth": 0.8, "linestyle": (0, (1, 2))}


def looks_of(picture: Arcs, theme: Theme = PAPER) -> tuple[Mapping[str, str], list[tuple[str, Line2D]]]:
    """The colour of each group, and the groups' names with a sample of each."""
    drawn = dict.fromkeys(arc.group for chart in picture.charts for arc in chart.arcs)
    names = dict.fromkeys([*(name for chart in picture.charts for name in chart.groups), *drawn])
    looks = {name: theme.find_ink(COLOURS[number % len(COLOURS)]) for number, name in enumerate(names)}
    samples = [(name, Line2D([], [], color=looks[name], marker="o", markersize=DOT)) for name in names if name in drawn]
    stream = Line2D([], [], color=theme.find_ink(GREY), **STREAM)
    return looks, [*samples, ("stays in the residual stream until it is read", stream)]


def width_of(picture: Arcs) -> float:
    """Inches that the longest sentence wishes for."""
    return SLOT * max((len(chart.tokens) + 2 * EDGE for chart in picture.charts), default=0.0)


def labels_of(chart: ArcDiagram, width: float, size: float) -> Labels:
    """How the tokens below a chart are labelled."""
    return fit_labels([chart.tokens], width / (len(chart.tokens) + 2 * EDGE) / POINT, size, below=True)


def caveats(picture: Arcs) -> list[str]:
    """What has to be said with the arcs."""
    arcs = [arc for chart in picture.charts for arc in chart.arcs]
    said = ["thickness: weight"] if arcs else []
    said += ["a dot alone: looks at its own token"] * any(arc.query == arc.key for arc in arcs)
    return [*said, *dict.fromkeys(chart.footnote for chart in picture.charts if chart.footnote and chart.arcs)]


def draw_arcs(
    axes: Axes, chart: ArcDiagram, looks: Mapping[str, str], labels: Labels, height: float, theme: Theme
) -> str:
    """Draw the arcs of a chart of about this height; what to say instead where there are none."""
    low, high = _limits_of(chart)
    left = 2 * EDGE if any(arc.key > arc.query for arc in chart.arcs) else EDGE  # where labels stand left of dots
    axes.set(xlim=(-left, len(chart.tokens) - 1 + 2 * EDGE), ylim=(low, high), xlabel="", ylabel="")
    layers = MaxNLocator("auto", integer=True).tick_values(low, high)
    axes.set_yticks([layer for layer in layers if low < layer < chart.n_layers])
    label_at(axes.xaxis, range(len(chart.tokens)), chart.tokens, labels)
    for arc in chart.arcs:
        line = {"color": looks[arc.group], "linewidth": THIN + (THICK - THIN) * arc.weight}
        rise = RISE * (high - low) * abs(arc.query - arc.key) / max(1, len(chart.tokens) - 1)
        ends = [(arc.key, arc.height), ((arc.key + arc.query) / 2, arc.height + 2 * rise), (arc.query, arc.height)]
        axes.add_patch(PathPatch(Path(ends, [Path.MOVETO, Path.CURVE3, Path.CURVE3]), fill=False, zorder=3, **line))
        axes.plot([arc.query], [arc.height], "o", color=looks[arc.group], markersize=DOT, zorder=4)
        axes.plot([arc.query] * 2, [arc.height, arc.read_at], color=theme.find_ink(GREY), zorder=2, **STREAM)
    if chart.top:
        axes.axhline(chart.n_layers, color=theme.grid, linewidth=HAIRLINE, zorder=1)
        at_axis: dict[str, Any] = {
            "xycoords": axes.get_yaxis_transform(),
            "textcoords": "offset points",
            "size": labels.size,
        }
        axes.annotate(chart.top, (0, chart.n_layers), (-DOT, 0), ha="right", va="center", **at_axis)
    apart = 1.15 * labels.size * POINT / height * (high - low)
    for arc, at in _spread_labels(chart.arcs, apart):
        looks_ahead = arc.key > arc.query
        axes.annotate(
            arc.label,
            (arc.query, at),
            (-DOT if looks_ahead else DOT, 0),
            textcoords="offset points",
            ha="right" if looks_ahead else "left",
            va="center",
            size=labels.size,
            color=looks[arc.group],
            zorder=5,
            bbox=clear_behind(theme),
        )
    return "" if chart.arcs else "no arcs"


def _limits_of(chart: ArcDiagram) -> tuple[float, float]:
    """Return where the axis of layers begins and ends: below the lowest arc and above the last layer."""
    lowest = min((arc.height for arc in chart.arcs), default=0.0)
    return max(-0.5, lowest - BELOW), chart.n_layers + 0.5


def _spread_labels(arcs: Sequence[Arc], apart: float) -> Iterator[tuple[Arc, float]]:
    """Move the labels at one token up until none touches the one below."""
    placed: dict[tuple[int, str], float] = {}
    last: dict[int, float] = {}
    for arc in sorted(arcs, key=lambda arc: arc.height):
        if (arc.query, arc.label) in placed:
            continue
        height = max(arc.height, last.get(arc.query, -apart) + apart)
        placed[arc.query, arc.label] = last[arc.query] = height
        yield arc, height
