"""Maps that are too large for a page, made smaller: the largest of each block of cells. Knows `report` only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import ceil, sqrt

import numpy as np

from attnviz.report import Heatmap

MAX_SIDE = 1024  # rows or columns of a map on a page
MAX_CELLS = 20_000_000  # of all maps: 72 heads of 512 tokens, about 4 MB of page


def block_for(maps: Sequence[Heatmap]) -> int:
    """How many rows, and columns, become one, so that a page can hold these maps; 1 where it can as they are."""
    longest = max(int(max(each.values.shape)) for each in maps)
    n_cells = sum(int(each.values.size) for each in maps)
    return max(1, ceil(longest / MAX_SIDE), ceil(sqrt(n_cells / MAX_CELLS)))


def pool_heatmap(heatmap: Heatmap, block: int) -> Heatmap:
    """The value farthest from 0 of each block; a block is allowed where any of it is."""
    if block == 1:
        return heatmap
    lowest, highest = (_reduce(reduce, heatmap.values, block) for reduce in (np.minimum, np.maximum))
    return replace(
        heatmap,
        values=np.where(-lowest > highest, lowest, highest),
        allowed=_reduce(np.logical_or, heatmap.allowed, block),
        rows=join_labels(heatmap.rows, block, " … "),
        columns=join_labels(heatmap.columns, block, " … "),
        row_positions=heatmap.row_positions[::block],
        column_positions=heatmap.column_positions[::block],
        # the largest of a block's equal shares, so that no shade is stronger than that of its cells
        equal=np.maximum.reduceat(heatmap.equal_share, np.arange(0, len(heatmap.equal_share), block)),
    )


def _reduce(reduce: np.ufunc, cells: np.ndarray, block: int) -> np.ndarray:
    for axis in (0, 1):
        cells = reduce.reduceat(cells, np.arange(0, cells.shape[axis], block), axis=axis)
    return cells


def join_labels(labels: Iterable[str], block: int, between: str) -> tuple[str, ...]:
    """The first and the last of each block."""
    whole = tuple(labels)
    blocks = (whole[start : start + block] for start in range(0, len(whole), block))
    return tuple(each[0] if len(each) == 1 else f"{each[0]}{between}{each[-1]}" for each in blocks)
