"""Effective number of keys. Knows records only."""

from __future__ import annotations

import numpy as np

from attnviz.measures.rows import layer_entropies, most_keys
from attnviz.records import AttentionMaps, Measurement


def effective_keys(maps: AttentionMaps) -> Measurement:
    """Mean over queries of exp H, H the entropy of the query's weights (Hill 1973, doi:10.2307/1934352, order 1).

    Keys, from 1 (all weight on one key) to n (n keys alike). The mean is taken of exp H, not of H: two queries, one
    on 1 key and one on 9 keys alike, have 5 effective keys.
    """
    values = np.array([np.exp(layer_entropies(maps, layer)).mean(axis=-1) for layer in range(maps.n_layers)])
    return Measurement("effective_keys", "keys", values, (1.0, float(most_keys(maps))))
