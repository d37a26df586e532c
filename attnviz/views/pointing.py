"""What a page of an image needs to follow who points at a place of it. Knows records and `report`."""

from collections.abc import Sequence
from itertools import count

import numpy as np
from jaxtyping import Float

from attnviz.records import AttentionMaps
from attnviz.records.grid import Grid
from attnviz.records.head_names import write_share
from attnviz.report import Pointing
from attnviz.views.head_pictures import Place, name_place
from attnviz.views.tokens import label_token

MAX_CELLS = 2**21  # of all heads: 72 of 168 parts, about half a megabyte of a page
MIN_BESIDE, N_BESIDE = 0.005, 3  # share from which on a token beside the patches is named, and how many are


def follow_places(maps: AttentionMaps, places: Sequence[Place]) -> Pointing:
    """Work out what heads give each part of an image, seen from each part: of a record that attends to itself.

    Parts are single patches where all heads have room for that, else blocks of them.
    """
    grid, n_queries = maps.grid, len(maps.queries)
    assert grid is not None
    at = np.array(grid.find_places(n_queries))
    others = np.setdiff1d(np.arange(n_queries), at)
    sizes = ((block, -(-grid.n_rows // block) * -(-grid.n_columns // block)) for block in count(1))
    block = next(block for block, n_parts in sizes if len(places) * n_parts**2 <= MAX_CELLS)
    n_patches = _sum_parts(np.ones((grid.n_patches, 1)), grid, block)  # of each part
    looks, equal, beside = {}, {}, np.zeros((len(n_patches), len(others)))
    for place in places:
        name, _ = name_place(maps, place)
        rows = maps.rows(*place, slice(0, n_queries))[at]
        given = _sum_parts(rows[:, at], grid, block) / n_patches
        looks[name] = _sum_parts(given.T, grid, block).T.astype(np.float32)
        n_allowed = _sum_parts(
            maps.read_allowed(place[0], slice(0, n_queries))[at].sum(axis=1, dtype=float)[:, None], grid, block
        )
        equal[name] = (block**2 / np.maximum(n_allowed / n_patches, 1)).ravel().astype(np.float32)
        beside += _sum_parts(rows[:, others], grid, block) / n_patches / len(places)
    names = [label_token(maps.keys, int(other)) for other in others]
    return Pointing(block, looks, equal, tuple(_name_beside(shares, names) for shares in beside))


def _sum_parts(of_patches: Float[np.ndarray, "patch n"], grid: Grid, block: int) -> Float[np.ndarray, "part n"]:
    """Sum what there is of each patch over parts of `block` × `block` patches."""
    cells = of_patches.reshape(grid.n_rows, grid.n_columns, -1)
    for axis, length in enumerate((grid.n_rows, grid.n_columns)):
        cells = np.add.reduceat(cells, np.arange(0, length, block), axis=axis)
    return cells.reshape(cells.shape[0] * cells.shape[1], -1)


def _name_beside(shares: Float[np.ndarray, " token"], names: Sequence[str]) -> str:
    strongest = [n for n in np.argsort(-shares)[:N_BESIDE] if shares[n] >= MIN_BESIDE]
    return ", ".join(f"{names[n]} {write_share(float(shares[n]))}" for n in strongest)
