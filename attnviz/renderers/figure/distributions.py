"""Where everything on a picture of distributions goes: many numbers become a violin, few are points, none are words.

A density that is estimated from a few numbers would show what nobody knows, so those are shown as they are.
As with maps, texts are measured first and the figure is built around them; no text lies on a violin or a point.
Lengths are inches from the upper left corner, text sizes points; along an x axis samples are 1 apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from matplotlib.colors import to_hex, to_rgb

from attnviz.renderers.figure.axis import plan_y, usable
from attnviz.renderers.figure.chart import COLOURS, SIZES, Frame, Key, centred, legend
from attnviz.renderers.figure.header import (
    MARGIN,
    NARROWEST,
    below,
    check_size,
    header_of,
    ordinal,
    paragraph,
    title_of,
    whole,
)
from attnviz.renderers.figure.layout import GAP, PAD, POINT, WIDEST_GRID, Box, Labels, Line, labels_below
from attnviz.renderers.figure.style import AXIS, GREY, SMALL
from attnviz.renderers.figure.text import wrap
from attnviz.report import Distribution, Distributions, Look, Report, Sample

FEWEST = 30  # numbers that make a violin
APART = 0.8  # between two groups, beyond what is between two samples
EDGE = 0.6  # from either end of an axis to the nearest sample
SLOT, WIDEST_SLOT = 0.3, 0.6  # inches from sample to sample: wished, and at most
BESIDE = 0.8  # inches beside a chart, about, that its y axis takes
STRENGTHS = (0.4, 0.0, 1.0)  # of a group's colour within its violins; the next once all colours are taken
FLAT = 1e-9  # a range, as a share of the largest number, below which all numbers are the same
NOTHING = "no numbers"


class Tint(NamedTuple):
    """How all samples of one group look."""

    edge: str
    face: str


class Placed(NamedTuple):
    """One sample, where it stands, and those of its numbers that can be drawn."""

    sample: Sample
    x: float
    values: np.ndarray

    @property
    def kind(self) -> Literal["nothing", "points", "violin", "level"]:
        """What is drawn. There is no density of numbers that are all the same."""
        if not len(self.values):
            return "nothing"
        if len(self.values) < FEWEST:
            return "points"
        return "level" if np.ptp(self.values) <= FLAT * np.abs(self.values).max() else "violin"


@dataclass(frozen=True, eq=False)
class Chart:
    """One pair of axes and the samples on it."""

    frame: Frame
    samples: tuple[Placed, ...]
    slot: float  # inches from sample to sample
    labels: Labels

    @property
    def limits(self) -> tuple[float, float]:
        """Of the x axis: the samples are in the middle of it."""
        middle = (self.samples[-1].x if self.samples else 0.0) / 2
        half = self.frame.box.width / self.slot / 2
        return middle - half, middle + half

    def place(self, x: float) -> float:
        return self.frame.box.left + (x - self.limits[0]) * self.slot

    def height_of(self, values: np.ndarray) -> np.ndarray:
        """Inches above the bottom of the box."""
        y = self.frame.y
        return (values - y.low) / (y.high - y.low) * self.frame.box.height


@dataclass(frozen=True, eq=False)
class DistributionsPlan:
    """Charts before they are drawn."""

    name: str
    title: str
    width: float
    height: float
    charts: tuple[Chart, ...]
    tints: Mapping[str, Tint]
    keys: tuple[Key, ...]
    lines: tuple[Line, ...]


def plan_distributions(picture: Distributions, report: Report, look: Look) -> DistributionsPlan:
    """Everything on one picture with its place. Raises TooLarge for too many pixels, and says what would work."""
    tints = tints_of(picture)
    n_columns = max(1, min(picture.n_columns, len(picture.charts)))
    charts, width = _across(picture, n_columns, look.dpi)
    header = header_of(picture, report, width)
    names, keys, bottom = legend([name for name in tints if name or len(tints) > 1], below(header, MARGIN) + GAP, width)
    placed: list[Chart] = []
    lines = [*header, *names]
    for start in range(0, len(charts), n_columns):
        row, texts, bottom = _down(charts[start : start + n_columns], bottom + GAP, look.dpi)
        placed += row
        lines += texts
    small_print = wrap(" · ".join(_small_print(placed)), SMALL, (width - 2 * MARGIN) / POINT)
    footer = paragraph(small_print, SMALL, GREY, MARGIN, bottom + PAD)
    height = whole(below(footer, bottom) + MARGIN, look.dpi)
    check_size(picture.name, width, height, look.dpi)
    title = title_of(picture, report)
    return DistributionsPlan(picture.name, title, width, height, tuple(placed), tints, keys, (*lines, *footer))


def tints_of(picture: Distributions) -> dict[str, Tint]:
    """How the samples of each group look, in the order in which the groups come up."""
    tints = {}
    for number, name in enumerate(dict.fromkeys(each.group for chart in picture.charts for each in chart.samples)):
        round_, colour = divmod(number, len(COLOURS))
        strength = STRENGTHS[round_ % len(STRENGTHS)]
        red, green, blue = (1 - strength * (1 - part) for part in to_rgb(COLOURS[colour]))
        tints[name] = Tint(COLOURS[colour], to_hex((red, green, blue)))
    return tints


def _across(picture: Distributions, n_columns: int, dpi: int) -> tuple[list[Chart], float]:
    """The charts from left to right, all as wide as the one of most samples asks for; and the width of it all."""
    width, height = SIZES[min(n_columns, len(SIZES)) - 1]
    samples = [_placed(chart) for chart in picture.charts]
    units = [(each[-1].x if each else 0.0) + 2 * EDGE for each in samples]
    widest = max(width, WIDEST_GRID / n_columns - BESIDE)
    box = Box(0.0, 0.0, whole(min(max(width, SLOT * max(units, default=0.0)), widest), dpi), whole(height, dpi))
    charts = []
    for chart, placed, length in zip(picture.charts, samples, units, strict=True):
        frame = Frame(chart.title, chart.x_axis, chart.y_axis, plan_y(each.values for each in placed), 0.0, box)
        slot = min(box.width / length, WIDEST_SLOT)
        labels = labels_below([tuple(each.sample.label for each in placed)], slot / POINT, AXIS)
        charts.append(Chart(frame, placed, slot, labels))
    right = MARGIN
    for column in range(n_columns):
        room = max((chart.frame.y_room for chart in charts[column::n_columns]), default=0.0)
        left = whole(right + room, dpi)
        charts[column::n_columns] = [_moved(chart, right, left=left) for chart in charts[column::n_columns]]
        right = left + box.width + 2 * GAP
    return charts, whole(max(NARROWEST, right - GAP + MARGIN), dpi)


def _placed(chart: Distribution) -> tuple[Placed, ...]:
    """The samples, those of one group side by side and a gap before the next."""
    order = {name: number for number, name in enumerate(dict.fromkeys(sample.group for sample in chart.samples))}
    together = sorted(chart.samples, key=lambda sample: order[sample.group])
    return tuple(
        Placed(sample, place + APART * order[sample.group], usable(sample.values))
        for place, sample in enumerate(together)
    )


def _down(charts: Sequence[Chart], top: float, dpi: int) -> tuple[list[Chart], list[Line], float]:
    """One row of charts under `top`, what stands around them, and where it ends."""
    heading = max(chart.frame.heading_room for chart in charts)
    labels = max(chart.labels.room for chart in charts)
    box_top = whole(top + heading + PAD, dpi)
    placed = [_moved(chart, chart.frame.left, top=box_top) for chart in charts]
    texts = [line for chart in placed for line in chart.frame.texts(box_top - PAD, labels)]
    bottom = box_top + placed[0].frame.box.height + labels
    bottom = max([bottom, *(below([line], bottom) for line in texts if not line.rotation)])
    return placed, texts + [line for chart in placed for line in _nothings(chart)], bottom


def _moved(chart: Chart, y_name: float, **place: float) -> Chart:
    return replace(chart, frame=replace(chart.frame, left=y_name, box=chart.frame.box._replace(**place)))


def _nothings(chart: Chart) -> Iterator[Line]:
    """In the place of each sample without numbers, where there is room for it, and of a chart without any."""
    box = chart.frame.box
    if not any(len(each.values) for each in chart.samples):
        yield from centred([NOTHING], SMALL, box.left + box.width / 2, box.top + box.height / 2, GREY)
        return
    for each in chart.samples:
        if not len(each.values) and _has_room(chart):
            x = chart.place(each.x) + 0.35 * SMALL * POINT
            yield Line(NOTHING, x, box.top + box.height / 2, SMALL, GREY, "center", 90)


def _has_room(chart: Chart) -> bool:
    return chart.slot >= 1.2 * SMALL * POINT


def _small_print(charts: Sequence[Chart]) -> Iterator[str]:
    """What the charts cannot show by themselves."""
    samples = [each for chart in charts for each in chart.samples]
    if any(each.kind == "violin" for each in samples):
        yield "violins: the bar spans the middle half of the numbers, the white dot is their median"
    if any(1 < len(each.values) < FEWEST for each in samples):
        yield f"samples of fewer than {FEWEST} numbers: each is a point, the line is their median"
    thinned = {(chart.labels.step, chart.frame.x_axis) for chart in charts if chart.labels.step > 1}
    yield from (f"every {ordinal(step)} {axis or 'sample'} is labelled" for step, axis in sorted(thinned))
    unnamed = sum(not len(each.values) for chart in charts if not _has_room(chart) for each in chart.samples)
    if unnamed:
        yield f"{unnamed} sample{'' if unnamed == 1 else 's'} without numbers"
    left_out = sum(len(each.sample.values) - len(each.values) for each in samples)
    if left_out:
        yield f"{left_out} number{'' if left_out == 1 else 's'} cannot be drawn: not a number, or too large"
