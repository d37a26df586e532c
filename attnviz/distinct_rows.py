"""Rows that come again, held once. Knows numpy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Int, Num

MAX_DISTINCT_SHARE = 0.9  # of the rows are unlike, or fewer


class DistinctRows(NamedTuple):
    """Rows that are unlike, in the order of their first places."""

    first: Int[np.ndarray, " unlike"]  # where each is found first
    places: Int[np.ndarray, " row"]  # which of them each row is


def find_distinct_rows(rows: Num[np.ndarray, "row number"]) -> DistinctRows | None:
    """Rows are alike where all their bits are; None where too few are for an index to pay."""
    whole = np.ascontiguousarray(rows)
    as_bytes = whole.view(np.dtype((np.void, whole.itemsize * whole.shape[1]))).ravel()
    _, first, places = np.unique(as_bytes, return_index=True, return_inverse=True)
    if len(first) > MAX_DISTINCT_SHARE * len(whole):
        return None
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))  # so that whatever repeats alike has one index
    return DistinctRows(first[order], rank[places])
