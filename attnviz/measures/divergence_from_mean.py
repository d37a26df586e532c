"""What an average of the heads would lose. Knows records only."""

from __future__ import annotations

from math import log

import numpy as np

from attnviz.measures.rows import blocks, mixable, own_entropies, real_queries
from attnviz.records import AttentionMaps, Measurement


def divergence_from_mean(maps: AttentionMaps) -> Measurement:
    """Mean over heads and queries of the Jensen-Shannon divergence of a head from the mean of the layer's heads.

    Nats, from 0 (copies, or one head alone) to `max_divergence_from_mean` (Lin 1991, doi:10.1109/18.61115). Vaswani et
    al. 2017, arXiv:1706.03762, have several heads because averaging reduces the effective resolution: this is how far
    the average is from what it averages. It compares the heads with their own average, not with what a model trained
    with a single head attends to.
    """
    values = np.array([_lost(maps, layer) for layer in range(maps.n_layers)])
    return Measurement("divergence_from_mean", "nats", values, (0.0, max_divergence_from_mean(maps.n_heads)))


def max_divergence_from_mean(n_heads: int) -> float:
    """The largest mean of JSD(p_i, m) over h heads p_i, m their mean: f(1/h), f(s) = ln 2 + (s ln s - (1+s) ln(1+s))/2.

    Nats: 0, 0.216, 0.380, 0.497, 0.546 for h = 1, 2, 4, 8, 12, rising to ln 2. JSD is convex in both arguments at once
    and m is linear in the heads, so the mean over heads is largest where each head attends to one key only. Where m
    puts a share s on that key, the head is ½ ln(2/(1+s)) + ½ (s ln(2s/(1+s)) + (1-s) ln 2) = f(s) away from m. f falls
    as s grows (its derivative is ½ ln(s/(1+s))), and s is at least 1/h, the head's own part. So the mean is at most
    f(1/h), reached where no two heads have a key in common; a query with fewer keys than heads stays below.
    """
    share = 1 / n_heads
    return log(2) - ((1 + share) * log(1 + share) - share * log(share)) / 2


def _lost(maps: AttentionMaps, layer: int) -> float:
    if maps.n_heads == 1:  # nothing, and not what rounding makes of it: texts would be put in order by that
        return 0.0
    lost = 0.0
    for block in blocks(maps, 2):
        rows, mixer = mixable(maps, layer, block)
        mean = rows.mean(axis=0)
        own = own_entropies(maps, layer)[:, block.places]
        apart = mixer.entropies(mean, rows) - (own + mixer.entropies(mean, mean[None])) / 2
        lost += float(np.maximum(apart, 0.0).sum())
    return lost / (maps.n_heads * int(real_queries(maps).sum()))
