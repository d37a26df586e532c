"""What differs between two records: tokens, heads, what may be attended to, weights, and how they were made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from operator import itemgetter

import numpy as np

from attnviz.errors import InvalidRecord
from attnviz.measures import measure_maps
from attnviz.measures.changes import check_tokens, find_shared_heads, measure_changes
from attnviz.records import AttentionMaps
from attnviz.records.differences import WEIGHT, Difference, HeadChange, Tolerances, compare_values, name_side
from attnviz.records.walk import split_queries
from attnviz.views.tokens import name_token


def compare_origins(before: AttentionMaps, after: AttentionMaps) -> Iterator[Difference]:
    """Yield every difference in how two records were made, but for the versions of packages."""
    left_out = {"settings": "", "facts": "", "versions": ""}
    origins = (before.provenance, after.provenance)
    sides = [asdict(of) | left_out | dict(of.settings) | asdict(of.facts) for of in origins]
    yield from compare_values(Difference("differs", ""), sides)
    if before.queries.unknown != after.queries.unknown:
        yield Difference("differs", "vocabulary", said="other tokens are unknown")


def compare_weights(before: AttentionMaps, after: AttentionMaps, tolerances: Tolerances) -> Iterator[Difference]:
    """Yield the largest change of weight in each head where one is beyond its tolerance; the largest of all first.

    Before it what only one record has, and of other tokens nothing but that.
    """
    if (other := _find_other_tokens(before, after)) is not None:
        yield other
        return
    yield from _compare_shapes(before, after)
    found: list[Difference] = []
    for layer, head in find_shared_heads(before, after):
        moved = _find_largest_change(before, after, layer, head)
        if not tolerances.allow(WEIGHT, moved.change):
            found.append(moved)
    yield from sorted(found, key=lambda each: -abs(each.change))


def compare_arrays(before: AttentionMaps, after: AttentionMaps, tolerances: Tolerances) -> Iterator[Difference]:
    """Yield what records of the same tokens and heads hold beside weights that differs beyond the tolerances."""
    for name in ("sink", "value_norms"):
        one, other = getattr(before, name), getattr(after, name)
        if one is None or other is None:
            if one is not other:
                yield Difference(name_side(one is not None), name.replace("_", " "))
        elif one.shape == other.shape and not np.allclose(one, other, tolerances.numbers, tolerances.numbers):
            yield Difference("differs", name.replace("_", " "), said=f"by up to {np.abs(other - one).max():.3g}")


def _compare_shapes(before: AttentionMaps, after: AttentionMaps) -> Iterator[Difference]:
    """Yield layers and heads that only one record has, and layers whose masks differ."""
    for what in ("layer", "head"):
        one, other = (dict.fromkeys(getattr(maps, f"{what}_numbers"), maps) for maps in (before, after))
        for number in one.keys() ^ other.keys():
            yield Difference(name_side(number in one), f"{what} {number}")
    for layer in sorted({layer for layer, _ in find_shared_heads(before, after)}):
        places = [maps.layer_numbers.index(layer) for maps in (before, after)]
        several = split_queries(np.arange(len(before.queries)), len(before.keys))
        pairs = ((before.read_allowed(places[0], rows), after.read_allowed(places[1], rows)) for rows in several)
        if not all(np.array_equal(*pair) for pair in pairs):
            yield Difference("differs", "mask", layer=layer, said="other keys may be attended to")


def compare_heads(
    before: AttentionMaps, after: AttentionMaps, names: list[str], tolerances: Tolerances
) -> tuple[list[Difference], list[HeadChange]]:
    """Return what differs, and each head with its measures called `names`, the most different first.

    Heads are held to their weights, and where a tolerance names something else, such as jsd, to that as well.
    """
    found = list(compare_origins(before, after))
    if (other := _find_other_tokens(before, after)) is not None:
        return [*found, other], []
    heads = []
    numbers = list(zip(measure_maps(before, names, "head"), measure_maps(after, names, "head"), strict=True))
    for change in sorted(measure_changes(before, after), key=lambda change: -change.jsd):
        of_a, of_b = (maps.locate(change.layer, change.head) for maps in (before, after))
        place = Difference("differs", "number", layer=change.layer, head=change.head)
        measures = (
            replace(place, measure=a.name, before=float(a.values[of_a]), after=float(b.values[of_b]))
            for a, b in numbers
        )
        heads.append(replace(change, measures=tuple(measures)))
    found += (*compare_weights(before, after, tolerances), *compare_arrays(before, after, tolerances))
    for each in heads:
        measures_of = {number.measure: number for number in each.measures}
        for name, value in each.values.items():
            if name in tolerances.named and not tolerances.allow(name, value):
                plain = Difference("differs", name, layer=each.layer, head=each.head, said=f"{value:.6g}")
                found.append(measures_of.get(name, plain))
    return found, heads


def _find_other_tokens(before: AttentionMaps, after: AttentionMaps) -> Difference | None:
    try:
        check_tokens(before, after)
    except InvalidRecord as error:
        return Difference("differs", "tokens", said=error.problem)
    return None


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
