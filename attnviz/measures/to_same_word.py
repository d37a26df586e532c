"""Attention to the same word elsewhere. Knows records only."""

from __future__ import annotations

import numpy as np

from attnviz.measures.rows import check_self_attention, share_among
from attnviz.records import AttentionMaps, Measurement


def to_same_word(maps: AttentionMaps) -> Measurement:
    """Mean over queries of the weight on other positions with the same piece (duplicate token heads).

    A share, from 0 (also where no piece occurs twice) to 1 (Wang et al. 2022, arXiv:2211.00593). Pieces are the same
    whatever their case and the white space around them; markers are no words. Self-attention only. Raises InvalidOption
    otherwise.
    """
    check_self_attention(maps, "to_same_word")
    places: dict[str, list[int]] = {}
    for place, (word, special) in enumerate(zip(maps.queries.words, maps.queries.special, strict=True)):
        if not special:
            places.setdefault(word, []).append(place)
    repeated = (np.array(of_word) for of_word in places.values() if len(of_word) > 1)
    return Measurement("to_same_word", "share", share_among(maps, repeated), (0.0, 1.0))
