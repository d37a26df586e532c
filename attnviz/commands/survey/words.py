"""What heads attend to over many texts: words, and offsets from the query. Knows records.

Shares of attention are summed as whole numbers, so that parts merge to the same bits in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Int64

from attnviz.commands.survey.survey import OFFSET, WORD
from attnviz.measures.concentration import average_received
from attnviz.measures.rows import MAX_OFFSET, sum_by_distance
from attnviz.numbers.parquet import INTEGER, TEXT
from attnviz.numbers.table import Numbers
from attnviz.records import AttentionMaps

UNKNOWN = "[UNK]"  # all words that the vocabulary does not hold together: there is no end of them
MASS_BITS = 30  # shares of attention are summed in multiples of 2⁻³⁰: nine digits, and 8 · 10⁹ of them fit
KEYS, COUNTS = {"kind": TEXT, "name": TEXT}, {"n": INTEGER, "equal": INTEGER}  # columns, beside one for each head


@dataclass(eq=False)
class AttendedCollector:
    """Tokens of several texts: which word each is, and what it receives of each head; and attention by distance."""

    heads: Sequence[tuple[int, int]]
    numbers: dict[str, int] = field(default_factory=dict)
    tokens: list[np.ndarray] = field(default_factory=list)  # of each text
    equal: list[np.ndarray] = field(default_factory=list)
    mass: list[np.ndarray] = field(default_factory=list)
    offsets: list[np.ndarray] = field(default_factory=list)
    equal_offsets: list[np.ndarray] = field(default_factory=list)

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
        self.offsets.append(to_mass(sum_by_distance(maps).reshape(len(self.heads), -1).T))
        self.equal_offsets.append(to_mass(sum_by_distance(uniform).mean(axis=(0, 1))))

    def table(self, has_words: bool) -> Numbers:
        """Return a row per offset and word, with the sums over its places; without words, none but [UNK]."""
        offsets = [str(offset) for offset in range(-MAX_OFFSET, MAX_OFFSET + 1)]
        names, kinds = [*offsets, *self.numbers], [OFFSET] * len(offsets) + [WORD] * len(self.numbers)
        of_tokens = np.concatenate([np.zeros(0, np.int64), *self.tokens])
        n = np.bincount(of_tokens, minlength=len(self.numbers)).astype(np.int64)
        order = np.argsort(of_tokens, kind="stable")
        starts = np.searchsorted(of_tokens[order], np.arange(len(self.numbers)))
        nothing = np.zeros((0, len(self.heads)), np.int64)
        equal = np.concatenate([nothing[:, :1].ravel(), *self.equal])[order]
        mass = np.concatenate([nothing, *self.mass])[order]
        if len(starts):
            equal, mass = (np.add.reduceat(of, starts, axis=0) for of in (equal, mass))
        room = np.zeros((len(offsets), len(self.heads)), np.int64)
        mass = np.concatenate([sum(self.offsets, room), mass]).T
        equal = np.concatenate([sum(self.equal_offsets, room[:, 0]), equal])
        columns = {f"{layer}.{head}": np.ascontiguousarray(mass[at]) for at, (layer, head) in enumerate(self.heads)}
        counts = np.concatenate([np.zeros(len(offsets), np.int64), n])
        found = Numbers.from_columns({"kind": kinds, "name": names, "n": counts, "equal": equal, **columns}, [*KEYS])
        return found if has_words else found.select(name=[*offsets, UNKNOWN])


def to_mass(shares: np.ndarray) -> Int64[np.ndarray, ...]:
    """Whole multiples of 2⁻³⁰."""
    return np.rint(shares * 2.0**MASS_BITS).astype(np.int64)
