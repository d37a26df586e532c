"""Calls that are parts of one attention, as one call: heads, steps of a loop, passes over a cache. Knows no names.

Whatever the parts are, each has its heads, queries and keys at some places of the whole, and the ids say at which:

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
from dataclasses import dataclass, field, replace

import numpy as np

from attnviz.errors import InvalidRecord
from attnviz.models.capture.call import Call, PlaceIds
from attnviz.models.capture.ids import NOBODY, PLACE_BITS, ROW_BITS, Family, family_of, place_of, row_of
from attnviz.models.capture.modules_at_work import NUMBER, may_be_in
from attnviz.models.protocols import EVERY, LayersAndHeads

APART = "the cache of a step holds tokens of other rows than its own, as after beam search"
WHOLE = "Give the model the whole text in one pass, or leave out factored."
Place = tuple[str, int, int]  # the path, the how manieth in its run of a module, and of the same in one pass
Places = tuple[np.ndarray, np.ndarray, np.ndarray]  # of heads, queries and keys


def _put_together(calls: list[Call], places: Sequence[Places], shape: tuple[int, ...]) -> Call:
    """Make one call of several, which are let go one by one. What is placed beyond `shape` is left out."""
    first, last, error, after = calls[0], calls[-1], max(call.error for call in calls), 0
    guess = next((call.guess for call in calls if call.guess), "")
    has_sink = any(call.sink is not None for call in calls)
    rows, weights = np.arange(shape[0]), np.zeros(shape, dtype=np.float32)
    attendable, sink = np.zeros((shape[0], *shape[2:]), dtype=bool), np.zeros(shape[:3], dtype=np.float32)
    for at in places:
        call, (of_heads, of_queries, of_keys) = calls.pop(0), (each < n for each, n in zip(at, shape[1:], strict=True))
        heads, queries, keys = at[0][of_heads], at[1][of_queries], at[2][of_keys]
        weights[np.ix_(rows, heads, queries, keys)] = call.weights[:, of_heads][:, :, of_queries][..., of_keys]
        attendable[np.ix_(rows, queries, keys)] |= call.attendable[:, of_queries][..., of_keys]
        if call.sink is not None:
            sink[np.ix_(rows, heads, queries)] = call.sink[:, of_heads][:, :, of_queries]
        after |= call.after
    return replace(
        first,
        kept=weights,
        attendable=attendable,
        sink=sink if has_sink else None,
        error=error,
        place=last.place,
        after=after,
        guess=guess,
    )


def _gather(calls: Sequence[Call], find_whole: Callable[[Call], object]) -> list[list[Call]]:
    """Gather calls that are parts of the same whole; None: a call is no part of any."""
    found: dict[object, list[Call]] = defaultdict(list)
    for call in calls:
        whole = find_whole(call)
        found[call.place if whole is None else whole].append(call)
    return list(found.values())


# --- heads ------------------------------------------------------------------------------------------------------------


def join_heads(calls: Sequence[Call], choice: LayersAndHeads) -> list[Call]:
    """Join calls that are the heads of one layer, and leave the chosen layers and heads of all, in their order.

    Heads of one layer are in one run of a module, or their paths differ in nothing but the last number, which counts
    from 0 without a gap.

    Raises InvalidSelection for a head that there is not, and InvalidRecord where such calls are factored.
    """
    calls = [_join_heads(each, choice) for each in _gather(calls, _find_run)]
    found = []

    def find_list(call: Call) -> object:
        """Find what heads in numbered modules have in common."""
        run = _find_run(call)
        return (*run[:-2], _leave_last_number(call.path)) if run and NUMBER.search(call.path) else None

    for each in _gather(calls, find_list):
        numbered = {int(NUMBER.findall(call.path)[-1]): call for call in each if len(each) > 1}
        if numbered and sorted(numbered) == list(range(len(each))):
            path, n_alike = _leave_last_number(each[0].path), each[0].n_alike[:-1]
            heads = [numbered[head] for head in range(len(each))]
            each = [replace(_join_heads(heads, choice), path=path, n_alike=n_alike)]
        found += [_choose(call, choice) for call in each if may_be_in(call.path, choice.layers)]
    return sorted(found, key=lambda call: call.place)


def _find_run(call: Call) -> tuple[object, ...] | None:
    if call.shape[1] != 1 or call.keys is None:
        return None
    empty = ~call.attendable.any(axis=-1)
    ids = (b"" if ids is None else ids.tobytes() for ids in (call.queries, call.keys, empty))
    return call.number, call.after, call.shape, call.how, *ids, call.path, call.run


def _leave_last_number(path: str) -> str:
    """Return such as "blocks.0.heads" of "blocks.0.heads.3"."""
    last = list(NUMBER.finditer(path))[-1]
    return path[: last.start()].rstrip("._") + path[last.end() :]


def _join_heads(calls: list[Call], choice: LayersAndHeads) -> Call:
    first, n_heads = calls[0], len(calls)
    if n_heads == 1:
        return first
    if first.factors is not None:
        problem = f"the heads of {first.path or 'this block'} are calls of their own, which have no factors together"
        raise InvalidRecord(problem, hint="Leave out factored.")
    n_rows, _, *axes = first.shape
    places = [(np.array([head]), *map(np.arange, axes)) for head in range(n_heads)]
    whole = _put_together(calls, places, (n_rows, n_heads, *axes))  # type: ignore[arg-type]
    return replace(whole, heads=tuple(range(n_heads)), n_heads_in_model=None if choice == EVERY else n_heads)


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
    found = []
    for each in _gather(calls, _find_loop):
        n_steps, (n_rows, n_heads, _, n_keys) = len(each), each[0].shape
        if n_steps == 1:
            found.append(each[0])
            continue
        asking = [call.queries for call in each if call.queries is not None]
        queries = np.concatenate(asking, axis=1) if len(asking) == n_steps else None
        is_state = any(families[family].is_mixed for family in find_families(queries))
        if queries is not None and (is_state or len(np.unique(queries[0])) < n_steps):
            queries = None
        places = [(np.arange(n_heads), np.array([step]), np.arange(n_keys)) for step in range(n_steps)]
        whole = _put_together(each, places, (n_rows, n_heads, n_steps, n_keys))
        found.append(replace(whole, queries=queries, n_steps=n_steps))
    return found


def _find_loop(call: Call) -> object:
    if call.keys is None or call.shape[2] > 1 or call.shape[3] == 1 or call.factors is not None:
        return None
    return call.number, call.path, call.shape, call.heads, call.keys.tobytes()


def find_families(ids: PlaceIds | None) -> tuple[int, ...]:
    """Return the numbers of the families that some ids are of, in their order."""
    return () if ids is None else tuple(dict.fromkeys(family_of(ids[ids >= 0]).tolist()))


# --- passes over a cache ----------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Series:
    """Passes that go on where each other ended."""

    calls: dict[Place, list[Call]]
    taken_back: list[int]  # ids of tokens that were tried, and are none of the text
    line: int = NOBODY  # the family of the first queries: that of the whole text
    starts: dict[int, int] = field(default_factory=dict)  # where in the whole text each family that was read begins

    def renumber(self, ids: PlaceIds) -> PlaceIds:
        """Return ids by their places in the whole text; what was not read in it is of nobody."""
        found = np.full_like(ids, NOBODY)
        for family in {*find_families(ids)} & {*self.starts}:
            of = (family_of(ids) == family) & ~np.isin(ids, self.taken_back)
            places = place_of(ids[of]) + self.starts[family]
            found[of] = (self.line << PLACE_BITS + ROW_BITS) + (row_of(ids[of]) << PLACE_BITS) + places
        return found

    def goes_on(self, calls: dict[Place, Call]) -> bool:
        """Tell whether a pass goes on from here."""
        new = _find_queries(calls)
        if calls.keys() != self.calls.keys() or new is None or family_of(new[0, 0]) in self.starts:
            return False
        return any(call.keys is not None and (self.renumber(call.keys[:1]) >= 0).any() for call in calls.values())

    def read(self, calls: dict[Place, Call], start: int = 0) -> None:
        """Place what a pass read: as it stands on its axis, where that is of several sources."""
        queries = _find_queries(calls)
        families = find_families(queries)
        self.line = min(families, default=NOBODY) if self.line == NOBODY else self.line
        for family in families:
            at = int(np.argmax(family_of(queries[0]) == family))  # type: ignore[index]
            self.starts[family] = start + (at - int(place_of(queries[0, at])) if len(families) > 1 else 0)  # type: ignore[index]

    def take(self, calls: dict[Place, Call]) -> bool:
        """Add a pass that goes on. Returns whether each row of it is of one text."""
        end, alike = 0, True
        for place, call in calls.items():
            self.calls[place].append(call)
            if call.keys is not None and call.queries is not None and (known := self.renumber(call.keys) >= 0).any():
                end = max(end, int(place_of(self.renumber(call.keys))[known].max()) + 1)
                alike &= bool((row_of(call.keys) == row_of(call.queries[:, :1]))[known].all())
        self.read(calls, end)
        return alike

    def join(self, is_fit: bool) -> Iterator[tuple[Call, int]]:
        """Yield one call of each place; where rows are of several texts every call by itself, and why."""
        for place, calls in self.calls.items():
            if is_fit:
                yield self._as_one(calls) if len(calls) > 1 else calls[0], place[1]
                continue
            for call in calls:
                queries, keys = self._place(call.queries), self._place(call.keys)
                yield replace(call, apart=APART, queries=queries, keys=keys), place[1]

    def _place(self, ids: PlaceIds | None) -> PlaceIds | None:
        """Renumber ids, but for what was not read in the text."""
        return None if ids is None else np.where((found := self.renumber(ids)) >= 0, found, ids)

    def _as_one(self, calls: list[Call]) -> Call:
        """Put each call's queries at their places, and its keys where these are of the text that grows."""
        first, n_steps = calls[0], len(calls)
        if first.factors is not None:
            problem = "the steps of a text that grows over a cache are not recorded by their factors"
            raise InvalidRecord(problem, hint=WHOLE)
        assert first.keys is not None
        last = self.renumber(calls[-1].queries)  # type: ignore[arg-type]
        grows, n_queries = bool((self.renumber(first.keys) >= 0).any()), int(place_of(last[last >= 0]).max()) + 1
        n_before = int(np.argmax(first.keys[0] >= 0)) if grows else 0
        n_keys = n_before + n_queries if grows else first.shape[3]
        places = []
        for call in calls:
            of_first, keys = self.renumber(call.keys)[0], np.arange(call.shape[3])  # type: ignore[arg-type]
            if grows:
                keys = np.where(of_first >= 0, n_before + place_of(of_first), np.where(keys < n_before, keys, n_keys))
            queries = place_of(self.renumber(call.queries)[0])  # type: ignore[arg-type]
            places.append((np.arange(first.shape[1]), queries, keys))
        whole = _put_together(calls, places, (*first.shape[:2], n_queries, n_keys))
        line = (last[:, :1] - place_of(last[:, :1])) + np.arange(n_queries)
        before = np.full((len(line), n_before), NOBODY)
        keys = np.concatenate([before, line], axis=1) if grows else first.keys
        return replace(whole, place=first.place, queries=line, keys=keys, n_steps=n_steps)


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
    unfit: set[frozenset[Place]] = set()
    for of_pass in passes.values():
        known = next((series for series in reversed(several) if series.goes_on(of_pass)), None)
        if known is None:
            several.append(Series({place: [call] for place, call in of_pass.items()}, list(taken_back)))
            several[-1].read(of_pass)
        elif not known.take(of_pass):
            unfit.add(frozenset(of_pass))
    found = [each for series in several for each in series.join(frozenset(series.calls) not in unfit)]
    return sorted(found, key=lambda each: (each[0].number, each[0].place))


def _find_queries(calls: dict[Place, Call]) -> PlaceIds | None:
    """Find the first queries that are among the keys of their call: what the pass read of a text that may grow."""
    for call in calls.values():
        if call.queries is not None and call.keys is not None:
            known = call.queries[call.queries >= 0]
            if len(known) and np.isin(known, call.keys).all():
                return call.queries
    return None
