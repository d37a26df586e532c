"""Calls that are parts of one attention, as one call: heads, steps of a loop, passes over a cache. Knows no names.

Whatever the parts are, the whole has all of their texts, queries and heads (see `_unite`). The ids say which belong
together:

* Heads read the same queries and the same keys, and none reads what another gave.
* Steps of a loop, as where a recurrent decoder writes a word and looks again at all that it read, have one query each
  and the same keys. A key/value cache grows, so that its steps are no such loop.
* A pass goes on where another ended if its keys are tokens that asked at the same place, and its queries are none of
  them, however the cache was ordered, cropped or filled. What it goes on from are the tokens up to the last that is a
  key: those behind were taken back, as in assisted decoding. After beam search rows hold tokens of other rows: then no
  two steps are of one text, and they stay apart.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Any

import numpy as np

from attnviz.models.capture.call import Call, PlaceIds, number_texts, order_lines
from attnviz.models.capture.ids import NOBODY, PLACE_BITS, ROW_BITS, Store, family_of, row_of
from attnviz.models.capture.modules_at_work import NUMBER

APART = "the cache of a step holds tokens of other rows than its own, as after beam search"
MEMORY = "a step looks at what the first did not have, such as a memory"
LEFT_OUT = np.iinfo(np.int64).min  # in the place of the id of a query that is not in the whole
LAST_NUMBER = re.compile(rf"[._]*{NUMBER.pattern}(?!.*{NUMBER.pattern})")


def number_tokens(family: PlaceIds | int, row: PlaceIds, place: PlaceIds) -> PlaceIds:
    """Return the ids of tokens."""
    return np.asarray((family << PLACE_BITS + ROW_BITS) + (row << PLACE_BITS) + place)


def find_families(ids: PlaceIds | None) -> tuple[int, ...]:
    """Return the numbers of the families that some ids are of, in their order."""
    return () if ids is None else tuple(dict.fromkeys(family_of(ids[ids >= 0]).tolist()))


def join_calls(calls: Sequence[Call], store: Store) -> list[Call]:
    """Join calls that are parts of one attention; `number` then says of which pass each is.

    Raises InvalidRecord where such calls are factored.
    """
    calls = [*chain(*map(_differ, _gather(calls, lambda call: (call.run, call.path, call.since, call.source))))]
    parts = [call for call in calls if call.keys is not None]
    for find_whole, join in ((_find_states, _join_numbered), (_find_run, _join_parts), (_find_loop, _join_steps)):
        gathered = _gather(parts, find_whole)
        parts = [call for several in gathered for call in (join(several, store) if len(several) > 1 else several)]
    passes, texts = _number_passes([*parts, *(call for call in calls if call.keys is None)]), Texts(store)
    for call in passes:
        texts.read(call)
    return [call for several in _gather(passes, texts.find_whole) for call in texts.join(several)]


def _gather(calls: Sequence[Call], find_whole: Callable[[Call], object]) -> list[list[Call]]:
    """Gather calls that are parts of the same whole, in their order; None: a call is no part of any."""
    found: dict[object, list[Call]] = defaultdict(list)
    for call in calls:
        whole = find_whole(call)
        found[call.place if whole is None else whole].append(call)
    return list(found.values())


def _differ(calls: Sequence[Call]) -> list[Call]:
    """Leave out weights that were there before, as where statistics are pooled, or values come in two halves.

    Factors are equal to none.
    """
    return [call for at, call in enumerate(calls) if not any(np.array_equal(call.kept, of.kept) for of in calls[:at])]  # type: ignore[arg-type]


def _unite(calls: Sequence[Call], texts: PlaceIds | None = None, **known: Any) -> list[Call]:
    """Make one call of parts that look at the same keys: of some texts, and of some heads and queries of these.

    `texts`: which text of the whole each row of each part is of; None: all parts have the same rows. They stay as they
    are where texts do not all have as many queries, or queries not as many heads.
    """
    if texts is None:
        texts = np.tile(np.arange(calls[0].kept.shape[0]), len(calls))
    # A line is the weights of one query of one head. The lines of all parts are put in the order of the whole at once.
    n_heads = [call.kept.shape[1] for call in calls]
    queries = [call.queries.repeat(of, axis=0) for call, of in zip(calls, n_heads, strict=True)]
    asking = np.concatenate([each.ravel() for each in queries])
    n_lines = [each.size // len(call.weights) for call, each in zip(calls, queries, strict=True) for _ in call.weights]
    there = np.flatnonzero(asking > LEFT_OUT)
    places = order_lines(texts.repeat(n_lines)[there], asking[there])
    if places is None:
        return list(calls)
    places = there[places]

    def order(parts: Iterable[np.ndarray]) -> np.ndarray:
        return np.asarray(np.concatenate([part.reshape(-1, *part.shape[3:]) for part in parts])[places])

    attendable = (call.attendable[:, None].repeat(of, axis=1) for call, of in zip(calls, n_heads, strict=True))
    found = {
        "kept": order(call.weights for call in calls),
        "attendable": order(attendable).any(axis=1),
        "sink": order(call.sink for call in calls),
        "error": max(call.error for call in calls),
        "after": np.bitwise_or.reduce([call.after for call in calls], dtype=object),
        "guess": next((call.guess for call in calls if call.guess), ""),
        "queries": asking[places[:, 0]],
        "keys": np.concatenate([np.asarray(call.keys) for call in calls])[np.unique(texts, return_index=True)[1]],
    }
    return [replace(calls[0], **(found | known))]


# --- heads ------------------------------------------------------------------------------------------------------------


def _find_states(call: Call) -> object:
    """Find what heads of one layer have in common."""
    if call.kept.shape[1] > 1:
        return None
    return call.number, call.after, call.since, call.kept.shape, call.how, *_read(call), LAST_NUMBER.sub("", call.path)


def _read(call: Call) -> tuple[bytes, ...]:
    """Return what a call reads: which queries and keys, and who of them attends to nothing."""
    return tuple(np.asarray(of).tobytes() for of in (call.queries, call.keys, call.attendable.any(axis=-1)))


def _join_numbered(calls: list[Call], store: Store) -> list[Call]:
    """Join modules whose paths differ in nothing but the last number, which counts from 0 without a gap."""
    numbered = {int(number): call for call in calls for number in NUMBER.findall(call.path)[-1:]}
    if sorted(numbered) != list(range(len(calls))):
        return calls
    first = numbered[0]
    numbered[0] = replace(first, path=LAST_NUMBER.sub("", first.path), n_alike=first.n_alike[:-1])
    return _join_parts([numbered[each] for each in sorted(numbered)], store)


def _find_run(call: Call) -> object:
    """Find what parts of one attention have in common, as where a model attends to some heads or queries at a time."""
    families = find_families(call.queries), find_families(call.keys)
    return call.number, call.path, call.run, call.after, call.how, call.kept.shape[3:], *families


def _join_parts(calls: list[Call], _: Store) -> list[Call]:
    """Join what is of one run: heads one by one, or parts of which each has queries of its own."""
    first, read = calls[0], {_read(call) for call in calls}
    are_heads = len(read) == 1
    are_steps = first.kept.shape[2] == 1 and len({(*_read(call), call.since) for call in calls}) > len(read)
    n_heads = first.kept.shape[1]
    are_all_there = first.factors is None and first.n_heads_in_model in (None, n_heads)
    if are_steps or (n_heads > 1 if are_heads else not are_all_there):
        return calls
    asking = np.concatenate([call.queries.max(axis=1) for call in calls])
    joined, *others = _unite(calls, number_texts(asking, np.concatenate([np.asarray(call.keys) for call in calls])))
    if others or not (are_heads or len(np.unique(joined.queries)) == joined.queries.size):
        return calls
    n_heads = joined.kept.shape[1]
    return [replace(joined, heads=tuple(range(n_heads)), n_heads_in_model=joined.n_heads_in_model and n_heads)]


# --- steps of a loop --------------------------------------------------------------------------------------------------


def _find_loop(call: Call) -> tuple[object, ...] | None:
    """Find what steps of one loop have in common: their pass, which a function may begin anew, and all else."""
    may_be_step = call.kept.shape[2] == 1 < call.kept.shape[3] and call.keys is not None and call.factors is None
    return (call.number, call.root, call.path, call.kept.shape, call.heads, _read(call)[1]) if may_be_step else None


def _join_steps(calls: list[Call], store: Store) -> list[Call]:
    """Join steps of a loop. Their queries are tokens where each step has another, and no state that goes on."""
    queries = np.concatenate([call.queries for call in calls], axis=1)
    is_state = any(store.families[family].is_mixed for family in find_families(queries))
    # Words that a model chose for all texts at once, [text], are no text: which is of which text their rows do not say.
    are_of_one = any(len(np.unique(of_step)) < len(of_step) for of_step in row_of(queries).T)
    # A word that asks again, of its own text or when it has asked elsewhere, does so in a further layer.
    is_again, is_word = len(np.unique(queries[0])) < len(calls), queries.min() >= 0 and not is_state
    elsewhere = calls[1].after & ~(calls[0].after | 1 << calls[0].place)
    if is_again and is_word and (elsewhere or np.isin(queries, np.asarray(calls[0].keys)).all()):
        return calls
    if is_again or is_state or are_of_one:
        queries = np.full_like(queries, NOBODY)
    steps = [replace(call, queries=np.full_like(queries[:, :1], step)) for step, call in enumerate(calls)]
    return _unite(steps, queries=queries, n_steps=len(calls))


# --- passes over a cache ----------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Text:
    """A text that may grow from pass to pass."""

    tokens: PlaceIds  # [row, token] without those that were taken back
    family: int  # by which tokens are numbered in the end
    place: tuple[str, int]  # where they asked first
    is_grown: bool = False
    is_of_other_rows: bool = False  # whether its cache held tokens of other rows

    def grow(self, queries: PlaceIds, keys: PlaceIds, attended: PlaceIds) -> None:
        """Go on behind the last token that is a key: those behind it were taken back.

        So were those behind the last that is attended to, if a cache has lost one of them to what is written over it.
        """
        there, seen = np.isin(self.tokens, keys), np.isin(self.tokens, attended)
        end, last = (int(np.nonzero(of)[1].max(initial=-1)) + 1 for of in (there, seen))
        end = end if there[:, last:end].all() else last
        self.tokens, self.is_grown = np.concatenate([self.tokens[:, :end], queries], axis=1), True
        of_rows = zip(keys, self.tokens, strict=True)
        self.is_of_other_rows |= any((np.isin(of, self.tokens) != np.isin(of, own)).any() for of, own in of_rows)

    def number(self, ids: PlaceIds | None) -> PlaceIds:
        """Number tokens by their places in the text; what is not of it stays as it is."""
        rows = row_of(self.tokens).max(axis=1, keepdims=True)
        if len(np.unique(rows)) < len(rows):  # words for all texts at once, [text], that say of none which it is
            rows = np.arange(len(rows))[:, None]
        numbers = number_tokens(self.family, rows, np.arange(self.tokens.shape[1]))
        number = dict(zip(self.tokens.ravel().tolist(), numbers.ravel().tolist(), strict=True))
        return np.array([[number.get(token, token) for token in row] for row in np.asarray(ids).tolist()])


class Texts:
    """All texts that were read, as far as they attend to themselves."""

    def __init__(self, store: Store) -> None:
        self._store, self._taken_back = store, list(store.taken_back)
        self._of: dict[int, Text] = {}  # by tokens, the text that they were read in first
        self._times = Counter[object]()

    def read(self, call: Call) -> None:
        """Read queries that are new, and among their keys. They go on with a text that asked at the same place."""
        queries, place = call.queries[:, call.queries[0] >= 0], (call.path, call.nth)
        new = [token for token in queries.ravel().tolist() if token >= 0 and token not in self._of]
        if call.keys is None or not new or not np.isin(queries, call.keys).all():
            return
        fresh = Text(queries, min(map(family_of, new)), place)
        known = (self._of[token] for token in call.keys[0].tolist() if token in self._of)
        text = next((text for text in known if text.place == place), fresh)
        if len(text.tokens) != len(queries) or np.isin(queries, text.tokens).any():
            text = fresh
        else:
            text.grow(queries, call.keys, np.where(call.attended, call.keys, NOBODY))
        self._of.update(dict.fromkeys(new, text))

    def find_grown(self, call: Call) -> Text | None:
        """Find the text that the queries of a call are of, if it grows."""
        found = map(self._of.get, call.queries[0].tolist())
        return next((text for text in found if text is not None and text.is_grown), None)

    def find_whole(self, call: Call) -> object:
        """Find what passes over one text have in common."""
        text, place = self.find_grown(call), (call.number, call.path, call.nth)
        self._times[place] += 1
        if text is None:
            loop = _find_loop(call)
            return loop and loop[1:]
        return None if text.is_of_other_rows else (id(text), *place[1:], self._times[place])

    def join(self, calls: Sequence[Call]) -> Sequence[Call]:
        """Make one call of those of one place in a text. Where rows are of several texts each is alone, and says why.

        Queries and keys are numbered by their places in the text. Keys that are not of it, such as memory, stand before
        its own.
        """
        text = self.find_grown(calls[0])
        if text is None:
            # Where a function calls a module step by step, each reads what the one before gave, or asks with a word of
            # its own. Else it is another pass over the same.
            go_on = all(call.after >> before.place & 1 for before, call in pairwise(calls))
            are_words = len({int(call.queries[0, 0]) for call in calls}) == len(calls)
            return _join_steps([*calls], self._store) if len(calls) > 1 and (go_on or are_words) else calls
        own = [self._line_up(call, text) for call in calls]
        first, n_others = own[0], [-min(0, int(of.min())) for of in own]
        apart = APART if text.is_of_other_rows else MEMORY if max(n_others) > n_others[0] else ""
        if not apart:
            stayed = ~np.isin(text.tokens[0], self._taken_back)
            tokens = text.tokens[:, stayed | ~stayed.any()]  # a cache that was emptied is of a text that is over
            there = tokens if (first >= 0).any() else tokens[:, :0]
            keys = np.concatenate([np.asarray(calls[0].keys)[:, first < 0], there], axis=1)
            whole = np.concatenate([first[first < 0], there[0]])
            parts = [_spread(call, tokens, keys, whole, of) for call, of in zip(calls, own, strict=True)]
            whole_text, *others = _unite(parts, n_steps=len(calls))
            # Layers that no module tells apart would be heads of one.
            calls = calls if others or whole_text.kept.shape[1] > calls[0].kept.shape[1] else [whole_text]
        return [replace(of, queries=text.number(of.queries), keys=text.number(of.keys), apart=apart) for of in calls]

    def _line_up(self, call: Call, text: Text) -> PlaceIds:
        """Return the ids of keys in the first row; of what is not of a text, other numbers below 0, in its order."""
        row = np.asarray(call.keys)[0]
        is_own = np.isin(row, text.tokens[0]) | [self._of.get(token) is text for token in row.tolist()]
        return np.asarray(np.where(is_own, row, -1 - (~is_own).cumsum()))


def _spread(call: Call, tokens: PlaceIds, keys: PlaceIds, whole: PlaceIds, own: PlaceIds) -> Call:
    """Lay out a call among all keys of a text."""
    _, at, places = np.intersect1d(whole, own, return_indices=True)
    kept = np.zeros((*call.kept.shape[:3], len(whole)), dtype=np.float32)
    attendable = np.zeros((*call.attendable.shape[:2], len(whole)), dtype=bool)
    kept[..., at], attendable[..., at] = call.weights[..., places], call.attendable[..., places]
    queries = np.where(np.isin(call.queries, tokens), call.queries, LEFT_OUT)
    return replace(call, kept=kept, attendable=attendable, queries=queries, keys=keys)


# --- which calls are of one pass --------------------------------------------------------------------------------------


def _number_passes(calls: Sequence[Call]) -> list[Call]:
    """Number the passes of calls, and those in one run of a module.

    A module that reads what it gave is a further layer: some models share one among all. One that runs again on
    something else begins another pass. Several calls in one run are kept apart.
    """
    earlier: dict[tuple[int, str], list[tuple[Call, int, int]]] = defaultdict(list)
    for call in sorted(calls, key=lambda call: call.place):
        before, again, nth = earlier[call.number, call.path], 0, 0
        if reads := [each for each in before if call.after >> each[0].place & 1]:
            _, again, nth = reads[-1]
        elif (beside := [each for each in before if each[0].run == call.run]) and (call.run or call.keys is None):
            again, nth = beside[-1][1], beside[-1][2] + 1
        elif before:
            again = max(each for _, each, _ in before) + 1
        before.append((call, again, nth))
    found = sorted(chain(*earlier.values()), key=lambda each: each[0].place)
    numbers = {key: at for at, key in enumerate(dict.fromkeys((call.number, again) for call, again, _ in found))}
    return [replace(call, number=numbers[call.number, again], nth=nth) for call, again, nth in found]
