"""How concentrated attention is: over the keys of a query, and over what keys receive from all queries. Beside it the
uniform attention that measures are compared with. Knows records only.
"""

from dataclasses import replace
from itertools import product
from math import log

import numpy as np
from jaxtyping import Float64

from attnviz.measures import rows
from attnviz.measures.rows import compute_entropies, compute_statistics, max_attendable
from attnviz.records import AttentionMaps, Facts, Measurement, holds_factors
from attnviz.records.factors import Factors


def entropy(maps: AttentionMaps) -> Measurement:
    """Return the mean over queries of -Σ w ln w over the keys (Clark et al. 2019, arXiv:1906.04341).

    Nats, from 0 (all weight on one key) to ln n (n keys alike). It says how widely a head looks, not how much the
    tokens matter to the output (Jain and Wallace 2019, arXiv:1902.10186).
    """
    values = np.array([compute_statistics(maps, layer).entropies.mean(axis=-1) for layer in range(maps.n_layers)])
    return Measurement("entropy", "nats", values, (0.0, log(max_attendable(maps))))


def effective_keys(maps: AttentionMaps) -> Measurement:
    """Return the mean over queries of exp H, H the entropy of the query's weights (Hill 1973, order 1).

    Keys, from 1 (all weight on one key) to n (n keys alike); doi:10.2307/1934352. The mean is taken of exp H, not of H:
    two queries, one on 1 key and one on 9 keys alike, have 5 effective keys.
    """
    values = np.array(
        [np.exp(compute_statistics(maps, layer).entropies).mean(axis=-1) for layer in range(maps.n_layers)]
    )
    return Measurement("effective_keys", "keys", values, (1.0, float(max_attendable(maps))))


def peak(maps: AttentionMaps) -> Measurement:
    """Return the mean over queries of the largest weight: the head's confidence (Voita et al. 2019, arXiv:1905.09418).

    A share, from 1/n (n keys alike) to 1 (all weight on one key). Unlike in the paper no token is left out.
    """
    values = np.array([compute_statistics(maps, layer).peaks.mean(axis=-1) for layer in range(maps.n_layers)])
    return Measurement("peak", "share", values, (1.0 / max_attendable(maps), 1.0))


def query_information(maps: AttentionMaps) -> Measurement:
    """Return how much a query decides where it attends: the mean Kullback-Leibler divergence of rows from their mean.

    From 0 (every query attends alike, so the head gives each the same) to ln n nats. It is the mutual information of
    query and key (Shannon 1948) where each query is as likely: the entropy of what keys receive, less that of the rows.
    In a causal map queries have other keys, so it is not 0 even of uniform attention.
    """
    blocks = product(rows.find_unlike_layers(maps), rows.split_real_queries(maps))
    allowed = [maps.read_allowed(layer, block.queries).any(axis=0) for layer, block in blocks]
    received, most = compute_entropies(average_received(maps)), int(np.any(allowed, axis=0).sum())
    of_rows = np.array([compute_statistics(maps, layer).entropies.mean(axis=-1) for layer in range(maps.n_layers)])
    return Measurement("query_information", "nats", np.maximum(received - of_rows, 0.0), (0.0, log(most)))


def average_received(maps: AttentionMaps) -> Float64[np.ndarray, "layer head key"]:
    """Return the mean over real queries of the weight on each key; over the keys it sums to 1. Padding receives 0."""
    return np.array([compute_statistics(maps, layer).received for layer in range(maps.n_layers)])


def make_uniform(maps: AttentionMaps) -> AttentionMaps:
    """Return a record of the same tokens in which every query attends equally to all keys that it may attend to.

    It has one head, and one layer, or as many layers as there are where these allow different attention.
    """
    provenance = replace(
        maps.provenance, model="uniform", revision="no weights", trained=False, settings=(), facts=Facts()
    )
    maps = maps.heads_alone
    if holds_factors(maps):  # there may be too many weights to hold
        of = maps.factors[0]
        query, key = (np.zeros((1, each.shape[1], 1), dtype=np.float32) for each in (of.query, of.key))
        alike = Factors(query, key, None, 1.0, None, of.window, of.attendable_keys)
        maps = replace(maps, factors=(alike,), layer_numbers=(), head_numbers=(), value_norms=None)
        return replace(maps, provenance=provenance)
    attendable = maps.attendable[:1] if maps.layers_alike else maps.attendable
    shares = (1 / attendable.sum(axis=-1, keepdims=True)).astype(np.float32)
    return AttentionMaps(
        weights=(attendable * shares)[:, None],
        queries=maps.queries,
        keys=maps.keys,
        attendable=attendable,
        provenance=provenance,
    )
