"""One number for each block of cells, where a map has more of them than a picture or a page. Knows numpy only."""

import numpy as np

from attnviz.shapes import Cells, Shown


def pool_cells(values: Cells, allowed: Shown, pools: tuple[int, int], signed: bool = False) -> np.ma.MaskedArray:
    """Return one number for each block of cells, from those that are allowed; masked where none is.

    It is their mean: nearly all maxima of blocks are large, so that most of the map of a long text would be dark that
    is pale. `signed` numbers, which are differences, cancel out in a mean: of them it is the one farthest from 0.
    """
    if pools == (1, 1):
        return np.ma.masked_array(values, ~allowed)
    n_allowed = blocks_of(np.add, allowed.astype(np.int32), pools)
    counted = values if allowed.all() else np.where(allowed, values, 0.0)
    if signed:
        lowest, highest = (blocks_of(pick, counted, pools) for pick in (np.minimum, np.maximum))
        pooled = np.where(-lowest > highest, lowest, highest)
    else:
        pooled = blocks_of(np.add, counted, pools) / np.maximum(n_allowed, 1)
    return np.ma.masked_array(pooled, n_allowed == 0)


def blocks_of(reduce: np.ufunc, values: np.ndarray, pools: tuple[int, int]) -> np.ndarray:
    """Reduce each block of cells, the last of which may be smaller, to one: as `reduceat`, bit by bit, but faster."""
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
