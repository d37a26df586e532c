"""Attention to the token after. Knows records only."""

from __future__ import annotations

from attnviz.measures.rows import check_self_attention, share_at
from attnviz.records import AttentionMaps, Measurement


def to_next(maps: AttentionMaps) -> Measurement:
    """Mean over queries of the weight on the position after the query's (Clark et al. 2019, arXiv:1906.04341).

    A share, from 0 to (n - 1)/n, n the tokens: the last has none after it and counts as 0. In a causal map it is 0.
    Self-attention only. Raises InvalidOption otherwise.
    """
    check_self_attention(maps, "to_next")
    return Measurement("to_next", "share", share_at(maps, 1), (0.0, 1.0))
