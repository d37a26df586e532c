"""The steps of a text that grows over a key/value cache, as one pass. Knows calls, and neither names nor records.

A pass goes on where earlier ones ended if its cache holds, bit by bit, the values that they left there, in the same
rows of the batch. That is looked at and not guessed: passes whose cache holds anything else stay apart. After beam
search rows have changed places, after assisted decoding words were taken back, and some caches drop keys from the
middle. A cache that forgets its oldest keys is followed: nobody may attend to what was forgotten.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from attnviz.errors import InvalidRecord
from attnviz.models.capture.call import Call
from attnviz.models.capture.values import Values

APART = (
    "the cache of a step holds other keys than the steps before left there, as after beam search or assisted decoding"
)
WHOLE = "Give the model the whole text in one pass, or leave out factored."
Place = tuple[str, int, int]  # the path, the how manieth in its run of a module, and of the same in one pass


@dataclass(eq=False)
class Memory:
    """What the calls at one place of a model have attended to so far."""

    values: Values  # of every position up to now
    grows: bool | None = None  # whether each call adds keys, or all read the same; None: there was one call only

    def after(self, call: Call) -> Memory | None:
        """What there is after a further call; None where that does not go on from here."""
        if call.values is None:
            return None
        n_live = live(call)
        now, n_cached = call.values[:, :n_live], n_live - call.shape[2]
        same = np.array_equal(now, self.values)
        start = self.values.shape[1] - n_cached
        grown = n_cached > 0 and start >= 0 and np.array_equal(now[:, :n_cached], self.values[:, start:])
        if grown and self.grows is not False and not (same and call.own_keys is False):
            return Memory(np.concatenate([self.values, now[:, n_cached:]], axis=1), True)
        return Memory(self.values, False) if same and not self.grows else None


class Series:
    """Passes that go on where each other ended."""

    def __init__(self, calls: dict[Place, Call]) -> None:
        self.calls = {place: [call] for place, call in calls.items()}
        self.memories = {
            place: Memory(call.values[:, : live(call)]) for place, call in calls.items() if call.values is not None
        }

    def take(self, calls: dict[Place, Call]) -> bool:
        """Whether a pass goes on from here; it is then one of these."""
        if len(self.memories) < len(calls):  # of some the values are not known
            return False
        after = {place: self.memories[place].after(call) for place, call in calls.items()}
        known = {place: memory for place, memory in after.items() if memory is not None}
        if len(known) < len(calls) or not any(memory.grows for memory in known.values()):
            return False
        self.memories = known
        for place, call in calls.items():
            self.calls[place].append(call)
        return True

    def join(self) -> Iterator[tuple[Call, int]]:
        """One call of each place."""
        for place, calls in self.calls.items():
            yield _as_one(calls, self.memories[place]) if len(calls) > 1 else calls[0], place[1]

    def apart(self) -> Iterator[tuple[Call, int]]:
        """Every call by itself, and why."""
        for place, calls in self.calls.items():
            yield from ((replace(call, apart=APART), place[1]) for call in calls)


def join_passes(calls: Sequence[tuple[Call, int]]) -> list[tuple[Call, int]]:
    """The calls of passes that go on where others ended as calls of one pass. Each comes with its how manieth it is.

    Where one pass of a model has a cache that does not fit, none of the model's passes are joined.
    """
    passes: dict[int, dict[Place, Call]] = defaultdict(dict)
    times: Counter[tuple[int, str, int]] = Counter()
    for call, nth in calls:
        again = (call.number, call.path, nth)
        passes[call.number][call.path, nth, times[again]] = call
        times[again] += 1
    models: dict[frozenset[Place], list[Series]] = defaultdict(list)
    unfit: set[frozenset[Place]] = set()
    for of_pass in passes.values():
        model = frozenset(of_pass)
        if any(series.take(of_pass) for series in reversed(models[model])):
            continue
        if models[model] and any(call.own_keys and call.shape[2] < live(call) for call in of_pass.values()):
            unfit.add(model)
        models[model].append(Series(of_pass))
    found = [
        each
        for model, several in models.items()
        for series in several
        for each in (series.apart() if model in unfit else series.join())
    ]
    return sorted(found, key=lambda each: (each[0].number, each[0].place))


def live(call: Call) -> int:
    """How many keys there are, without the room that a cache has left."""
    attended = np.flatnonzero(call.attended.any(axis=0))
    return int(max(call.shape[2], attended.max(initial=-1) + 1))


def _as_one(calls: list[Call], memory: Memory) -> Call:
    """Each call's queries under those before it; the calls are let go one by one."""
    first, (n_batch, n_heads, _, _) = calls[0], calls[0].shape
    if first.factors is not None:
        raise InvalidRecord("the steps of a text that grows over a cache are not recorded by their factors", hint=WHOLE)
    shape = n_batch, sum(call.shape[2] for call in calls), memory.values.shape[1]
    weights = np.zeros((n_batch, n_heads, *shape[1:]), dtype=np.float32)
    attendable = np.zeros(shape, dtype=bool)
    sink = None if first.sink is None else np.zeros((n_batch, n_heads, shape[1]), dtype=np.float32)
    n_steps, error = len(calls), max(call.error for call in calls)
    guess = next((call.guess for call in calls if call.guess), "")
    row = end = 0
    while calls:
        call = calls.pop(0)
        n_queries, n_live = call.shape[2], live(call)
        queries, end = slice(row, row + n_queries), end + n_queries if memory.grows and end else n_live
        keys = slice(end - n_live, end)
        weights[:, :, queries, keys] = call.weights[..., :n_live]
        attendable[:, queries, keys] = call.attendable[..., :n_live]
        if sink is not None and call.sink is not None:
            sink[:, :, queries] = call.sink
        row += n_queries
    return replace(
        first,
        kept=weights,
        attendable=attendable,
        sink=sink,
        error=error,
        guess=guess,
        own_keys=memory.grows,
        values=None,
        n_steps=n_steps,
    )
