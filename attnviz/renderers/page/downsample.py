"""Maps that are too large for a page, made smaller: means of blocks, as in a figure. Knows `report` only."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import ceil, sqrt

import numpy as np

from attnviz.renderers.pooling import pool_cells
from attnviz.report import Heatmap

MAX_SIDE = 1024  # rows or columns of a map on a page
MAX_CELLS = 20_000_000  # of all maps: 72 heads of 512 tokens, about 4 MB of page
POOLED_SIDE = 512  # of a map that is pooled, whose means take more bytes than single weights do
POOLED_CELLS = 2**21  # of all such maps, about 3 MB of page


def block_for(maps: Sequence[Heatmap]) -> int:
    """Choose how many rows, and columns, become one, so that a page can hold these maps; 1 where it can as they are."""
    longest = max(int(max(each.values.shape)) for each in maps)
    n_cells = sum(int(each.values.size) for each in maps)
    if longest <= MAX_SIDE and n_cells <= MAX_CELLS and maps[0].block == 1:
        return 1
    return max(1, ceil(longest / POOLED_SIDE), ceil(sqrt(n_cells / POOLED_CELLS)))


def pool_heatmap(heatmap: Heatmap, block: int) -> Heatmap:
    """Pool a map to the mean of each block, of differences the one farthest from 0; allowed where any cell is."""
    if block == 1:
        return heatmap
    signed = bool(heatmap.values.min() < 0)
    pooled = pool_cells(heatmap.values, heatmap.allowed, (block, block), signed)
    starts = np.arange(0, len(heatmap.allowed), block)
    attends = heatmap.allowed.any(axis=1)
    shares = np.add.reduceat(np.where(attends, heatmap.equal_share, 0), starts)
    n_queries = np.add.reduceat(attends.astype(np.int32), starts)
    return replace(
        heatmap,
        values=pooled.filled(0).astype(np.float32),
        allowed=~np.ma.getmaskarray(pooled),
        rows=join_labels(heatmap.rows, block, " … "),
        columns=join_labels(heatmap.columns, block, " … "),
        row_positions=heatmap.row_positions[::block],
        column_positions=heatmap.column_positions[::block],
        equal=shares / np.maximum(n_queries, 1),  # so that even attention is 1 × an equal share
    )


def join_labels(labels: Iterable[str], block: int, between: str) -> tuple[str, ...]:
    """Join the first and the last label of each block."""
    whole = tuple(labels)
    blocks = (whole[start : start + block] for start in range(0, len(whole), block))
    return tuple(each[0] if len(each) == 1 else f"{each[0]}{between}{each[-1]}" for each in blocks)
