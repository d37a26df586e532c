"""Attention to the first token, the attention sink. Knows records only."""

from __future__ import annotations

import numpy as np

from attnviz.measures.rows import check_self_attention, share_on
from attnviz.records import AttentionMaps, Measurement


def to_first(maps: AttentionMaps) -> Measurement:
    """Mean over queries of the weight on the first token, where it is an attention sink (Xiao et al. 2023).

    A share, from 0 to 1 (arXiv:2309.17453). The first token is that of the sequence, also where it is a marker such
    as [CLS]; padding is none. In a causal map the first query has no other key, and early ones few. Self-attention
    only. Raises InvalidOption otherwise.
    """
    check_self_attention(maps, "to_first")
    first = np.arange(len(maps.keys)) == int(maps.real_queries.argmax())
    return Measurement("to_first", "share", share_on(maps, first), (0.0, 1.0))
