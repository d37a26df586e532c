"""Weights by what they move: A_ij ‖v_j W_O‖ as shares of each row (Kobayashi et al. 2020, arXiv:2004.10102).

A token that gets much attention and has a short value moves little: sinks are explained instead of cut off.
"""

from dataclasses import replace

import numpy as np
from jaxtyping import Float32

from attnviz.errors import InvalidOption
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
    settings = (*maps.provenance.settings, ("weighed_by", "value norms"))
    provenance = replace(maps.provenance, settings=settings)
    if holds_factors(maps):
        pairs = zip(maps.factors, maps.value_norms, strict=True)
        factors = tuple(_weigh_factors(of, norms) for of, norms in pairs)
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
