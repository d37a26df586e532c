"""Attention on the favourite keys. Knows records only."""

from __future__ import annotations

import numpy as np

from attnviz.measures.rows import most_keys, per_head
from attnviz.records import AttentionMaps, Measurement

K = 3


def top_3_mass(maps: AttentionMaps) -> Measurement:
    """Mean over queries of the sum of the three largest weights: what top-k attention with k = 3 would keep.

    A share, from 3/n (n keys alike; 1 where there are no more than three) to 1 (Gupta et al. 2021, arXiv:2106.06899).
    It says nothing of how the three share it: `peak` does.
    """
    k = min(K, len(maps.keys))
    values = per_head(maps, lambda rows: np.partition(rows, -k)[:, -k:].sum(axis=-1, dtype=np.float64))
    return Measurement("top_3_mass", "share", values, (min(1.0, K / most_keys(maps)), 1.0))
