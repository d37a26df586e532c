"""Attention that makes no choice: what measures are compared with. Knows records only."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from attnviz.measures.rows import n_attendable
from attnviz.records import AttentionMaps, Facts
from attnviz.records.even import evenly
from attnviz.records.factored import FactoredMaps


def uniform(maps: AttentionMaps) -> AttentionMaps:
    """One head, one layer, or as many as allow different attention: every query attends alike to all keys that it may
    attend to. The same tokens.
    """
    provenance = replace(
        maps.provenance, model="uniform", revision="no weights", trained=False, settings=(), facts=Facts()
    )
    if isinstance(maps, FactoredMaps):  # of which there may be too many weights to hold
        n_allowed = np.empty(len(maps.queries), dtype=np.int64)
        n_allowed[maps.real_queries] = n_attendable(maps, 0)
        padding = np.flatnonzero(~maps.real_queries)
        n_allowed[padding] = maps.allowed(0, padding).sum(axis=-1)
        alike = evenly(maps.factors[0], n_allowed)
        maps = replace(maps, factors=(alike,), layer_numbers=(), head_numbers=(), value_norms=None)
        return replace(maps, provenance=provenance)
    attendable = maps.attendable[:1] if maps.layers_alike else maps.attendable
    shares = (1 / attendable.sum(axis=-1, keepdims=True)).astype(np.float32)
    return AttentionMaps(
        weights=(attendable * shares)[:, None],
        queries=maps.queries,
        keys=maps.keys,
        attendable=attendable,
        provenance=provenance,
    )
