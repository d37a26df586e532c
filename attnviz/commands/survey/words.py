"""Which words stand in texts, and how much attention their places receive. Knows records.

Shares of attention are summed as whole numbers, so that parts merge to the same bits in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Int64

from attnviz.measures.concentration import average_received
from attnviz.records import AttentionMaps

UNKNOWN = "[UNK]"  # all words that the vocabulary does not hold together: there is no end of them
MASS_BITS = 30  # shares of attention are summed in multiples of 2⁻³⁰: nine digits, and 8 · 10⁹ of them fit


@dataclass(frozen=True, eq=False)
class WordTable:
    """Of each word of the texts how often it stands there, and how much attention its places receive of each head."""

    words: tuple[str, ...] = ()  # sorted
    support: Int64[np.ndarray, " word"] = field(default_factory=lambda: np.zeros(0, np.int64))
    equal: Int64[np.ndarray, " word"] = field(default_factory=lambda: np.zeros(0, np.int64))  # if no key is favoured
    mass: Int64[np.ndarray, "word place"] = field(default_factory=lambda: np.zeros((0, 0), np.int64))

    def without_words(self) -> WordTable:
        """Return what it says of tokens that the vocabulary does not hold, which are no words."""
        kept = [place for place, word in enumerate(self.words) if word == UNKNOWN]
        words = tuple(self.words[place] for place in kept)
        return WordTable(words, self.support[kept], self.equal[kept], self.mass[kept]) if kept else WordTable()


def merge_words(tables: Sequence[WordTable]) -> WordTable:
    """One table with the words of all."""
    tables = [table for table in tables if table.words]
    if not tables:
        return WordTable()
    words = sorted({word for table in tables for word in table.words})
    places = {word: place for place, word in enumerate(words)}
    support, equal = np.zeros((2, len(words)), np.int64)
    mass = np.zeros((len(words), tables[0].mass.shape[1]), np.int64)
    for table in tables:
        at = [places[word] for word in table.words]  # no word twice
        support[at] += table.support
        equal[at] += table.equal
        mass[at] += table.mass
    return WordTable(tuple(words), support, equal, mass)


@dataclass(eq=False)
class WordCollector:
    """Tokens of several texts: which word each is, and what it receives of each head."""

    numbers: dict[str, int] = field(default_factory=dict)
    tokens: list[np.ndarray] = field(default_factory=list)  # of each text
    equal: list[np.ndarray] = field(default_factory=list)
    mass: list[np.ndarray] = field(default_factory=list)

    def add(self, maps: AttentionMaps, uniform: AttentionMaps, n_queries: int) -> None:
        """Count the words of a text, and what each of its tokens receives."""
        keys, numbers = maps.keys, self.numbers
        others = np.flatnonzero(keys.markers | np.array(keys.unknown))
        there = np.ones(len(keys.distinct_pieces), dtype=bool)  # pieces that are words
        if len(others):
            there = np.bincount(np.delete(keys.places, others), minlength=len(there)) > 0
        of_pieces = [
            numbers.setdefault(word, len(numbers)) if is_word else -1
            for word, is_word in zip(keys.words, there.tolist(), strict=True)
        ]
        of_tokens = np.array(of_pieces)[keys.places]
        for token in others.tolist():
            known = UNKNOWN if keys.unknown[token] else keys.pieces[token]
            of_tokens[token] = numbers.setdefault(known, len(numbers))
        self.tokens.append(of_tokens)
        received = average_received(maps).reshape(-1, len(maps.keys))
        self.mass.append(to_mass(received.T * n_queries))
        self.equal.append(to_mass(average_received(uniform).mean(axis=(0, 1)) * n_queries))

    def table(self) -> WordTable:
        """Return the words in order, each with the sums over its places."""
        if not self.numbers:
            return WordTable()
        words = sorted(self.numbers)
        rank = np.empty(len(words), np.int64)
        rank[[self.numbers[word] for word in words]] = np.arange(len(words))
        of_tokens = rank[np.concatenate(self.tokens)]
        order = np.argsort(of_tokens, kind="stable")
        starts = np.searchsorted(of_tokens[order], np.arange(len(words)))
        equal, mass = (np.add.reduceat(np.concatenate(of)[order], starts, axis=0) for of in (self.equal, self.mass))
        return WordTable(tuple(words), np.bincount(of_tokens).astype(np.int64), equal, mass)


def to_mass(shares: np.ndarray) -> np.ndarray:
    """Whole multiples of 2⁻³⁰."""
    return np.rint(shares * 2.0**MASS_BITS).astype(np.int64)
