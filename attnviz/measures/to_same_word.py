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
    tokens = maps.queries
    numbers = {word: number for number, word in enumerate(dict.fromkeys(tokens.words))}
    of_pieces = [numbers[word] for word in tokens.words]
    of_tokens = np.where(tokens.markers, -1, np.array(of_pieces)[tokens.places])
    return Measurement("to_same_word", "share", share_among(maps, of_tokens), (0.0, 1.0))
