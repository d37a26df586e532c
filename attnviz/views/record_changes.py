"""What differs between two records: how they were made, tokens, heads, what may be attended to, weights, measures."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import product, zip_longest
from operator import itemgetter

import numpy as np

from attnviz.measures import MEASURES, measure_maps
from attnviz.measures.divergence import jsd
from attnviz.measures.rows import head_rows, split_real_queries
from attnviz.records import AttentionMaps, differences
from attnviz.records.differences import JSD, TOP_KEY, Diff, Difference, Fact, Facts, Tolerances, find_differences
from attnviz.records.walk import split_queries
from attnviz.views.tokens import name_token

TIE_TOLERANCE = 1e-6  # weights this close to the largest are favourites too: rounding may swap them
RECORD_MEASURES = (JSD, TOP_KEY, *(measure.name for measure in MEASURES if measure.level == "head"))


def compare_records(before: AttentionMaps, after: AttentionMaps, names: Sequence[str], tolerances: Tolerances) -> Diff:
    """Compare all that two records say; their heads also by the measures called `names`, the most different head first.

    Heads are held to their weights, and where a tolerance names something else, such as jsd, to that as well.
    """
    sides = before, after
    found = [*find_differences(*map(state_origins, sides), within=tolerances), *compare_maps(before, after, tolerances)]
    changes: list[Difference] = []
    if state_tokens(before) == state_tokens(after):
        shared = find_shared_heads(before, after)
        moved = measure_changes(before, after)
        order = {(each.layer, each.head): -each.change for each in moved if each.measure == JSD}
        measured = differences.join(*(state_measures(maps, names, shared) for maps in sides))
        changes = sorted((*moved, *measured), key=lambda each: order[each.layer, each.head])
    found += (each for each in changes if each.measure in tolerances.named and not tolerances.allow(each))
    versions = differences.find_version_changes(*(dict(maps.provenance.versions) for maps in sides))
    return Diff(found, changes, RECORD_MEASURES, versions)


def state_origins(maps: AttentionMaps) -> Facts:
    """State how a record was made, but for the versions of packages, and which of its tokens the model did not know."""
    origin = maps.provenance
    left_out = {"settings", "facts", "versions"}
    words = {name: value for name, value in asdict(origin).items() if name not in left_out}
    unknown = [place for place, is_unknown in enumerate(maps.queries.unknown) if is_unknown]
    return differences.state_words(words | dict(origin.settings) | asdict(origin.facts) | {"unknown tokens": unknown})


def state_tokens(maps: AttentionMaps) -> Facts:
    """State each token at its position, and whether it is a marker or padding: these say what weights are of."""
    sides = {"token": maps.queries} if maps.self_attention else {"query": maps.queries, "key": maps.keys}
    facts: Facts = {}
    for what, tokens in sides.items():
        padding = [] if what == "key" else (~maps.real_queries).tolist()
        for place, (piece, *signs) in enumerate(zip_longest(tokens.pieces, tokens.special, padding)):
            named = (name for name, sign in zip(("marker", "padding"), signs, strict=True) if sign)
            facts[Fact(what, of=f"position {place}")] = ", ".join([repr(piece), *named])
    return facts


def state_measures(maps: AttentionMaps, names: Sequence[str], heads: Sequence[tuple[int, int]]) -> Facts:
    """State the measures called `names` of these heads, each given as layer and head number."""
    return {
        Fact(measure=each.name, layer=layer, head=head): float(each.values[maps.locate(layer, head)])
        for each in measure_maps(maps, list(names), "head")
        for layer, head in heads
    }


def compare_maps(before: AttentionMaps, after: AttentionMaps, tolerances: Tolerances) -> Iterator[Difference]:
    """Yield what only one record has, masks that differ, and the largest change of weight in each head where one is
    beyond its tolerance, the largest of all first; then what stands beside weights. Of other tokens nothing but that.
    """
    sides = before, after
    if other_tokens := find_differences(*map(state_tokens, sides), within=tolerances):
        yield from (replace(each, said="weights of other tokens are not compared") for each in other_tokens)
        return
    yield from find_differences(*map(state_parts, sides), within=tolerances)
    shared = find_shared_heads(before, after)
    for layer in dict.fromkeys(layer for layer, _ in shared):
        places = [maps.layer_numbers.index(layer) for maps in sides]
        several = split_queries(np.arange(len(before.queries)), len(before.keys))
        pairs = ((before.read_allowed(places[0], rows), after.read_allowed(places[1], rows)) for rows in several)
        if not all(np.array_equal(*pair) for pair in pairs):
            yield Difference("mask", layer=layer, said="other keys may be attended to")
    moved = [_find_largest_change(before, after, layer, head) for layer, head in shared]
    yield from sorted((each for each in moved if not tolerances.allow(each)), key=lambda each: -abs(each.change))
    for name in ("sink", "value_norms"):
        one, other = getattr(before, name), getattr(after, name)
        if one is not None and other is not None and one.shape == other.shape:  # else of other heads, named above
            apart = np.abs(other - one)
            if not (apart <= tolerances.numbers * (1 + np.abs(other))).all():
                yield Difference(name, said=f"by up to {apart.max():.3g}")


def state_parts(maps: AttentionMaps) -> Facts:
    """State which layers and heads a record has, and what beside its weights."""
    layers, heads = (sorted(numbers) for numbers in (maps.layer_numbers, maps.head_numbers))
    parts = [*(f"layer {number}" for number in layers), *(f"head {number}" for number in heads)]
    beside = [name for name in ("sink", "value_norms") if getattr(maps, name) is not None]
    return dict.fromkeys(map(Fact, [*parts, *beside]), "")


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
    return Difference(differences.WEIGHT, layer=layer, head=head, before=old, after=new, said=said)


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
            found.append(Difference(measure=name, layer=layer, head=head, before=0.0, after=value / n_queries))
    return found
