"""Which rows of an array are distinct, so that repeated ones are stored once. Knows numpy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Int, Num

MAX_DISTINCT_SHARE = 0.9  # with a larger share of distinct rows, an index saves nothing


class DistinctRows(NamedTuple):
    """The distinct rows of an array, in the order in which they first occur."""

    first: Int[np.ndarray, " distinct"]  # the index of the row where each first occurs
    places: Int[np.ndarray, " row"]  # which of the distinct rows each row is


def find_distinct_rows(rows: Num[np.ndarray, "row number"]) -> DistinctRows | None:
    """Find the rows that differ in a bit; return None where too few rows are repeated for an index to save memory."""
    contiguous = np.ascontiguousarray(rows)
    as_bytes = contiguous.view(np.dtype((np.void, contiguous.itemsize * contiguous.shape[1]))).ravel()
    _, first, places = np.unique(as_bytes, return_index=True, return_inverse=True)
    if len(first) > MAX_DISTINCT_SHARE * len(contiguous):
        return None
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))  # so that arrays that repeat in the same places share one index
    return DistinctRows(first[order], rank[places])
