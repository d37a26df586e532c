"""Layers whose heads are modules or calls of their own, as in code that writes one head first and then several.

Knows paths and what follows what; no tokens, no records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from attnviz.errors import InvalidRecord
from attnviz.models.capture.call import Call
from attnviz.models.capture.paths import NUMBER, may_be_in
from attnviz.models.protocols import EVERY, LayersAndHeads


def join_heads(calls: Sequence[Call], choice: LayersAndHeads) -> list[Call]:
    """Calls in their order, those that are the heads of one layer as one call; only the chosen layers and heads.

    Calls are heads of one layer where each has one head, all have the same queries and keys, none reads what another
    gave, and they are in one run of a module, or their paths differ in nothing but the last number, which counts from 0
    without a gap.

    Raises InvalidSelection for a head that there is not, and InvalidRecord where such calls are factored.
    """
    for place in (_place_in_run, _place_in_list):
        beside: dict[tuple[object, ...], list[Call]] = defaultdict(list)
        for call in calls:
            tokens = (None if ids is None else ids.tobytes() for ids in (call.queries, call.keys))
            is_head = call.shape[1] == 1 and call.keys is not None and place(call) is not None
            alike = call.number, call.after, call.shape, call.how, *tokens, place(call)
            beside[alike if is_head else (call.place,)].append(call)
        numbered = place is _place_in_list
        calls = [
            one
            for each in beside.values()
            for one in ([_join(each, choice, numbered)] if _are_heads(each, numbered) else each)
        ]
    return sorted(
        (_choose(call, choice) for call in calls if may_be_in(call.path, choice.layers)), key=lambda call: call.place
    )


def _place_in_run(call: Call) -> object:
    return call.path, call.run


def _place_in_list(call: Call) -> object:
    return _without_last_number(call.path) if NUMBER.search(call.path) else None


def _without_last_number(path: str) -> str:
    """Such as "blocks.0.heads" of "blocks.0.heads.3"."""
    last = list(NUMBER.finditer(path))[-1]
    return path[: last.start()].rstrip("._") + path[last.end() :]


def _are_heads(calls: Sequence[Call], numbered: bool) -> bool:
    if len(calls) < 2 or (numbered and sorted(map(_last_number, calls)) != list(range(len(calls)))):
        return False
    empty = [~call.attendable.any(axis=-1) for call in calls]
    return all(np.array_equal(empty[0], other) for other in empty)


def _last_number(call: Call) -> int:
    return int(NUMBER.findall(call.path)[-1])


def _join(calls: Sequence[Call], choice: LayersAndHeads, numbered: bool) -> Call:
    first = calls[0]
    path = _without_last_number(first.path) if numbered else first.path
    if first.factors is not None:
        raise InvalidRecord(
            f"the heads of {path} are modules of their own, which are not recorded by their factors",
            hint="Leave out factored.",
        )
    if not numbered:
        return _join_ordered(calls, choice)
    ordered = sorted(calls, key=_last_number)
    return replace(_join_ordered(ordered, choice), path=path, n_alike=first.n_alike[:-1])


def _join_ordered(ordered: Sequence[Call], choice: LayersAndHeads) -> Call:
    """Return one call of several, each of which is a head of it."""
    first, last = ordered[0], max(ordered, key=lambda call: call.place)
    after, sinks = 0, [call.sink for call in ordered]
    for call in ordered:
        after |= call.after
    return replace(
        first,
        kept=np.concatenate([call.weights for call in ordered], axis=1),
        attendable=np.any([call.attendable for call in ordered], axis=0),
        sink=_side_by_side(sinks, first.shape),
        error=max(call.error for call in ordered),
        place=last.place,
        after=after,
        guess=next((call.guess for call in ordered if call.guess), ""),
        heads=tuple(range(len(ordered))),
        n_heads_in_model=None if choice == EVERY else len(ordered),
    )


def _side_by_side(sinks: Sequence[np.ndarray | None], shape: Sequence[int]) -> np.ndarray | None:
    if all(sink is None for sink in sinks):
        return None
    nothing = np.zeros(shape[:3], dtype=np.float32)
    return np.concatenate([nothing if sink is None else sink for sink in sinks], axis=1)


def _choose(call: Call, choice: LayersAndHeads) -> Call:
    """Of all heads of a call that had none chosen yet, the chosen ones. Raises InvalidSelection."""
    whole = call.heads == tuple(range(call.n_heads_in_model or len(call.heads)))
    if choice.heads is None or call.factors is not None or call.shape[1] != len(call.heads) or not whole:
        return call
    heads = choice.heads_of(len(call.heads), f"the attention in {call.path or 'this block'}")
    places = list(heads)
    sink = None if call.sink is None else call.sink[:, places]
    return replace(call, kept=call.weights[:, places], sink=sink, heads=heads)
