"""What heads look at, in words where a measure says so. Knows records and measures."""

from __future__ import annotations

import numpy as np

from attnviz.measures import MEASURES
from attnviz.records import AttentionMaps
from attnviz.registry import load
from attnviz.training_metrics import HeadMetrics, HeadScore

PATTERNS = {
    "to_previous": "previous token",
    "to_next": "next token",
    "to_self": "itself",
    "to_first": "first token",
    "to_same_word": "same word",
    "to_punctuation": "punctuation",
    "to_special": "special tokens",
}
# Of a head over many texts: only some texts have pairs, and only some models have learned a sink.
LABELS = {**PATTERNS, "to_partner": "bracket/quote", "to_sink": "sink"}
FOR_LABELS = frozenset(LABELS) - {"to_sink"}  # what a survey measures to name heads, and lists apart
NO_PATTERN = "no single pattern"
# A share counts as a pattern where it is large and more than uniform attention gives (most of a text of three tokens
# is "large"), or many times what uniform attention gives, and not next to nothing (5 of 500 keys get 0.01).
LARGE_SHARE, MORE = 0.25, 2.0
MIN_SHARE, MANY_TIMES = 0.1, 5.0


def patterns(maps: AttentionMaps) -> list[list[str]]:
    """Of each layer's heads the pattern with the largest share of attention, such as "previous token 0.92"."""
    from attnviz.measures.concentration import (
        uniform,  # not where only names of heads are wanted, that are known already
    )

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


RARE = "own bracket"  # few queries have one, so that chance comes to many times an equal share


def head_names(measured: HeadMetrics, large: float = LARGE_SHARE) -> list[list[tuple[str, float, float] | None]]:
    """What each layer's heads look at over many texts: the pattern, its share, and that as a multiple of an equal one.

    None where no share is both beyond chance and `large`, or many times an equal one; of several patterns the one that
    goes furthest beyond `large`, of those that do not the largest share.
    """
    found = []
    for layer, shares in enumerate(measured.scores[0].shares):
        found.append([_head_name(measured, layer, head, large) for head in range(len(shares))])
    return found


def _head_name(measured: HeadMetrics, layer: int, head: int, large: float) -> tuple[str, float, float] | None:
    seen = []
    for score in measured.scores:
        share = score.shares[layer][head]
        if share > measured.chance.get(score.name, 1.0) and _strength(score, share, large) >= 1:
            seen.append((_strength(score, share, large), share, score.name, share / score.equal))
    _, share, name, multiple = max(seen, default=(0.0, 0.0, "", 0.0))
    return (name, share, multiple) if name else None


def _strength(score: HeadScore, share: float, large: float) -> float:
    """1 where a share is just large enough to name a head."""
    multiple = 0.0 if score.name == RARE else share / score.equal / MANY_TIMES
    return max(share / large, min(multiple, 1.0))
