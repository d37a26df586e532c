"""One chart of lines on matplotlib's axes: how the lines of a name look, gaps, points that stand alone, the mark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from attnviz.renderers.figure.draw import clear_behind, label_at
from attnviz.renderers.figure.layout import POINT, Labels, fit_labels
from attnviz.renderers.figure.style import AXIS, COLOURS, HAIRLINE, MAX_NUMBER, PAPER, SMALL, Theme
from attnviz.report import Curve, Curves, Line

DASHES = ((0, ()), (0, (4, 2)), (0, (1, 1.5)))  # the next once all colours are taken
MARKED: dict[str, Any] = {"linewidth": 1.4, "zorder": 3, "marker": "o", "markersize": 4.5}
BOUNDS: dict[str, Any] = {"linewidth": 1.0, "alpha": 0.6, "zorder": 2.5}
AT: dict[str, Any] = {"linewidth": 0.8, "dashes": (3, 2), "zorder": 1.5}
WIDER = 3.0  # points that a marked line is wider for each that lies over it: else it could not be seen
HIDES = 0.01  # of the other's height: nearer, a line lies over another
PEAK = 3.0  # points from the highest point to its number
MARGIN = 0.06  # of a range of y, above and below
MAX_POWERS = 7  # of two, that are numbered
SLOT = 0.3  # inches that a named thing wishes for
EDGE = 0.6  # from either end of an axis to the nearest of them
ZERO = 1.0  # points, of the line that they are held against
THOUSANDS = 1024
MAX_WHOLE = 1e6  # a range beyond is no longer one of things that are counted


def looks_of(picture: Curves, theme: Theme = PAPER) -> tuple[Mapping[str, dict[str, Any]], list[tuple[str, Line2D]]]:
    """How the lines of each name look, colours first and then dashes; and the names with a sample of each."""
    lines = [line for curve in picture.charts for line in curve.lines]
    looks: dict[str, dict[str, Any]] = {}
    tones = {line.name: {"ink": theme.ink, "grey": theme.grey}.get(line.tone) for line in lines}
    unjoined = {line.name for curve in picture.charts if curve.names for line in curve.lines}
    for number, name in enumerate(dict.fromkeys(line.name for line in lines)):
        round_, colour = divmod(number, len(COLOURS))
        dashes = "none" if name in unjoined else DASHES[round_ % len(DASHES)]
        looks[name] = {"color": tones[name] or theme.find_ink(COLOURS[colour]), "linestyle": dashes}
    marked = {line.name for line in lines if line.marked}
    on_top = {**MARKED, "markeredgecolor": theme.ground}
    legend = [(name, Line2D([], [], **look, **(on_top if name in marked else {}))) for name, look in looks.items()]
    marks = dict.fromkeys(curve.at_label for curve in picture.charts if _has_mark(curve) and curve.at_label)
    return looks, [*legend, *((label, Line2D([], [], color=theme.grey, **AT)) for label in marks)]


def points_of(line: Line) -> np.ndarray:
    """The line's points as x over y, both NaN where one of them is no number to draw."""
    points = np.array([line.x, line.y], dtype=float)
    inside = (np.abs(points) <= MAX_NUMBER).all(axis=0)  # written so that NaN is not inside
    return np.where(inside, points, np.nan)


def width_of(picture: Curves) -> float:
    """Inches that the named things of the fullest chart wish for."""
    return SLOT * max((len(curve.names) for curve in picture.charts), default=0)


def labels_of(curve: Curve, width: float, size: float) -> Labels:
    """How the named things of a chart are labelled; of numbers, the room that those below an axis take."""
    if not curve.names:
        return Labels(1, size, 0.2 * size / AXIS)
    return fit_labels([curve.names], width / len(curve.names) / POINT, size, below=True)


def caveats(picture: Curves) -> list[str]:
    """What the charts cannot show."""
    number = sum(int(np.isnan(points_of(line)[0]).sum()) for curve in picture.charts for line in curve.lines)
    points = f"{number} point{'' if number == 1 else 's'}"
    return [f"{points} cannot be drawn: not a number, or too large"] if number else []


def draw_curve(axes: Axes, curve: Curve, looks: Mapping[str, dict[str, Any]], labels: Labels, theme: Theme) -> str:
    """Draw the lines of a chart; what to say instead where there are none."""
    if not _has_points(curve):
        axes.set(xticks=[])
        return "no points"
    lines = sorted(curve.lines, key=lambda line: line.marked)  # few points lie over many
    for place, line in enumerate(lines):
        points = points_of(line)
        many = {"linewidth": 1.0, "marker": "o", "markersize": 2.5, "markevery": _find_alone(points), "zorder": 2}
        wider = WIDER * sum(_lies_over(other, line) for other in lines[place + 1 :])
        sizes = {name: MARKED[name] + wider for name in ("linewidth", "markersize")}
        on_top = {**MARKED, **sizes, "markeredgecolor": theme.ground}
        axes.plot(*points, **looks[line.name], **(on_top if line.marked else many))
        if line.bounds:
            bounds = np.array(line.bounds, dtype=float).T
            axes.vlines(
                points[0],
                *np.where(np.abs(bounds) <= MAX_NUMBER, bounds, np.nan),
                color=looks[line.name]["color"],
                **BOUNDS,
            )
    if curve.peak:
        _write_peak(axes, points_of(curve.lines[0]), looks[curve.lines[0].name]["color"], theme)
    if curve.at is not None and _has_mark(curve):
        axes.axvline(curve.at, color=theme.grey, **AT)
    if curve.y_range is not None:
        low, high = curve.y_range
        axes.set_ylim(low - MARGIN * (high - low), high + MARGIN * (high - low))
    axes.xaxis.grid(visible=True, color=theme.grid, linewidth=HAIRLINE)
    if curve.doubling:
        _double(axes)
        return ""
    if curve.names:
        axes.axhline(0.0, color=theme.ink, linewidth=ZERO, zorder=1.5)
        axes.set_xlim(-EDGE, len(curve.names) - 1 + EDGE)
        label_at(axes.xaxis, [*map(float, range(len(curve.names)))], curve.names, labels)
        return ""
    low, high = axes.get_xlim()
    counted = any(line.x and all(float(x).is_integer() for x in line.x) for line in curve.lines)
    if counted and 1 < high - low <= MAX_WHOLE:
        axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
    axes.ticklabel_format(axis="x", useOffset=False)
    return ""


def _write_peak(axes: Axes, points: np.ndarray, colour: str, theme: Theme) -> None:
    """The height of the highest point, beside it on the side where there is more room, above its range's middle."""
    if np.isnan(points[1]).all():
        return
    place = int(np.nanargmax(points[1]))
    x, y = points[:, place].tolist()
    to_left = place > points.shape[1] // 2
    axes.annotate(
        f"{y:.2f}",
        (x, y),
        xytext=(-PEAK if to_left else PEAK, PEAK / 2),
        textcoords="offset points",
        ha="right" if to_left else "left",
        va="bottom",
        color=colour,
        size=SMALL,
        bbox=clear_behind(theme),
    )


def _lies_over(line: Line, other: Line) -> bool:
    """Whether a line of a chart hides another that is as wide."""
    if line.x != other.x or not line.marked:
        return False
    return bool(np.allclose(line.y, other.y, rtol=HIDES, atol=0.0))


def _double(axes: Axes) -> None:
    """Steps that double, as many of them numbered as have room."""
    axes.set_xscale("symlog", base=2, linthresh=1, linscale=0.5)
    last = max(1, int(axes.dataLim.x1))
    every = 1 + last.bit_length() // MAX_POWERS
    axes.set_xticks([0, *(2**power for power in range(0, last.bit_length(), every))])
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}" if value < THOUSANDS else f"{value / 1024:g}k")
    axes.minorticks_off()
    axes.set_xlim(left=-0.2)


def _has_points(curve: Curve) -> bool:
    return any(bool(np.isfinite(points_of(line)).any()) for line in curve.lines)


def _has_mark(curve: Curve) -> bool:
    return curve.at is not None and abs(curve.at) <= MAX_NUMBER and _has_points(curve)


def _find_alone(points: np.ndarray) -> list[int]:
    """The points to which no line leads, as beside a gap or beside the same point once more."""
    steps = np.abs(np.diff(points)).max(axis=0, initial=0.0)
    joined = np.concatenate([[False], steps > 0, [False]])  # written so that NaN joins nothing
    return [int(index) for index in np.flatnonzero(~np.isnan(points[0]) & ~joined[:-1] & ~joined[1:])]
