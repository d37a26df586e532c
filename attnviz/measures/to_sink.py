"""Attention to a learned sink. Knows records only."""

from __future__ import annotations

import numpy as np

from attnviz.records import AttentionMaps, Measurement


def to_sink(maps: AttentionMaps) -> Measurement:
    """Mean over queries of the share that goes to no token, but to a sink that the model has learned.

    A share, from 0 to 1; 0 where the model has no such place. It is what OpenAI's gpt-oss adds to the denominator of
    each softmax (arXiv:2508.10925, section 2); the first token as a sink is `to_first`.
    """
    if maps.sink is None:
        values = np.zeros((maps.n_layers, maps.n_heads))
    else:
        values = maps.sink[:, :, maps.real_queries].mean(axis=-1, dtype=np.float64)
    return Measurement("to_sink", "share", values, (0.0, 1.0))
