"""Means of the rows of two heads, and their entropies, which divergences come of. Knows records, and no measure."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32, Float64

from attnviz.measures.rows import QueryBlock, cache_on_record, real_queries, row_sums, split_real_queries
from attnviz.records import TINY, AttentionMaps
from attnviz.records.arithmetic import dot

RecordRows = Float32[np.ndarray, "query key"]
HEADS_PER_STEP = 8  # heads mixed with one other at a time


def split_mixed_blocks(maps: AttentionMaps) -> tuple[QueryBlock, ...]:
    """Split the real queries into blocks of which several heads are held at a time."""
    return split_real_queries(maps, 4 * len(maps.keys))


def read_halved_rows(maps: AttentionMaps, layer: int, block: QueryBlock) -> Float32[np.ndarray, "head query key"]:
    """Return half of each row of a layer's heads, for means of two, in float32 and without zeros."""
    scales = (0.5 / row_sums(maps, layer)[:, block.places, None]).astype(np.float32)
    found = np.empty((*scales.shape[:2], len(maps.keys)), dtype=np.float32)
    for heads in maps.heads_at_once:
        np.multiply(maps.rows(layer, heads, block.queries), scales[heads], out=found[heads])
        found[heads] += TINY
    return found


class Mixer:
    """Entropies of means of two rows, each given as half of it, in float32 and in memory that is taken once: to take it
    anew costs as much.
    """

    def __init__(self, n_queries: int, n_keys: int) -> None:
        self._sums, self._terms = (np.empty((HEADS_PER_STEP, n_queries, n_keys), np.float32) for _ in range(2))

    def entropies(
        self, one: RecordRows, others: Float32[np.ndarray, "head query key"]
    ) -> Float64[np.ndarray, "head query"]:
        """Return the entropies, in nats, of the means of one head's rows and those of each of the others."""
        found = np.empty(others.shape[:2])
        for start in range(0, len(others), HEADS_PER_STEP):
            several = others[start : start + HEADS_PER_STEP]
            sums = np.add(several, one, out=self._sums[: len(several)])
            terms = np.log(sums, out=self._terms[: len(several)])
            found[start : start + HEADS_PER_STEP] = dot(terms, sums)
        return np.negative(found, out=found)


@cache_on_record
def compute_own_entropies(maps: AttentionMaps, layer: int) -> Float64[np.ndarray, "head query"]:
    """Return the entropy of each head's rows as `Mixer` computes it: the mean of two copies has the very same."""
    found = np.empty((maps.n_heads, int(real_queries(maps).sum())))
    for block in split_mixed_blocks(maps):
        rows = read_halved_rows(maps, layer, block)
        mixer = Mixer(*rows.shape[1:])
        for head, of_head in enumerate(rows):
            found[head, block.places] = mixer.entropies(of_head, of_head[None])[0]
    return found
