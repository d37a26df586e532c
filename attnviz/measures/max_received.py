"""What keys receive. Knows records only."""

from __future__ import annotations

from itertools import product

import numpy as np
from jaxtyping import Float64

from attnviz.measures.rows import blocks, layer_received, unlike_layers
from attnviz.records import AttentionMaps, Measurement


def max_received(maps: AttentionMaps) -> Measurement:
    """The largest share of all attention that one key receives: max over keys of the mean over queries.

    From 1/n (all n keys receive alike) to 1 (all attention goes to one key), as in Goyal et al. 2020,
    arXiv:2001.08950, who keep the tokens that receive much. In a causal map early keys receive more even from uniform
    attention. It does not say which key it is: `received_by_key` does.
    """
    n_keys = int(receiving(maps).sum())
    return Measurement("max_received", "share", received_by_key(maps).max(axis=-1), (1 / n_keys, 1.0))


def received_by_key(maps: AttentionMaps) -> Float64[np.ndarray, "layer head key"]:
    """Mean over real queries of the weight on each key; over the keys it sums to 1. Padding receives 0."""
    return np.array([layer_received(maps, layer) for layer in range(maps.n_layers)])


def receiving(maps: AttentionMaps) -> np.ndarray:
    """Which keys any real query may attend to."""
    if any(maps.allows_all(layer) for layer in unlike_layers(maps)):
        return np.ones(len(maps.keys), dtype=bool)
    received = np.zeros(len(maps.keys), dtype=bool)
    for block, layer in product(blocks(maps), unlike_layers(maps)):
        received |= maps.allowed(layer, block.queries).any(axis=0)
    return received
