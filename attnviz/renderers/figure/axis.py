"""What an axis of a chart spans and which numbers stand along it. Draws nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import ceil, floor
from typing import NamedTuple

import numpy as np
from matplotlib.ticker import MaxNLocator

from attnviz.renderers.figure.layout import POINT, STEPS
from attnviz.renderers.figure.style import AXIS
from attnviz.renderers.figure.text import extent
from attnviz.report import Curve, Line

LARGEST, LEAST = 1e100, 1e-100  # beyond them the arithmetic of an axis overflows
MARGINS = (0.03, 0.06)  # of x and of y: the share of the range that stays empty at either end
MOST_X, MOST_Y = 9, 6  # ticks, about
NEAR = 0.25  # of the range: an x axis that would begin as near to 0 begins there
BETWEEN = 8.0  # points from one number to the next
MOST_WHOLE = 1e6  # a range beyond is no longer one of things that are counted


class AxisRange(NamedTuple):
    """From where to where, and where numbers stand and what they say."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]

    def beyond(self, length: float) -> tuple[float, float]:
        """How far the numbers along a horizontal axis reach beyond its start and its end."""
        halves = [(tick, extent(text, AXIS).width * POINT / 2) for tick, text in self.ticks]
        places = [((tick - self.low) / (self.high - self.low) * length, half) for tick, half in halves]
        before = max((half - place for place, half in places), default=0.0)
        after = max((place + half - length for place, half in places), default=0.0)
        return max(0.0, before), max(0.0, after)


NOTHING = AxisRange(0.0, 1.0, ())


def points_of(line: Line) -> np.ndarray:
    """The line's points as x over y, both NaN where one of them is no number to draw."""
    points = np.array([line.x, line.y], dtype=float)
    inside = (np.abs(points) <= LARGEST).all(axis=0)  # written so that NaN is not inside
    return np.where(inside, points, np.nan)


def usable(values: Sequence[float]) -> np.ndarray:
    """The numbers that can be drawn."""
    numbers: np.ndarray = np.array(values, dtype=float)
    return np.extract(np.abs(numbers) <= LARGEST, numbers)  # written so that NaN is not usable


def plan_x(curve: Curve, width: float) -> AxisRange:
    """All lines and the mark. Whole numbers only where there are several, or where a line has points only there."""
    values = _drawn(points_of(line)[0] for line in curve.lines)
    if not len(values):
        return NOTHING
    if curve.at is not None and abs(curve.at) <= LARGEST:
        values = np.append(values, curve.at)
    if 0 < values.min() < NEAR * np.ptp(values):
        values = np.append(values, 0.0)
    low, high = _limits(values, MARGINS[0])
    counted = any(line.x and all(float(x).is_integer() for x in line.x) for line in curve.lines)
    whole = high - low <= MOST_WHOLE and (counted or floor(high) - ceil(low) >= 2)
    for most in range(MOST_X, 1, -1):
        ticks = numbered(_whole_ticks(low, high, most) if whole else _ticks(low, high, most))
        widest = max((extent(text, AXIS).width for _, text in ticks), default=0.0)
        steps = [(after - before) / (high - low) * width for (before, _), (after, _) in pairwise(ticks)]
        if min(steps, default=width) >= (widest + BETWEEN) * POINT:
            break
    return AxisRange(low, high, ticks)


def plan_y(parts: Iterable[np.ndarray]) -> AxisRange:
    """All numbers of several lines or samples, as high and low as they go."""
    values = _drawn(parts)
    if not len(values):
        return NOTHING
    low, high = _limits(values, MARGINS[1])
    return AxisRange(low, high, numbered(_ticks(low, high, MOST_Y)))


def numbered(ticks: Sequence[float]) -> tuple[tuple[float, str], ...]:
    """Plain decimals, all with as many digits as tell them apart: 0.80, 0.85, 0.90."""
    largest = max(map(abs, ticks), default=0.0)
    step = ticks[1] - ticks[0] if len(ticks) > 1 else largest
    exact = (n for n in range(10) if all(abs(round(tick, n) - tick) <= 1e-6 * step for tick in ticks))
    digits = next(exact, None)
    if digits is None or largest >= 1e12:
        return tuple((tick, f"{tick:.12g}") for tick in ticks)
    return tuple((tick, f"{round(tick, digits) + 0.0:.{digits}f}") for tick in ticks)  # + 0.0: no minus before zero


def _drawn(parts: Iterable[np.ndarray]) -> np.ndarray:
    """All numbers of several lines or samples."""
    return np.array([value for part in parts for value in part[~np.isnan(part)]])


def _limits(values: np.ndarray, margin: float) -> tuple[float, float]:
    """The range of the values with some room at both ends; some room around a single value."""
    low, high = float(values.min()), float(values.max())
    size = max(abs(low), abs(high))
    room = margin * (high - low)
    if high - low <= max(1e-9 * size, LEAST):
        room = max(0.1 * size, 1e-9 * size + LEAST) if size > LEAST else 0.05
    return low - room, high + room


def _ticks(low: float, high: float, most: int) -> tuple[float, ...]:
    found = MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    return tuple(float(tick) for tick in found if low <= tick <= high)


def _whole_ticks(low: float, high: float, most: int) -> tuple[float, ...]:
    first, last = ceil(low), floor(high)
    step = next(step for step in STEPS if (last - first) // step < most)
    return tuple(float(tick) for tick in range(-(-first // step) * step, last + 1, step))
