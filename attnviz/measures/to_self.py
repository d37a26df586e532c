"""Attention to oneself. Knows records only."""

from __future__ import annotations

from attnviz.measures.rows import check_self_attention, share_at
from attnviz.records import AttentionMaps, Measurement


def to_self(maps: AttentionMaps) -> Measurement:
    """Mean over queries of the weight on the query's own position (the diagonal of Kovaleva et al. 2019).

    A share, from 0 to 1 (arXiv:1908.08593). Equal words elsewhere in the text do not count: `to_same_word` has them.
    Self-attention only. Raises InvalidOption otherwise.
    """
    check_self_attention(maps, "to_self")
    return Measurement("to_self", "share", share_at(maps, 0), (0.0, 1.0))
