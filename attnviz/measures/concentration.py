"""How concentrated attention is: over the keys of a query, and over what keys receive from all queries. Beside it the
uniform attention that measures are compared with. Knows records only.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import log

import numpy as np
from jaxtyping import Float32, Float64, Int

from attnviz.measures.rows import (
    compute_entropies,
    compute_statistics,
    count_attendable,
    find_unlike_layers,
    layer_entropies,
    layer_received,
    max_attendable,
    real_queries,
    split_real_queries,
)
from attnviz.records import AttentionMaps, Facts, Measurement, holds_factors
from attnviz.records.factors import Factors

TOP_K = 3
CELLS_AT_ONCE = 2**17


def entropy(maps: AttentionMaps) -> Measurement:
    """Return the mean over queries of -Σ w ln w over the keys (Clark et al. 2019, arXiv:1906.04341).

    Nats, from 0 (all weight on one key) to ln n (n keys alike). It says how widely a head looks, not how much the
    tokens matter to the output (Jain and Wallace 2019, arXiv:1902.10186).
    """
    values = np.array([layer_entropies(maps, layer).mean(axis=-1) for layer in range(maps.n_layers)])
    return Measurement("entropy", "nats", values, (0.0, log(max_attendable(maps))))


def effective_keys(maps: AttentionMaps) -> Measurement:
    """Return the mean over queries of exp H, H the entropy of the query's weights (Hill 1973, order 1).

    Keys, from 1 (all weight on one key) to n (n keys alike); doi:10.2307/1934352. The mean is taken of exp H, not of H:
    two queries, one on 1 key and one on 9 keys alike, have 5 effective keys.
    """
    values = np.array([np.exp(layer_entropies(maps, layer)).mean(axis=-1) for layer in range(maps.n_layers)])
    return Measurement("effective_keys", "keys", values, (1.0, float(max_attendable(maps))))


def normalised_entropy(maps: AttentionMaps) -> Measurement:
    """Return the mean over queries of H / ln n, n the keys that this query may attend to (Pielou's evenness, 1966).

    A share, from 0 (all weight on one key) to 1 (all keys alike), so that short and long texts, and early and late
    queries of a causal map, can be compared (doi:10.1016/0022-5193(66)90013-0). A query that may attend to one key
    has no choice and is left out; where no query has one the value is 0. It does not say how many keys are attended
    to: half of 10 keys and of 1,000 alike give different shares.
    """
    values = np.zeros((maps.n_layers, maps.n_heads))
    for layer in range(maps.n_layers):
        n_keys = count_attendable(maps, layer)
        choice = n_keys > 1
        if choice.any():
            values[layer] = (layer_entropies(maps, layer)[:, choice] / np.log(n_keys[choice])).mean(axis=-1)
    return Measurement("normalised_entropy", "share", values, (0.0, 1.0))


def peak(maps: AttentionMaps) -> Measurement:
    """Return the mean over queries of the largest weight: the head's confidence (Voita et al. 2019, arXiv:1905.09418).

    A share, from 1/n (n keys alike) to 1 (all weight on one key). Unlike in the paper no token is left out.
    """
    values = np.array([compute_statistics(maps, layer).peaks.mean(axis=-1) for layer in range(maps.n_layers)])
    return Measurement("peak", "share", values, (1.0 / max_attendable(maps), 1.0))


def top_3_mass(maps: AttentionMaps) -> Measurement:
    """Return the mean over queries of the sum of the three largest weights: what top-k attention with k = 3 keeps.

    A share, from 3/n (n keys alike; 1 where there are no more than three) to 1 (Gupta et al. 2021, arXiv:2106.06899).
    It says nothing of how the three share it: `peak` does.
    """
    values = np.zeros((maps.n_layers, maps.n_heads))
    for layer, heads, block in product(range(maps.n_layers), maps.heads_at_once, split_real_queries(maps)):
        of_layer, rows = compute_statistics(maps, layer), maps.rows(layer, heads, block.queries)
        largest = _sum_largest(rows, of_layer.peak_keys[heads, block.places])
        values[layer, heads] += (largest / of_layer.sums[heads, block.places]).sum(axis=-1)
    values /= int(real_queries(maps).sum())
    return Measurement("top_3_mass", "share", values, (min(1.0, TOP_K / max_attendable(maps)), 1.0))


def _sum_largest(
    rows: Float32[np.ndarray, "*heads query key"], best: Int[np.ndarray, "*heads query"]
) -> Float64[np.ndarray, "*heads query"]:
    """Sum the largest weight of each row, whose key is known, and the next two, in a third of the time of `partition`.

    As many rows are copied at a time as the processor's cache holds, and each weight is taken out of the copy.
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
        for _ in range(min(TOP_K, n_keys) - 1):
            line[cells] = -1
            cells = firsts + some.argmax(axis=-1)
            sums += line[cells]
        found[start : start + step] = sums
    return np.asarray(found.reshape(best.shape))


def query_information(maps: AttentionMaps) -> Measurement:
    """Return how much a query decides where it attends: the mean Kullback-Leibler divergence of rows from their mean.

    From 0 (every query attends alike, so the head gives each the same) to ln n nats. It is the mutual information of
    query and key (Shannon 1948) where each query is as likely: the entropy of what keys receive, less that of the rows.
    In a causal map queries have other keys, so it is not 0 even of uniform attention.
    """
    received, most = compute_entropies(average_received(maps)), int(_find_attendable_keys(maps).sum())
    of_rows = np.array([layer_entropies(maps, layer).mean(axis=-1) for layer in range(maps.n_layers)])
    return Measurement("query_information", "nats", np.maximum(received - of_rows, 0.0), (0.0, log(most)))


def max_received(maps: AttentionMaps) -> Measurement:
    """Return the largest share of all attention that one key receives: max over keys of the mean over queries.

    From 1/n (all n keys receive alike) to 1 (all attention goes to one key), as in Goyal et al. 2020,
    arXiv:2001.08950, who keep the tokens that receive much. In a causal map early keys receive more even from uniform
    attention. It does not say which key it is: `average_received` does.
    """
    n_keys = int(_find_attendable_keys(maps).sum())
    return Measurement("max_received", "share", average_received(maps).max(axis=-1), (1 / n_keys, 1.0))


def average_received(maps: AttentionMaps) -> Float64[np.ndarray, "layer head key"]:
    """Return the mean over real queries of the weight on each key; over the keys it sums to 1. Padding receives 0."""
    return np.array([layer_received(maps, layer) for layer in range(maps.n_layers)])


def _find_attendable_keys(maps: AttentionMaps) -> np.ndarray:
    """Return which keys any real query may attend to."""
    if any(maps.allows_all(layer) for layer in find_unlike_layers(maps)):
        return np.ones(len(maps.keys), dtype=bool)
    received = np.zeros(len(maps.keys), dtype=bool)
    for block, layer in product(split_real_queries(maps), find_unlike_layers(maps)):
        received |= maps.read_allowed(layer, block.queries).any(axis=0)
    return received


def gini(maps: AttentionMaps) -> Measurement:
    """Return the Gini coefficient of what the keys receive from all queries (Gini 1912; Hurley and Rickard 2009).

    A share, from 0 (all keys receive alike) to (n - 1)/n (one of n keys receives all); arXiv:0811.4706. In a causal
    map early keys receive more even from uniform attention, so it is not 0 there: compare with the uniform map. It
    says nothing of single queries: each attending to itself only gives 0.
    """
    ordered = np.sort(average_received(maps)[..., _find_attendable_keys(maps)], axis=-1)
    n_keys = ordered.shape[-1]
    ranks = 2 * np.arange(1, n_keys + 1) - n_keys - 1
    values = np.maximum((ordered * ranks).sum(axis=-1) / (n_keys * ordered.sum(axis=-1)), 0.0)  # not -1e-17
    return Measurement("gini", "share", values, (0.0, (n_keys - 1) / n_keys))


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
