"""Calls that are parts of one attention, as one call: heads, steps of a loop, passes over a cache. Knows no names.

Parts stand beside one another on the axis of heads, or one after another on that of queries. The ids say which do:

* Heads read the same queries and the same keys, and none reads what another gave.
* Steps of a loop, as where a recurrent decoder writes a word and looks again at all that it read, have one query each
  and the same keys. A key/value cache grows, so that its steps are no such loop.
* A pass goes on where another ended if its keys are tokens that the other read and its queries are none of them,
  however the cache was ordered, cropped or filled. Tokens get places in the whole text. One that was taken back, as in
  assisted decoding, has lost its place to the one that was read after it. After beam search rows hold tokens of other
  rows: then no two steps are of one text, and they stay apart.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import Any

import numpy as np

from attnviz.errors import InvalidRecord
from attnviz.models.capture.call import Call, PlaceIds
from attnviz.models.capture.ids import NOBODY, PLACE_BITS, ROW_BITS, Family, family_of, place_of, row_of
from attnviz.models.capture.modules_at_work import NUMBER, may_be_in
from attnviz.models.protocols import EVERY, LayersAndHeads

APART = "the cache of a step holds tokens of other rows than its own, as after beam search"
WHOLE = "Give the model the whole text in one pass, or leave out factored."
Place = tuple[str, int, int]  # the path, the how manieth in its run of a module, and of the same in one pass


def _concatenate(calls: Sequence[Call], axis: int, **known: Any) -> Call:
    """Make one call of parts: along axis 1 heads of the same queries, along axis 2 queries of the same keys."""
    sinks = [np.zeros(call.shape[:3], dtype=np.float32) if call.sink is None else call.sink for call in calls]
    attendable = [call.attendable for call in calls]
    return replace(
        calls[0],
        kept=np.concatenate([call.weights for call in calls], axis),
        attendable=np.any(attendable, axis=0) if axis == 1 else np.concatenate(attendable, 1),
        sink=np.concatenate(sinks, axis) if any(call.sink is not None for call in calls) else None,
        error=max(call.error for call in calls),
        after=reduce(or_, (call.after for call in calls)),
        guess=next((call.guess for call in calls if call.guess), ""),
        **known,
    )


def _gather(calls: Sequence[Call], find_whole: Callable[[Call], object]) -> list[list[Call]]:
    """Gather calls that are parts of the same whole; None: a call is no part of any."""
    found: dict[object, list[Call]] = defaultdict(list)
    for call in calls:
        whole = find_whole(call)
        found[call.place if whole is None else whole].append(call)
    return list(found.values())


def find_families(ids: PlaceIds | None) -> tuple[int, ...]:
    """Return the numbers of the families that some ids are of, in their order."""
    return () if ids is None else tuple(dict.fromkeys(family_of(ids[ids >= 0]).tolist()))


# --- heads ------------------------------------------------------------------------------------------------------------


def join_heads(calls: Sequence[Call], choice: LayersAndHeads) -> list[Call]:
    """Join calls that are the heads of one layer, and leave the chosen layers and heads of all, in their order.

    Heads of one layer are in one run of a module, or their paths differ in nothing but the last number, which counts
    from 0 without a gap.

    Raises InvalidSelection for a head that there is not, and InvalidRecord where such calls are factored.
    """
    joined: list[Call] = []
    for several in _gather(calls, _find_states):
        numbered = {int(number): call for call in several for number in NUMBER.findall(call.path)[-1:]}
        if len(several) > 1 and sorted(numbered) == list(range(len(several))):
            *_, last = NUMBER.finditer(several[0].path)
            path = several[0].path[: last.start()].rstrip("._") + several[0].path[last.end() :]
            heads = _join_heads([call for _, call in sorted(numbered.items())], choice)
            joined.append(replace(heads, path=path, n_alike=heads.n_alike[:-1]))
        else:
            joined += [_join_heads(each, choice) for each in _gather(several, lambda call: (call.path, call.run))]
    chosen = (_choose(call, choice) for call in joined if may_be_in(call.path, choice.layers))
    return sorted(chosen, key=lambda call: call.place)


def _find_states(call: Call) -> object:
    """Find what heads of one layer have in common."""
    if call.shape[1] != 1 or call.keys is None:
        return None
    empty = ~call.attendable.any(axis=-1)
    ids = (b"" if ids is None else ids.tobytes() for ids in (call.queries, call.keys, empty))
    path = *NUMBER.split(call.path), *NUMBER.findall(call.path)[:-1]
    return call.number, call.after, call.shape, call.how, *ids, path


def _join_heads(calls: list[Call], choice: LayersAndHeads) -> Call:
    first, n_heads = calls[0], len(calls)
    if n_heads == 1:
        return first
    if first.factors is not None:
        problem = f"the heads of {first.path or 'this block'} are calls of their own, which have no factors together"
        raise InvalidRecord(problem, hint="Leave out factored.")
    in_model = None if choice == EVERY else n_heads
    last = max(call.place for call in calls)
    return _concatenate(calls, 1, place=last, heads=tuple(range(n_heads)), n_heads_in_model=in_model)


def _choose(call: Call, choice: LayersAndHeads) -> Call:
    """Leave the chosen heads of a call that has all. Raises InvalidSelection."""
    if choice.heads is None or call.factors is not None or call.n_heads_in_model != call.shape[1]:
        return call
    heads = choice.heads_of(call.shape[1], f"the attention in {call.path or 'this block'}")
    sink = None if call.sink is None else call.sink[:, list(heads)]
    return replace(call, kept=call.weights[:, list(heads)], sink=sink, heads=heads)


# --- steps of a loop --------------------------------------------------------------------------------------------------


def join_steps(calls: Sequence[Call], families: Sequence[Family]) -> list[Call]:
    """Join steps of a loop. Their queries are tokens where each step has another, and no state that goes on."""
    return [_join_steps(each, families) if len(each) > 1 else each[0] for each in _gather(calls, _find_loop)]


def _join_steps(calls: list[Call], families: Sequence[Family]) -> Call:
    asking = [call.queries for call in calls if call.queries is not None]
    queries = np.concatenate(asking, axis=1) if len(asking) == len(calls) else None
    is_state = any(families[family].is_mixed for family in find_families(queries))
    if queries is not None and (is_state or len(np.unique(queries[0])) < len(calls)):
        queries = None
    return _concatenate(calls, 2, place=calls[-1].place, queries=queries, n_steps=len(calls))


def _find_loop(call: Call) -> object:
    if call.keys is None or call.shape[2] > 1 or call.shape[3] == 1 or call.factors is not None:
        return None
    return call.number, call.path, call.shape, call.heads, call.keys.tobytes()


# --- passes over a cache ----------------------------------------------------------------------------------------------


class Series:
    """Passes that go on where each other ended, and the text that they read."""

    def __init__(self, calls: dict[Place, Call], read: PlaceIds) -> None:
        self.calls = {place: [call] for place, call in calls.items()}
        self.is_of_one = True  # whether each row is of one text
        self._text = read  # ids of its tokens in order, without their rows
        self._family = min(find_families(read), default=NOBODY)  # that all of them get

    def find(self, ids: PlaceIds) -> PlaceIds:
        """Find the places of tokens in the whole text; of others -1."""
        text, ids = np.append(self._text, NOBODY), _leave_rows(ids)
        order = text.argsort()
        near = order[np.searchsorted(text, ids, sorter=order).clip(max=len(order) - 1)]
        return np.where((ids >= 0) & (text[near] == ids), near, NOBODY)

    def goes_on(self, calls: dict[Place, Call], read: PlaceIds) -> bool:
        """Tell whether a pass goes on from here."""
        is_new = calls.keys() == self.calls.keys() and len(read) > 0 and bool((self.find(read) < 0).all())
        return is_new and any(call.keys is not None and self.find(call.keys[0]).max() >= 0 for call in calls.values())

    def take(self, calls: dict[Place, Call], read: PlaceIds) -> None:
        """Add a pass that goes on, behind the last token that it knows."""
        end = 0
        for place, call in calls.items():
            self.calls[place].append(call)
            if call.keys is not None and call.queries is not None:
                at = self.find(call.keys)
                end = max(end, int(at.max()) + 1)
                self.is_of_one &= bool(((at < 0) | (row_of(call.keys) == row_of(call.queries[:, :1]))).all())
        self._text = np.concatenate([self._text[:end], read])

    def join(self, is_fit: bool) -> Iterator[tuple[Call, int]]:
        """Yield one call of each place; where rows are of several texts every call by itself, and why."""
        for place, calls in self.calls.items():
            if is_fit:
                yield self._as_one(calls) if len(calls) > 1 else calls[0], place[1]
                continue
            for call in calls:
                queries, keys = (None if ids is None else self._renumber(ids) for ids in (call.queries, call.keys))
                yield replace(call, apart=APART, queries=queries, keys=keys), place[1]

    def _renumber(self, ids: PlaceIds) -> PlaceIds:
        """Return ids by their places in the whole text, but for what was not read in it."""
        at = self.find(ids)
        return np.where(at < 0, ids, self._number(row_of(ids)) + at)

    def _number(self, rows: PlaceIds) -> PlaceIds:
        """Return the ids of the first tokens of rows of the text."""
        return np.asarray((self._family << PLACE_BITS + ROW_BITS) + (rows << PLACE_BITS))

    def _as_one(self, calls: list[Call]) -> Call:
        """Join the queries that stayed in the text. Keys that are not of it, such as memory, stand before its own."""
        first, parts = calls[0], []
        if first.factors is not None:
            problem = "the steps of a text that grows over a cache are not recorded by their factors"
            raise InvalidRecord(problem, hint=WHOLE)
        assert first.keys is not None
        assert first.queries is not None
        is_before = self.find(first.keys[0]) < 0
        n_before, n_in_text = int(is_before.sum()), 0 if is_before.all() else len(self._text)
        rows = self._number(row_of(first.queries[:, :1]))
        keys = np.concatenate([first.keys[:, is_before], rows + np.arange(n_in_text)], axis=1)
        n_keys = keys.shape[1]
        for call in calls:
            of_text, stayed = self.find(call.keys[0]), self.find(call.queries[0]) >= 0  # type: ignore[index]
            rank = (of_text < 0).cumsum() - 1
            at = np.where(of_text >= 0, n_before + of_text, np.where(rank < n_before, rank, n_keys)).clip(max=n_keys)
            parts.append(
                replace(
                    call,
                    kept=_lay_out(call.weights[:, :, stayed], at, n_keys),
                    attendable=_lay_out(call.attendable[:, stayed], at, n_keys),
                    sink=None if call.sink is None else call.sink[:, :, stayed],
                    queries=self._renumber(call.queries[:, stayed]),  # type: ignore[index]
                )
            )
        queries = np.concatenate([part.queries for part in parts], axis=1)
        return _concatenate(parts, 2, queries=queries, keys=keys, n_steps=len(calls))


def _leave_rows(ids: PlaceIds) -> PlaceIds:
    return np.asarray(ids - (row_of(ids) << PLACE_BITS))


def _lay_out(of: np.ndarray, at: PlaceIds, n_keys: int) -> np.ndarray:
    """Put [… query key] at places on an axis of `n_keys`; what is placed behind that is left out."""
    whole = np.zeros((*of.shape[:-1], n_keys + 1), dtype=of.dtype)
    whole[..., at] = of
    return whole[..., :-1]


def join_passes(calls: Sequence[tuple[Call, int]], taken_back: Collection[int]) -> list[tuple[Call, int]]:
    """Join the calls of passes that go on where others ended. Each comes with its how manieth it is.

    Where one pass of a model has a cache of other rows, none of the model's passes are joined.
    """
    passes: dict[int, dict[Place, Call]] = defaultdict(dict)
    times: Counter[tuple[int, str, int]] = Counter()
    for call, nth in calls:
        passes[call.number][call.path, nth, times[call.number, call.path, nth]] = call
        times[call.number, call.path, nth] += 1
    several: list[Series] = []
    for of_pass in passes.values():
        read = _find_text(of_pass)
        read = read[~np.isin(read, _leave_rows(np.array([*taken_back], dtype=int)))]
        known = next((series for series in reversed(several) if series.goes_on(of_pass, read)), None)
        if known is None:
            several.append(Series(of_pass, read))
        else:
            known.take(of_pass, read)
    unfit = {frozenset(series.calls) for series in several if not series.is_of_one}
    found = [each for series in several for each in series.join(frozenset(series.calls) not in unfit)]
    return sorted(found, key=lambda each: (each[0].number, each[0].place))


def _find_text(calls: dict[Place, Call]) -> PlaceIds:
    """Find what a pass read of a text that may grow: the first queries that are among the keys of their call.

    They are tokens of one family by their places in it, or of several as they stand on their axis.
    """
    for call in calls.values():
        if call.queries is not None and call.keys is not None:
            known = call.queries[call.queries >= 0]
            if len(known) and np.isin(known, call.keys).all():
                first, families = _leave_rows(call.queries[0]), find_families(call.queries)
                n_places = int(place_of(known).max()) + 1
                return first if len(families) > 1 else (families[0] << PLACE_BITS + ROW_BITS) + np.arange(n_places)
    return np.empty(0, dtype=int)
