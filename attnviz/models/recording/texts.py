"""Which text each row of a call is of, by ids; and which of its tokens stand where. Knows calls; no names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from attnviz.models.capture.call import Call, PlaceIds
from attnviz.models.capture.ids import family_of, place_of, row_of


def is_turned(call: Call) -> bool:
    """Whether tokens are on the first axis of what was read and texts behind it, as in torch's older modules."""
    for ids in (call.keys, call.queries):
        for of_row in () if ids is None else ids:
            known = of_row[of_row >= 0]
            if len(known) and (row_of(known) != row_of(known[0])).any():
                return bool((place_of(known) == place_of(known[0])).all())
    return False


def find_texts(call: Call) -> list[int]:
    """Return which text each row is of; rows of windows name one several times."""
    turned = is_turned(call)
    found = []
    for row in range(call.shape[0]):
        sides = [ids[row][ids[row] >= 0] for ids in (call.queries, call.keys) if ids is not None]
        known = next((side for side in sides if len(side)), None)
        if known is None:
            return list(range(call.shape[0]))
        found.append(int((place_of(known) if turned else row_of(known)).min()))
    return found


def find_places(ids: Int[np.ndarray, " token"], turned: bool) -> Int[np.ndarray, " token"]:
    """Return where in its text each token stands."""
    return np.asarray(row_of(ids) if turned else place_of(ids))


def find_families(ids: PlaceIds | None) -> tuple[int, ...]:
    """Return the numbers of the families that some ids are of, in their order."""
    if ids is None:
        return ()
    return tuple(dict.fromkeys(family_of(ids[ids >= 0]).tolist()))


def attends_across(call: Call) -> bool | None:
    """Whether tokens attend to tokens of another text; None where that is not known."""
    if call.queries is None or call.keys is None:
        return None
    queries, keys = find_families(call.queries), find_families(call.keys)
    return not set(queries) & set(keys) if queries and keys else None


def same_tokens(calls: Sequence[Call]) -> bool:
    """Whether all calls are of the same queries and keys."""
    first = calls[0]
    pairs = [(getattr(call, side), getattr(first, side)) for call in calls[1:] for side in ("queries", "keys")]
    return all((one is None) == (two is None) and (one is None or np.array_equal(one, two)) for one, two in pairs)
