"""Which tokens are labelled beside maps, in which size, and which cells by name. Draws nothing.

Lengths are inches, text sizes points.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from math import ceil

import numpy as np

from attnviz.renderers.figure import layout
from attnviz.renderers.figure.layout import CLOSE, PAD, POINT, TICK, UNLABELLED, Cells, Labels, Room, maps_of
from attnviz.renderers.figure.scale import digits_of
from attnviz.renderers.figure.style import MIN_FONT_SIZE
from attnviz.renderers.figure.text import FROM_RIGHT, LEFT_TO_RIGHT, extent, line_height
from attnviz.report import Heatmap, HeatmapGrid

CLOSE_NAMES = 1.2  # of the width of a name that stands at an edge of several maps: from one to the next
NOTABLE = 2.0  # times an equal share: a cell, or as a mean of its rows a column, that the eye goes to
MAX_PAIRS = 8  # cells that are named beside a map
STEPS = tuple(step * 10**power for power in range(7) for step in (1, 2, 4, 5))
MIN_LABELLED = 1.2  # inches; a smaller panel shows no tokens


def plan_labels(block: Heatmap | HeatmapGrid, cells: Cells, room: Room) -> tuple[Labels, Labels]:
    """Plan the labels of rows, and those of columns: below maps, and beside lines like those of rows."""
    if layout.is_small(block):
        return UNLABELLED, UNLABELLED
    smallest, lines = room.sizes.smallest, room.look.kind == "lines"
    every_second = 2 * min(cells.rows.pitch, cells.columns.pitch) >= CLOSE * smallest
    if isinstance(block, HeatmapGrid) and room.side < MIN_LABELLED and not (every_second or lines):
        return Labels(0, 0.0, PAD), Labels(0, 0.0, PAD)
    largest = room.sizes.label if isinstance(block, Heatmap) else room.sizes.panel
    rows, columns = ([getattr(each, side) for each in maps_of(block)] for side in ("rows", "columns"))
    beside = fit_labels(rows, cells.rows.pitch, largest, smallest)
    of_columns = partial(fit_labels, columns, cells.columns.pitch, largest, smallest, below=not lines)
    below = of_columns()
    if below.step > 1 and maps_of(block)[0].has_keys and not layout.is_difference(block):
        below = of_columns(strongest(block, below.step))
    return beside, below


def strongest(block: Heatmap | HeatmapGrid, step: int) -> tuple[int, ...]:
    """Choose columns of at least `NOTABLE`, most first, `step` apart or more; then every `step`-th if there is room."""
    maps = maps_of(block)
    number = min(heatmap.values.shape[1] for heatmap in maps)
    lifts = np.max([(heatmap.values / heatmap.equal_share[:, None]).mean(axis=0)[:number] for heatmap in maps], axis=0)
    wanted = [int(place) for place in np.argsort(-lifts, kind="stable") if lifts[place] >= NOTABLE]
    return tuple(sorted(_choose_apart((*wanted, *range(0, number, step)), step)))


def _choose_apart(places: Iterable[int], step: int) -> list[int]:
    """Choose the first, and of the others those that are `step` or more from all before."""
    chosen = list[int]()
    for place in places:
        if all(abs(place - other) >= step for other in chosen):
            chosen.append(place)
    return chosen


def name_pairs(block: Heatmap | HeatmapGrid, cells: Cells, room: Room) -> dict[float, str]:
    """Name the strongest cells of one map: by inches from its top its row, its column and its weight, "was → age .63".

    They stand where their rows end, so that the eye needs no line to find the row's strongest cell, and nothing is
    written on it. A cell is strong by w log₂(w n), what it adds to the row's divergence from an equal share of n keys:
    by weight alone those of the first queries would be, which have few keys. No key is named twice: else all would be
    of the token that most heads rest on. Numbers in cells say more, and means of blocks are of no pair.
    """
    (heatmap, *others), size = maps_of(block), room.sizes.smallest
    is_plain = not (others or heatmap.is_of_pairs or heatmap.block > 1 or heatmap.backdrop is not None)
    if not is_plain or cells.annotated or room.look.kind != "map":
        return {}
    lifts = np.where(heatmap.allowed, np.abs(heatmap.values) / heatmap.equal_share[:, None], 0)
    columns, best = lifts.argmax(axis=1), lifts.max(axis=1)
    order = np.argsort(-best * heatmap.equal_share * np.log2(np.maximum(best, 1)), kind="stable")
    order = order[best[order] >= NOTABLE]
    firsts = order[np.sort(np.unique(columns[order], return_index=True)[1])]
    found, pitch = dict[float, str](), cells.rows.pitch
    for row in _choose_apart(firsts.tolist(), ceil(CLOSE * size / pitch))[:MAX_PAIRS]:
        query, key, weight = heatmap.rows[row], heatmap.columns[columns[row]], heatmap.values[row, columns[row]]
        edge = LEFT_TO_RIGHT * bool(FROM_RIGHT.search(query + key))  # who looks stands first in every script
        found[(row + 0.5) * pitch * POINT] = (
            f"{edge}{query}{edge} → {key}{edge} {digits_of(float(weight), layout.is_difference(block))}"
        )
    return found


def fit_labels(
    several: Collection[tuple[str, ...]],
    pitch: float,
    largest: float,
    smallest: float = MIN_FONT_SIZE,
    places: tuple[int, ...] | None = None,
    *,
    below: bool = False,
) -> Labels:
    """Fit labels of the rows of several maps, beside them, or of their columns `below`: upright where they all fit.

    Every one is labelled while its label has room, else every second …
    """
    step = next(step for step in STEPS if step * pitch >= CLOSE * smallest)
    size = min(largest, max(smallest, step * pitch / 1.25))
    labels = {label for names in several for label in Labels(step, 0.0, 0.0, places=places).choose(names)}
    widest = max((extent(label, size).width for label in labels), default=0.0)
    if not below:
        return Labels(step, size, widest * POINT + TICK + 2 * PAD, places=places)
    between = 0.5 if widest <= 1.05 * size else 4.0  # points: characters as wide as high are set close and stay upright
    rotated = widest > step * pitch - between
    height = widest if rotated else max((line_height(label, size) for label in labels), default=0.0)
    return Labels(step, size, height * POINT + TICK + PAD, rotated, places)


def spell_names(axis: str, names: Sequence[str], pitch: float, size: float) -> tuple[str, ...]:
    """Spell names as "head 3", or "3" where not all of them have room; "mean" says itself what it is."""
    spelled = tuple(f"{axis} {name}" if name.isdigit() else name for name in names)
    return spelled if max(extent(name, size).width for name in spelled) * POINT < pitch else tuple(names)


def find_step(points: float, pitch: float) -> int:
    """Return n where only every n-th name has room."""
    return max(1, ceil(CLOSE_NAMES * points * POINT / pitch))
