"""Attention on the favourite keys. Knows records only."""

from __future__ import annotations

from itertools import product

import numpy as np
from jaxtyping import Float32, Float64, Int

from attnviz.measures.rows import blocks, most_keys, real_queries, statistics
from attnviz.records import AttentionMaps, Measurement

K = 3
CELLS_AT_ONCE = 2**17


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
    """The largest weight, whose key is known, and the next two: a third of the time of `partition`.

    Of as many rows at a time as the processor's cache holds, in a copy from which each is taken when it is found.
    """
    n_keys = rows.shape[-1]
    flat, largest = rows.reshape(-1, n_keys), best.ravel()
    found, step = np.empty(len(flat)), max(1, CELLS_AT_ONCE // n_keys)
    left = np.empty((min(step, len(flat)), n_keys), dtype=np.float32)
    line, starts = left.reshape(-1), np.arange(len(left)) * n_keys
    for start in range(0, len(flat), step):
        of_rows = flat[start : start + step]
        some, firsts = left[: len(of_rows)], starts[: len(of_rows)]
        some[:] = of_rows
        cells = firsts + largest[start : start + step]
        sums = line[cells].astype(np.float64)
        for _ in range(min(K, n_keys) - 1):
            line[cells] = -1
            cells = firsts + some.argmax(axis=-1)
            sums += line[cells]
        found[start : start + step] = sums
    return np.asarray(found.reshape(best.shape))
