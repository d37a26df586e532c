"""Entropy of attention against its largest possible. Knows records only."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from attnviz.measures.rows import n_attendable, per_entropy
from attnviz.record import AttentionMaps, Measurement


def normalised_entropy(maps: AttentionMaps) -> Measurement:
    """Mean over queries of H / ln n, n the keys that this query may attend to (Pielou's evenness, 1966).

    A share, from 0 (all weight on one key) to 1 (all keys alike), so that short and long texts, and early and late
    queries of a causal map, can be compared (doi:10.1016/0022-5193(66)90013-0). A query that may attend to one key
    has no choice and is left out; where no query has one the value is 0. It does not say how many keys are attended
    to: half of 10 keys and of 1,000 alike give different shares.
    """
    n_keys = n_attendable(maps)
    choice = n_keys > 1
    most = np.log(n_keys[choice])

    def number(spread: Float64[np.ndarray, " query"]) -> float:
        return float((spread[choice] / most).mean()) if choice.any() else 0.0

    return Measurement("normalised_entropy", "share", per_entropy(maps, number), (0.0, 1.0))
