"""Maps too large to be drawn, a cell for each block of weights. Knows records, and no measure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float32, Int

from attnviz.records import AttentionMaps
from attnviz.records.walk import Queries


@dataclass(frozen=True, eq=False)
class PooledMaps:
    """Maps too large to be drawn: a cell for each block of `size` × `size` weights, the last ones smaller."""

    size: int
    mean: Float32[np.ndarray, "head row column"]  # over the cells where attention is allowed
    allowed: Bool[np.ndarray, "row column"]  # anywhere in a block


class ColumnPools:
    """The sum of weights on each key, by a stretch of queries: a row for the queries that become one row of a map, as
    tiles of their weights come by.
    """

    def __init__(self, size: int, n_queries: int, n_keys: int) -> None:
        self._size, self._ones = size, np.ones(size, dtype=np.float32)
        self._rows_of_queries = np.arange(n_queries) // size
        self._n_keys = n_keys
        self._parts: list[slice] = []  # of the stretch, one for each row of the map
        self._whole = slice(0)  # parts of as many queries as a row has; at most the first and the last are not
        self._next_key = 0
        self.rows: Int[np.ndarray, " row"] = np.zeros(0, dtype=np.int64)  # of the map
        self.total = np.zeros((0, n_keys), dtype=np.float32)

    def begin(self, queries: Queries) -> None:
        """Begin the next stretch of queries."""
        of_queries = self._rows_of_queries[queries]
        starts = np.flatnonzero(np.diff(of_queries, prepend=-1))
        self.rows, self._next_key = of_queries[starts], 0
        self._parts = [slice(*ends) for ends in zip(starts, [*starts[1:], len(of_queries)], strict=True)]
        # Parts, first to last, that each have as many queries as a row of the map.
        sizes = np.array([part.stop - part.start for part in self._parts])
        inner = slice(int(sizes[0] < self._size), len(sizes) - int(len(sizes) > 1 and sizes[-1] < self._size))
        self._whole = inner if (sizes[inner] == self._size).all() else slice(0, 0)
        if len(self.total) != len(starts):
            self.total = np.empty((len(starts), self._n_keys), dtype=np.float32)

    def add(self, keys: slice, weights: Float32[np.ndarray, "query key"]) -> None:
        """Add all weights of the stretch on some keys, in rising order of keys; keys between have no weight."""
        self.skip_to(keys.start)
        self._next_key = keys.stop
        for row, part in enumerate(self._parts):  # reducing part by part takes a tenth of the time of `reduceat`
            if not self._whole.start <= row < self._whole.stop:
                np.matmul(self._ones[: part.stop - part.start], weights[part], out=self.total[row, keys])
        if self._parts[self._whole]:
            several = slice(self._parts[self._whole][0].start, self._parts[self._whole][-1].stop)
            parts = weights[several].reshape(-1, self._size, weights.shape[1])
            np.matmul(self._ones, parts, out=self.total[self._whole, keys])

    def skip_to(self, key: int) -> None:
        """Leave out keys up to this one, or up to their number at the end: they have no weight."""
        self.total[:, self._next_key : key] = 0


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

    def create_columns(self) -> ColumnPools:
        """Create the memory that is used for one stretch of queries after the other."""
        return ColumnPools(self._size, *self._sides)

    def add(self, head: int, columns: ColumnPools) -> None:
        """Add the columns of a stretch of queries of one head."""
        columns.skip_to(self._sides[1])
        of_key = columns.total
        padded = np.zeros((len(of_key), len(self._starts) * self._size), dtype=np.float32)
        padded[:, : of_key.shape[1]] = of_key
        by_place = np.ascontiguousarray(padded.reshape(-1, self._size).T)  # summed sooner than by `reduceat`
        self._total[head, columns.rows] += by_place.sum(axis=0).reshape(len(of_key), -1)

    def finish(self) -> PooledMaps:
        """Return the pooled maps, once all columns are added."""
        self._total /= np.maximum(self._n_allowed, 1).astype(np.float32)  # in place: allocating memory takes as long
        return PooledMaps(self._size, self._total, self._n_allowed > 0)
