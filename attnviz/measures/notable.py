"""Which of very many heads are worth a look; which row of a head aims most, and what is kept
of it; which two tokens stand out in a head. Knows records only.

Many heads give the first token most of their attention (Xiao et al. 2023), which says that they do nothing here. So it
is left out: what counts is what goes to other keys, as a distribution of its own, and how much that is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int, Int64

from attnviz.measures import rows as of_rows
from attnviz.measures.divergence import Mixer
from attnviz.measures.rows import compute_entropies, compute_statistics, count_attendable, find_unlike_layers
from attnviz.records import TINY, AttentionMaps
from attnviz.records.head_names import MIN_SHARE
from attnviz.records.part import Place, TokenSelection, list_left_out

MAX_CELLS = 2**24  # weights of all heads that are compared: 64 MiB; of a long text, queries that are evenly spaced
MIN_MULTIPLE = 2.0  # of an equal share, from which on the first token is a sink of a head, and a pair stands out
LEAST = 1e-6  # of an interest, below which heads differ by rounding alone
N_PAIRS, N_FOUND = 3, 12  # of words apart, of all heads; of tokens, several of which may be the same words
BEFORE, AFTER, NEAR = 16, 4, 3  # tokens shown before and after the query, and on either side of the key


@dataclass(frozen=True, eq=False)
class MovedRows:
    """What heads give to other keys than the first token, of the queries that have a choice among them."""

    queries: Int[np.ndarray, " query"]
    shares: Float32[np.ndarray, "head query key"]  # rows sum to 1, and hold 0 for the first token
    moved: Float64[np.ndarray, "head query"]  # how much of the attention that is
    equal: Float32[np.ndarray, "mask query key"]  # what each key would get if all got the same
    masks: Int[np.ndarray, " head"]  # which of these a head has: layers may differ in what may be attended to


def read_moved_rows(maps: AttentionMaps, places: Sequence[tuple[int, int]]) -> MovedRows:
    """Read the rows of some heads, of a long text queries that are evenly spaced. Of two texts no key is left out."""
    real = np.flatnonzero(maps.real_queries)
    number = min(len(real), max(1, MAX_CELLS // (len(places) * len(maps.keys))))
    real = real[np.unique(np.linspace(0, len(real) - 1, number).round().astype(int))]
    layers = find_unlike_layers(maps)
    allowed = np.stack([maps.read_allowed(layer, real) for layer in layers])
    first = int(maps.real_queries.argmax()) if maps.self_attention else len(maps.keys)
    allowed[..., first : first + 1] = False
    choosing = np.flatnonzero((allowed.sum(axis=-1) > 1).all(axis=0))
    queries, allowed = real[choosing], allowed[:, choosing]
    shares = np.empty((len(places), len(queries), len(maps.keys)), dtype=np.float32)
    for row, (layer, head) in enumerate(places):
        shares[row] = maps.rows(layer, head, queries)
    sums = shares.sum(axis=-1, dtype=np.float64)
    shares[..., first : first + 1] = 0
    moved = shares.sum(axis=-1, dtype=np.float64)
    shares /= np.maximum(moved, TINY)[..., None].astype(np.float32)
    equal = (allowed / np.maximum(allowed.sum(axis=-1, keepdims=True), 1)).astype(np.float32)
    masks = np.array([layer if len(layers) > 1 else 0 for layer, _ in places])
    return MovedRows(queries, shares, moved / np.maximum(sums, TINY), equal, masks)


def choose_notable(rows: MovedRows, number: int) -> tuple[int, ...]:
    """Choose the heads most worth a look, the first first: at most `number`, fewer where the others are like those.

    One after the other, that with the largest product of three: the share that moves, its divergence from an equal
    share, and its distance from the nearest head that is chosen already. Divergence is that of Jensen and Shannon, a
    mean over queries, and its root a distance (see `jsd`).
    """
    n_heads, n_queries, n_keys = rows.shares.shape
    if not n_queries:
        return ()
    halves, equal = (np.float32(0.5) * each + np.float32(TINY) for each in (rows.shares, rows.equal))
    mixer = Mixer(n_queries, n_keys)
    entropies = np.concatenate([mixer.entropies(half, half[None]) for half in halves])

    def diverge(half: Float32[np.ndarray, "query key"]) -> Float64[np.ndarray, " head"]:
        own = mixer.entropies(half, half[None])
        return np.asarray(np.maximum(mixer.entropies(half, halves) - (entropies + own) / 2, 0).mean(axis=1) / log(2))

    from_equal = np.stack([diverge(half) for half in equal])
    interest = rows.moved.mean(axis=1) * from_equal[rows.masks, np.arange(n_heads)]
    distance, chosen = np.ones(n_heads), list[int]()
    for _ in range(min(number, n_heads)):
        best = int((interest * distance).argmax())
        if interest[best] * distance[best] < LEAST:
            break
        chosen.append(best)
        distance = np.minimum(distance, np.sqrt(diverge(halves[best])))
        distance[best] = 0
    return tuple(chosen)


def find_strongest(
    maps: AttentionMaps, layer: int, rests: Bool[np.ndarray, " key"]
) -> tuple[Float64[np.ndarray, " head"], Int64[np.ndarray, " head"]]:
    """Return how strong the strongest row of each head of a layer is, and the row's query.

    It is w log₂(w n) of the largest weight w among n keys: what that key alone adds to the divergence from an equal
    share. A row that looks most at where heads rest, the first token and markers, is weaker than any other.
    """
    of_rows, n_keys = compute_statistics(maps, layer), count_attendable(maps, layer)
    strengths = np.where(rests[of_rows.peak_keys], -of_rows.peaks, of_rows.peaks * np.log2(of_rows.peaks * n_keys))
    best = strengths.argmax(axis=-1)
    return strengths[np.arange(len(best)), best], np.flatnonzero(maps.real_queries)[best]


def read_row(maps: AttentionMaps, layer: int, head: int, query: int, rests: Bool[np.ndarray, " key"]) -> dict[str, Any]:
    """Return one row of attention, cut to what is shown of it.

    That is `weights` on `keys`, which are positions; to how many keys the query may attend (`n_keys`), the share of the
    text's first token (`to_first`), and exp of the row's entropy (`effective_keys`).
    """
    at = np.array([query])
    row = maps.rows(layer, head, at)[0].astype(np.float64)
    row /= row.sum()
    keys = choose_shown(query, int(np.where(rests, -1.0, row).argmax()), len(row))
    found: dict[str, Any] = {"keys": keys, "weights": row[keys].astype(np.float32).astype(float).tolist()}
    found |= {"n_keys": int(maps.read_allowed(layer, at).sum()), "to_first": float(row[0])}
    return found | {"effective_keys": float(np.exp(compute_entropies(row)))}


def choose_shown(query: int, key: int, n_tokens: int) -> list[int]:
    """Return the positions around a query and around the key that it looks at, in order."""
    around = (range(query - BEFORE, query + AFTER + 1), range(key - NEAR, key + NEAR + 1))
    return sorted({position for stretch in around for position in stretch if 0 <= position < n_tokens})


class Pair(NamedTuple):
    """A weight, and where it is."""

    weight: float
    query: int
    key: int
    place: Place


def find_strongest_pair(maps: AttentionMaps, part: TokenSelection, layer: int, head: int) -> Pair | None:
    """Return the drawn pair of largest weight among queries that have a choice of keys.

    Markers and a first token that is the head's sink are left out where there are others: most heads give them most.
    The first token of a causal map attends to itself whatever the head does. None where no query drawn may attend to
    any key drawn.
    """
    real, drawn = maps.real_queries, np.isin(np.arange(len(maps.queries)), part.queries)
    places = np.flatnonzero(real)
    choosing = drawn[places] & (count_attendable(maps, layer) > 1)
    chosen = choosing if choosing.any() else drawn[places]
    unremarkable = _find_unremarkable_keys(maps, layer, head)
    told = np.array([key for key in part.keys if key not in unremarkable])
    told = told if len(told) else np.array(part.keys)
    ordinary = chosen & ~maps.queries.markers[places]
    chosen = ordinary if ordinary.any() else chosen
    keys = compute_statistics(maps, layer).peak_keys[head]
    if len(told) < len(maps.keys):
        found = []  # which of these keys each query gives most to; -1 where it may attend to none of them
        for block in of_rows.split_real_queries(maps):
            allowed = maps.read_allowed(layer, block.queries)[:, told]
            cells = np.where(allowed, maps.rows(layer, head, block.queries)[:, told], -1)
            found.append(np.where(allowed.any(axis=1), told[cells.argmax(axis=1)], -1))
        keys = np.concatenate(found)
    weights = np.where(chosen & (keys >= 0), maps.read_cells_of_heads(layer, places, keys)[head], -1)
    best = int(weights.argmax())
    if weights[best] < 0:
        return None
    return Pair(float(weights[best]), int(places[best]), int(keys[best]), (layer, head))


def find_pairs_apart(maps: AttentionMaps, places: Sequence[Place], part: TokenSelection) -> list[Pair]:
    """Find the strongest pairs of tokens that are drawn, no neighbours and no sinks, each where it is strongest.
    None has less than twice an equal share, and of the same words it is the strongest.

    A row whose largest weight is p has no other above 1 - p. So rows are read by the most that may be in them, until
    that is no more than what is found.
    """
    real, sinks, found = np.flatnonzero(maps.real_queries), list[list[int]](), dict[tuple[int, int], Pair]()
    bounds = np.zeros((len(places) if maps.self_attention else 0, len(real)))
    asking = np.isin(real, part.asking.queries) & ~maps.queries.markers[real]
    for bound, (layer, head) in zip(bounds, places, strict=False):
        sinks.append([*_find_unremarkable_keys(maps, layer, head), *list_left_out(maps.keys, part.keys)])
        statistics = compute_statistics(maps, layer)
        keys, peaks = statistics.peak_keys[head], statistics.peaks[head]
        told = (np.abs(keys - real) > 1) & ~np.isin(keys, sinks[-1])
        most = np.where(told, peaks, np.minimum(peaks, 1 - peaks)) * asking
        bound[:] = np.where(most * count_attendable(maps, layer) >= MIN_MULTIPLE, most, 0)
    strongest = list[Pair]()
    for at in np.argsort(-bounds, axis=None, kind="stable")[: np.count_nonzero(bounds)].tolist():
        if len(strongest) == N_FOUND and bounds.flat[at] <= strongest[-1].weight:
            break
        (layer, head), query = places[at // len(real)], int(real[at % len(real)])
        weights = maps.rows(layer, head, np.array([query]))[0].copy()
        weights[[*sinks[at // len(real)], *range(max(0, query - 1), min(query + 2, len(weights)))]] = 0
        weights[weights * count_attendable(maps, layer)[at % len(real)] < MIN_MULTIPLE] = 0
        for key in np.argsort(-weights, kind="stable")[:N_FOUND].tolist():
            pair = Pair(float(weights[key]), query, key, (layer, head))
            found[query, key] = max(found.get((query, key), pair), pair, key=lambda each: each.weight)
        strongest = sorted(found.values(), key=lambda each: -each.weight)[:N_FOUND]
    words = dict[tuple[str, str], Pair]()
    for pair in strongest:
        words.setdefault((maps.queries.pieces[pair.query], maps.keys.pieces[pair.key]), pair)
    return [pair for pair in words.values() if pair.weight > 0][:N_PAIRS]


def _find_unremarkable_keys(maps: AttentionMaps, layer: int, head: int) -> set[int]:
    """Return markers, and the first token where it is a sink of the head: many times what equal attention gives it."""
    found = set(np.flatnonzero(maps.keys.markers).tolist())
    first = int(maps.real_queries.argmax())
    if maps.self_attention and len(maps.keys) > 2:
        share = float(compute_statistics(maps, layer).received[head, first])
        equal = float(np.mean(1 / count_attendable(maps, layer)))
        if share >= MIN_SHARE and share >= MIN_MULTIPLE * equal:
            found.add(first)
    return found
