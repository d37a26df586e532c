"""Attention to markers. Knows records only."""

from __future__ import annotations

from attnviz.measures.rows import share_on
from attnviz.records import AttentionMaps, Measurement


def to_special(maps: AttentionMaps) -> Measurement:
    """Mean over queries of the weight on the markers that the model added, such as [CLS] (Clark et al. 2019).

    A share, from 0 to 1; 0 where the model adds none (arXiv:1906.04341, who read much of it as attending to nothing).
    A marker that somebody wrote into the text does not count.
    """
    return Measurement("to_special", "share", share_on(maps, maps.keys.markers), (0.0, 1.0))
