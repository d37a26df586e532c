"""Entropy of attention. Knows records only."""

from __future__ import annotations

from math import log

import numpy as np

from attnviz.measures.rows import layer_entropies, most_keys
from attnviz.records import AttentionMaps, Measurement


def entropy(maps: AttentionMaps) -> Measurement:
    """Mean over queries of -Σ w ln w over the keys (Clark et al. 2019, arXiv:1906.04341).

    Nats, from 0 (all weight on one key) to ln n (n keys alike). It says how widely a head looks, not how much the
    tokens matter to the output (Jain and Wallace 2019, arXiv:1902.10186).
    """
    values = np.array([layer_entropies(maps, layer).mean(axis=-1) for layer in range(maps.n_layers)])
    return Measurement("entropy", "nats", values, (0.0, log(most_keys(maps))))
