"""What an average of the heads would lose. Knows records only."""

from __future__ import annotations

from math import log

import numpy as np

from attnviz.measures.rows import entropies, head_rows, layer_entropies, real_queries
from attnviz.records import AttentionMaps, JointMeasurement


def resolution_lost(maps: AttentionMaps) -> JointMeasurement:
    """Mean over heads and queries of the Jensen-Shannon divergence of a head from the mean of the layer's heads.

    Nats, from 0 (copies, or one head alone) to below ln 2 (Lin 1991, doi:10.1109/18.61115). Vaswani et al. 2017,
    arXiv:1706.03762, have several heads because averaging reduces the effective resolution: this is how far the
    average is from what it averages. Two heads with no common key lose 0.216. It compares the heads with their own
    average, not with what a model trained with a single head attends to.
    """

    values = np.array([_lost(maps, layer) for layer in range(maps.n_layers)])
    return JointMeasurement("resolution_lost", "nats", values, (0.0, log(2)))


def _lost(maps: AttentionMaps, layer: int) -> float:
    """As `jsd` has it, one head at a time, with what is known of the heads' own entropies."""
    mean = np.zeros((int(real_queries(maps).sum()), len(maps.keys)))
    for head in range(maps.n_heads):
        mean += head_rows(maps, layer, head)
    mean /= maps.n_heads
    own, of_mean, lost = layer_entropies(maps, layer), entropies(mean), 0.0
    for head in range(maps.n_heads):
        mixed = entropies((head_rows(maps, layer, head) + mean) / 2)
        lost += float(np.maximum(mixed - (own[head] + of_mean) / 2, 0.0).mean())
    return lost / maps.n_heads
