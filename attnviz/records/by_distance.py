"""What depends on nothing but the distance from a query to a key, in the memory of one row. Knows numpy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Int, Shaped


@dataclass(frozen=True, eq=False)
class ByDistance:
    """One number for each distance, from the last query to the first key up to the first query to the last key."""

    line: Shaped[np.ndarray, " distance"]  # as many as queries and keys, less 1
    n_queries: int

    @property
    def matrix(self) -> Shaped[np.ndarray, "query key"]:
        """Of each pair, in the memory of the line: each row is the one before it, one place further on."""
        n_keys = len(self.line) - self.n_queries + 1
        return np.lib.stride_tricks.sliding_window_view(self.line, n_keys)[::-1]

    def of(self, queries: Int[np.ndarray, "*#cell"], keys: Int[np.ndarray, "*#cell"]) -> Shaped[np.ndarray, "*#cell"]:
        """Of some pairs, or of all of some queries and keys where the queries are a column."""
        return np.asarray(self.line[keys - queries + self.n_queries - 1])

    def alike(self, queries: slice | Int[np.ndarray, " query"], keys: slice) -> float | None:
        """The one that all these pairs have; None where there are several, or may be."""
        low, high = self._extent(queries)
        first, last = (int(each) + self.n_queries - 1 for each in (keys.start - high, keys.stop - 1 - low))
        begin, end = self._ends
        if last < begin:
            return float(self.line[0])
        return float(self.line[-1]) if first >= end else None

    def around(self, queries: slice | Int[np.ndarray, " query"], keys: slice) -> slice:
        """Of these keys, counted from the first of them, those that may be at distances whose numbers differ: before
        them all pairs have the first number of the line, behind them the last.
        """
        low, high = self._extent(queries)
        begin, end = self._ends
        first, stop = begin + low - self.n_queries + 1 - keys.start, end + high - self.n_queries + 1 - keys.start
        n_keys = keys.stop - keys.start
        return slice(min(max(first, 0), n_keys), min(max(stop, 0), n_keys))

    def _extent(self, queries: slice | Int[np.ndarray, " query"]) -> tuple[int, int]:
        """The first and the last of them."""
        if isinstance(queries, slice):
            several = range(self.n_queries)[queries]
            return several[0], several[-1]
        return int(queries.min()), int(queries.max())

    @cached_property
    def _ends(self) -> tuple[int, int]:
        """Up to where the line is as at its beginning, and from where it is as at its end."""
        begins, ends = self.line != self.line[0], self.line != self.line[-1]
        n = len(self.line)
        return int(begins.argmax()) if begins.any() else n, n - int(ends[::-1].argmax()) if ends.any() else 0
