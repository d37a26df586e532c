"""What an average of the heads would lose. Knows records only."""

from __future__ import annotations

from math import log

from attnviz.measures.divergence import jsd
from attnviz.measures.rows import LayerRows, per_layer
from attnviz.records import AttentionMaps, JointMeasurement


def resolution_lost(maps: AttentionMaps) -> JointMeasurement:
    """Mean over heads and queries of the Jensen-Shannon divergence of a head from the mean of the layer's heads.

    Nats, from 0 (copies, or one head alone) to below ln 2 (Lin 1991, doi:10.1109/18.61115). Vaswani et al. 2017,
    arXiv:1706.03762, have several heads because averaging reduces the effective resolution: this is how far the
    average is from what it averages. Two heads with no common key lose 0.216. It compares the heads with their own
    average, not with what a model trained with a single head attends to.
    """

    def number(rows: LayerRows) -> float:
        return float(jsd(rows, rows.mean(axis=0)).mean())

    return JointMeasurement("resolution_lost", "nats", per_layer(maps, number), (0.0, log(2)))
