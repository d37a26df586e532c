"""Which heads are alike, in words. Knows records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import comb

import numpy as np

from attnviz.measures.divergence import Divergences, find_alike, measure_divergences_across
from attnviz.records import AttentionMaps
from attnviz.report import Note
from attnviz.views.head_pictures import Place

SIMILARITY = "1 - mean JSD in bits"
MAX_WORK = 2**27  # weights mixed for all pairs of heads, about 0.15 s: 270 heads of 60 tokens, 72 of 229


def describe_likeness(divergences: Divergences, names: Sequence[str]) -> str:
    """Say which of two heads or more are most alike, beside the median pair, and which is the least like any other."""
    found = find_alike(divergences)
    pairs = ", ".join(f"{names[one]} and {names[other]} ({_write(similar)})" for one, other, similar in found.pairs)
    if found.n_pairs == 1:
        return f"How alike heads are here ({SIMILARITY}): {pairs}."
    head, nearest = found.farthest
    if _write(found.pairs[0][2]) == _write(found.median) == _write(nearest):
        return f"No two heads are more alike than the others here ({SIMILARITY}): {_write(nearest)}."
    least = f"least like any other {names[head]} ({_write(nearest)})"
    return f"Heads most alike here ({SIMILARITY}): {pairs}; median pair {_write(found.median)}; {least}."


def _write(similarity: float) -> str:
    """ ".787"."""
    return f"{similarity:.3f}".removeprefix("0")


def describe_alike_heads(maps: AttentionMaps, places: Sequence[Place]) -> Iterator[Note]:
    """Say it of the heads that are drawn, where the pairs of all heads of the record are soon compared; or that not."""
    drawn = [layer * maps.n_heads + head for layer, head in places]
    n_pairs = comb(maps.n_layers * maps.n_heads, 2)
    if len(drawn) < 2:
        return
    if n_pairs * len(maps.queries) * len(maps.keys) > MAX_WORK:
        many = f"{n_pairs:,} pairs over {len(maps.queries):,} × {len(maps.keys):,} weights"
        yield Note(
            f"Which heads are alike is not said here: {many} take long. attnviz compare says it.", is_detail=True
        )
        return
    names = [f"{maps.layer_numbers[layer]}.{maps.head_numbers[head]}" for layer, head in places]
    yield Note(describe_likeness(measure_divergences_across([maps])[np.ix_(drawn, drawn)], names), is_detail=True)
