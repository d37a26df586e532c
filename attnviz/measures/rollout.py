"""Attention through all layers. Knows records only."""

import numpy as np
from jaxtyping import Bool, Float64

from attnviz.errors import InvalidOption
from attnviz.measures.rows import check_self_attention
from attnviz.records import AttentionMaps


def rollout(maps: AttentionMaps) -> Float64[np.ndarray, "query key"]:
    """Return attention rollout: Π over layers of A/2 + I/2, A the mean of a layer's heads (Abnar and Zuidema 2020).

    Shares: row q says what the last layer's query q draws from each token of the input, as if each layer added what
    it attends to, half and half, to what is there (the residual connection); arXiv:2005.00928. Values, norms and
    feed-forward layers are left out. Rows sum to 1. Self-attention only. Raises InvalidOption otherwise, and for a
    record of some heads or of a window only.
    """
    check_self_attention(maps, "rollout")
    if maps.unseen_heads:
        raise InvalidOption("rollout needs all heads, and the record has only some", hint="Record all heads.")
    if (window := maps.provenance.facts.window) is not None:
        problem = f"rollout needs attention over a whole text, and this is window {window + 1}"
        raise InvalidOption(problem, hint="In another layer a window may hold other tokens.")
    stay = np.eye(len(maps.queries))
    rolled = stay
    for layer in maps.weights:
        mixed = (layer.mean(axis=0, dtype=np.float64) + stay) / 2
        rolled = (mixed / mixed.sum(axis=-1, keepdims=True)) @ rolled
    return rolled


def find_reachable(maps: AttentionMaps) -> Bool[np.ndarray, "query token"]:
    """Return from which tokens of the input anything can come to a query through all layers: where rollout may lie."""
    stay = np.eye(len(maps.queries), dtype=bool)
    found = stay
    for of_layer in maps.attendable:
        wider = (of_layer | stay).astype(np.float32) @ found.astype(np.float32) > 0
        if maps.layers_alike and np.array_equal(wider, found):
            break
        found = wider
    return np.asarray(found & maps.real_queries)
