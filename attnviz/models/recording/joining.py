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

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from attnviz.models.capture.call import Call, PlaceIds, arrange
from attnviz.models.capture.ids import NOBODY, PLACE_BITS, ROW_BITS, Family, family_of, place_of, row_of
from attnviz.models.capture.modules_at_work import NUMBER, may_be_in
from attnviz.models.protocols import LayersAndHeads

APART = "the cache of a step holds tokens of other rows than its own, as after beam search"
LAST_NUMBER = re.compile(rf"[._]*{NUMBER.pattern}(?!.*{NUMBER.pattern})")


def _join(calls: Sequence[Call], **known: Any) -> Call:
    """Make one call of parts that stand one after another, as queries of the same keys."""
    return replace(
        calls[0],
        kept=np.concatenate([call.weights for call in calls], 2),
        attendable=np.concatenate([call.attendable for call in calls], 1),
        sink=np.concatenate([call.sink for call in calls], 2),
        error=max(call.error for call in calls),
        after=np.bitwise_or.reduce([call.after for call in calls], dtype=object),
        guess=next((call.guess for call in calls if call.guess), ""),
        **known,
    )


def _join_rows(calls: Sequence[Call]) -> Call:
    """Make one call of parts that stand beside one another: heads, queries, texts or windows, as their ids have it."""
    n_heads = [call.kept.shape[1] for call in calls]
    sides = ([np.asarray(call.queries) for call in calls], [np.asarray(call.keys) for call in calls])
    queries, keys = (np.concatenate([*map(partial(np.repeat, axis=0), side, n_heads)]) for side in sides)
    arranged = arrange(queries, keys, (*queries.shape, keys.shape[1]), 1)
    attendable = (call.attendable[:, None].repeat(of, 1) for call, of in zip(calls, n_heads, strict=True))
    parts = attendable, (call.weights for call in calls), (call.sink for call in calls)
    allowed, kept, sink = (
        arranged.order(np.concatenate([each.reshape(-1, *each.shape[2:]) for each in part])) for part in parts
    )
    return replace(
        calls[0],
        kept=kept,
        attendable=allowed.any(axis=1),
        sink=sink,
        error=max(call.error for call in calls),
        guess=next((call.guess for call in calls if call.guess), ""),
        queries=arranged.queries,
        keys=arranged.keys,
        heads=tuple(range(arranged.shape[1])),
        n_heads_in_model=calls[0].n_heads_in_model and arranged.shape[1],
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
    """Join calls that are parts of one layer, and leave the chosen layers and heads of all, in their order.

    Heads of one layer are in one run of a module, or their paths differ in nothing but the last number, which counts
    from 0 without a gap.

    Raises InvalidSelection for a head that there is not, and InvalidRecord where such calls are factored.
    """
    found: list[Call] = []
    for several in _gather(calls, _find_states):
        numbered = {int(number): call for call in several for number in NUMBER.findall(call.path)[-1:]}
        if len(several) > 1 and sorted(numbered) == list(range(len(several))):
            first = numbered[0]
            path, n_alike = LAST_NUMBER.sub("", first.path), first.n_alike[:-1]
            several = [replace(numbered[each], path=path, n_alike=n_alike, run=first.run) for each in sorted(numbered)]
        found += several
    joined = chain(*(_join_parts(parts, choice) for parts in _gather(found, _find_run)))
    chosen = (_choose(call, choice) for call in joined if may_be_in(call.path, choice.layers))
    return sorted(chosen, key=lambda call: call.place)


def _find_states(call: Call) -> object:
    """Find what heads of one layer have in common."""
    if call.kept.shape[1] != 1 or call.keys is None:
        return None
    return call.number, call.after, call.kept.shape, call.how, *_read(call), LAST_NUMBER.sub("", call.path)


def _read(call: Call) -> tuple[bytes, ...]:
    """Return what a call reads: which queries and keys, and who of them attends to nothing."""
    return tuple(np.asarray(of).tobytes() for of in (call.queries, call.keys, call.attendable.any(axis=-1)))


def _find_run(call: Call) -> object:
    """Find what parts of one attention have in common, as where a model attends to some heads or queries at a time."""
    families = find_families(call.queries), find_families(call.keys)
    run = call.number, call.path, call.run, call.after, call.how, call.kept.shape[2:], *families
    return None if call.keys is None else run


def _join_parts(calls: list[Call], choice: LayersAndHeads) -> list[Call]:
    """Join what is of one run: heads one by one, or parts of which each has queries of its own."""
    is_of_heads, are_heads = calls[0].kept.shape[1] == 1, len(calls) > 1 and len({*map(_read, calls)}) == 1
    if len(calls) < 2 or (are_heads and not is_of_heads) or (not are_heads and (choice.heads or calls[0].factors)):
        return calls
    joined = _join_rows(calls)
    queries = np.asarray(joined.queries)
    return [joined] if are_heads or len(np.unique(queries)) == queries.size else calls


def _choose(call: Call, choice: LayersAndHeads) -> Call:
    """Leave the chosen heads of a call that has all. Raises InvalidSelection."""
    if choice.heads is None or call.factors is not None or call.n_heads_in_model != call.kept.shape[1]:
        return call
    heads = choice.heads_of(call.kept.shape[1], f"the attention in {call.path or 'this block'}")
    return replace(call, kept=call.weights.take(heads, 1), sink=call.sink.take(heads, 1), heads=heads)


# --- steps of a loop --------------------------------------------------------------------------------------------------


def join_steps(calls: Sequence[Call], families: Sequence[Family]) -> list[Call]:
    """Join steps of a loop. Their queries are tokens where each step has another, and no state that goes on."""
    return [_join_steps(each, families) if len(each) > 1 else each[0] for each in _gather(calls, _find_loop)]


def _join_steps(calls: list[Call], families: Sequence[Family]) -> Call:
    queries = np.concatenate([np.asarray(call.queries) for call in calls], axis=1)
    is_state = any(families[family].is_mixed for family in find_families(queries))
    if is_state or len(np.unique(queries[0])) < len(calls):
        queries = np.full_like(queries, NOBODY)
    return _join(calls, queries=queries, n_steps=len(calls))


def _find_loop(call: Call) -> object:
    if call.keys is None or call.kept.shape[2] > 1 or call.kept.shape[3] == 1 or call.factors is not None:
        return None
    return call.number, call.path, call.kept.shape, call.heads, call.keys.tobytes()


# --- passes over a cache ----------------------------------------------------------------------------------------------


class Texts:
    """Texts that grow: where in the whole of one the tokens stand that a pass has read."""

    def __init__(self) -> None:
        self._starts: dict[int, tuple[int, int]] = {}  # by family: that of the whole text, and where in it this begins
        self._asked: dict[tuple[str, int], set[int]] = defaultdict(set)  # texts, by where their tokens asked
        self.grown: set[int] = set()  # texts of several passes
        self.of_other_rows: set[int] = set()  # and those whose cache held tokens of other rows

    def read(self, call: Call) -> None:
        """Place what a pass reads: queries that are among their keys, as they stand there if they are of two sources.

        They go on with a text that asked at the same place, behind the last of its tokens that is a key.
        """
        if call.queries is None or call.keys is None:
            return
        families, asked = find_families(call.queries), self._asked[call.path, call.nth]
        new = [family for family in families if family not in self._starts]
        if new and np.isin(call.queries[call.queries >= 0], call.keys).all():
            keys, text, start = self.renumber(call.keys), min(new), 0
            known = np.isin(family_of(keys), list(asked))
            if len(new) == len(families) and known.any():
                text, start = int(family_of(keys[known])[0]), int(place_of(keys[known]).max()) + 1
                self.grown.add(text)
                if (row_of(keys) != row_of(call.queries[:, :1]))[known].any():
                    self.of_other_rows.add(text)
            for family in new:
                at = int(np.argmax(family_of(call.queries[0]) == family))
                self._starts[family] = text, start + (at - int(place_of(call.queries[0, at])) if len(new) > 1 else 0)
        asked.update(self._starts[family][0] for family in families if family in self._starts)

    def renumber(self, ids: PlaceIds | None) -> PlaceIds:
        """Return ids by their places in the whole text, but for what was not read in one."""
        found = np.array(ids)
        for family in {*find_families(ids)} & {*self._starts}:
            text, start = self._starts[family]
            found[family_of(found) == family] += (text - family << PLACE_BITS + ROW_BITS) + start
        return found

    def find_grown(self, call: Call) -> int | None:
        """Find the text that the queries of a call are of, if it grows."""
        found = find_families(None if call.queries is None else self.renumber(call.queries))
        return next((text for text in found if text in self.grown), None)

    def join(self, calls: Sequence[Call], taken_back: Collection[int]) -> Call:
        """Make one call of those of one place in a text. Where rows are of several texts each is alone, and says why.

        Queries are sorted by their places in the text. Keys that are not of it, such as memory, stand before its own.
        """
        text = self.find_grown(calls[0])
        if text is None:
            return calls[0]
        is_kept = ~np.isin(np.concatenate([np.asarray(call.queries)[0] for call in calls]), list(taken_back))
        calls = [replace(call, queries=self.renumber(call.queries), keys=self.renumber(call.keys)) for call in calls]
        if text in self.of_other_rows:
            return replace(calls[0], apart=APART)
        queries = np.concatenate([np.asarray(call.queries) for call in calls], axis=1)
        ids, last = np.unique(queries[0, ::-1], return_index=True)  # of two in one place the first was taken back
        stayed = queries.shape[1] - 1 - last[family_of(ids) == text]
        stayed = stayed[is_kept[stayed] | ~is_kept.any()]  # a cache that was emptied is of a text that is over
        queries = queries[:, stayed]
        first, places = np.asarray(calls[0].keys), _line_up(calls[0].keys, text)
        n_in_text = int(place_of(queries[0, -1])) + 1 if (places >= 0).any() else 0
        beginning = queries[:, :1] - place_of(queries[:, :1])
        keys = np.concatenate([first[:, places < 0], beginning + np.arange(n_in_text)], axis=1)
        whole, parts = _line_up(keys, text), []
        for call in calls:
            order = np.full(len(whole), call.kept.shape[3])  # behind all keys there is one without weight
            _, at, places = np.intersect1d(whole, _line_up(call.keys, text), return_indices=True)
            order[at] = places
            kept, attendable = (np.insert(of, call.kept.shape[3], 0, axis=-1) for of in (call.weights, call.attendable))
            parts.append(replace(call, kept=kept[..., order], attendable=attendable[..., order]))
        joined = _join(parts, queries=queries, keys=keys, n_steps=len(calls))
        kept, sink = (of.take(stayed, 2) for of in (joined.weights, joined.sink))
        return replace(joined, kept=kept, attendable=joined.attendable.take(stayed, 1), sink=sink)


def _line_up(ids: PlaceIds | None, text: int) -> PlaceIds:
    """Return the places of tokens in a text, of the first row; what is of others has places before it, in its order."""
    row = np.asarray(ids)[0]
    is_of_text = family_of(row) == text
    return np.asarray(np.where(is_of_text, place_of(row), (~is_of_text).cumsum() - (1 << PLACE_BITS)))


def join_passes(calls: Sequence[Call], taken_back: Collection[int]) -> list[Call]:
    """Join the calls of passes that go on where others ended."""
    texts, times = Texts(), Counter[tuple[int, str, int]]()
    for call in calls:
        texts.read(call)

    def find_whole(call: Call) -> object:
        text, place = texts.find_grown(call), (call.number, call.path, call.nth)
        times[place] += 1
        return None if text is None or text in texts.of_other_rows else (text, *place[1:], times[place])

    return [texts.join(several, taken_back) for several in _gather(calls, find_whole)]
