"""One chart of samples on matplotlib's axes: many numbers become a box, few are points, none are words.

Quartiles of a few numbers would show what nobody knows, so those are shown as they are. Along an x axis samples are 1
apart. Lengths are inches, text sizes points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.patches import Patch, Rectangle

from attnviz.renderers.figure.draw import label_at
from attnviz.renderers.figure.header import ordinal
from attnviz.renderers.figure.layout import POINT, Labels, fit_labels
from attnviz.renderers.figure.style import COLOURS, MAX_NUMBER, PAPER, Theme
from attnviz.report import Distribution, Distributions, Sample

MIN_VALUES = 30  # numbers that make a box
APART = 0.8  # between two groups, beyond what is between two samples
EDGE = 0.6  # from either end of an axis to the nearest sample
SLOT, MAX_SLOT = 0.3, 0.6  # inches from sample to sample: wished, and at most
STRENGTHS = (0.4, 0.0, 0.8)  # of a group's colour within its boxes; the next once all colours are taken
BROAD = 0.6  # of a box; points are spread as far
DOT, LINE = 3.6, 0.8  # points: across a number's point, and of an edge
FLAT = 1e-9  # a range, as a share of the largest number, below which all numbers are the same


class GroupStyle(NamedTuple):
    """How all samples of one group look, in colours of matplotlib."""

    edge: tuple[float, float, float, float]
    face: tuple[float, float, float, float]


class Placed(NamedTuple):
    """One sample, where it stands, and those of its numbers that can be drawn."""

    sample: Sample
    x: float
    values: np.ndarray

    @property
    def is_box(self) -> bool:
        """Numbers that are all the same are a line."""
        return len(self.values) >= MIN_VALUES and bool(np.ptp(self.values) > FLAT * np.abs(self.values).max())


def looks_of(picture: Distributions, theme: Theme = PAPER) -> tuple[Mapping[str, GroupStyle], list[tuple[str, Patch]]]:
    """How the samples of each group look; and the groups' names with a sample of each, unless there is only one."""
    looks = {}
    for number, name in enumerate(dict.fromkeys(each.group for chart in picture.charts for each in chart.samples)):
        round_, colour = divmod(number, len(COLOURS))
        edge = theme.find_ink(COLOURS[colour])
        looks[name] = GroupStyle(to_rgba(edge), to_rgba(edge, STRENGTHS[round_ % len(STRENGTHS)]))
    patches = {name: Patch(facecolor=each.face, edgecolor=each.edge, linewidth=LINE) for name, each in looks.items()}
    return looks, [(name, patch) for name, patch in patches.items() if name or len(looks) > 1]


def place(chart: Distribution) -> tuple[Placed, ...]:
    """The samples, those of one group side by side and a gap before the next."""
    order = {name: number for number, name in enumerate(dict.fromkeys(sample.group for sample in chart.samples))}
    together = sorted(chart.samples, key=lambda sample: order[sample.group])
    return tuple(
        Placed(sample, number + APART * order[sample.group], usable(sample.values))
        for number, sample in enumerate(together)
    )


def usable(values: Sequence[float]) -> np.ndarray:
    """The numbers that can be drawn."""
    numbers: np.ndarray = np.array(values, dtype=float)
    return np.extract(np.abs(numbers) <= MAX_NUMBER, numbers)  # written so that NaN is not usable


def width_of(picture: Distributions) -> float:
    """Inches that the samples of the fullest chart wish for."""
    return SLOT * max(map(_units, picture.charts), default=0.0)


def labels_of(chart: Distribution, width: float, size: float) -> Labels:
    """How the samples of a chart are labelled."""
    return fit_labels(
        [tuple(each.sample.label for each in place(chart))], _slot(chart, width) / POINT, size, below=True
    )


def _units(chart: Distribution) -> float:
    return max((each.x for each in place(chart)), default=0.0) + 2 * EDGE


def _slot(chart: Distribution, width: float) -> float:
    return min(width / _units(chart), MAX_SLOT)


def caveats(picture: Distributions, width: float, size: float) -> list[str]:
    """What the charts cannot show by themselves."""
    samples = [each for chart in picture.charts for each in place(chart)]
    texts = []
    if any(each.is_box for each in samples):
        texts.append("boxes: the middle half of the numbers and their median; lines reach the smallest and the largest")
    if any(1 < len(each.values) < MIN_VALUES for each in samples):
        texts.append(f"samples of fewer than {MIN_VALUES} numbers: each is a point, the line is their median")
    steps = {(labels_of(chart, width, size).step, chart.x_axis) for chart in picture.charts}
    texts += [f"every {ordinal(step)} {axis or 'sample'} is labelled" for step, axis in sorted(steps) if step > 1]
    empty = sum(not len(each.values) for each in samples)
    lost = sum(len(each.sample.values) - len(each.values) for each in samples)
    if empty:
        texts.append(f"{empty} sample{'' if empty == 1 else 's'} without numbers")
    if lost:
        texts.append(f"{lost} number{'' if lost == 1 else 's'} cannot be drawn: not a number, or too large")
    return texts


def draw_distribution(
    axes: Axes,
    chart: Distribution,
    looks: Mapping[str, GroupStyle],
    labels: Labels,
    size: tuple[float, float],
    theme: Theme,
) -> str:
    """Draw the samples of a chart of about this width and height; what to say instead where there are no numbers."""
    samples = place(chart)
    middle, slot = (samples[-1].x if samples else 0.0) / 2, _slot(chart, size[0])
    values = np.concatenate([np.zeros(0), *(each.values for each in samples)])
    if len(values):
        axes.update_datalim([(middle, values.min()), (middle, values.max())])
        axes.autoscale_view()
    low, high = axes.get_ylim()
    for name, group in groupby(samples, lambda each: each.sample.group):
        together, look = list(group), looks[name]
        _draw_boxes(axes, [each for each in together if each.is_box], look, theme)
        for each in together:
            if 0 < len(each.values) < MIN_VALUES:
                heights = (each.values - low) / (high - low) * size[1]
                dots = axes.plot(each.x + spread(heights, slot), each.values, "o", color=look.edge, markersize=DOT)
                dots[0].set(markeredgecolor=theme.ground, markeredgewidth=0.4, zorder=3)
            if len(each.values) > 1 and not each.is_box:
                ends = (each.x - BROAD / 2, each.x + BROAD / 2)
                axes.hlines(np.median(each.values), *ends, color=theme.ink, linewidth=1.2)
    axes.set(xlim=(middle - size[0] / slot / 2, middle + size[0] / slot / 2), ylim=(low, high), xlabel="", ylabel="")
    label_at(axes.xaxis, [each.x for each in samples], [each.sample.label for each in samples], labels)
    return "" if len(values) else "no numbers"


def _draw_boxes(axes: Axes, samples: Sequence[Placed], look: GroupStyle, theme: Theme) -> None:
    """Draw a sample's middle half with its median, and lines from there to its smallest and largest number."""
    for each in samples:
        low, first, middle, third, high = np.percentile(each.values, (0, 25, 50, 75, 100))
        left, right = each.x - BROAD / 2, each.x + BROAD / 2
        axes.vlines([each.x, each.x], [low, third], [first, high], color=look.edge, linewidth=LINE)
        box = Rectangle((left, first), BROAD, third - first, facecolor=look.face, edgecolor=look.edge, linewidth=LINE)
        axes.add_patch(box)
        axes.hlines(middle, left, right, color=theme.ink, linewidth=1.2)


def spread(heights: np.ndarray, slot: float) -> np.ndarray:
    """How far from the middle each point stands, in slots: as near to it as the points under it leave."""
    columns: np.ndarray = np.zeros(len(heights))
    highest: dict[int, float] = {}  # point of each column
    for rank, index in enumerate(np.argsort(heights, kind="stable")):
        outwards = sorted(range(-len(heights), len(heights) + 1), key=lambda place: (abs(place), place * (-1) ** rank))
        free = (place for place in outwards if heights[index] - highest.get(place, -np.inf) >= DOT * POINT)
        columns[index] = column = next(free)
        highest[column] = heights[index]
    columns *= min(DOT * POINT / slot, BROAD / 2 / max(1.0, np.abs(columns).max(initial=0.0)))
    return columns
