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
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int64, UInt64

from attnviz.commands.survey.exact import NO_TEXT, keep_largest
from attnviz.measures.rows import compute_entropies, compute_statistics, count_attendable, real_queries
from attnviz.records import AttentionMaps, Tokens

N_MOMENTS = 6  # of each kind
STRONGEST, RANDOM = range(2)  # kinds
BEFORE, AFTER, NEAR = 16, 4, 3  # tokens shown before and after the query, and on either side of the key
N_SHOWN = BEFORE + 1 + AFTER + 2 * NEAR + 1
NO_TOKEN = -1  # in the place of one, where fewer are shown
BYTE = "·"  # of a token that is part of the characters of the one before it
MAX_PIECE = 64  # characters kept of a token


class AttentionRow(NamedTuple):
    """What is kept of the attention of one query."""

    query: int
    shown: list[int]  # positions of keys
    weights: Float64[np.ndarray, " shown"]
    n_keys: int  # that the query may attend to
    to_first: float  # the share of the text's first token
    effective_keys: float  # exp of the row's entropy


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


def find_strongest(
    maps: AttentionMaps, layer: int, rests: Bool[np.ndarray, " key"]
) -> tuple[Float64[np.ndarray, " head"], Int64[np.ndarray, " head"]]:
    """Return of each head of a layer how strong its strongest row is, and the row's query.

    It is w log₂(w n) of the largest weight w among n keys: what that key alone adds to the divergence from an equal
    share. A row that looks most at where heads rest, the first token and markers, is weaker than any other.
    """
    of_rows, n_keys = compute_statistics(maps, layer), count_attendable(maps, layer)
    strengths = np.where(rests[of_rows.peak_keys], -of_rows.peaks, of_rows.peaks * np.log2(of_rows.peaks * n_keys))
    best = strengths.argmax(axis=-1)
    return strengths[np.arange(len(best)), best], np.flatnonzero(real_queries(maps))[best]


def read_row(maps: AttentionMaps, layer: int, head: int, query: int, rests: Bool[np.ndarray, " key"]) -> AttentionRow:
    """Return one row of attention, cut to what is shown of it."""
    at = np.array([query])
    row = maps.rows(layer, head, at)[0].astype(np.float64)
    row /= row.sum()
    shown = choose_shown(query, int(np.where(rests, -1.0, row).argmax()), len(row))
    n_keys = int(maps.read_allowed(layer, at).sum())
    return AttentionRow(query, shown, row[shown], n_keys, float(row[0]), float(np.exp(compute_entropies(row))))


def choose_shown(query: int, key: int, n_tokens: int) -> list[int]:
    """Return the positions around a query and around the key that it looks at, in order."""
    around = (range(query - BEFORE, query + AFTER + 1), range(key - NEAR, key + NEAR + 1))
    return sorted({position for stretch in around for position in stretch if 0 <= position < n_tokens})


def mix_hashes(text_hash: int, positions: Int64[np.ndarray, " position"]) -> UInt64[np.ndarray, " position"]:
    """Return a hash of a text's and each position (SplitMix64; Steele et al. 2014, doi:10.1145/2660193.2660195)."""
    mixed = np.uint64(text_hash) + (positions.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def read_piece(tokens: Tokens, position: int) -> str:
    """Return a token's characters, after a space where the text has room before it; of one that is a further byte of
    the same characters as the token before it, a dot.
    """
    piece, here, before = tokens.pieces[position], tokens.offsets[position], tokens.offsets[max(0, position - 1)]
    if tokens.special[position]:
        return f" {piece}"[:MAX_PIECE]
    if position and here == before and here[0] < here[1]:
        return BYTE
    apart = position > 0 and here[0] > before[1] and not piece.startswith(" ")
    return f"{' ' * apart}{piece}"[:MAX_PIECE]
