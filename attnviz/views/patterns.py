"""What heads look at, in words where a measure says so. Knows records and measures."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from attnviz.measures import MEASURES, SOME_TEXTS_MEASURES
from attnviz.measures.concentration import make_uniform, query_information
from attnviz.measures.rows import MAX_OFFSET, real_queries, sum_by_distance
from attnviz.measures.shares import is_punctuation
from attnviz.measures.to_partner import find_partner_pairs
from attnviz.records import AttentionMaps
from attnviz.records.training_metrics import (
    LARGE_MULTIPLE,
    LARGE_SHARE,
    MIN_MULTIPLE,
    MIN_SHARE,
    PLACE,
    name_offset,
)
from attnviz.registry import load

LABELS = {measure.name: measure.label for measure in MEASURES if measure.label}
OF_OFFSETS = frozenset({"to_self", "to_previous", "to_next"})  # of which each names a head like any other offset
# Of a head in one text: only some texts have pairs, and only some models have learned a sink.
PATTERNS = {name: label for name, label in LABELS.items() if name not in (*SOME_TEXTS_MEASURES, *OF_OFFSETS, "to_sink")}
FOR_LABELS = frozenset(LABELS) - {"to_sink"}  # what a survey measures to name heads, and lists apart
MOST = 0.5  # of all attention
ALIKE = 0.01  # nats of `query_information`, below which rows are the same to the eye
NO_PATTERN, NOT_NAMED = "no single pattern", "-"


def can_look_at(maps: AttentionMaps, pattern: str) -> bool:
    """Return whether a text has what a pattern is about: brackets, signs, a word twice, a token so far away.

    True of a pattern that only training measures, such as "sentence start".
    """
    tokens, n = maps.keys, len(maps.keys)
    if PLACE.fullmatch(pattern):
        return pattern in map(name_offset, range(1 - n, 1 if maps.provenance.facts.causal else n))
    if pattern == LABELS["to_partner"]:
        return len(find_partner_pairs(maps)[0]) > 0
    if pattern == LABELS["to_punctuation"]:
        return any(map(is_punctuation, tokens.distinct_pieces))
    if pattern == LABELS["to_same_word"]:
        words = np.array(tokens.words)[tokens.places][~tokens.markers]
        return len(np.unique(words)) < len(words)
    return True


def find_looking(maps: AttentionMaps, pattern: str) -> Bool[np.ndarray, "layer head"]:
    """Find the heads of which this text shows a pattern, by the shares and multiples that `name_patterns` asks for.

    None, where the text has nothing of the kind; all, where no measure says it ("sentence start") or it takes too long.
    """
    every = np.full((maps.n_layers, maps.n_heads), can_look_at(maps, pattern))
    measures = [
        each for each in MEASURES if each.label == pattern and (maps.self_attention or not each.self_attention_only)
    ]
    if maps.is_factored or not measures or not every.all():
        return every
    share, equal = (load(measures[0])(of).values for of in (maps, make_uniform(maps)))
    return _stands_out(share.round(2), np.broadcast_to(equal, share.shape))


def _stands_out(share: Float[np.ndarray, "*any"], equal: Float[np.ndarray, "*any"]) -> Bool[np.ndarray, "*any"]:
    """Whether a share of attention is a pattern: large, or many times what equal attention would give."""
    large = (share >= LARGE_SHARE) & (share >= MIN_MULTIPLE * equal)
    return np.asarray(large | ((share >= MIN_SHARE) & (share >= LARGE_MULTIPLE * equal)))


def name_patterns(maps: AttentionMaps) -> list[list[str]]:
    """Return of each layer's heads the pattern with the largest share of attention, such as "previous token 0.92"."""
    if maps.queries.mostly_unknown or maps.keys.mostly_unknown:  # what is one and the same token shows places alone
        return [[NOT_NAMED] * maps.n_heads for _ in range(maps.n_layers)]
    uniform_maps = make_uniform(maps)
    names, shares, equals = [], [], []
    for measure in MEASURES:
        if measure.name in PATTERNS and (maps.self_attention or not measure.self_attention_only):
            names.append(PATTERNS[measure.name])
            shares.append(load(measure)(maps).values)
            equals.append(np.broadcast_to(load(measure)(uniform_maps).values, shares[-1].shape))
    if maps.self_attention:
        n_queries = int(real_queries(maps).sum())
        by_offset, equal_by_offset = (sum_by_distance(of) / n_queries for of in (maps, uniform_maps))
        for offset in sorted(range(-MAX_OFFSET, MAX_OFFSET + 1), key=abs):  # of equal shares the nearest place is taken
            names.append(name_offset(offset))
            shares.append(by_offset[..., MAX_OFFSET + offset])
            equals.append(np.broadcast_to(equal_by_offset[..., MAX_OFFSET + offset], shares[-1].shape))
    share, equal = np.stack(shares).round(2), np.stack(equals)  # as they are shown; of equal ones the first is taken
    seen = np.where(_stands_out(share, equal), share, 0.0)
    best, best_share = seen.argmax(axis=0), seen.max(axis=0)
    alike = np.zeros(share.shape[1:], dtype=bool)
    if len(maps.queries) > 2 and all(maps.allows_all(layer) for layer in range(maps.n_layers)):
        alike = (query_information(maps).values < ALIKE) & (best_share < MOST)  # else what they all attend to says more
    found = [
        [f"{names[n]} {value:.2f}" if value else NO_PATTERN for n, value in zip(*layer, strict=True)]
        for layer in zip(best, best_share, strict=True)
    ]
    return [
        ["all queries alike" if same else name for name, same in zip(*of_layer, strict=True)]
        for of_layer in zip(found, alike, strict=True)
    ]
