"""What heads are known to look at: which keys count for each query of a text, and what its heads look at, by name.

The patterns are those of the literature: neighbours, the same word and what stood behind it (Olsson et al. 2022,
arXiv:2209.11895), punctuation and markers (Clark et al. 2019, arXiv:1906.04341), a closing bracket's own opening one.

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

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple
from unicodedata import category

import numpy as np
from jaxtyping import Bool, Int

from attnviz.measures.rows import cache_on_record, find_unlike_layers
from attnviz.records import TINY, AttentionMaps, Tokens
from attnviz.records.grid import Grid
from attnviz.records.head_names import SINKS, HeadPattern, choose_names, name_offset
from attnviz.shapes import PerHead

MAX_OFFSET = 8  # tokens from the query, either way, of a place that is a pattern
BRACKETS = dict(zip(")]}>）］｝】」』〉》", "([{<（［｛【「『〈《", strict=True))  # closing sign: opening sign
PREFIX = re.compile(r"^(?:##|[▁Ġ]+)(?=.)")  # with which a vocabulary marks its pieces
STOPS = ".?!。？！．"


class Pattern(NamedTuple):
    """Keys that count for queries."""

    name: str
    keys: Bool[np.ndarray, "query key"]
    is_kind: bool = False  # the same keys for every query: those of a kind


def list_patterns(tokens: Tokens, queries: Int[np.ndarray, " query"], grid: Grid | None = None) -> Iterator[Pattern]:
    """Yield all patterns of a text that attends to itself, for some of its queries.

    A patch of an image has neighbours in its row and column, and stands in no order with other patches and words.
    """
    places, keys = queries[:, None], np.arange(len(tokens))
    order = keys.copy()
    if grid is not None:
        at, patches = [*grid.find_places(len(tokens))], np.arange(grid.n_patches)
        order[at] = -2 * MAX_OFFSET * (patches + 1)  # so far apart that none is near another
        cells, down = np.full(len(tokens), np.nan), grid.n_columns + 1  # a row ends with a cell without a patch
        cells[at] = patches + patches // grid.n_columns
        steps = {"left patch": -1, "right patch": 1, "patch above": -down, "patch below": down}
        yield from (Pattern(name, cells == cells[queries][:, None] + step) for name, step in steps.items())
    for offset in sorted(range(-MAX_OFFSET, MAX_OFFSET + 1), key=abs):
        yield Pattern(name_offset(offset), order == order[queries][:, None] + offset)
    words = number_words(tokens)
    same = (words == words[queries][:, None]) & ~tokens.markers & (keys != places)
    yield Pattern("same word", same)
    yield Pattern("induction (after a repeat)", np.pad(same & (keys < places), ((0, 0), (1, 0)))[:, :-1])
    pieces = strip_pieces(tokens)
    opened = dict(find_own_brackets(pieces))
    own = np.array([opened.get(place, -1) for place in range(len(tokens))])
    yield Pattern("own bracket", keys == own[queries, None])
    first = int((~tokens.markers).argmax())  # where the first sentence starts is told apart from a sink by nothing
    follows_stop = np.array([False, *(bool(piece) and piece in STOPS for piece in pieces[:-1])])
    starts = np.maximum.accumulate(np.where(follows_stop, keys, 0))
    yield Pattern("sentence start", (keys == starts[queries, None]) & (keys > first) & (keys != places))
    punctuation = np.array([is_punctuation(piece) for piece in tokens.distinct_pieces])[tokens.places]
    yield Pattern("punctuation", np.broadcast_to(punctuation & ~tokens.markers, same.shape), is_kind=True)
    yield Pattern("special tokens", np.broadcast_to(tokens.markers, same.shape))
    yield Pattern("first token", np.broadcast_to((keys == 0) & ~tokens.markers, same.shape))


def number_words(tokens: Tokens) -> Int[np.ndarray, " token"]:
    """Return the number of each token's word, which is the same for the same words; -1 for markers."""
    numbers = {word: number for number, word in enumerate(dict.fromkeys(tokens.words))}
    return np.where(tokens.markers, -1, np.array([numbers[word] for word in tokens.words])[tokens.places])


@lru_cache(maxsize=2**16)  # the same words recur
def is_punctuation(piece: str) -> bool:
    """Return whether a piece, white space aside, is all punctuation or symbols."""
    bare = piece.strip()
    return bool(bare) and all(category(character)[0] in "PS" for character in bare)


def strip_pieces(tokens: Tokens) -> list[str]:
    """Return pieces without white space and a vocabulary's marks; "" for markers and what the model did not read."""
    hidden = tokens.markers | np.array(tokens.unknown, dtype=bool)
    return ["" if hide else PREFIX.sub("", piece).strip() for piece, hide in zip(tokens.pieces, hidden, strict=True)]


def has_own_bracket(text: str) -> bool:
    """Return whether a bracket of a text is closed."""
    return next(find_own_brackets(list(text)), None) is not None


def find_own_brackets(pieces: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield each closing bracket and its own opening one, as brackets nest; one that is left open has none."""
    opened: list[int] = []
    for place, piece in enumerate(pieces):
        if piece and piece in BRACKETS.values():
            opened.append(place)
        elif piece in BRACKETS:
            while opened and pieces[opened[-1]] != BRACKETS[piece]:
                opened.pop()
            if opened:
                yield place, opened.pop()


MAX_CELLS = 2**22  # weights of a head that are read: of a long text, of queries that are evenly spaced
NEAR, COMMON, OTHERS = 0.001, 0.0007, 0.00025  # probabilities by chance: of each neighbour, of each kind, of the rest
KINDS = ("same word", "induction (after a repeat)", "punctuation", "special tokens", "first token")
LEVELS = dict.fromkeys(("previous token", "itself", "next token"), NEAR) | dict.fromkeys(KINDS, COMMON)


@cache_on_record
def name_heads(maps: AttentionMaps, by_card: bool = True) -> tuple[tuple[HeadPattern, ...], ...]:
    """Return by layer and head what it looks at, and how much of its attention that is in this text.

    A head that the model's card names has that name here too; its share is NaN where the text has nothing of the kind.
    Others are named by this text alone, and all are unless `by_card`. No head has a name of a model that has not
    learned anything, of a text that the vocabulary does not hold, or where tokens attend to those of another text.
    """
    if maps.provenance.trained is False or maps.keys.mostly_unknown or not maps.self_attention:
        return ((HeadPattern(),) * maps.n_heads,) * maps.n_layers
    found = [list[HeadPattern]() for _ in range(maps.n_layers * maps.n_heads)]
    for name, shares, chance in measure_patterns(maps):
        for patterns, share, by_chance in zip(found, shares.flat, chance.flat, strict=True):
            patterns.append(HeadPattern(name, float(share), float(by_chance)))
    names = choose_names(found, maps.known_heads if by_card else ())
    return tuple(tuple(names[start : start + maps.n_heads]) for start in range(0, len(names), maps.n_heads))


@cache_on_record
def measure_patterns(maps: AttentionMaps) -> tuple[tuple[str, PerHead, PerHead], ...]:
    """Measure each pattern that the text has: its name, each head's share, and the most that may be chance.

    None of tokens that attend to those of another text.
    """
    if not maps.self_attention:
        return ()
    real = np.flatnonzero(maps.real_queries)
    n_read = min(len(real), max(1, MAX_CELLS // len(maps.keys)))
    queries = real[np.unique(np.linspace(0, len(real) - 1, n_read).round().astype(int))]
    masks = np.stack([maps.read_allowed(layer, queries) for layer in find_unlike_layers(maps)])
    choosing = (masks.sum(axis=-1) > 1).all(axis=0)
    queries, masks = queries[choosing], masks[:, choosing]
    several = []
    for pattern in list_patterns(maps.queries, queries, maps.grid):
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
