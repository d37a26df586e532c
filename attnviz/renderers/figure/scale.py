"""From values to colours and numbers: whose scale a picture has, its limits, its ticks. Draws nothing."""

from __future__ import annotations

from math import ceil, floor, log2, log10

from matplotlib.colors import LogNorm, Normalize
from matplotlib.ticker import MaxNLocator

from attnviz.report import Heatmap, HeatmapGrid, Report, Scale

MINUS = "\u2212"  # as wide as a plus


def scale_of(block: Heatmap | HeatmapGrid, report: Report) -> Scale:
    """The picture's own scale, else the report's."""
    return block.scale or report.scale


def plan_limits(scale: Scale) -> tuple[float, float]:
    """The range of the colours; where it is empty (one token has weight 1, always), from 0 or a tenth up."""
    if scale.kind == "diverging":
        most = max(abs(scale.low), abs(scale.high)) or 1.0  # no difference anywhere: all of it is the middle
        return -most, most
    if scale.low < scale.high:
        return scale.low, scale.high
    return (scale.high / 10 if scale.kind == "log" else min(0.0, scale.high - 1)), scale.high


def norm_of(scale: Scale, limits: tuple[float, float]) -> Normalize:
    """From values to 0..1, nothing stretched beyond the limits."""
    return (LogNorm if scale.kind in ("log", "lift") else Normalize)(*limits)


def plan_ticks(scale: Scale) -> tuple[tuple[float, str], ...]:
    """Ticks of the colour bar. A shared range shows its two ends, and so does one without a round number inside."""
    low, high = plan_limits(scale)
    if scale.kind == "lift":
        inner = range(round(log2(low)) + 1, round(log2(high)))
        return (low, f"≤ {low:g} ×"), *((2.0**power, f"{2**power} ×") for power in inner), (high, f"≥ {high:g} ×")
    if scale.kind == "diverging":
        return _signed_ticks(high if scale.high else 0.0)
    if scale.kind == "log":
        powers = [10.0**power for power in range(ceil(log10(low) - 1e-9), floor(log10(high) + 1e-9) + 1)]
        ticks = powers[:: ceil(len(powers) / 8) or 1]
    else:
        ticks = [float(tick) for tick in MaxNLocator(5).tick_values(low, high) if low <= tick <= high]
    if scale.kind == "shared" or len(ticks) < 2:
        ticks = [low, *_inner(ticks, low, high), high]
    return tuple((tick, f"{tick:.3g}") for tick in ticks)


def _signed_ticks(high: float) -> tuple[tuple[float, str], ...]:
    """Both ends, 0, and the same round numbers on either side of it; only 0 where there is no difference."""
    above = [float(tick) for tick in MaxNLocator(3, steps=[1, 2, 2.5, 5, 10]).tick_values(0.0, high or 1.0) if tick > 0]
    positive = [*_inner(above, -high, high), high] if high else []
    ticks = [*(-tick for tick in reversed(positive)), 0.0, *positive]
    return tuple((tick, signed(f"{tick:+.3g}")) for tick in ticks)


def _inner(ticks: list[float], low: float, high: float) -> list[float]:
    """Without those whose numbers would lie on those of the ends."""
    room = 0.06 * (high - low)
    return [tick for tick in ticks if low + room < tick < high - room]


def signed(number: str) -> str:
    """A number that was formatted with its sign: the minus as wide as the plus, and no sign before zero."""
    return number.replace("-", MINUS) if float(number) else number.lstrip("+-")


def digits_of(value: float, difference: bool) -> str:
    """What stands in a cell."""
    return signed(f"{value:+.2f}") if difference else f"{value:.2f}"
