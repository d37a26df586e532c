"""One record against another of the same tokens: which heads moved, and where they moved most. Writes nothing."""

from __future__ import annotations

from itertools import product
from operator import itemgetter

import numpy as np

from attnviz.differences import Difference
from attnviz.errors import InvalidRecord
from attnviz.measures.changes import check_tokens
from attnviz.records import AttentionMaps
from attnviz.records.walk import stretches
from attnviz.views.tokens import token
from attnviz.workflows.batch_diff.numbers import heads_in_words


def compare_records(before: AttentionMaps, after: AttentionMaps, tolerance: float) -> list[Difference]:
    """The largest change of weight in each head where one is beyond `tolerance`, absolute; the largest of all first.

    Of records that are not of the same tokens, layers, heads and attendable keys, one difference that says so.
    """
    unlike = _unlike(before, after)
    if unlike is not None:
        return [unlike]
    found: list[Difference] = []
    for layer, head in np.ndindex(before.n_layers, before.n_heads):
        apart, query, key = _most_moved(before, after, layer, head)
        if apart > tolerance:
            row = slice(query, query + 1)
            expected, actual = (float(maps.rows(layer, head, row)[0, key]) for maps in (before, after))
            said = f"query {token(after.queries, query)}, key {token(after.keys, key)}"
            place = before.layer_numbers[layer], after.head_numbers[head]
            found.append(Difference("record", "", "", "", "weight", *place, expected, actual, said))
    return sorted(found, key=lambda each: -abs(each.change))


def _most_moved(before: AttentionMaps, after: AttentionMaps, layer: int, head: int) -> tuple[float, int, int]:
    """The largest change of a weight, of which query and to which key; of equal ones the first."""
    places = np.arange(len(before.queries))
    found = []
    for queries in stretches(places, len(before.keys)):
        apart = np.abs(after.rows(layer, head, queries) - before.rows(layer, head, queries))
        row, key = np.unravel_index(int(apart.argmax()), apart.shape)
        found.append((float(apart[row, key]), int(places[queries][row]), int(key)))
    return max(found, key=itemgetter(0))


def _unlike(before: AttentionMaps, after: AttentionMaps) -> Difference | None:
    try:
        check_tokens(before, after)
    except InvalidRecord as error:
        return Difference("record", "", said=error.problem)
    for one, other in zip(_heads_of(before), _heads_of(after), strict=True):
        if one != other:
            return Difference("record", "", expected=one, actual=other)
    several = stretches(np.arange(len(before.queries)), len(before.keys))
    places = product(range(before.n_layers), several)
    if not all(np.array_equal(before.allowed(*place), after.allowed(*place)) for place in places):
        return Difference("record", "", said="other keys may be attended to")
    return None


def _heads_of(maps: AttentionMaps) -> tuple[str, ...]:
    """How many layers and heads there are, and which."""
    names = (("layers", maps.layer_numbers), ("heads", maps.head_numbers))
    listed = (f"{name} {', '.join(map(str, numbers))}" for name, numbers in names)
    return heads_in_words([[0.0] * maps.n_heads] * maps.n_layers), *listed
