"""How far away attention goes: on average, and band by band. Knows records only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int

from attnviz.measures.rows import (
    cache_on_record,
    check_self_attention,
    compute_statistics,
    max_attendable_distance,
    real_queries,
)
from attnviz.records import AttentionMaps, Measurement
from attnviz.records.walk import MIN_ROWS

MAX_QUERIES = 512  # rows that are read: quartiles over more are hardly better


def distance(maps: AttentionMaps) -> Measurement:
    """Return the mean over queries of Σ w |query position - key position| (Vig and Belinkov 2019, arXiv:1906.04284).

    Tokens, from 0 (each token attends to itself) to the largest distance that may be attended to. Self-attention
    only: positions in two texts have no distance. Raises InvalidOption otherwise.
    """
    check_self_attention(maps, "distance")
    values = np.array([compute_statistics(maps, layer).distances.mean(axis=-1) for layer in range(maps.n_layers)])
    farthest = float(max_attendable_distance(maps))
    return Measurement("distance", "tokens", values, (0.0, farthest))


@dataclass(frozen=True, eq=False)
class DistanceBands:
    """Shares of attention by distance, in bands that double: 0 tokens, 1, 2 to 3, 4 to 7, and so on."""

    starts: Int[np.ndarray, " band"]  # tokens: the smallest distance of each
    shares: Float64[np.ndarray, "head query band"]  # of each query's attention; they sum to 1
    equal: Float64[np.ndarray, "query band"]  # the same of uniform attention to all keys that are allowed
    n_real: int  # how many real queries there are


@cache_on_record
def measure_distance_bands(maps: AttentionMaps, layer: int) -> DistanceBands:
    """Measure the bands of a layer's real queries, of more than MAX_QUERIES at as many that are evenly spaced.

    `layer` is a place in the record. Self-attention only. Raises InvalidOption otherwise.
    """
    check_self_attention(maps, "attention by distance")
    real = np.flatnonzero(real_queries(maps))
    queries = real[np.unique(np.linspace(0, len(real) - 1, MAX_QUERIES).round().astype(int))]
    starts = np.array([0, *(2**power for power in range((len(maps.keys) - 1).bit_length()))])
    shares = np.empty((maps.n_heads, len(queries), len(starts)))
    equal = np.empty(shares.shape[1:])
    for start in range(0, len(queries), MIN_ROWS):
        some = queries[start : start + MIN_ROWS]
        places = slice(start, start + len(some))
        for head in range(maps.n_heads):
            shares[head, places] = _sum_bands(maps.rows(layer, head, some), some, starts)
        equal[places] = _sum_bands(maps.read_allowed(layer, some), some, starts)
    return DistanceBands(starts, shares, equal, len(real))


def _sum_bands(
    rows: np.ndarray, queries: Int[np.ndarray, " query"], starts: Int[np.ndarray, " band"]
) -> Float64[np.ndarray, "query band"]:
    """Sum each row in each band of distances, before and after the query, and divide by the sum of the row."""
    before = np.concatenate([np.zeros((len(rows), 1)), np.cumsum(rows, axis=1, dtype=np.float64)], axis=1)
    n_keys = rows.shape[1]
    at = np.arange(len(rows))[:, None]
    near, far = starts, np.append(starts[1:], n_keys)  # a band holds distances from `near` up to `far`, without it
    behind = [np.clip(queries[:, None] + edge, 0, n_keys) for edge in (near, far)]
    ahead = [np.clip(queries[:, None] - edge + 1, 0, n_keys) for edge in (np.maximum(far, 1), np.maximum(near, 1))]
    found = before[at, behind[1]] - before[at, behind[0]] + before[at, ahead[1]] - before[at, ahead[0]]
    return np.asarray(found / before[:, -1:])
