"""Which heads are alike, in words."""

from collections.abc import Sequence

import numpy as np

from attnviz.measures.divergence import Divergences, to_similarity

N_PAIRS = 3  # of the heads that are most alike
SIMILARITY = "1 - mean JSD in bits"


def describe_likeness(divergences: Divergences, names: Sequence[str]) -> str:
    """Say which of two heads or more are most alike, beside the median pair, and which is the least like any other."""
    similar = to_similarity(divergences)
    one, other = np.triu_indices(len(similar), 1)
    of_pairs = similar[one, other]
    best = np.argsort(-of_pairs, kind="stable")[:N_PAIRS]  # of equal ones the earliest
    pairs = ", ".join(f"{names[one[n]]} and {names[other[n]]} ({_write(of_pairs[n])})" for n in best)
    if len(of_pairs) == 1:
        return f"How alike heads are here ({SIMILARITY}): {pairs}."
    np.fill_diagonal(similar, -1.0)
    nearest = similar.max(axis=1)
    head = int(nearest.argmin())
    most, median, least = map(_write, (of_pairs[best[0]], np.median(of_pairs), nearest[head]))
    if most == median == least:
        return f"No two heads are more alike than the others here ({SIMILARITY}): {least}."
    far = f"least like any other {names[head]} ({least})"
    return f"Heads most alike here ({SIMILARITY}): {pairs}; median pair {median}; {far}."


def _write(similarity: float) -> str:
    """Format a similarity to three digits: ".787"."""
    return f"{similarity:.3f}".removeprefix("0")
