"""Weights by what they move: A_ij ‖v_j W_O‖ as shares of each row (Kobayashi et al. 2020, arXiv:2004.10102).

A token that gets much attention and has a short value moves little: sinks are explained instead of cut off.

Rollout is attention through all layers.
"""

from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float32, Float64

from attnviz.errors import InvalidOption
from attnviz.measures.rows import check_self_attention
from attnviz.records import AttentionMaps, holds_factors
from attnviz.records.factors import Factors

QUERIES_AT_ONCE = 1024
MIN_NORM = np.float32(1e-30)  # in place of length 0, which has no logarithm


def weigh_values(maps: AttentionMaps) -> AttentionMaps:
    """Return the record with shares of what is moved as its weights; a sink moves nothing and is left out.

    A row whose keys all move nothing stays as it is. Raises InvalidOption for a record without value norms.
    """
    if maps.value_norms is None:
        raise InvalidOption(
            f"the record of {maps.provenance.model} holds no value norms, which --weigh values needs",
            hint="Record the text again with heatmap; the model dot and modules recorded in Python have none.",
        )
    provenance = replace(maps.provenance, settings=(*maps.provenance.settings, ("weighed_by", "value norms")))
    if holds_factors(maps):
        factors = tuple(_weigh_factors(of, norms) for of, norms in zip(maps.factors, maps.value_norms, strict=True))
        return replace(maps, provenance=provenance, factors=factors, value_norms=None, weighed=True)
    moved = maps.weights * maps.value_norms[:, :, None, :]
    sums = moved.sum(axis=-1, keepdims=True)
    own = maps.weights / maps.weights.sum(axis=-1, keepdims=True)
    weights = np.divide(moved, sums, out=own, where=sums > 0)
    return replace(maps, weights=weights, provenance=provenance, sink=None, value_norms=None, weighed=True)


def _weigh_factors(of: Factors, norms: Float32[np.ndarray, "head key"]) -> Factors:
    """Add ln ‖v_j W_O‖ as one more component of each key, and the log of the new row sums to the log-sum-exp."""
    n_heads, n_queries, _ = of.query.shape
    norms = np.maximum(norms, MIN_NORM)
    ones = np.full((n_heads, n_queries, 1), 1 / of.scale, dtype=np.float32)
    keys = np.repeat(of.key, n_heads // len(of.key), axis=0)
    log_sum_exp = of.sums.copy()
    for head in range(n_heads):
        for first in range(0, n_queries, QUERIES_AT_ONCE):
            block = slice(first, first + QUERIES_AT_ONCE)
            log_sum_exp[head, block] += np.log(of.rows(head, block) @ norms[head])
    return replace(
        of,
        query=np.concatenate([of.query, ones], axis=2),
        key=np.concatenate([keys, np.log(norms)[:, :, None]], axis=2),
        log_sum_exp=log_sum_exp,
    )


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
