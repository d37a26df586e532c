"""How unequally keys receive attention. Knows records only."""

from __future__ import annotations

import numpy as np

from attnviz.measures.max_received import received_by_key, receiving
from attnviz.records import AttentionMaps, Measurement


def gini(maps: AttentionMaps) -> Measurement:
    """Gini coefficient of what the keys receive from all queries (Gini 1912; Hurley and Rickard 2009).

    A share, from 0 (all keys receive alike) to (n - 1)/n (one of n keys receives all); arXiv:0811.4706. In a causal
    map early keys receive more even from uniform attention, so it is not 0 there: compare with the uniform map. It
    says nothing of single queries: each attending to itself only gives 0.
    """
    ordered = np.sort(received_by_key(maps)[..., receiving(maps)], axis=-1)
    n_keys = ordered.shape[-1]
    ranks = 2 * np.arange(1, n_keys + 1) - n_keys - 1
    values = np.maximum((ordered * ranks).sum(axis=-1) / (n_keys * ordered.sum(axis=-1)), 0.0)  # not -1e-17
    return Measurement("gini", "share", values, (0.0, (n_keys - 1) / n_keys))
