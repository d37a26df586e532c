"""Attention on the favourite keys. Knows records only."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from attnviz.measures.rows import GivenRows, most_keys, per_head
from attnviz.records import AttentionMaps, Measurement

K = 3


def top_3_mass(maps: AttentionMaps) -> Measurement:
    """Mean over queries of the sum of the three largest weights: what top-k attention with k = 3 would keep.

    A share, from 3/n (n keys alike; 1 where there are no more than three) to 1 (Gupta et al. 2021, arXiv:2106.06899).
    It says nothing of how the three share it: `peak` does.
    """
    values = per_head(maps, _top)
    return Measurement("top_3_mass", "share", values, (min(1.0, K / most_keys(maps)), 1.0))


def _top(rows: GivenRows) -> Float64[np.ndarray, " query"]:
    """The largest weight, three times: a third of the time of `partition`."""
    left, every = rows.copy(), np.arange(len(rows))
    found = np.zeros(len(rows))
    for _ in range(min(K, rows.shape[1])):
        best = left.argmax(axis=-1)
        found += left[every, best]
        left[every, best] = -1
    return found
