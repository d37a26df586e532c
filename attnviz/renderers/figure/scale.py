"""From values to colours and numbers: whose scale a picture has, its limits, what cells show.

Draws nothing.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize

from attnviz.renderers.figure.style import AUTO, INK, PAPER, SEQUENTIAL, Theme, colour_map
from attnviz.renderers.pooling import pool_cells
from attnviz.renderers.shades import luminance
from attnviz.report import Heatmap, Scale

MINUS = "\u2212"  # as wide as a plus
LEAST_WRITTEN = 0.005  # less would round to .00
OVER_IMAGE = 0.6  # opacity of cells, so that the image is seen through them
PALE = 0.2  # relative luminance on which our ink and white stand out equally (WCAG 2 contrast)
FORBIDDEN: dict[str, Any] = {"facecolor": "#f4f4f4", "edgecolor": "#b0b0b0", "hatch": "//////", "linewidth": 0.0}
# Where the colours are palest in their middle, which is 0.
FORBIDDEN_AMONG_PALE = {**FORBIDDEN, "facecolor": "#dadada", "edgecolor": "#999999"}
FORBIDDEN_AMONG_WHITE = {**FORBIDDEN, "facecolor": "#e8e8e8"}
FORBIDDEN_AMONG_BLACK = {**FORBIDDEN, "facecolor": "#34323d", "edgecolor": "#6d6b78"}


def plan_limits(scale: Scale) -> tuple[float, float]:
    """Return the range of the colours; an empty one (one token has weight 1, always) from 0 or a tenth up."""
    if scale.family.is_signed:
        most = max(abs(scale.low), abs(scale.high)) or 1.0  # no difference anywhere: all of it is the middle
        return -most, most
    if scale.low < scale.high:
        return scale.low, scale.high
    return (scale.high / 10 if scale.family.is_logarithmic else min(0.0, scale.high - 1)), scale.high


def norm_of(scale: Scale) -> Normalize:
    """Return the map from values to 0..1; nothing is stretched beyond the limits."""
    return (LogNorm if scale.family.is_logarithmic else Normalize)(*plan_limits(scale))


def write_sign(number: str) -> str:
    """Write a number that was formatted with its sign: the minus as wide as the plus, and no sign before zero."""
    return number.replace("-", MINUS) if float(number) else number.lstrip("+-")


def digits_of(value: float, difference: bool) -> str:
    """Write a value as in a cell: ".43", "1.0", "−.12"; nothing where it would be ".00"."""
    if abs(value) < LEAST_WRITTEN:
        return ""
    written = f"{value:+.2f}" if difference else f"{value:.2f}"
    if abs(float(written)) <= 1:  # no wider than it has to be
        written = written.replace("0.", ".").replace("1.00", "1.0")
    return write_sign(written)


def colours_of(scale: Scale, cmap: str, theme: Theme = PAPER) -> ScalarMappable:
    """Choose what maps values to 0..1 (`norm`) and on to colours (`cmap`).

    A difference has its own colours, whatever `cmap` is: others would make 0 look like something.
    """
    of_scale = theme.lift if scale.family.colours == "lift" else SEQUENTIAL
    name = theme.diverging if scale.family.is_signed else of_scale if cmap == AUTO else cmap
    return ScalarMappable(norm_of(scale), colour_map(name))


def cells_of(heatmap: Heatmap, scale: Scale, pools: tuple[int, int]) -> np.ma.MaskedArray:
    """Return what a map's cells show: pooled if there are too many tokens, masked where attention is not allowed."""
    cells = pool_cells(heatmap.shade(scale), heatmap.allowed, pools, scale.family.is_signed)
    if scale.family.is_logarithmic:  # 0 has no logarithm; what is below the range is drawn as its lower end
        lowest = np.float64(plan_limits(scale)[0])
        if not np.ma.is_masked(cells):  # a third of the time
            return np.ma.masked_array(np.fmax(cells.data, lowest))
        return np.ma.maximum(cells, lowest)
    return cells


def numbers_in(heatmap: Heatmap, scale: Scale, colours: ScalarMappable) -> Iterator[tuple[float, float, str, str]]:
    """Yield for each allowed cell that has a number its middle, the number, and the ink: dark on pale, pale on dark."""
    shading, (least, _) = heatmap.shade(scale), plan_limits(scale)
    for row, column in np.argwhere(heatmap.allowed):
        value, shade = float(heatmap.values[row, column]), float(shading[row, column])
        ink = ink_on(colours.to_rgba(np.array(max(shade, least))))
        if text := digits_of(value, scale.family.is_signed):
            yield column + 0.5, row + 0.5, text, ink


def ink_on(colour: Sequence[float] | np.ndarray) -> str:
    """Choose the ink on a colour: dark on pale and pale on dark."""
    return INK if luminance([255 * part for part in colour[:3]]) > PALE else "white"


def ground(scale: Scale, theme: Theme = PAPER) -> dict[str, Any]:
    """Return the style of the ground on which forbidden cells lie open."""
    if theme != PAPER:
        return FORBIDDEN_AMONG_BLACK
    return {"diverging": FORBIDDEN_AMONG_PALE, "lift": FORBIDDEN_AMONG_WHITE}.get(scale.family.colours, FORBIDDEN)
