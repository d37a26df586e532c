"""Entropy of attention against its largest possible. Knows records only."""

from __future__ import annotations

import numpy as np

from attnviz.measures.rows import layer_entropies, n_attendable
from attnviz.records import AttentionMaps, Measurement


def normalised_entropy(maps: AttentionMaps) -> Measurement:
    """Mean over queries of H / ln n, n the keys that this query may attend to (Pielou's evenness, 1966).

    A share, from 0 (all weight on one key) to 1 (all keys alike), so that short and long texts, and early and late
    queries of a causal map, can be compared (doi:10.1016/0022-5193(66)90013-0). A query that may attend to one key
    has no choice and is left out; where no query has one the value is 0. It does not say how many keys are attended
    to: half of 10 keys and of 1,000 alike give different shares.
    """
    values = np.zeros((maps.n_layers, maps.n_heads))
    for layer in range(maps.n_layers):
        n_keys = n_attendable(maps, layer)
        choice = n_keys > 1
        if choice.any():
            values[layer] = (layer_entropies(maps, layer)[:, choice] / np.log(n_keys[choice])).mean(axis=-1)
    return Measurement("normalised_entropy", "share", values, (0.0, 1.0))
