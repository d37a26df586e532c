"""How unlike heads are, on average. Knows records only."""

from __future__ import annotations

from math import log

import numpy as np

from attnviz.measures.divergence import of_layer
from attnviz.records import AttentionMaps, Measurement


def head_divergence(maps: AttentionMaps) -> Measurement:
    """Mean over pairs of heads and over queries of their Jensen-Shannon divergence (Clark et al. 2019, section 6).

    Nats, from 0 (copies, or one head alone) to ln 2 (no two heads attend to a common key); arXiv:1906.04341. It says
    that heads attend differently, not that the difference is of use.
    """
    n_pairs = max(1, maps.n_heads * (maps.n_heads - 1))  # each two heads twice, and no head with itself
    means = [of_layer(maps, layer).sum() / n_pairs for layer in range(maps.n_layers)]
    return Measurement("head_divergence", "nats", np.array(means), (0.0, log(2)))
