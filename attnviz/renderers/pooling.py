"""One number for each block of cells, where a map has more of them than a picture or a page. Knows numpy only."""

from typing import Literal

import numpy as np

from attnviz.shapes import Cells, Shown

Statistic = Literal["largest", "mean"]  # of a block of weights, or of differences: the largest up or down


def pool_cells(
    values: Cells, allowed: Shown, pools: tuple[int, int], statistic: Statistic = "largest", signed: bool = False
) -> np.ma.MaskedArray:
    """One number for each block of cells, from those that are allowed; masked where none is.

    Of `signed` numbers, which are differences, the largest is the one that is farthest from 0.
    """
    if pools == (1, 1):
        return np.ma.masked_array(values, ~allowed)
    everywhere = bool(allowed.all())
    n_allowed = blocks_of(np.add, allowed.astype(np.int32), pools)
    if statistic == "mean":
        totals = blocks_of(np.add, values if everywhere else np.where(allowed, values, 0.0), pools)
        return np.ma.masked_array(totals / np.maximum(n_allowed, 1), n_allowed == 0)
    highest = blocks_of(np.maximum, values if everywhere else np.where(allowed, values, -np.inf), pools)
    if signed:
        lowest = blocks_of(np.minimum, values if everywhere else np.where(allowed, values, np.inf), pools)
        highest = np.where(-lowest > highest, lowest, highest)
    return np.ma.masked_array(highest, n_allowed == 0)


def blocks_of(reduce: np.ufunc, values: np.ndarray, pools: tuple[int, int]) -> np.ndarray:
    """One of each block of cells, the last of which may be smaller: what `reduceat` gives, bit by bit, sooner."""
    for axis, pool in enumerate(pools):
        if pool == 1:
            continue
        n_whole = values.shape[axis] // pool
        whole, rest = np.split(values, [n_whole * pool], axis=axis)
        shape = (*values.shape[:axis], n_whole, pool, *values.shape[axis + 1 :])
        first, others = np.split(whole.reshape(shape), [1], axis=axis + 1)
        found = [reduce(first.squeeze(axis + 1), reduce.reduce(others, axis=axis + 1))]
        if rest.shape[axis]:
            found.append(reduce.reduce(rest, axis=axis, keepdims=True))
        values = np.concatenate(found, axis=axis)
    return values
