"""The rows that count, one head at a time: what every measure walks over. Knows records, and no measure."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float64

from attnviz.record import AttentionMaps
from attnviz.shapes import PerHead

Rows = Float64[np.ndarray, "query key"]


def per_head(maps: AttentionMaps, number: Callable[[Rows], float]) -> PerHead:
    """`number` of each head's real queries; their rows sum to exactly 1, which a record promises only nearly."""
    real = maps.real_queries
    values = np.empty((maps.n_layers, maps.n_heads))
    for layer, head in np.ndindex(values.shape):
        rows = maps.weights[layer, head][real].astype(np.float64)
        rows /= rows.sum(axis=-1, keepdims=True)
        values[layer, head] = number(rows)
    return values


def entropies(rows: Rows) -> Float64[np.ndarray, " query"]:
    """-Σ w ln w of each row, in nats, where 0 ln 0 = 0."""
    logs = np.log(rows, out=np.zeros_like(rows), where=rows > 0)
    spread: Float64[np.ndarray, " query"] = -(rows * logs).sum(axis=-1)
    return spread


def most_keys(maps: AttentionMaps) -> int:
    """The largest number of keys that any real query may attend to."""
    return int(maps.attendable[maps.real_queries].sum(axis=-1).max())
