"""Mean attention distance. Knows records only."""

from __future__ import annotations

import numpy as np

from attnviz.errors import InvalidOption
from attnviz.measures.rows import farthest_attendable, statistics
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
    values = np.array([statistics(maps, layer).distances.mean(axis=-1) for layer in range(maps.n_layers)])
    farthest = float(farthest_attendable(maps))
    return Measurement("distance", "tokens", values, (0.0, farthest))
