"""What the heads of one text look at, by name. Knows records only.

Whether a share of attention may be chance is tested by what each query could have done instead. A place from the
query, or a word that comes twice, is a key of each query's own: had each row its weights at random among the keys that
the query may attend to, the mean share would be that of an equal one, and shares as large would have a probability of
at most exp(-n KL(share, equal share)), n the number of queries (Hoeffding 1963, theorem 1). Where several queries have
the same key, n is the number of keys: the queries of a head with one favourite key do not choose independently. Tokens
of a kind, such as punctuation, are the same keys for all queries. There it is drawn at random, without putting back,
which tokens are of the kind, which has the same bound (section 6) with n the number of such tokens. Where attention
rests is one key by what it is, a marker or the first token, and n is the number of queries.

Of the probability of 1 % that a head gets a name by chance, each pattern has a part: more of it those that are common.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from attnviz.measures.patterns import list_patterns
from attnviz.measures.rows import cache_on_record, find_unlike_layers
from attnviz.records import TINY, AttentionMaps
from attnviz.records.head_names import SINKS, HeadPattern, choose_names

MAX_CELLS = 2**22  # weights of a head that are read: of a long text, of queries that are evenly spaced
NEAR, COMMON, OTHERS = 0.001, 0.0007, 0.00025  # probabilities by chance: of each neighbour, of each kind, of the rest
KINDS = ("same word", "induction (after a repeat)", "punctuation", "special tokens", "first token")
LEVELS = dict.fromkeys(("previous token", "itself", "next token"), NEAR) | dict.fromkeys(KINDS, COMMON)


@cache_on_record
def name_heads(maps: AttentionMaps) -> tuple[tuple[HeadPattern, ...], ...]:
    """Return by layer and head what it looks at, and how much of its attention that is in this text.

    A head that the model's card names has that name here too; its share is NaN where the text has nothing of the kind.
    Others are named by this text alone. No head has a name of a model that has not learned anything, of a text that the
    vocabulary does not hold, or where tokens attend to those of another text.
    """
    nameless = maps.provenance.trained is False or maps.keys.mostly_unknown or not maps.self_attention
    if nameless:
        return ((HeadPattern(),) * maps.n_heads,) * maps.n_layers
    found = [list[HeadPattern]() for _ in range(maps.n_layers * maps.n_heads)]
    for name, shares, chance in measure_patterns(maps):
        for patterns, share, by_chance in zip(found, shares.flat, chance.flat, strict=True):
            patterns.append(HeadPattern(name, float(share), float(by_chance)))
    names = choose_names(found, maps.known_heads)
    return tuple(tuple(names[start : start + maps.n_heads]) for start in range(0, len(names), maps.n_heads))


PerHead = Float64[np.ndarray, "layer head"]


@cache_on_record
def measure_patterns(maps: AttentionMaps) -> tuple[tuple[str, PerHead, PerHead], ...]:
    """Return of each pattern that the text has: its name, each head's share, and the most that may be chance.

    None of tokens that attend to those of another text.
    """
    if not maps.self_attention:
        return ()
    real = np.flatnonzero(maps.real_queries)
    n_read = max(1, MAX_CELLS // len(maps.keys))
    queries = real[np.unique(np.linspace(0, len(real) - 1, n_read).round().astype(int))]
    masks = np.stack([maps.read_allowed(layer, queries) for layer in find_unlike_layers(maps)])
    choosing = (masks.sum(axis=-1) > 1).all(axis=0)
    queries, masks = queries[choosing], masks[:, choosing]
    several = []
    for pattern in list_patterns(maps.queries, queries):
        keys = pattern.keys & masks.all(axis=0)
        if n_having := int(keys.any(axis=1).sum()):
            equal = [(keys / mask.sum(axis=1, keepdims=True)).sum() / n_having for mask in masks]
            n = n_having if pattern.name in SINKS else min(n_having, int(keys.any(axis=0).sum()))
            level = LEVELS.get(pattern.name, OTHERS)
            several.append(
                (pattern, np.flatnonzero(keys), n_having, [compute_chance_bound(e, n, level) for e in equal])
            )
    shares, bounds = np.empty((2, len(several), maps.n_layers, maps.n_heads))
    for layer, head in np.ndindex(maps.n_layers, maps.n_heads):
        rows = maps.rows(layer, head, queries).astype(np.float64)
        rows /= np.maximum(rows.sum(axis=1, keepdims=True), TINY)
        for number, (pattern, places, n_having, by_layer) in enumerate(several):
            shares[number, layer, head] = rows.flat[places].sum() / n_having
            bound = by_layer[layer if len(masks) > 1 else 0]
            if pattern.is_kind:  # what tokens of a kind exceed by chance if any others could be the ones of the kind
                received, n = rows.mean(axis=0)[~maps.keys.markers], int(pattern.keys[0].sum())
                largest = max(float(received.max()), TINY)
                of_kind = compute_chance_bound(float(received.mean()) / largest, n, COMMON) * largest * n
                bound = max(bound, of_kind)
            bounds[number, layer, head] = bound
    return tuple((pattern.name, *both) for (pattern, *_), *both in zip(several, shares, bounds, strict=True))


def compute_chance_bound(equal: float, n: int, probability: float) -> float:
    """Return the share that a mean of n numbers from 0 to 1 exceeds with at most this probability, if it is `equal`."""
    shares = np.linspace(equal, 1, 200)
    divergence = shares * np.log(np.maximum(shares, TINY) / max(equal, TINY)) + (1 - shares) * np.log(
        np.maximum(1 - shares, TINY) / max(1 - equal, TINY)
    )
    beyond = n * divergence >= -np.log(probability)
    return float(shares[beyond.argmax()]) if beyond.any() else 1.0
