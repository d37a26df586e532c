"""One record against another of the same tokens: which heads moved, and where they moved most. Writes nothing."""

from __future__ import annotations

import numpy as np

from attnviz.differences import Difference
from attnviz.errors import InvalidRecord
from attnviz.measures.changes import check_tokens
from attnviz.records import AttentionMaps
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
    for layer, number in enumerate(before.layer_numbers):  # layer by layer, so that it costs one layer's memory
        apart = np.abs(after.weights[layer] - before.weights[layer])
        for head in np.flatnonzero(apart.max(axis=(1, 2)) > tolerance):
            query, key = (int(n) for n in np.unravel_index(int(apart[head].argmax()), apart.shape[1:]))
            expected, actual = (float(maps.weights[layer, head, query, key]) for maps in (before, after))
            said = f"query {token(after.queries, query)}, key {token(after.keys, key)}"
            place = number, after.head_numbers[head]
            found.append(Difference("record", "", "", "", "weight", *place, expected, actual, said))
    return sorted(found, key=lambda each: -abs(each.change))


def _unlike(before: AttentionMaps, after: AttentionMaps) -> Difference | None:
    try:
        check_tokens(before, after)
    except InvalidRecord as error:
        return Difference("record", "", said=error.problem)
    if before.weights.shape != after.weights.shape:
        heads = (heads_in_words(maps.weights[:, :, 0, 0].tolist()) for maps in (before, after))
        return Difference("record", "", "", "", "", None, None, *heads)
    for what in ("layer", "head"):
        one, other = (getattr(maps, f"{what}_numbers") for maps in (before, after))
        if one != other:
            numbers = (f"{what}s {', '.join(map(str, each))}" for each in (one, other))
            return Difference("record", "", "", "", "", None, None, *numbers)
    if not np.array_equal(before.attendable, after.attendable):
        return Difference("record", "", said="other keys may be attended to")
    return None
