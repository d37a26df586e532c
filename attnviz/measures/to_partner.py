"""Attention from a bracket or quotation mark to the other one of its pair. Knows records only."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from jaxtyping import Int

from attnviz.errors import NotMeasurable
from attnviz.measures.rows import cache_on_record, check_self_attention, find_unlike_layers, real_queries
from attnviz.measures.shares import is_punctuation, sum_cells
from attnviz.records import AttentionMaps, Measurement
from attnviz.records.walk import MIN_ROWS

BRACKETS = dict(zip(")]}>）］｝】〉》", "([{<（［｛【〈《", strict=True))  # closing sign: opening sign
QUOTES = {'"': '"', "”": "“„", "“": "„", "’": "‘‚", "‘": "‚", "»": "«", "«": "»", "」": "「", "』": "『"}
OPENERS_BY_CLOSER = {**BRACKETS, **QUOTES}
OPENERS = frozenset("".join(OPENERS_BY_CLOSER.values()))
SIGN_PATTERN = re.compile(f"[{re.escape(''.join(OPENERS | OPENERS_BY_CLOSER.keys()))}]")
QUOTE_MARKS = frozenset(QUOTES) | frozenset("".join(QUOTES.values()))
APOSTROPHE = "’"  # also a quotation mark; the straight one may be either, and is not paired
PREFIX_PATTERN = re.compile(r"^(?:##|[▁Ġ]+)(?=.)")  # with which a vocabulary marks its pieces

Pairs = Int[np.ndarray, "2 pair"]  # a query and its partner


def to_partner(maps: AttentionMaps) -> Measurement:
    """Return the mean weight that brackets and quotation marks give their partner, where they may attend to it.

    A share, from 0 to 1. Brackets pair as they nest, straight quotation marks as they come; what is left over has no
    partner, nor has an apostrophe. Tokens count that are punctuation throughout; in a causal map only closing ones
    reach theirs (Clark et al. 2019, section 4, look at single relations like this, arXiv:1906.04341). Self-attention
    only. Raises InvalidOption otherwise, and NotMeasurable for a text without a pair.
    """
    check_self_attention(maps, "to_partner")
    queries, keys = find_partner_pairs(maps)
    if not len(queries):
        raise NotMeasurable(
            "to_partner: no bracket or quotation mark of this text has a partner", hint="Choose other measures."
        )
    shares = sum_cells(maps, queries, keys) / len(set(queries.tolist()))
    return Measurement("to_partner", "share", shares, (0.0, 1.0))


def has_pair(text: str) -> bool:
    """Return whether a bracket or quotation mark has a partner in a text."""
    return next(_match_pairs([text], [0], [(0, len(text))]), None) is not None


@cache_on_record
def find_partner_pairs(maps: AttentionMaps) -> Pairs:
    """Return each real query that has a partner which it may attend to in any layer, and that partner."""
    tokens = maps.queries
    signs = np.array([_has_sign(piece) for piece in tokens.distinct_pieces])
    places = np.flatnonzero(signs[tokens.places]).tolist()
    places = [place for place in places if not (tokens.special[place] or tokens.unknown[place])]
    pieces = {place: PREFIX_PATTERN.sub("", tokens.pieces[place]) for place in places}
    found = {(one, other) for one, other in _match_pairs(tokens.pieces, places, tokens.offsets) if one != other}
    found = {pair for pair in found if all(is_punctuation(pieces[place]) for place in pair)}
    pairs = np.array(sorted({*found, *((key, query) for query, key in found)}), dtype=np.int64).reshape(-1, 2).T
    reached = np.zeros(pairs.shape[1], dtype=bool)
    for start in range(0, len(reached), MIN_ROWS):
        several = slice(start, start + MIN_ROWS)
        queries, keys = pairs[:, several]
        for layer in find_unlike_layers(maps):
            reached[several] |= maps.read_allowed(layer, queries)[np.arange(len(keys)), keys]
    return np.asarray(pairs[:, reached & real_queries(maps)[pairs[0]]])


@lru_cache(maxsize=2**16)  # the same words recur
def _has_sign(piece: str) -> bool:
    return SIGN_PATTERN.search(piece) is not None


def _match_pairs(
    pieces: Sequence[str], places: Sequence[int], offsets: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """Yield which piece opens and which closes, pair by pair, of the pieces at `places`.

    Brackets and quotation marks do not cut each other off: one that is left over among these loses no pair of those.
    """
    brackets: list[tuple[str, int]] = []
    quotes: list[tuple[str, int]] = []
    for place in places:
        for match in SIGN_PATTERN.finditer(pieces[place]):
            sign = match[0]
            if sign == APOSTROPHE and _is_within_word(pieces, offsets, place, match.start()):
                continue
            opened = quotes if sign in QUOTE_MARKS else brackets
            closed = OPENERS_BY_CLOSER.get(sign, "")
            at = next((n for n in reversed(range(len(opened))) if opened[n][0] in closed), None)
            if at is not None:
                yield opened[at][1], place
                del opened[at:]
            elif sign in OPENERS:
                opened.append((sign, place))


def _is_within_word(pieces: Sequence[str], offsets: Sequence[tuple[int, int]], place: int, at: int) -> bool:
    """Return whether letters stand on both sides of a character, also where they belong to pieces that touch."""
    piece, (start, end) = pieces[place], offsets[place]
    before = piece[at - 1] if at else pieces[place - 1][-1:] if place and offsets[place - 1][1] == start else ""
    if at + 1 < len(piece):
        after = piece[at + 1]
    else:
        touching = place + 1 < len(pieces) and offsets[place + 1][0] == end
        after = PREFIX_PATTERN.sub("", pieces[place + 1])[:1] if touching else ""
    return before.isalnum() and after.isalnum()
