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


def join_heads(calls: Sequence[Call], choice: LayersAndHeads, side_by_side: Sequence[Sequence[int]] = ()) -> list[Call]:
    """Calls in their order, those that are the heads of one layer as one call; only the chosen layers and heads.

    Calls are heads of one layer where each has one head, their paths differ in nothing but the last number, which
    counts from 0 without a gap, their modules read the same states, and none reads what another gave; or where they are
    in one run of a module that put their outputs side by side, as `side_by_side` lists them.

    Raises InvalidSelection for a head that there is not, and InvalidRecord where such calls are factored.
    """
    beside: dict[tuple[object, ...], list[Call]] = defaultdict(list)
    calls = _join_outputs(calls, choice, side_by_side)
    for call in calls:
        beside[_place(call)].append(call)
    found = [one for each in beside.values() for one in ([_join(each, choice)] if _are_heads(each) else each)]
    return sorted(
        (_choose(call, choice) for call in found if may_be_in(call.path, choice.layers)), key=lambda call: call.place
    )


def _join_outputs(calls: Sequence[Call], choice: LayersAndHeads, side_by_side: Sequence[Sequence[int]]) -> list[Call]:
    """Join calls of one run whose outputs were put side by side."""
    found = {call.place: call for call in calls}
    for places in side_by_side:
        heads = [found[place] for place in places if place in found]
        alike = {(call.number, call.path, call.run, call.shape, call.how) for call in heads}
        if len(heads) == len(places) > 1 == len(alike) == heads[0].shape[1] and heads[0].factors is None:
            for place in places:
                del found[place]
            joined = _join_ordered(heads, choice)
            found[joined.place] = joined
    return list(found.values())


def _place(call: Call) -> tuple[object, ...]:
    """What heads of one layer share; the call's own number where it is none of them."""
    numbers = list(NUMBER.finditer(call.path))
    if not (numbers and call.reads and call.shape[1] == 1):
        return (call.place,)
    return call.number, _without_last_number(call.path), call.reads, call.shape, call.how


def _without_last_number(path: str) -> str:
    """Such as "blocks.0.heads" of "blocks.0.heads.3"."""
    last = list(NUMBER.finditer(path))[-1]
    return path[: last.start()].rstrip("._") + path[last.end() :]


def _are_heads(calls: Sequence[Call]) -> bool:
    numbers = sorted(_last_number(call) for call in calls) if len(calls) > 1 else []
    if not numbers or numbers != list(range(len(calls))):
        return False
    places = sum(1 << call.place for call in calls)
    empty = [~call.attendable.any(axis=-1) for call in calls]
    return not any(call.after & places for call in calls) and all(np.array_equal(empty[0], other) for other in empty)


def _last_number(call: Call) -> int:
    return int(NUMBER.findall(call.path)[-1])


def _join(calls: Sequence[Call], choice: LayersAndHeads) -> Call:
    ordered = sorted(calls, key=_last_number)
    path = _without_last_number(ordered[0].path)
    if ordered[0].factors is not None:
        raise InvalidRecord(
            f"the heads of {path} are modules of their own, which are not recorded by their factors",
            hint="Leave out factored.",
        )
    return replace(_join_ordered(ordered, choice), path=path, n_alike=ordered[0].n_alike[:-1])


def _join_ordered(ordered: Sequence[Call], choice: LayersAndHeads) -> Call:
    """Return one call of several, each of which is a head of it."""
    first, last = ordered[0], max(ordered, key=lambda call: call.place)
    after, sinks = 0, [call.sink for call in ordered]
    for call in ordered:
        after |= call.after
    known = {call.own_keys for call in ordered}
    return replace(
        first,
        kept=np.concatenate([call.weights for call in ordered], axis=1),
        attendable=np.any([call.attendable for call in ordered], axis=0),
        sink=_side_by_side(sinks, first.shape),
        error=max(call.error for call in ordered),
        place=last.place,
        after=after,
        own_keys=known.pop() if len(known) == 1 else None,
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
