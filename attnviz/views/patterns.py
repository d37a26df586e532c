"""What heads look at, in words where a measure says so. Knows records and measures."""

from __future__ import annotations

import numpy as np

from attnviz.measures import MEASURES
from attnviz.measures.uniform import uniform
from attnviz.records import AttentionMaps
from attnviz.registry import load

PATTERNS = {
    "to_previous": "previous token",
    "to_next": "next token",
    "to_self": "itself",
    "to_first": "first token",
    "to_same_word": "same word",
    "to_punctuation": "punctuation",
    "to_special": "special tokens",
}
NO_PATTERN = "no single pattern"
# A share counts as a pattern where it is large and more than uniform attention gives (most of a text of three tokens
# is "large"), or many times what uniform attention gives, and not next to nothing (5 of 500 keys get 0.01).
LARGE_SHARE, MORE = 0.25, 2.0
MIN_SHARE, MANY_TIMES = 0.1, 5.0


def patterns(maps: AttentionMaps) -> list[list[str]]:
    """Of each layer's heads the pattern with the largest share of attention, such as "previous token 0.92"."""
    uniform_maps = uniform(maps)
    names, shares, equals = [], [], []
    for measure in MEASURES:
        if measure.name in PATTERNS and (maps.self_attention or not measure.self_attention_only):
            names.append(PATTERNS[measure.name])
            shares.append(load(measure)(maps).values)
            equals.append(np.broadcast_to(load(measure)(uniform_maps).values, shares[-1].shape))
    share, equal = np.stack(shares).round(2), np.stack(equals)  # as they are shown; of equal ones the first is taken
    large = (share >= LARGE_SHARE) & (share >= MORE * equal)
    special = (share >= MIN_SHARE) & (share >= MANY_TIMES * equal)
    seen = np.where(large | special, share, 0.0)
    best, best_share = seen.argmax(axis=0), seen.max(axis=0)
    return [
        [f"{names[n]} {value:.2f}" if value else NO_PATTERN for n, value in zip(*layer, strict=True)]
        for layer in zip(best, best_share, strict=True)
    ]
