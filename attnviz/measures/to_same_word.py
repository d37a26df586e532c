"""Attention to the same word elsewhere. Knows records only."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Int

from attnviz.measures.rows import check_self_attention, share_where
from attnviz.records import AttentionMaps, Measurement


def to_same_word(maps: AttentionMaps) -> Measurement:
    """Mean over queries of the weight on other positions with the same piece (duplicate token heads).

    A share, from 0 (also where no piece occurs twice) to 1 (Wang et al. 2022, arXiv:2211.00593). Pieces are the same
    whatever their case and the white space around them; markers are no words. Self-attention only. Raises InvalidOption
    otherwise.
    """
    check_self_attention(maps, "to_same_word")
    tokens = maps.queries
    words: dict[str, int] = {}
    numbers = np.array([words.setdefault(piece.strip().casefold(), len(words)) for piece in tokens.pieces])
    word = ~np.array(tokens.special)
    numbers[~word] = -1 - np.flatnonzero(~word)  # each like no other

    def elsewhere(queries: slice | Int[np.ndarray, " query"]) -> Bool[np.ndarray, "query key"]:
        same = numbers[queries, None] == numbers
        same[np.arange(len(same)), np.arange(len(numbers))[queries]] = False
        return np.asarray(same)

    return Measurement("to_same_word", "share", share_where(maps, elsewhere), (0.0, 1.0))
