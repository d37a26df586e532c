"""Single rows of attention, cut to what can be read of them: which row aims most, and what is kept of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int64

from attnviz.measures.rows import compute_entropies, compute_statistics, count_attendable, real_queries
from attnviz.records import AttentionMaps

BEFORE, AFTER, NEAR = 16, 4, 3  # tokens shown before and after the query, and on either side of the key


class AttentionRow(NamedTuple):
    """What is kept of the attention of one query."""

    query: int
    shown: list[int]  # positions of keys
    weights: Float64[np.ndarray, " shown"]
    n_keys: int  # that the query may attend to
    to_first: float  # the share of the text's first token
    effective_keys: float  # exp of the row's entropy


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
