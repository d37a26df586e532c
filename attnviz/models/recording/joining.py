"""Calls that are parts of one attention, as one call: heads, steps of a loop, passes over a cache. Knows no names.

Parts stand beside one another on the axis of heads, or one after another on that of queries. The ids say which do:

* Heads read the same queries and the same keys, and none reads what another gave.
* Steps of a loop, as where a recurrent decoder writes a word and looks again at all that it read, have one query each
  and the same keys. A key/value cache grows, so that its steps are no such loop.
* A pass goes on where another ended if its keys are tokens that asked at the same place, and its queries are none of
  them, however the cache was ordered, cropped or filled. Tokens get places in the whole text, by which queries are
  sorted. One that was taken back, as in assisted decoding, has lost its place to the one that was read after it. After
  beam search rows hold tokens of other rows: then no two steps are of one text, and they stay apart.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
from jaxtyping import Bool

from attnviz.models.capture.call import Call, PlaceIds
from attnviz.models.capture.ids import PLACE_BITS, ROW_BITS, Family, family_of, place_of, row_of
from attnviz.models.capture.modules_at_work import NUMBER, may_be_in
from attnviz.models.protocols import EVERY, LayersAndHeads

APART = "the cache of a step holds tokens of other rows than its own, as after beam search"


def _concatenate(calls: Sequence[Call], axis: int, **known: Any) -> Call:
    """Make one call of parts: along axis 1 heads of the same queries, along axis 2 queries of the same keys."""
    attendable = [call.attendable for call in calls]
    return replace(
        calls[0],
        kept=np.concatenate([call.weights for call in calls], axis),
        attendable=np.any(attendable, axis=0) if axis == 1 else np.concatenate(attendable, 1),
        sink=np.concatenate([call.sink for call in calls], axis),
        error=max(call.error for call in calls),
        after=reduce(or_, (call.after for call in calls)),
        guess=next((call.guess for call in calls if call.guess), ""),
        **known,
    )


def _take(call: Call, axis: int, places: Sequence[int] | PlaceIds, **known: Any) -> Call:
    """Take some heads of a call, or some queries, in this order."""
    attendable = call.attendable if axis == 1 else call.attendable.take(places, 1)
    kept, sink = call.weights.take(places, axis), call.sink.take(places, axis)
    return replace(call, kept=kept, attendable=attendable, sink=sink, **known)


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
    n_heads = len(calls)
    if n_heads == 1:
        return calls[0]
    in_model = None if choice == EVERY else n_heads
    last = max(call.place for call in calls)
    return _concatenate(calls, 1, place=last, heads=tuple(range(n_heads)), n_heads_in_model=in_model)


def _choose(call: Call, choice: LayersAndHeads) -> Call:
    """Leave the chosen heads of a call that has all. Raises InvalidSelection."""
    if choice.heads is None or call.factors is not None or call.n_heads_in_model != call.shape[1]:
        return call
    heads = choice.heads_of(call.shape[1], f"the attention in {call.path or 'this block'}")
    return _take(call, 1, heads, heads=heads)


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


class Texts:
    """Texts that grow: where in the whole of one the tokens stand that a pass has read."""

    def __init__(self, taken_back: Collection[int]) -> None:
        self._taken_back = list(taken_back)
        self._starts: dict[int, tuple[int, int]] = {}  # by family: that of the whole text, and where in it this begins
        self._asked: dict[tuple[str, int], set[int]] = defaultdict(set)  # texts, by where their tokens asked
        self.read_by: dict[int, int] = {}  # texts, by passes
        self.of_other_rows: set[int] = set()  # texts whose cache held tokens of other rows

    def read(self, call: Call, nth: int) -> None:
        """Place what a pass reads: queries that are among their keys, as they stand there if they are of two sources.

        They go on with a text that asked at the same place, behind the last of its tokens that is a key.
        """
        if call.queries is None or call.keys is None:
            return
        families, asked = find_families(call.queries), self._asked[call.path, nth]
        new = [family for family in families if family not in self._starts]
        if new and np.isin(call.queries[call.queries >= 0], call.keys).all():
            keys, text, start = self.renumber(call.keys), min(new), 0
            known = np.isin(family_of(keys), list(asked))
            if len(new) == len(families) and known.any():
                text, start = int(family_of(keys[known])[0]), int(place_of(keys[known]).max()) + 1
                if (row_of(keys) != row_of(call.queries[:, :1]))[known].any():
                    self.of_other_rows.add(text)
            for family in new:
                at = int(np.argmax(family_of(call.queries[0]) == family))
                self._starts[family] = text, start + (at - int(place_of(call.queries[0, at])) if len(new) > 1 else 0)
            self.read_by[call.number] = text
        asked.update(self._starts[family][0] for family in families if family in self._starts)

    def renumber(self, ids: PlaceIds) -> PlaceIds:
        """Return ids by their places in the whole text, but for what was not read in one."""
        found = ids.copy()
        for family in {*find_families(ids)} & {*self._starts}:
            text, start = self._starts[family]
            found[family_of(ids) == family] += (text - family << PLACE_BITS + ROW_BITS) + start
        return found

    def join(self, calls: Sequence[Call]) -> list[Call]:
        """Make one call of those of one place; where rows are of several texts each stays by itself, and says why."""
        is_apart = self.read_by.get(calls[0].number) in self.of_other_rows
        if len(calls) == 1 and not is_apart:
            return [*calls]
        placed = []
        for call in calls:
            queries, keys = (None if ids is None else self.renumber(ids) for ids in (call.queries, call.keys))
            placed.append(replace(call, queries=queries, keys=keys, apart=APART if is_apart else ""))
        if is_apart:
            return placed
        asked = np.concatenate([call.queries[0] for call in calls])  # type: ignore[index]
        return [_join_passes(placed, ~np.isin(asked, self._taken_back))]


def _join_passes(calls: Sequence[Call], is_kept: Bool[np.ndarray, " query"]) -> Call:
    """Sort queries by their places in the text. Keys that are not of it, such as memory, stand before its own."""
    first, parts = calls[0], []
    assert first.keys is not None
    queries = np.concatenate([call.queries for call in calls], axis=1)
    text = find_families(queries)[0]
    ids, last = np.unique(queries[0, ::-1], return_index=True)  # of two in one place the first was taken back
    stayed = queries.shape[1] - 1 - last[family_of(ids) == text]
    stayed = stayed[is_kept[stayed] | ~is_kept.any()]  # a cache that was emptied is of a text that is over
    is_before = family_of(first.keys[0]) != text
    n_before, n_in_text = int(is_before.sum()), 0 if is_before.all() else int(place_of(queries[0, stayed[-1]])) + 1
    beginning = queries[:, stayed[:1]] - place_of(queries[:, stayed[:1]])
    keys = np.concatenate([first.keys[:, is_before], beginning + np.arange(n_in_text)], axis=1)
    n_keys = keys.shape[1]
    for call in calls:
        assert call.keys is not None
        of_text, at = family_of(call.keys[0]) == text, n_before + place_of(call.keys[0])
        rank = (~of_text).cumsum() - 1
        at = np.where(of_text, at, np.where(rank < n_before, rank, n_keys)).clip(max=n_keys)
        kept, attendable = _lay_out(call.weights, at, n_keys), _lay_out(call.attendable, at, n_keys)
        parts.append(replace(call, kept=kept, attendable=attendable))
    return _take(_concatenate(parts, 2), 2, stayed, queries=queries[:, stayed], keys=keys, n_steps=len(calls))


def _lay_out(of: np.ndarray, at: PlaceIds, n_keys: int) -> np.ndarray:
    """Put [… query key] at places on an axis of `n_keys`; what is placed behind that is left out."""
    whole = np.zeros((*of.shape[:-1], n_keys + 1), dtype=of.dtype)
    whole[..., at] = of
    return whole[..., :-1]


def join_passes(calls: Sequence[tuple[Call, int]], taken_back: Collection[int]) -> list[tuple[Call, int]]:
    """Join the calls of passes that go on where others ended. Each comes with its how manieth it is in its run."""
    texts, times = Texts(taken_back), Counter[tuple[int, str, int]]()
    for call, nth in calls:
        texts.read(call, nth)
    parts: dict[object, list[tuple[Call, int]]] = defaultdict(list)
    for call, nth in calls:
        text, place = texts.read_by.get(call.number), (call.number, call.path, nth)
        is_of_text = call.queries is not None and text in find_families(texts.renumber(call.queries))
        parts[(text, *place[1:], times[place]) if is_of_text else call.place].append((call, nth))
        times[place] += 1
    found = [(call, each[0][1]) for each in parts.values() for call in texts.join([call for call, _ in each])]
    return sorted(found, key=lambda each: (each[0].number, each[0].place))
