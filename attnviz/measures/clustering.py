"""Which heads belong side by side. Knows arrays only."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float


def clustered(distances: Float[np.ndarray, "head head"]) -> tuple[int, ...]:
    """An order in which like heads are neighbours: average linkage (Sokal & Michener 1958, UPGMA), its leaves in order.

    The two clusters that are nearest on average are joined again and again, of equals the earliest; the one with the
    earlier head comes first.
    """
    clusters: list[tuple[int, ...]] = [(head,) for head in range(len(distances))]
    between = distances.astype(np.float64).copy()
    np.fill_diagonal(between, np.inf)
    while len(clusters) > 1:
        one, other = sorted(int(i) for i in np.unravel_index(between.argmin(), between.shape))
        sizes = len(clusters[one]), len(clusters[other])
        joined = (sizes[0] * between[one] + sizes[1] * between[other]) / sum(sizes)
        between[one], between[:, one] = joined, joined
        between[one, one] = np.inf
        between = np.delete(np.delete(between, other, axis=0), other, axis=1)
        clusters[one] += clusters.pop(other)
    return clusters[0] if clusters else ()
