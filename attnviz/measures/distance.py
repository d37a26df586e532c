"""Mean attention distance. Knows records only."""

from __future__ import annotations

import numpy as np

from attnviz.errors import InvalidOption
from attnviz.measures.rows import per_head, real_queries
from attnviz.records import AttentionMaps, Measurement


def distance(maps: AttentionMaps) -> Measurement:
    """Mean over queries of Σ w |query position - key position| (Vig and Belinkov 2019, arXiv:1906.04284).

    Tokens, from 0 (each token attends to itself) to the largest distance that may be attended to. Self-attention
    only: positions in two texts have no distance. Raises InvalidOption otherwise.
    """
    if not maps.self_attention:
        raise InvalidOption(
            "distance needs self-attention", hint="Queries and keys of this record are different texts."
        )
    positions = np.arange(len(maps.queries), dtype=np.float64)
    apart = np.abs(positions[real_queries(maps), None] - positions)
    farthest = float((apart * maps.attendable_anywhere[real_queries(maps)]).max())
    values = per_head(maps, lambda rows: np.vecdot(rows.astype(np.float64), apart))
    return Measurement("distance", "tokens", values, (0.0, farthest))
