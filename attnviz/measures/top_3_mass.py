"""Attention on the favourite keys. Knows records only."""

from __future__ import annotations

from itertools import product

import numpy as np
from jaxtyping import Float32, Float64, Int

from attnviz.measures.rows import blocks, most_keys, real_queries, statistics
from attnviz.records import AttentionMaps, Measurement

K = 3


def top_3_mass(maps: AttentionMaps) -> Measurement:
    """Mean over queries of the sum of the three largest weights: what top-k attention with k = 3 would keep.

    A share, from 3/n (n keys alike; 1 where there are no more than three) to 1 (Gupta et al. 2021, arXiv:2106.06899).
    It says nothing of how the three share it: `peak` does.
    """
    values = np.zeros((maps.n_layers, maps.n_heads))
    for layer, heads, block in product(range(maps.n_layers), maps.heads_at_once, blocks(maps)):
        of_layer, rows = statistics(maps, layer), maps.rows(layer, heads, block.queries)
        largest = _top(rows, of_layer.peak_keys[heads, block.places])
        values[layer, heads] += (largest / of_layer.sums[heads, block.places]).sum(axis=-1)
    values /= int(real_queries(maps).sum())
    return Measurement("top_3_mass", "share", values, (min(1.0, K / most_keys(maps)), 1.0))


def _top(
    rows: Float32[np.ndarray, "*heads query key"], best: Int[np.ndarray, "*heads query"]
) -> Float64[np.ndarray, "*heads query"]:
    """The largest weight, whose key is known, and the next two: a third of the time of `partition`."""
    left, keys = rows.reshape(-1, rows.shape[-1]).copy(), best.ravel()
    every = np.arange(len(left))
    found = left[every, keys].astype(np.float64)
    for _ in range(min(K, rows.shape[-1]) - 1):
        left[every, keys] = -1
        keys = left.argmax(axis=-1)
        found += left[every, keys]
    return np.asarray(found.reshape(best.shape))
