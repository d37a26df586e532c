"""Moments: single rows of attention, of each head those that aim most and some drawn at random. Knows records.

A mean over a corpus says how much a head does something, and not what it does. So of each head a few rows are kept, cut
to the tokens around the query and around the key that it looks at. All heads have the same random ones, drawn by a hash
of the text and the position, so that they can be compared; no text gives a head more than one of its strongest. Both
are the largest of ranks, of equal ones the first, so that parts merge to the same rows in any order.
"""

from collections.abc import Sequence
from functools import cache, partial
from itertools import chain, product
from typing import Any

import numpy as np
from jaxtyping import Int64, UInt64

from attnviz.measures.notable import find_strongest, read_row
from attnviz.records import AttentionMaps
from attnviz.table.numbers import Numbers, concat, stack
from attnviz.table.parquet import INTEGER, INTEGERS, NUMBER, NUMBERS, TEXT, TEXTS
from attnviz.views.tokens import read_piece

N_MOMENTS = 6  # of each kind
STRONGEST, RANDOM = KINDS = "strongest", "random"
MOMENT_KEYS = {"layer": INTEGER, "head": INTEGER, "kind": TEXT, "text": INTEGER, "query": INTEGER}
MOMENT_COLUMNS = MOMENT_KEYS | {
    "rank": NUMBER,  # what it is the largest by
    "keys": INTEGERS,  # positions of those that are shown, in order
    "weights": NUMBERS,  # what they receive
    "tokens": TEXTS,  # each after a space where the text has room before it; none where words are not kept
    "n_keys": INTEGER,  # this and the next ones: see `read_row`
    "to_first": NUMBER,
    "effective_keys": NUMBER,
}


def keep_moments(parts: Sequence[Numbers]) -> Numbers:
    """Keep the moments of the largest ranks, of equal ones those of the first texts and positions."""
    whole = stack(parts)
    ranked = ((of, np.argsort(-of.array("rank"), kind="stable")) for _, of in whole.group("layer", "head", "kind"))
    kept = [of.take(np.sort(order[:N_MOMENTS])) for of, order in ranked]
    return concat(kept) if kept else whole


class MomentCollector:
    """The moments of the texts of one block, while they are read."""

    def __init__(self, heads: Sequence[tuple[int, int]], has_words: bool) -> None:
        self.heads, self.has_words = heads, has_words
        self._rows: dict[tuple[str, int], list[dict[str, Any]]] = {of: [] for of in product(KINDS, range(len(heads)))}

    def add(self, text: int, maps: AttentionMaps, text_hash: int) -> None:
        """Keep those of a text that are among the strongest or the random ones so far."""
        rests = maps.keys.markers.copy()
        rests[0] = True
        drawn, read = self._draw(maps, text_hash), cache(partial(read_piece, maps.keys))
        for layer in range(maps.n_layers):
            strengths, queries = find_strongest(maps, layer, rests)
            for head in range(maps.n_heads):
                place, chosen = layer * maps.n_heads + head, [(RANDOM, *each) for each in drawn]
                if strengths[head] > self._find_least((STRONGEST, place)):
                    chosen.append((STRONGEST, float(strengths[head]), int(queries[head])))
                for kind, rank, query in chosen:
                    row = read_row(maps, layer, head, query, rests)
                    row |= dict(zip(MOMENT_KEYS, (*self.heads[place], kind, text, query), strict=True))
                    row |= {"rank": rank, "tokens": list(map(read, row["keys"])) if self.has_words else []}
                    rows = [*self._rows[kind, place], row]
                    rows.sort(key=lambda of: (-of["rank"], of["text"], of["query"]))
                    self._rows[kind, place] = rows[:N_MOMENTS]

    def _find_least(self, of: tuple[str, int]) -> float:
        """Return the rank that a moment has to exceed to be kept."""
        rows = self._rows[of]
        return rows[-1]["rank"] if len(rows) == N_MOMENTS else -np.inf

    def _draw(self, maps: AttentionMaps, text_hash: int) -> list[tuple[float, int]]:
        """Return the ranks and the positions of a text's random moments that are among those of the block."""
        positions = np.flatnonzero(maps.real_queries)[1:]  # the first has nothing to choose from in a causal text
        ranks = -mix_hashes(text_hash, positions).astype(np.float64) / 2.0**64
        order = np.lexsort((positions, -ranks))[:N_MOMENTS]
        least = self._find_least((RANDOM, 0))
        drawn = zip(ranks[order].tolist(), positions[order].tolist(), strict=True)
        return [(rank, position) for rank, position in drawn if rank > least]

    def table(self) -> Numbers:
        """Return a row per moment."""
        return Numbers.from_rows(chain.from_iterable(self._rows.values()), [*MOMENT_KEYS], MOMENT_COLUMNS).sort()


def mix_hashes(text_hash: int, positions: Int64[np.ndarray, " position"]) -> UInt64[np.ndarray, " position"]:
    """Return a hash of a text's and each position (SplitMix64; Steele et al. 2014, doi:10.1145/2660193.2660195)."""
    mixed = np.uint64(text_hash) + (positions.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))
