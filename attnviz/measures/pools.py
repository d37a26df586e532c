"""Maps too large to be drawn, a cell for each block of weights. Knows records, and no measure."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float32

from attnviz.records import AttentionMaps
from attnviz.records.walk import Queries


@dataclass(frozen=True, eq=False)
class PooledMaps:
    """Maps too large to be drawn: a cell for each block of `size` × `size` weights, the last ones smaller."""

    size: int
    mean: Float32[np.ndarray, "head row column"]  # over the cells where attention is allowed
    allowed: Bool[np.ndarray, "row column"]  # anywhere in a block


class Pools:
    """Blocks of a layer's maps, filled row by row."""

    def __init__(self, maps: AttentionMaps, layer: int, size: int) -> None:
        self._size, self._sides = size, (len(maps.queries), len(maps.keys))
        self._starts = np.arange(0, len(maps.keys), size)
        shape = -(-len(maps.queries) // size), len(self._starts)
        self._total = np.zeros((maps.n_heads, *shape), dtype=np.float32)
        self._n_allowed = np.zeros(shape, dtype=np.int64)
        if maps.allows_all(layer):
            self._n_allowed[:] = np.outer(*(np.diff([*range(0, side, size), side]) for side in self._sides))
            return
        for start in range(0, len(maps.queries), size):
            allowed = maps.read_allowed(layer, slice(start, start + size))
            of_key = len(allowed) if allowed.all() else allowed.sum(axis=0)  # all() takes a tenth of the time
            self._n_allowed[start // size] = np.add.reduceat(np.broadcast_to(of_key, len(maps.keys)), self._starts)

    def add(self, head: int, queries: Queries, keys: slice, weights: Float32[np.ndarray, "query key"]) -> None:
        """Add the weights of a stretch of queries of one head on some keys; the others get nothing."""
        rows = np.arange(self._sides[0])[queries] // self._size
        starts = np.flatnonzero(np.diff(rows, prepend=-1))
        padded = np.zeros((len(rows), len(self._starts) * self._size), dtype=np.float32)
        padded[:, keys] = weights
        by_block = padded.reshape(len(rows), -1, self._size) @ np.ones(self._size, dtype=np.float32)
        self._total[head, rows[starts]] += np.add.reduceat(by_block, starts)

    def finish(self) -> PooledMaps:
        """Return the pooled maps, once all weights are added."""
        self._total /= np.maximum(self._n_allowed, 1).astype(np.float32)  # in place: allocating memory takes as long
        return PooledMaps(self._size, self._total, self._n_allowed > 0)
