"""Mean attention distance. Knows records only."""

from __future__ import annotations

import numpy as np

from attnviz.errors import BadOption
from attnviz.measures.rows import per_head
from attnviz.records import AttentionMaps, Measurement


def distance(maps: AttentionMaps) -> Measurement:
    """Mean over queries of Σ w |query position - key position| (Vig and Belinkov 2019, arXiv:1906.04284).

    Tokens, from 0 (each token attends to itself) to the largest distance that may be attended to. Self-attention
    only: positions in two texts have no distance. Raises BadOption otherwise.
    """
    if not maps.self_attention:
        raise BadOption("distance needs self-attention", hint="Queries and keys of this record are different texts.")
    positions = np.arange(len(maps.queries))
    apart = np.abs(positions[:, None] - positions)[maps.real_queries]
    farthest = float(apart[maps.attendable_anywhere[maps.real_queries]].max())
    values = per_head(maps, lambda rows: float((rows * apart).sum(axis=-1).mean()))
    return Measurement("distance", "tokens", values, (0.0, farthest))
