"""Attention to the token before. Knows records only."""

from __future__ import annotations

from attnviz.measures.rows import check_self_attention, share_at
from attnviz.records import AttentionMaps, Measurement


def to_previous(maps: AttentionMaps) -> Measurement:
    """Mean over queries of the weight on the position before the query's (Clark et al. 2019, arXiv:1906.04341).

    A share, from 0 to (n - 1)/n, n the tokens: the first has none before it and counts as 0. Self-attention only.
    Raises InvalidOption otherwise.
    """
    check_self_attention(maps, "to_previous")
    return Measurement("to_previous", "share", share_at(maps, -1), (0.0, 1.0))
