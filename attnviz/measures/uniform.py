"""Attention that makes no choice: what measures are compared with. Knows records only."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from attnviz.record import AttentionMaps


def uniform(maps: AttentionMaps) -> AttentionMaps:
    """One layer, one head: every query attends alike to all keys that it may attend to. The same tokens."""
    weights = maps.attendable / maps.attendable.sum(axis=-1, keepdims=True)
    return AttentionMaps(
        weights=weights[None, None].astype(np.float32),
        queries=maps.queries,
        keys=maps.keys,
        attendable=maps.attendable,
        provenance=replace(maps.provenance, model="uniform", revision="no weights", trained=False, settings=()),
    )
