"""How large cells, labels and the colour bar's ticks have to be. Draws nothing and gives nothing a place.

Lengths are inches, text sizes points.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Literal, NamedTuple

import numpy as np
from matplotlib.ticker import MaxNLocator

from attnviz.renderers.figure_text import extent, line_height
from attnviz.renderers.style import INK, LABEL_SIZES
from attnviz.report import Heatmap, Look, Panels, Scale

POINT = 1 / 72
GAP, PAD = 0.12, 0.05  # inches between things, and between a text and its thing
TICK = 2 * POINT
LARGEST_MAP, LARGEST_PANEL, WIDEST_GRID = 7.2, 2.8, 12.0
MOST_CELLS = 1024  # along one side; more are pooled
DIGITS = 6.0  # points, of the number in a cell
SMALLEST_LABELLED = 1.2  # inches; a smaller panel shows no tokens
STEPS = tuple(step * 10**power for power in range(7) for step in (1, 2, 4, 5))


class Box(NamedTuple):
    """A rectangle, in inches from the upper left corner."""

    left: float
    top: float
    width: float
    height: float


class Line(NamedTuple):
    """One line of text, its base line at `x`, `y` inches from the upper left corner (its start, or its middle)."""

    text: str
    x: float
    y: float
    size: float
    colour: str = INK
    align: Literal["left", "center"] = "left"
    rotation: int = 0


class Cells(NamedTuple):
    """How tokens become cells: `pool` tokens per cell side, `side` inches per cell, `annotated` with numbers."""

    pool: int
    side: float
    annotated: bool


class Labels(NamedTuple):
    """How tokens are labelled: every `step`-th (0: none), in which size, and the room that rows and columns take."""

    step: int
    size: float
    row_room: float
    column_room: float
    rotated: bool


class Place(NamedTuple):
    """One map and its box, and which of its sides carry token labels."""

    heatmap: Heatmap
    box: Box
    row_labels: bool
    column_labels: bool


@dataclass(frozen=True, eq=False)
class Plan:
    """A picture before it is drawn."""

    name: str
    title: str
    width: float
    height: float
    cells: Cells
    labels: Labels
    places: tuple[Place, ...]
    bar: Box
    ticks: tuple[tuple[float, str], ...]  # of the colour bar: where, and what they say
    limits: tuple[float, float]  # of the colours
    lines: tuple[Line, ...]
    swatch: Box | None  # the key to forbidden cells


def maps_of(block: Heatmap | Panels) -> tuple[Heatmap, ...]:
    return block.maps if isinstance(block, Panels) else (block,)


def shape_of(block: Heatmap | Panels) -> tuple[int, int]:
    """Rows and columns of the largest map, in tokens."""
    shapes = [heatmap.values.shape for heatmap in maps_of(block)]
    return max(shape[0] for shape in shapes), max(shape[1] for shape in shapes)


def columns_of(block: Heatmap | Panels) -> int:
    return min(block.n_columns, len(block.maps)) if isinstance(block, Panels) else 1


def largest_side(block: Heatmap | Panels) -> float:
    """Inches that one map may take along its longer side."""
    if isinstance(block, Heatmap):
        return LARGEST_MAP
    return min(LARGEST_PANEL, max(0.6, WIDEST_GRID / columns_of(block) - GAP))


def digits_side(block: Heatmap | Panels) -> float:
    """Inches that a cell needs for its number."""
    extremes = [float(each) for heatmap in maps_of(block) for each in (heatmap.values.min(), heatmap.values.max())]
    return (max(extent(f"{each:.2f}", DIGITS).width for each in extremes) + 4) * POINT


def fits_digits(block: Heatmap | Panels) -> bool:
    """Whether each cell has room for its number."""
    return max(shape_of(block)) * digits_side(block) <= largest_side(block)


def plan_cells(block: Heatmap | Panels, look: Look) -> Cells:
    """Few tokens get large cells, many small ones; more tokens than pixels are pooled."""
    n_tokens, limit = max(shape_of(block)), largest_side(block)
    pool = ceil(n_tokens / max(1, min(MOST_CELLS, floor(limit * look.dpi))))
    n_cells = ceil(n_tokens / pool)
    wished = (
        np.clip(1.4 + 0.18 * n_tokens, 1.8, 6.5) if isinstance(block, Heatmap) else np.clip(0.1 * n_tokens, 1.5, 2.6)
    )
    pixels = round(min(float(wished), limit) * look.dpi / n_cells)
    annotated = look.annotate and fits_digits(block)
    if annotated:
        pixels = max(pixels, ceil(digits_side(block) * look.dpi))
    else:
        pixels = min(pixels, floor(limit * look.dpi / n_cells))
    return Cells(pool, max(1, pixels) / look.dpi, annotated)


def plan_labels(block: Heatmap | Panels, cells: Cells) -> Labels:
    """Every token is labelled while its label has 6 points of room, else every second, fourth, fifth …"""
    if isinstance(block, Panels) and largest_side(block) < SMALLEST_LABELLED:
        return Labels(0, 0.0, PAD, PAD, False)
    pitch = cells.side / cells.pool / POINT  # points from token to token
    step = next(step for step in STEPS if step * pitch >= 1.1 * LABEL_SIZES[0])
    largest = LABEL_SIZES[1] if isinstance(block, Heatmap) else 7.0
    size = min(largest, max(LABEL_SIZES[0], step * pitch / 1.25))
    rows = {label for heatmap in maps_of(block) for label in heatmap.rows[::step]}
    columns = {label for heatmap in maps_of(block) for label in heatmap.columns[::step]}
    widest = max(extent(label, size).width for label in columns)
    between = 0.5 if widest <= 1.05 * size else 4.0  # points: characters as wide as high are set close and stay upright
    rotated = widest > step * pitch - between
    below = widest if rotated else max(line_height(label, size) for label in columns)
    beside = max(extent(label, size).width for label in rows)
    return Labels(step, size, beside * POINT + TICK + 2 * PAD, below * POINT + TICK + PAD, rotated)


def plan_limits(scale: Scale) -> tuple[float, float]:
    """The range of the colours; where it is empty (one token has weight 1, always), from 0 or a tenth up."""
    if scale.low < scale.high:
        return scale.low, scale.high
    return (scale.high / 10 if scale.kind == "log" else min(0.0, scale.high - 1)), scale.high


def plan_ticks(scale: Scale) -> tuple[tuple[float, str], ...]:
    """Ticks of the colour bar. A shared range shows its two ends, and so does one without a round number inside."""
    low, high = plan_limits(scale)
    if scale.kind == "log":
        powers = [10.0**power for power in range(ceil(log10(low) - 1e-9), floor(log10(high) + 1e-9) + 1)]
        ticks = powers[:: ceil(len(powers) / 8) or 1]
    else:
        ticks = [float(tick) for tick in MaxNLocator(5).tick_values(low, high) if low <= tick <= high]
    if scale.kind == "shared" or len(ticks) < 2:
        room = 0.06 * (high - low)
        ticks = [low, *(tick for tick in ticks if low + room < tick < high - room), high]
    return tuple((tick, f"{tick:.3g}") for tick in ticks)
