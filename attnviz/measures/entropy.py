"""Entropy of attention. Knows records only."""

from __future__ import annotations

from math import log

from attnviz.measures.rows import entropies, most_keys, per_head
from attnviz.record import AttentionMaps, Measurement


def entropy(maps: AttentionMaps) -> Measurement:
    """Mean over queries of -Σ w ln w over the keys (Clark et al. 2019, arXiv:1906.04341).

    Nats, from 0 (all weight on one key) to ln n (n keys alike). It says how widely a head looks, not how much the
    tokens matter to the output (Jain and Wallace 2019, arXiv:1902.10186).
    """
    values = per_head(maps, lambda rows: float(entropies(rows).mean()))
    return Measurement("entropy", "nats", values, (0.0, log(most_keys(maps))))
