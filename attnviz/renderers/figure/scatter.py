"""One scatter on matplotlib's axes: small points of no group, and lettered ones of each, some called by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from attnviz.renderers.figure.style import COLOURS, MAX_NUMBER, PAPER, Theme
from attnviz.report import Scatter, ScatterPoint, Scatters

PLAIN, LETTERED = 3.2, 8.5  # points across
EDGE = 0.4  # points, of the ground around each point


class GroupLook(NamedTuple):
    """How the points of one group look."""

    colour: str
    letter: str


def looks_of(picture: Scatters, theme: Theme = PAPER) -> tuple[Mapping[str, GroupLook], list[tuple[str, Line2D]]]:
    """How the points of each group look, the largest group first; and the groups' names with a sample of each."""
    points = [point for chart in picture.charts for point in chart.points if point.group]
    sizes = Counter((point.group, point.letter) for point in points)
    letters = dict(sorted(sizes, key=lambda named: (-sizes[named], named)))
    looks = {
        group: GroupLook(theme.find_ink(COLOURS[number % len(COLOURS)]), letter)
        for number, (group, letter) in enumerate(letters.items())
    }
    legend = [
        (f"{look.letter}: {group}", Line2D([], [], **_marker(look.colour, LETTERED, theme)))
        for group, look in looks.items()
    ]
    return looks, legend


def caveats(picture: Scatters) -> list[str]:
    """What the charts cannot show."""
    n_left = sum(not _is_drawable(point) for chart in picture.charts for point in chart.points)
    return [f"{n_left} point{'' if n_left == 1 else 's'} without a number on either axis"] if n_left else []


def draw_scatter(axes: Axes, chart: Scatter, looks: Mapping[str, GroupLook], size: float, theme: Theme) -> str:
    """Draw the points of a chart, those of groups last; what to say instead where there are none."""
    points = [point for point in chart.points if _is_drawable(point)]
    if not points:
        axes.set(xticks=[])
        return "no points"
    axes.xaxis.grid(visible=True, color=theme.grid, linewidth=0.5)
    plain = [point for point in points if not point.group]
    axes.plot([point.x for point in plain], [point.y for point in plain], **_marker(theme.grey, PLAIN, theme), zorder=2)
    for group, look in looks.items():
        _draw_group(axes, [point for point in points if point.group == group], look, size, theme)
    return ""


def _draw_group(axes: Axes, points: Sequence[ScatterPoint], look: GroupLook, size: float, theme: Theme) -> None:
    marker = _marker(look.colour, LETTERED, theme)
    axes.plot([point.x for point in points], [point.y for point in points], **marker, zorder=3)
    letter: dict[str, Any] = {"ha": "center", "va": "center_baseline", "size": 0.7 * LETTERED, "weight": "bold"}
    name: dict[str, Any] = {"ha": "left", "va": "center", "size": size, "color": look.colour, "zorder": 5}
    for point in points:
        at: dict[str, Any] = {"xy": (point.x, point.y), "textcoords": "offset points"}
        axes.annotate(point.letter, xytext=(0, 0), color=theme.ground, zorder=4, **letter, **at)
        if point.label:
            axes.annotate(point.label, xytext=(LETTERED / 2 + 1.5, 0), **name, **at)


def _marker(colour: str, across: float, theme: Theme) -> dict[str, Any]:
    return {
        "marker": "o",
        "linestyle": "",
        "color": colour,
        "markersize": across,
        "markeredgecolor": theme.ground,
        "markeredgewidth": EDGE,
    }


def _is_drawable(point: ScatterPoint) -> bool:
    return all(isfinite(number) and abs(number) <= MAX_NUMBER for number in (point.x, point.y))
