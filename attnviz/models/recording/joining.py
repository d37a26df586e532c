"""The steps of a text that grows over a key/value cache, as one pass. Knows calls and ids; neither names nor records.

A pass goes on where another ended if its keys are tokens that the other read, and its queries are none of them: the ids
in the cache say so, however the cache was ordered, cropped or filled. Tokens get places in the whole text. One that was
taken back, as in assisted decoding, has lost its place to the one that was read after. After beam search rows hold
tokens of other rows: then no two steps are of one text, and they stay apart.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from attnviz.errors import InvalidRecord
from attnviz.models.capture.call import Call, PlaceIds
from attnviz.models.capture.ids import NOBODY, PLACE_BITS, ROW_BITS, family_of, place_of, row_of

APART = "the cache of a step holds tokens of other rows than its own, as after beam search"
WHOLE = "Give the model the whole text in one pass, or leave out factored."
Place = tuple[str, int, int]  # the path, the how manieth in its run of a module, and of the same in one pass


@dataclass(eq=False)
class Series:
    """Passes that go on where each other ended."""

    calls: dict[Place, list[Call]]
    line: int = NOBODY  # the family of the first queries: that of the whole text
    places: dict[int, int] = field(default_factory=dict)  # of each token that was read, where in the whole text it is
    _sorted: tuple[np.ndarray, np.ndarray] | None = None  # the same, by number

    def renumber(self, ids: PlaceIds) -> PlaceIds:
        """Ids by their places in the whole text; what was not read in it is of nobody."""
        known = np.fromiter(self.places, np.int64, len(self.places)) if self._sorted is None else self._sorted[0]
        if self._sorted is None:
            order = known.argsort()
            known = known[order]
            self._sorted = known, np.fromiter(self.places.values(), np.int64, len(known))[order]
        if not len(known):
            return np.full_like(ids, NOBODY)
        at = np.searchsorted(known, ids).clip(max=len(known) - 1)
        found = (self.line << PLACE_BITS + ROW_BITS) + (row_of(ids) << PLACE_BITS) + self._sorted[1][at]
        return np.where(known[at] == ids, found, NOBODY)

    def goes_on(self, calls: dict[Place, Call]) -> bool:
        """Whether a pass goes on from here."""
        new = _find_queries(calls)
        if calls.keys() != self.calls.keys() or new is None or int(new[0, 0]) in self.places:
            return False
        return any(call.keys is not None and (self.renumber(call.keys[:1]) >= 0).any() for call in calls.values())

    def begin(self, calls: dict[Place, Call]) -> None:
        """Place what the first pass read."""
        read = _find_queries(calls)
        if read is not None:
            self.line = int(family_of(read[read >= 0].min()))
            self._place(read, 0)

    def _place(self, read: PlaceIds, start: int) -> None:
        """By their places in what was read with them; where that is of several sources, as they stand."""
        self._sorted = None
        alone = len(np.unique(family_of(read[read >= 0]))) == 1
        for of_row in read:
            for at, each in enumerate(of_row.tolist()):
                if each >= 0:
                    self.places[each] = start + (place_of(each) if alone else at)

    def take(self, calls: dict[Place, Call]) -> bool:
        """Add a pass that goes on. Returns whether each row of it is of one text."""
        end, alike = 0, True
        for call in calls.values():
            if call.keys is None or call.queries is None:
                continue
            old = self.renumber(call.keys)
            known = old >= 0
            if known.any():
                end = max(end, int(place_of(old)[known].max()) + 1)
                own = np.broadcast_to(row_of(call.queries)[:, :1], old.shape)
                alike &= bool((row_of(old) == own)[known].all())
        read = _find_queries(calls)
        assert read is not None
        self._place(read, end)
        for place, call in calls.items():
            self.calls[place].append(call)
        return alike

    def join(self) -> Iterator[tuple[Call, int]]:
        """One call of each place."""
        for place, calls in self.calls.items():
            yield self._as_one(calls) if len(calls) > 1 else calls[0], place[1]

    def apart(self) -> Iterator[tuple[Call, int]]:
        """Every call by itself, and why."""
        for place, calls in self.calls.items():
            yield from ((replace(call, apart=APART), place[1]) for call in calls)

    def _as_one(self, calls: list[Call]) -> Call:
        """Each call's queries at their places; the calls are let go one by one."""
        first = calls[0]
        if first.factors is not None:
            raise InvalidRecord(
                "the steps of a text that grows over a cache are not recorded by their factors", hint=WHOLE
            )
        assert first.keys is not None
        grows = bool((self.renumber(first.keys) >= 0).any())
        last = self.renumber(calls[-1].queries)  # type: ignore[arg-type]
        n_queries = int(place_of(last).max()) + 1
        n_before = int(np.argmax(first.keys[0] >= 0)) if grows else 0
        n_keys = n_before + n_queries if grows else first.shape[3]
        n_rows, n_heads = first.shape[:2]
        weights = np.zeros((n_rows, n_heads, n_queries, n_keys), dtype=np.float32)
        attendable = np.zeros((n_rows, n_queries, n_keys), dtype=bool)
        sink = None if first.sink is None else np.zeros((n_rows, n_heads, n_queries), dtype=np.float32)
        n_steps, error = len(calls), max(call.error for call in calls)
        while calls:
            call = calls.pop(0)
            assert call.queries is not None
            assert call.keys is not None
            rows = place_of(self.renumber(call.queries)[0])
            kept = rows < n_queries
            keys = np.arange(call.shape[3])
            if grows:
                of_first = self.renumber(call.keys)[0]
                keys = np.where(of_first >= 0, n_before + place_of(of_first), np.where(keys < n_before, keys, n_keys))
            there = keys < n_keys
            for row in range(n_rows):
                at = np.ix_(np.arange(n_heads), rows[kept], keys[there])
                weights[row][at] = call.weights[row][:, kept][:, :, there]
                attendable[row][at[1][0], at[2][0]] = call.attendable[row][kept][:, there]
            if sink is not None and call.sink is not None:
                sink[:, :, rows[kept]] = call.sink[:, :, kept]
        whole = (last[:, :1] - place_of(last[:, :1])) + np.arange(n_queries)
        before = np.full((n_rows, n_before), NOBODY)
        return replace(
            first,
            kept=weights,
            attendable=attendable,
            sink=sink,
            error=error,
            queries=whole,
            keys=np.concatenate([before, whole], axis=1) if grows else first.keys,
            n_steps=n_steps,
        )


def join_passes(calls: Sequence[tuple[Call, int]]) -> list[tuple[Call, int]]:
    """The calls of passes that go on where others ended as calls of one pass. Each comes with its how manieth it is.

    Where one pass of a model has a cache of other rows, none of the model's passes are joined.
    """
    passes: dict[int, dict[Place, Call]] = defaultdict(dict)
    times: Counter[tuple[int, str, int]] = Counter()
    for call, nth in calls:
        again = (call.number, call.path, nth)
        passes[call.number][call.path, nth, times[again]] = call
        times[again] += 1
    several: list[Series] = []
    unfit: set[frozenset[Place]] = set()
    for of_pass in passes.values():
        known = next((series for series in reversed(several) if series.goes_on(of_pass)), None)
        if known is None:
            several.append(Series({place: [call] for place, call in of_pass.items()}))
            several[-1].begin(of_pass)
        elif not known.take(of_pass):
            unfit.add(frozenset(of_pass))
    found = [
        each for series in several for each in (series.apart() if frozenset(series.calls) in unfit else series.join())
    ]
    return sorted(found, key=lambda each: (each[0].number, each[0].place))


def _find_queries(calls: dict[Place, Call]) -> PlaceIds | None:
    """The queries of the first call whose queries are among its keys: what the pass read of a text that may grow."""
    for call in calls.values():
        if call.queries is not None and call.keys is not None:
            known = call.queries[call.queries >= 0]
            if len(known) and np.isin(known, call.keys).all():
                return call.queries
    return None
