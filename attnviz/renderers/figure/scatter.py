"""One scatter on matplotlib's axes: small points of no group, and lettered ones of each, some called by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from attnviz.renderers.figure.layout import POINT
from attnviz.renderers.figure.style import COLOURS, MAX_NUMBER, PAPER, Theme
from attnviz.renderers.figure.text import extent
from attnviz.report import Scatter, ScatterPoint, Scatters

PLAIN, LETTERED = 3.2, 8.5  # points across
EDGE = 0.4  # points, of the ground around each point
BESIDE = 1.5  # points from a point to its label
MARGINS = np.array([0.03, 0.06])  # of what the points span, on either side


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


def caveats(picture: Scatters, across: tuple[float, float], size: float) -> list[str]:
    """What charts of about this width and height cannot show, with labels of this size."""
    n_left = sum(not _is_drawable(point) for chart in picture.charts for point in chart.points)
    found = [f"{n_left} point{'' if n_left == 1 else 's'} without a number on either axis"] if n_left else []
    labels = (len(place_labels(chart, across, size)) for chart in picture.charts)
    n_wanted = sum(_is_drawable(point) and bool(point.label) for chart in picture.charts for point in chart.points)
    if close := n_wanted - sum(labels):
        found.append(f"{close} point{' is' if close == 1 else 's are'} too close to others to be labelled")
    return found


def place_labels(chart: Scatter, across: tuple[float, float], size: float) -> dict[ScatterPoint, tuple[float, float]]:
    """Return where labels have room: the middle of each, in points from its own one.

    `across` is the width and the height of the axes, and `size` that of the text. The first to be placed are those that
    lead, which have one in any case, and then those farthest from the middle of all points.
    """
    points = [point for point in chart.points if _is_drawable(point)]
    if not points:
        return {}
    numbers = np.array([(point.x, point.y) for point in points])
    low, high = _find_limits(numbers)
    room = np.array(across) / POINT
    at = (numbers - low) / (high - low) * room
    halves = np.array([(LETTERED if point.group else PLAIN) / 2 for point in points])[:, None]
    taken = [*np.hstack([at - halves, at + halves])]
    far = np.hypot(*((at - np.median(at, axis=0)) / room).T)
    found: dict[ScatterPoint, tuple[float, float]] = {}
    for n in sorted(range(len(points)), key=lambda n: (not points[n].leads, -far[n])):
        if not points[n].label:
            continue
        half = np.array([extent(points[n].label, size).width, size]) / 2
        apart = halves[n] + half + BESIDE
        sides = [apart * side for side in np.array([(1, 0), (-1, 0), (0, 1), (0, -1)])]
        boxes = [np.hstack([at[n] + side - half, at[n] + side + half]) for side in sides]
        free = [k for k, box in enumerate(boxes) if _is_free(box, np.array(taken), room)]
        if free or points[n].leads:
            chosen = free[0] if free else 0
            taken.append(boxes[chosen])
            found[points[n]] = (float(sides[chosen][0]), float(sides[chosen][1]))
    return found


def _is_free(box: np.ndarray, taken: np.ndarray, room: np.ndarray) -> bool:
    """Whether a box lies within the axes and on no other; each is its lower left corner and its upper right one."""
    overlaps = (box[:2] < taken[:, 2:]).all(axis=1) & (box[2:] > taken[:, :2]).all(axis=1)
    return bool((box[:2] >= 0).all() and (box[2:] <= room).all() and not overlaps.any())


def _find_limits(numbers: np.ndarray) -> np.ndarray:
    """Return where axes begin and end: a little beyond the points."""
    low, high = numbers.min(axis=0), numbers.max(axis=0)
    beyond = np.where(high > low, MARGINS * (high - low), np.maximum(1.0, np.abs(high)) * 0.05)
    return np.stack([low - beyond, high + beyond])


def draw_scatter(
    axes: Axes,
    chart: Scatter,
    looks: Mapping[str, GroupLook],
    across: tuple[float, float],
    size: float,
    theme: Theme,
) -> str:
    """Draw the points of a chart, those of groups last; what to say instead where there are none.

    For `across` and `size`, see `place_labels`.
    """
    points = [point for point in chart.points if _is_drawable(point)]
    if not points:
        axes.set(xticks=[])
        return "no points"
    axes.xaxis.grid(visible=True, color=theme.grid, linewidth=0.5)
    plain = [point for point in points if not point.group]
    axes.plot([point.x for point in plain], [point.y for point in plain], **_marker(theme.grey, PLAIN, theme), zorder=2)
    for group, look in looks.items():
        _draw_group(axes, [point for point in points if point.group == group], look, theme)
    for point, at in place_labels(chart, across, size).items():
        colour = looks[point.group].colour if point.group else theme.grey
        middle: dict[str, Any] = {"ha": "center", "va": "center_baseline", "textcoords": "offset points", "zorder": 5}
        axes.annotate(point.label, (point.x, point.y), xytext=at, color=colour, size=size, **middle)
    (left, bottom), (right, top) = _find_limits(np.array([(point.x, point.y) for point in points]))
    axes.set(xlim=(left, right), ylim=(bottom, top))
    return ""


def _draw_group(axes: Axes, points: Sequence[ScatterPoint], look: GroupLook, theme: Theme) -> None:
    marker = _marker(look.colour, LETTERED, theme)
    axes.plot([point.x for point in points], [point.y for point in points], **marker, zorder=3)
    letter: dict[str, Any] = {"ha": "center", "va": "center_baseline", "size": 0.7 * LETTERED, "weight": "bold"}
    for point in points:
        at: dict[str, Any] = {"xy": (point.x, point.y), "textcoords": "offset points"}
        axes.annotate(point.letter, xytext=(0, 0), color=theme.ground, zorder=4, **letter, **at)


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
