"""Attention to punctuation. Knows records only."""

from __future__ import annotations

from functools import lru_cache
from unicodedata import category

import numpy as np

from attnviz.measures.rows import share_on
from attnviz.records import AttentionMaps, Measurement


def to_punctuation(maps: AttentionMaps) -> Measurement:
    """Mean over queries of the weight on punctuation and symbols, such as full stops (Clark et al. 2019).

    A share, from 0 to 1 (arXiv:1906.04341). A key counts when all characters of its piece, white space around it
    aside, are of the Unicode categories P or S, so `…`, `$` and `。` do, `don't` and markers do not.
    """
    keys = maps.keys
    there = np.array([is_punctuation(piece) for piece in keys.unlike])[keys.places] & ~keys.markers
    return Measurement("to_punctuation", "share", share_on(maps, there), (0.0, 1.0))


@lru_cache(maxsize=2**16)  # words come again and again
def is_punctuation(piece: str) -> bool:
    """Whether a piece, white space aside, is all punctuation or symbols."""
    bare = piece.strip()
    return bool(bare) and all(category(character)[0] in "PS" for character in bare)
