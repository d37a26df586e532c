"""Moments: single rows of attention, of each head those that aim most and some drawn at random. Knows records.

A mean over a corpus says how much a head does something, and not what it does. So of each head a few rows are kept, cut
to the tokens around the query and around the key that it looks at. All heads have the same random ones, drawn by a hash
of the text and the position, so that they can be compared; no text gives a head more than one of its strongest. Both
are the largest of ranks, as extreme texts are, so that parts merge to the same bits in any order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import product

import numpy as np
from jaxtyping import Float32, Float64, Int64, UInt64

from attnviz.measures.excerpts import N_SHOWN, AttentionRow, find_strongest, read_row
from attnviz.measures.rows import real_queries
from attnviz.measures.summaries import NO_TEXT, keep_largest
from attnviz.records import AttentionMaps, Tokens
from attnviz.views.tokens import read_piece

N_MOMENTS = 6  # of each kind
STRONGEST, RANDOM = range(2)  # kinds
NO_TOKEN = -1  # in the place of one, where fewer are shown


@dataclass(frozen=True, eq=False)
class Moments:
    """Of each kind, rank and head one row of attention: what it is the largest by, where it stands, and its weights."""

    ranks: Float64[np.ndarray, "kind rank place"]  # -inf: there is none
    texts: Int64[np.ndarray, "kind rank place"]
    queries: Int64[np.ndarray, "kind rank place"]
    positions: Int64[np.ndarray, "kind rank place shown"]  # of the keys that are shown, in order
    weights: Float32[np.ndarray, "kind rank place shown"]  # what they receive
    n_keys: Int64[np.ndarray, "kind rank place"]  # this and the next ones: see AttentionRow
    to_first: Float32[np.ndarray, "kind rank place"]
    effective_keys: Float32[np.ndarray, "kind rank place"]

    @classmethod
    def empty(cls, n_places: int, n: int = 0) -> Moments:
        """Return room for `n` moments of each kind and head, with none in it."""
        room = (2, n, n_places)
        counts = (np.full(room, NO_TEXT), np.full(room, NO_TEXT), np.full((*room, N_SHOWN), NO_TOKEN))
        shares = (np.zeros(room, np.float32) for _ in range(2))
        weights = np.zeros((*room, N_SHOWN), np.float32)
        return cls(np.full(room, -np.inf), *counts, weights, np.zeros(room, np.int64), *shares)

    def put(self, at: tuple[int, int, int], rank: float, text: int, row: AttentionRow) -> None:
        """Write a row into the room of its kind, rank and head."""
        n = len(row.shown)
        self.ranks[at], self.texts[at], self.queries[at] = rank, text, row.query
        self.positions[at][:n], self.weights[at][:n] = row.shown, row.weights
        self.n_keys[at], self.to_first[at], self.effective_keys[at] = row.n_keys, row.to_first, row.effective_keys

    def list_tokens(self) -> Mapping[int, list[int]]:
        """Return by text the positions of all tokens that any moment shows, in order."""
        texts = np.broadcast_to(self.texts[..., None], self.positions.shape)
        there = (self.positions != NO_TOKEN) & (texts != NO_TEXT)
        found: dict[int, list[int]] = {}
        for text, position in np.unique(np.stack([texts[there], self.positions[there]], axis=1), axis=0).tolist():
            found.setdefault(text, []).append(position)
        return found


def merge_moments(parts: Sequence[Moments]) -> Moments:
    """Keep the moments of the largest ranks, of equal ones those of the first texts and positions."""
    joined = (np.concatenate([getattr(part, each.name) for part in parts], axis=1) for each in fields(Moments))
    ranks, texts, queries, *others = joined
    return Moments(*keep_largest(ranks, (texts, queries), others, (NO_TOKEN, 0.0, 0, 0.0, 0.0), N_MOMENTS))


@dataclass(eq=False)
class MomentCollector:
    """The moments of the texts of one block, while they are read."""

    n_places: int
    found: Moments = field(init=False)
    tokens: dict[int, Tokens] = field(default_factory=dict)  # of the texts that have moments

    def __post_init__(self) -> None:
        self.found = Moments.empty(self.n_places, N_MOMENTS)

    def add(self, text: int, maps: AttentionMaps, text_hash: int) -> None:
        """Keep those of a text that are among the strongest or the random ones so far."""
        rests = maps.keys.markers.copy()
        rests[0] = True
        random = self._draw(maps, text_hash)
        new = Moments.empty(self.n_places, 1 + len(random))
        for layer in range(maps.n_layers):
            places = slice(layer * maps.n_heads, (layer + 1) * maps.n_heads)
            strengths, queries = find_strongest(maps, layer, rests)
            stronger = np.flatnonzero(strengths > self.found.ranks[STRONGEST, -1, places])
            for head in stronger.tolist():
                row = read_row(maps, layer, head, int(queries[head]), rests)
                new.put((STRONGEST, 0, places.start + head), strengths[head], text, row)
            for (rank, (drawn, query)), head in product(enumerate(random), range(maps.n_heads)):
                row = read_row(maps, layer, head, query, rests)
                new.put((RANDOM, rank, places.start + head), drawn, text, row)
        if (new.ranks > -np.inf).any():
            self.found = merge_moments([self.found, new])
            self.tokens[text] = maps.keys

    def _draw(self, maps: AttentionMaps, text_hash: int) -> list[tuple[float, int]]:
        """Return the ranks and the positions of a text's random moments that are among those of the block."""
        positions = np.flatnonzero(real_queries(maps))[1:]  # the first has nothing to choose from in a causal text
        ranks = -mix_hashes(text_hash, positions).astype(np.float64) / 2.0**64
        order = np.lexsort((positions, -ranks))[:N_MOMENTS]
        least = self.found.ranks[RANDOM, -1, 0]
        drawn = zip(ranks[order].tolist(), positions[order].tolist(), strict=True)
        return [(rank, position) for rank, position in drawn if rank > least]

    def read_tokens(self) -> dict[int, tuple[tuple[int, ...], tuple[str, ...]]]:
        """Return by text, of those that have a moment, the positions that are shown and their tokens."""
        return {
            text: (tuple(positions), tuple(read_piece(self.tokens[text], position) for position in positions))
            for text, positions in self.found.list_tokens().items()
        }


def mix_hashes(text_hash: int, positions: Int64[np.ndarray, " position"]) -> UInt64[np.ndarray, " position"]:
    """Return a hash of a text's and each position (SplitMix64; Steele et al. 2014, doi:10.1145/2660193.2660195)."""
    mixed = np.uint64(text_hash) + (positions.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))
