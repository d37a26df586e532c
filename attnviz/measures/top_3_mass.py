"""Attention on the favourite keys. Knows records only."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64, Int

from attnviz.measures.rows import GivenRows, blocks, most_keys, real_queries, statistics
from attnviz.records import AttentionMaps, Measurement

K = 3


def top_3_mass(maps: AttentionMaps) -> Measurement:
    """Mean over queries of the sum of the three largest weights: what top-k attention with k = 3 would keep.

    A share, from 3/n (n keys alike; 1 where there are no more than three) to 1 (Gupta et al. 2021, arXiv:2106.06899).
    It says nothing of how the three share it: `peak` does.
    """
    values = np.zeros((maps.n_layers, maps.n_heads))
    for block in blocks(maps):
        for layer, head in np.ndindex(values.shape):
            of_layer, rows = statistics(maps, layer), maps.rows(layer, head, block.queries)
            largest = _top(rows, of_layer.peak_keys[head, block.places])
            values[layer, head] += (largest / of_layer.sums[head, block.places]).sum()
    values /= int(real_queries(maps).sum())
    return Measurement("top_3_mass", "share", values, (min(1.0, K / most_keys(maps)), 1.0))


def _top(rows: GivenRows, best: Int[np.ndarray, " query"]) -> Float64[np.ndarray, " query"]:
    """The largest weight, whose key is known, and the next two: a third of the time of `partition`."""
    left, every = rows.copy(), np.arange(len(rows))
    found = left[every, best].astype(np.float64)
    for _ in range(min(K, rows.shape[1]) - 1):
        left[every, best] = -1
        best = left.argmax(axis=-1)
        found += left[every, best]
    return np.asarray(found)
