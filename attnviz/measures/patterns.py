"""What heads are known to look at: which keys count for each query of a text. Knows tokens, and no attention.

The patterns are those of the literature: neighbours, the same word and what stood behind it (Olsson et al. 2022,
arXiv:2209.11895), punctuation and markers (Clark et al. 2019, arXiv:1906.04341), a closing bracket's own opening one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple
from unicodedata import category

import numpy as np
from jaxtyping import Bool, Int

from attnviz.records import Tokens
from attnviz.records.head_names import name_offset

MAX_OFFSET = 8  # tokens from the query, either way, of a place that is a pattern
BRACKETS = dict(zip(")]}>）］｝】」』〉》", "([{<（［｛【「『〈《", strict=True))  # closing sign: opening sign
PREFIX = re.compile(r"^(?:##|[▁Ġ]+)(?=.)")  # with which a vocabulary marks its pieces
STOPS = ".?!。？！．"


class Pattern(NamedTuple):
    """Keys that count for queries."""

    name: str
    keys: Bool[np.ndarray, "query key"]
    is_kind: bool = False  # the same keys for every query: those of a kind


def list_patterns(tokens: Tokens, queries: Int[np.ndarray, " query"]) -> Iterator[Pattern]:
    """List all patterns of a text that attends to itself, for some of its queries."""
    places, keys = queries[:, None], np.arange(len(tokens))
    for offset in sorted(range(-MAX_OFFSET, MAX_OFFSET + 1), key=abs):
        yield Pattern(name_offset(offset), keys == places + offset)
    numbers = {word: number for number, word in enumerate(dict.fromkeys(tokens.words))}
    words = np.where(tokens.markers, -1, np.array([numbers[word] for word in tokens.words])[tokens.places])
    same = (words == words[queries][:, None]) & ~tokens.markers & (keys != places)
    yield Pattern("same word", same)
    yield Pattern("induction (after a repeat)", np.pad(same & (keys < places), ((0, 0), (1, 0)))[:, :-1])
    pieces = strip_pieces(tokens)
    yield Pattern("own bracket", keys == find_targets(find_own_brackets(pieces), len(tokens))[queries, None])
    first = int((~tokens.markers).argmax())  # where the first sentence starts is told apart from a sink by nothing
    starts = find_targets(find_sentence_starts(pieces), len(tokens))
    yield Pattern("sentence start", (keys == starts[queries, None]) & (keys > first))
    punctuation = np.array([is_punctuation(piece) for piece in tokens.distinct_pieces])[tokens.places]
    yield Pattern("punctuation", np.broadcast_to(punctuation & ~tokens.markers, same.shape), is_kind=True)
    yield Pattern("special tokens", np.broadcast_to(tokens.markers, same.shape))
    yield Pattern("first token", np.broadcast_to((keys == 0) & ~tokens.markers, same.shape))


@lru_cache(maxsize=2**16)  # the same words recur
def is_punctuation(piece: str) -> bool:
    """Return whether a piece, white space aside, is all punctuation or symbols."""
    bare = piece.strip()
    return bool(bare) and all(category(character)[0] in "PS" for character in bare)


def strip_pieces(tokens: Tokens) -> list[str]:
    """Return pieces without white space and a vocabulary's marks; "" for markers and what the model did not read."""
    hidden = tokens.markers | np.array(tokens.unknown, dtype=bool)
    return ["" if hide else PREFIX.sub("", piece).strip() for piece, hide in zip(tokens.pieces, hidden, strict=True)]


def find_targets(pairs: Iterable[tuple[int, int]], n: int) -> Int[np.ndarray, " query"]:
    """Return the one key of each query, of pairs of both; -1 where there is none."""
    found = np.full(n, -1)
    for query, key in pairs:
        found[query] = key
    return found


def has_own_bracket(text: str) -> bool:
    """Return whether a bracket of a text is closed."""
    return next(find_own_brackets(list(text)), None) is not None


def find_own_brackets(pieces: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield each closing bracket and its own opening one, as brackets nest; one that is left open has none."""
    opened: list[int] = []
    for place, piece in enumerate(pieces):
        if piece and piece in BRACKETS.values():
            opened.append(place)
        elif piece in BRACKETS:
            while opened and pieces[opened[-1]] != BRACKETS[piece]:
                opened.pop()
            if opened:
                yield place, opened.pop()


def find_sentence_starts(pieces: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield each token of a sentence but its first one, and that."""
    start = 0
    for place, piece in enumerate(pieces):
        if place > start:
            yield place, start
        if piece and piece in STOPS:
            start = place + 1
