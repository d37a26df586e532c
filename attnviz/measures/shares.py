"""Where attention goes: shares of it on one place, on some tokens, on a learned sink. Knows records only."""

from __future__ import annotations

from functools import lru_cache
from unicodedata import category

import numpy as np

from attnviz.measures.rows import check_self_attention, measure_share_among, measure_share_at, measure_share_on
from attnviz.records import AttentionMaps, Measurement


def to_self(maps: AttentionMaps) -> Measurement:
    """Return the mean over queries of the weight on the query's own position (the diagonal of Kovaleva et al. 2019).

    A share, from 0 to 1 (arXiv:1908.08593). Equal words elsewhere in the text do not count: `to_same_word` has them.
    Self-attention only. Raises InvalidOption otherwise.
    """
    check_self_attention(maps, "to_self")
    return Measurement("to_self", "share", measure_share_at(maps, 0), (0.0, 1.0))


def to_previous(maps: AttentionMaps) -> Measurement:
    """Return the mean over queries of the weight on the position before (Clark et al. 2019, arXiv:1906.04341).

    A share, from 0 to (n - 1)/n, n the tokens: the first has none before it and counts as 0. Self-attention only.
    Raises InvalidOption otherwise.
    """
    check_self_attention(maps, "to_previous")
    return Measurement("to_previous", "share", measure_share_at(maps, -1), (0.0, 1.0))


def to_next(maps: AttentionMaps) -> Measurement:
    """Return the mean over queries of the weight on the position after (Clark et al. 2019, arXiv:1906.04341).

    A share, from 0 to (n - 1)/n, n the tokens: the last has none after it and counts as 0. In a causal map it is 0.
    Self-attention only. Raises InvalidOption otherwise.
    """
    check_self_attention(maps, "to_next")
    return Measurement("to_next", "share", measure_share_at(maps, 1), (0.0, 1.0))


def to_first(maps: AttentionMaps) -> Measurement:
    """Return the mean over queries of the weight on the first token, where it is an attention sink (Xiao et al. 2023).

    A share, from 0 to 1 (arXiv:2309.17453). The first token is that of the sequence, also where it is a marker such
    as [CLS]; padding is none. In a causal map the first query has no other key, and early ones few. Self-attention
    only. Raises InvalidOption otherwise.
    """
    check_self_attention(maps, "to_first")
    first = np.arange(len(maps.keys)) == int(maps.real_queries.argmax())
    return Measurement("to_first", "share", measure_share_on(maps, first), (0.0, 1.0))


def to_sink(maps: AttentionMaps) -> Measurement:
    """Return the mean over queries of the share that goes to no token, but to a sink that the model has learned.

    A share, from 0 to 1; 0 where the model has no such place. It is what OpenAI's gpt-oss adds to the denominator of
    each softmax (arXiv:2508.10925, section 2); the first token as a sink is `to_first`.
    """
    if maps.sink is None:
        values = np.zeros((maps.n_layers, maps.n_heads))
    else:
        values = maps.sink[:, :, maps.real_queries].mean(axis=-1, dtype=np.float64)
    return Measurement("to_sink", "share", values, (0.0, 1.0))


def to_special(maps: AttentionMaps) -> Measurement:
    """Return the mean over queries of the weight on markers that the model added, such as [CLS] (Clark et al. 2019).

    A share, from 0 to 1; 0 where the model adds none (arXiv:1906.04341, who read much of it as attending to nothing).
    A marker that somebody wrote into the text does not count.
    """
    return Measurement("to_special", "share", measure_share_on(maps, maps.keys.markers), (0.0, 1.0))


def to_punctuation(maps: AttentionMaps) -> Measurement:
    """Return the mean over queries of the weight on punctuation and symbols, such as full stops (Clark et al. 2019).

    A share, from 0 to 1 (arXiv:1906.04341). A key counts when all characters of its piece, white space around it
    aside, are of the Unicode categories P or S, so `…`, `$` and `。` do, `don't` and markers do not.
    """
    keys = maps.keys
    there = np.array([is_punctuation(piece) for piece in keys.distinct_pieces])[keys.places] & ~keys.markers
    return Measurement("to_punctuation", "share", measure_share_on(maps, there), (0.0, 1.0))


@lru_cache(maxsize=2**16)  # the same words recur
def is_punctuation(piece: str) -> bool:
    """Return whether a piece, white space aside, is all punctuation or symbols."""
    bare = piece.strip()
    return bool(bare) and all(category(character)[0] in "PS" for character in bare)


def to_same_word(maps: AttentionMaps) -> Measurement:
    """Return the mean over queries of the weight on other positions with the same piece (duplicate token heads).

    A share, from 0 (also where no piece occurs twice) to 1 (Wang et al. 2022, arXiv:2211.00593). Pieces are the same
    whatever their case and the white space around them; markers are no words. Self-attention only. Raises InvalidOption
    otherwise.
    """
    check_self_attention(maps, "to_same_word")
    tokens = maps.queries
    numbers = {word: number for number, word in enumerate(dict.fromkeys(tokens.words))}
    of_pieces = [numbers[word] for word in tokens.words]
    of_tokens = np.where(tokens.markers, -1, np.array(of_pieces)[tokens.places])
    return Measurement("to_same_word", "share", measure_share_among(maps, of_tokens), (0.0, 1.0))
