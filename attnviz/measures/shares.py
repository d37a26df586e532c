"""Where attention goes: shares of it on one place, on some tokens, on a learned sink. Knows records only."""

from __future__ import annotations

from functools import lru_cache
from unicodedata import category

import numpy as np
from jaxtyping import Bool, Int

from attnviz.measures.rows import (
    MAX_OFFSET,
    check_self_attention,
    layer_received,
    real_queries,
    row_sums,
    sum_by_distance,
)
from attnviz.records import AttentionMaps, Measurement
from attnviz.records.arithmetic import sum_rows
from attnviz.shapes import PerHead

MAX_GROUP_SIZE = 64  # tokens of a group whose pairs are looked up one by one


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


def measure_share_on(maps: AttentionMaps, keys: Bool[np.ndarray, " key"]) -> PerHead:
    """Return the share of attention that goes to some keys: the mean over queries of each row's sum there."""
    return np.array([layer_received(maps, layer) @ keys.astype(np.float64) for layer in range(maps.n_layers)])


def measure_share_among(maps: AttentionMaps, groups: Int[np.ndarray, " token"]) -> PerHead:
    """Return the share that goes to the other tokens of a query's group; tokens of group -1 are in none."""
    real = real_queries(maps)
    place = np.cumsum(real) - 1  # among the real queries
    totals = np.zeros((maps.n_layers, maps.n_heads))
    sizes = np.bincount(groups + 1)[1:]
    for number in np.flatnonzero(sizes > MAX_GROUP_SIZE):
        group = np.flatnonzero(groups == number)
        queries = group[real[group]]
        for layer, head in np.ndindex(totals.shape):
            sums = row_sums(maps, layer)[head, place[queries]]
            tile = maps.tile(layer, head, queries, group)
            own = tile[np.arange(len(queries)), np.searchsorted(group, queries)]
            totals[layer, head] += ((sum_rows(tile) - own) / sums).sum()
    queries, keys = _pair_tokens(groups, (sizes > 1) & (sizes <= MAX_GROUP_SIZE))
    if not real.all():
        queries, keys = queries[real[queries]], keys[real[queries]]
    totals += sum_cells(maps, queries, keys)
    return np.maximum(totals, 0) / int(real.sum())


def sum_cells(maps: AttentionMaps, queries: Int[np.ndarray, " cell"], keys: Int[np.ndarray, " cell"]) -> PerHead:
    """Sum the weights of some real queries on one key each."""
    place = np.cumsum(real_queries(maps)) - 1  # among the real queries
    totals = np.zeros((maps.n_layers, maps.n_heads))
    for layer in range(maps.n_layers if len(queries) else 0):
        sums = row_sums(maps, layer)[:, place[queries]]
        totals[layer] = (maps.read_cells_of_heads(layer, queries, keys) / sums).sum(axis=-1)
    return totals


def _pair_tokens(groups: Int[np.ndarray, " token"], chosen: Bool[np.ndarray, " group"]) -> Int[np.ndarray, "2 pair"]:
    """Pair each two tokens of a chosen group, in either order."""
    tokens = np.flatnonzero(np.append(chosen, False)[groups])  # tokens in no group (-1) take the last entry
    tokens = tokens[np.argsort(groups[tokens], kind="stable")]
    sizes = np.bincount(groups[tokens], minlength=len(chosen))
    n_partners = np.repeat(sizes, sizes) - 1
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    ends = np.cumsum(n_partners)
    within = np.arange(n_partners.sum()) - np.repeat(ends - n_partners - starts, n_partners)
    within += within >= np.repeat(np.arange(len(tokens)), n_partners)  # not itself
    return np.stack([np.repeat(tokens, n_partners), tokens[within]])


def measure_share_at(maps: AttentionMaps, offset: int) -> PerHead:
    """Return the share that goes to the key `offset` after each query, before it where negative; 0 if there is none."""
    return np.asarray(sum_by_distance(maps)[..., MAX_OFFSET + offset] / int(real_queries(maps).sum()))
