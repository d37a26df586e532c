"""Attention by how far the key lies from the query. Knows records only."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from attnviz.measures.rows import check_self_attention, real_queries, row_sums
from attnviz.records import AttentionMaps


def attention_by_distance(maps: AttentionMaps, reach: int) -> Float64[np.ndarray, "layer head offset"]:
    """The sum over real queries of the weight on the key `reach` before the query, and so on to `reach` behind it.

    Divided by the number of queries these are shares: at 0 that of attention to oneself, at -1 to the token before.
    Self-attention only. Raises InvalidOption otherwise.
    """
    check_self_attention(maps, "attention by distance")
    queries = np.flatnonzero(real_queries(maps))
    keys = queries[:, None] + np.arange(-reach, reach + 1)
    there = (keys >= 0) & (keys < len(maps.keys))
    rows, offsets = np.nonzero(there)
    of_cells = queries[rows], keys[there]
    found = np.empty((maps.n_layers, maps.n_heads, 2 * reach + 1))
    for layer, head in np.ndindex(found.shape[:2]):
        shares = maps.cells(layer, head, *of_cells) / row_sums(maps, layer)[head, rows]
        found[layer, head] = np.bincount(offsets, shares, minlength=2 * reach + 1)
    return found
