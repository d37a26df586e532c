"""Peak of attention. Knows records only."""

from __future__ import annotations

import numpy as np

from attnviz.measures.rows import most_keys, statistics
from attnviz.records import AttentionMaps, Measurement


def peak(maps: AttentionMaps) -> Measurement:
    """Mean over queries of the largest weight: the head's confidence (Voita et al. 2019, arXiv:1905.09418).

    A share, from 1/n (n keys alike) to 1 (all weight on one key). Unlike in the paper no token is left out.
    """
    values = np.array([statistics(maps, layer).peaks.mean(axis=-1) for layer in range(maps.n_layers)])
    return Measurement("peak", "share", values, (1.0 / most_keys(maps), 1.0))
