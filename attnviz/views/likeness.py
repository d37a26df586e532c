"""Which heads are alike, in words."""

from __future__ import annotations

from collections.abc import Sequence

from attnviz.measures.divergence import Divergences, find_alike

SIMILARITY = "1 - mean JSD in bits"


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
