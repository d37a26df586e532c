"""What differs between two records: how they were made, tokens, heads, what may be attended to, weights, measures."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import product, zip_longest
from operator import itemgetter

import numpy as np

from attnviz.measures import MEASURES, measure_maps
from attnviz.measures.divergence import jsd
from attnviz.measures.rows import head_rows, split_real_queries
from attnviz.records import AttentionMaps
from attnviz.records.differences import (
    JSD,
    TOP_KEY,
    WEIGHT,
    Diff,
    Difference,
    Tolerances,
    find_version_changes,
    join_facts,
    name_side,
    state_words,
)
from attnviz.records.walk import split_queries
from attnviz.table.numbers import Numbers
from attnviz.views.tokens import name_token

TIE_TOLERANCE = 1e-6  # weights this close to the largest are favourites too: rounding may swap them
RECORD_MEASURES = (JSD, TOP_KEY, *(measure.name for measure in MEASURES if measure.level == "head"))


def compare_records(before: AttentionMaps, after: AttentionMaps, names: Sequence[str], tolerances: Tolerances) -> Diff:
    """Compare all that two records say; their heads also by the measures called `names`, the most different head first.

    Heads are held to their weights, and where a tolerance names something else, such as jsd, to that as well.
    """
    found = list(join_facts(*map(_state_origins, (before, after)), within=tolerances))
    found += compare_maps(before, after, tolerances)
    changes: list[Difference] = []
    if not _find_other_tokens(before, after):
        moved = measure_changes(before, after)
        shared = find_shared_heads(before, after)
        measured = join_facts(*(_state_measures(maps, names, shared) for maps in (before, after)))
        order = {(each.layer, each.head): -each.change for each in moved if each.measure == JSD}
        changes = sorted((*moved, *measured), key=lambda each: order[each.layer, each.head])
    found += (each for each in changes if each.measure in tolerances.named and not tolerances.allow(each))
    versions = find_version_changes(*(dict(maps.provenance.versions) for maps in (before, after)))
    return Diff(found, changes, RECORD_MEASURES, versions)


def _state_origins(maps: AttentionMaps) -> Numbers:
    """State how a record was made, but for the versions of packages, and which of its tokens the model did not know."""
    origin = maps.provenance
    left_out = {"settings", "facts", "versions"}
    words = {name: value for name, value in asdict(origin).items() if name not in left_out}
    unknown = [place for place, is_unknown in enumerate(maps.queries.unknown) if is_unknown]
    return state_words(words | dict(origin.settings) | asdict(origin.facts) | {"unknown tokens": unknown})


def _state_measures(maps: AttentionMaps, names: Sequence[str], heads: Sequence[tuple[int, int]]) -> Numbers:
    rows = (
        {"measure": each.name, "layer": layer, "head": head, "value": float(each.values[maps.locate(layer, head)])}
        for each in measure_maps(maps, list(names), "head")
        for layer, head in heads
    )
    return Numbers.from_rows(rows, ("measure", "layer", "head"))


def _state_tokens(maps: AttentionMaps) -> Numbers:
    """State each token at its position, and whether it is a marker or padding: these say what weights are of."""
    sides = {"token": maps.queries} if maps.self_attention else {"query": maps.queries, "key": maps.keys}
    rows = []
    for what, tokens in sides.items():
        padding = [] if what == "key" else (~maps.real_queries).tolist()
        for place, (piece, *signs) in enumerate(zip_longest(tokens.pieces, tokens.special, padding)):
            named = (name for name, sign in zip(("marker", "padding"), signs, strict=True) if sign)
            rows.append({"what": what, "of": f"position {place}", "value": ", ".join([repr(piece), *named])})
    return Numbers.from_rows(rows, ("what", "of"))


def _find_other_tokens(before: AttentionMaps, after: AttentionMaps) -> list[Difference]:
    return list(join_facts(*map(_state_tokens, (before, after)), within=Tolerances()))


def compare_maps(before: AttentionMaps, after: AttentionMaps, tolerances: Tolerances) -> Iterator[Difference]:
    """Yield what only one record has, masks that differ, and the largest change of weight in each head where one is
    beyond its tolerance, the largest of all first; then what stands beside weights. Of other tokens nothing but that.
    """
    if other := _find_other_tokens(before, after):
        yield from other
        return
    for what in ("layer", "head"):
        one, other_side = (set(getattr(maps, f"{what}_numbers")) for maps in (before, after))
        yield from (Difference(name_side(number in one), f"{what} {number}") for number in sorted(one ^ other_side))
    shared = find_shared_heads(before, after)
    for layer in sorted({layer for layer, _ in shared}):
        places = [maps.layer_numbers.index(layer) for maps in (before, after)]
        several = split_queries(np.arange(len(before.queries)), len(before.keys))
        pairs = ((before.read_allowed(places[0], rows), after.read_allowed(places[1], rows)) for rows in several)
        if not all(np.array_equal(*pair) for pair in pairs):
            yield Difference("differs", "mask", layer=layer, said="other keys may be attended to")
    moved = [_find_largest_change(before, after, layer, head) for layer, head in shared]
    yield from sorted((each for each in moved if not tolerances.allow(each)), key=lambda each: -abs(each.change))
    for name in ("sink", "value_norms"):
        left, right = getattr(before, name), getattr(after, name)
        if (left is None) != (right is None):
            yield Difference(name_side(left is not None), name)
            continue
        same = left is None or left.shape != right.shape  # of other heads, which are named above
        if not (same or np.allclose(left, right, tolerances.numbers, tolerances.numbers)):
            yield Difference("differs", name, said=f"by up to {np.abs(right - left).max():.3g}")


def find_shared_heads(before: AttentionMaps, after: AttentionMaps) -> list[tuple[int, int]]:
    """Return the layer and head numbers that both records have, in order."""
    layers = [number for number in before.layer_numbers if number in after.layer_numbers]
    return list(product(layers, [number for number in before.head_numbers if number in after.head_numbers]))


def _find_largest_change(before: AttentionMaps, after: AttentionMaps, layer: int, head: int) -> Difference:
    """Return the largest change of a weight, with its query and key; of equal ones the first."""
    places = [maps.locate(layer, head) for maps in (before, after)]
    found = []
    for queries in split_queries(np.arange(len(before.queries)), len(before.keys)):
        one, other = (maps.rows(*place, queries) for maps, place in zip((before, after), places, strict=True))
        apart = np.abs(other - one)
        row, key = map(int, np.unravel_index(int(apart.argmax()), apart.shape))
        query = int(np.arange(len(before.queries))[queries][row])
        found.append((float(apart[row, key]), query, key, float(one[row, key]), float(other[row, key])))
    _, query, key, old, new = max(found, key=itemgetter(0))
    said = f"query {name_token(after.queries, query)}, key {name_token(after.keys, key)}"
    return Difference("differs", WEIGHT, layer=layer, head=head, before=old, after=new, said=said)


def measure_changes(before: AttentionMaps, after: AttentionMaps) -> list[Difference]:
    """Return how far each head that both records have went from where it was: two numbers, which are 0 before.

    `jsd` is the mean over queries of the Jensen-Shannon divergence of a row from itself, in nats, from 0 (the same
    attention) to ln 2 (no key in common); `top_key` the share of queries that have no favourite key in common. The
    records are of the same tokens.
    """
    n_queries = int(before.real_queries.sum())
    found = []
    for layer, head in find_shared_heads(before, after):
        apart, turned = 0.0, 0
        for block in split_real_queries(before, 2):
            rows = [head_rows(maps, *maps.locate(layer, head), block) for maps in (before, after)]
            apart += float(jsd(*rows).sum())
            favourites = [each >= each.max(axis=-1, keepdims=True) - TIE_TOLERANCE for each in rows]
            turned += int((~np.logical_and(*favourites).any(axis=-1)).sum())
        for name, value in ((JSD, apart), (TOP_KEY, float(turned))):
            found.append(
                Difference("differs", measure=name, layer=layer, head=head, before=0.0, after=value / n_queries)
            )
    return found
