"""What the tokens of a pass are called, and which of them are padding: the ids say who is who. Knows no records.

Every token has one name, on whichever side and in whichever layer it is met. A caller's names belong to a text that was
read: those in `keys` to the one that is attended to by another, those in `tokens` to all others. Padding is what no
query attends to, or what attention_mask says. Where ids are not known, as many queries as keys are taken for one text.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import compress, count, groupby
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool

from attnviz.errors import InvalidRecord
from attnviz.models.capture.call import Call, PlaceIds
from attnviz.models.capture.ids import PLACE_BITS, ROW_BITS, Family, family_of, place_of, row_of
from attnviz.models.recording.groups import PADDING, Group, Names, Text
from attnviz.models.recording.joining import find_families
from attnviz.records import Tokens, name_tokens
from attnviz.records.grid import Grid

WINDOWS = "Tokens are called by their places in the window, which may hold others in another layer."
SHARED = "Names were given once, for each of {} texts."
MOVED = "Tokens are called by their places, which hold other tokens in another layer."


class AxisLabels(NamedTuple):
    """Of one row of a batch: what its queries and keys are called, and which positions are kept."""

    queries: Tokens
    keys: Tokens  # the same object where the queries are the keys
    kept_queries: Bool[np.ndarray, " query"]
    kept_keys: Bool[np.ndarray, " key"]
    guess: str = ""  # what of this is not certain
    grid: Grid | None = None  # of keys that are patches
    text: int = 0  # which text it is of
    window: tuple[int, int] | None = None  # which window of that, and of how many


def label(
    groups: Sequence[Group], names: Names, families: Sequence[Family]
) -> Iterator[tuple[Group, list[AxisLabels]]]:
    """Yield each group with the sides of its rows. Raises InvalidRecord where names or attention_mask do not fit."""
    known = list(families)
    _turn(groups, known)

    @cache
    def make(text: Text, n_places: int, n_rows: int) -> PlaceIds:  # the text tells families apart
        known.append(Family(n_places, False, n_rows))
        return _number(len(known) - 1, np.arange(n_rows)[:, None], np.arange(n_places))

    for group in groups:
        group.calls[:] = [call if call.keys is not None else _guess_sides(call, names, make) for call in group.calls]
    for _, of_pass in groupby(groups, key=lambda group: group.number):
        labels = PassLabels(list(of_pass), names, known)
        for group in labels.groups:
            yield group, labels.label(group)


def _turn(groups: Sequence[Group], families: list[Family]) -> None:
    """Make places of the rows of families whose tokens are on the first axis of what was read, as in older modules."""
    sides = {id(ids): ids for group in groups for ids in group.sides}.values()
    turned: set[int] = set()
    for ids in sides:
        known = ids[:1][ids[:1] >= 0]
        if len(np.unique(row_of(known))) > 1 and len(np.unique(place_of(known))) == 1:
            turned.update(find_families(known))
    for family in turned:
        n_rows, n_places = families[family].n_rows, families[family].n_places
        families[family] = replace(families[family], n_rows=n_places, n_places=n_rows)
    for ids in sides:
        of = np.isin(family_of(ids), list(turned))
        ids[of] = _number(family_of(ids), place_of(ids), row_of(ids))[of]


def _number(family: PlaceIds | int, row: PlaceIds, place: PlaceIds) -> PlaceIds:
    return np.asarray((family << PLACE_BITS + ROW_BITS) + (row << PLACE_BITS) + place)


def _guess_sides(call: Call, names: Names, make: Callable[[Text, int, int], PlaceIds]) -> Call:
    """Say what stands on the axes of a call of which nothing is known.

    As many rows as texts are named are of these, and no heads. As many queries as keys are of one text, unless two are
    named.
    """
    n_rows, n_heads, n_queries, n_keys = call.shape
    n_texts = max(len(rows or ()) for rows in (names.tokens, names.keys))
    if call.factors is None and n_rows == 1 < n_texts and n_heads % n_texts == 0:
        n_rows, n_heads = n_texts, n_heads // n_texts
        call = replace(
            call,
            kept=call.weights.reshape(n_rows, n_heads, n_queries, n_keys),
            attendable=np.repeat(call.attendable, n_rows, axis=0),
            sink=call.sink.reshape(n_rows, n_heads, n_queries),
            heads=tuple(range(n_heads)),
            guess="which of its rows are of which text is not known" if n_heads > 1 else "",
        )
    are_two = n_queries != n_keys or (names.tokens is not None and names.matches_length("keys", n_keys))
    keys = make("keys" if are_two else "tokens", n_keys, n_rows)
    return replace(call, queries=make("tokens", n_queries, n_rows), keys=keys)


class PassLabels:
    """The names of one pass."""

    def __init__(self, groups: Sequence[Group], names: Names, families: Sequence[Family]) -> None:
        self.groups, self._names, self._families = groups, names, families
        calls = [call for group in groups for call in group.calls]
        of_keys = np.concatenate([call.keys.ravel() for call in calls])  # type: ignore[union-attr]
        attended = np.concatenate([call.keys[call.attended] for call in calls])  # type: ignore[index]
        self._padding = np.setdiff1d(of_keys[of_keys >= 0], attended)
        self._sizes: dict[int, tuple[int, int]] = {}  # of families: rows and places
        self._places: dict[int, str] = {}  # and where they were met first
        for place, ids in ((group.place, ids) for group in groups for ids in group.sides):
            for family in find_families(ids):
                of, own = families[family], ids[family_of(ids) == family]
                n_rows, n_places = self._sizes.get(family, (of.n_rows, of.n_places))
                sizes = max(n_rows, int(row_of(own).max()) + 1), max(n_places, int(place_of(own).max()) + 1)
                self._sizes[family] = sizes
                self._places.setdefault(family, place)
        self._lengths = {n for group in groups for n in group.shape[2:]} | {n for _, n in self._sizes.values()}
        self._texts: dict[int, Text] = {}
        for group in sorted(groups, key=lambda group: not group.is_across):
            self._assign(group)
        self._called: dict[int, str] = {}  # tokens, by their ids
        self._new = count()  # that the model put in itself, as they are met
        self._mask()

    def _assign(self, group: Group) -> None:
        """Decide whose names the families of a group have: of two lists it is the one that fits."""
        queries, keys = (find_families(ids) for ids in (group.calls[0].queries, group.calls[0].keys))
        fits = self._names.matches_length
        if group.is_across:
            n_queries, n_keys = (self._sizes[families[0]][1] for families in (queries, keys))
            orders: list[tuple[Text, Text]] = [("tokens", "keys"), ("keys", "tokens")]
            asking, asked = max(orders, key=lambda order: fits(order[0], n_queries) + fits(order[1], n_keys))
            self._texts = {**dict.fromkeys(queries, asking), **dict.fromkeys(keys, asked), **self._texts}
            return
        order: tuple[Text, ...] = ("tokens", "keys") if queries else ("keys", "tokens")
        given = [text for text in order if self._names.find_names(text) is not None] or order
        for family in (*keys, *queries):
            fitting = [text for text in given if fits(text, self._sizes[family][1])]
            self._texts.setdefault(family, (fitting or given)[0])

    def _mask(self) -> None:
        """Take for padding what attention_mask says. Raises InvalidRecord where it fits nothing."""
        real, n_fitting = self._names.real, 0
        if real is None:
            return
        is_crossed = self._names.keys is not None or any(group.is_across for group in self.groups)
        masked = [family for family, text in self._texts.items() if (text == "keys") == is_crossed]
        masked = [family for family in masked if not self._families[family].is_mixed]
        for family in masked:
            n_rows, n_places = self._sizes[family]
            if len(real) == n_rows and (real.shape[1] == n_places or n_places > self._families[family].n_places):
                ids = _number(family, *np.nonzero(~real))
                self._padding = np.union1d(self._padding[family_of(self._padding) != family], ids)
                n_fitting += 1
        if masked and not n_fitting:
            given, wanted = (" × ".join(map(str, shape)) for shape in (real.shape, self._sizes[masked[0]]))
            problem = f"attention_mask is of {given} tokens, the attention in {self._places[masked[0]]} of {wanted}"
            raise InvalidRecord(problem, hint="Give the mask that the model was given, [batch, token].")

    def label(self, group: Group) -> list[AxisLabels]:
        """Say what the queries and keys of each row are called."""
        queries, keys = group.calls[0].queries, group.calls[0].keys
        assert keys is not None
        alike = all(_equal(call.queries, queries) and _equal(call.keys, keys) for call in group.calls)
        every = keys if queries is None else np.concatenate([queries, keys], axis=1)
        texts = [int(row_of(ids[ids >= 0][0])) if (ids >= 0).any() else row for row, ids in enumerate(every)]
        n_windows, found = len(texts) // max(1, len({*texts})), []
        once = any(rows is not None and len(rows) == 1 for rows in (self._names.tokens, self._names.keys))
        shared = SHARED.format(len({*texts})) if once and len({*texts}) > 1 else ""
        attended = np.any([call.attended for call in group.calls], axis=0)
        kept_keys = np.where((keys >= 0) & alike, ~np.isin(keys, self._padding), attended)
        kept_queries = np.ones(group.shape[::2], dtype=bool)
        if queries is not None and alike:
            kept_queries = ~np.isin(queries, self._padding)
        for row, text in enumerate(texts):
            same = queries is not None and np.array_equal(queries[row], keys[row])
            kept = (kept_keys if same else kept_queries)[row]
            of_keys = self._call(keys[row], kept_keys[row], alike)
            found.append(
                AxisLabels(
                    of_keys if same else self._call(None if queries is None else queries[row], kept, alike, text),
                    of_keys,
                    kept,
                    kept_keys[row],
                    shared if alike else WINDOWS if n_windows > 1 else MOVED,
                    self._names.grid if of_keys.pieces in (self._names.keys or ()) else None,
                    text,
                    (texts[:row].count(text), n_windows) if n_windows > 1 else None,
                )
            )
        return found

    def _call(self, ids: PlaceIds | None, kept: Bool[np.ndarray, " token"], alike: bool, text: int = 0) -> Tokens:
        """Name the kept tokens of a side, by their places in it where other layers have others there.

        Without ids they are of no token: learned queries, states of a loop, the mean of a text. Several texts, or a
        text and what is no token, that stand on one axis may have been named together.
        """
        if not alike:
            return name_tokens(tuple(map(str, range(int(kept.sum())))))
        if ids is None:
            rows, n = self._names.tokens, len(kept)
            if rows and self._names.keys is not None and self._names.matches_length("tokens", n):
                return name_tokens(rows[min(text, len(rows) - 1)])
            return name_tokens(("⟨query⟩",) if n == 1 else tuple(f"⟨query {place}⟩" for place in range(n)))
        families, known = find_families(ids), ids[ids >= 0]
        if len(families) > 1 or 0 < len(known) < len(ids):
            rows, row = self._names.find_names(self._texts[families[0]]), int(row_of(known).min())
            given = rows[row] if rows is not None and row < len(rows) else ()
            if len(given) == len(ids) != self._sizes[families[0]][1]:
                self._called.update(zip(ids.tolist(), given, strict=True))
                return name_tokens(tuple(compress(given, kept)))
        for each in known.tolist():
            if each not in self._called:
                self._name(each)
        last = max(np.flatnonzero(ids >= 0).tolist(), default=len(ids))
        beside = (f"⟨before {at + 1}⟩" if at < last else f"⟨after {at - last}⟩" for at in range(len(ids)))
        called = (self._called.get(each, other) for each, other in zip(ids.tolist(), beside, strict=True))
        return name_tokens(tuple(compress(called, kept)))

    def _name(self, token: int) -> None:
        """Name a token, and all of its row. Raises InvalidRecord where names do not fit."""
        family, row = family_of(token), row_of(token)
        of, (n_texts, n), text = self._families[family], self._sizes[family], self._texts[family]
        every = token - place_of(token) + np.arange(n)
        real = ~np.isin(every, self._padding)
        ranks = (real.cumsum() - real).tolist()  # among those that are no padding
        rows, fits = self._names.find_names(text), self._names.matches_length
        if of.is_new:
            every, called = every[[place_of(token)]], [f"⟨new {next(self._new)}⟩"]
        elif of.is_mixed and not fits(text, n):
            called = [f"⟨mixed {place}⟩" for place in range(n)]
        elif rows is None:
            called = list(map(str, ranks))
        elif len(rows) != n_texts and (len(rows), len(rows[0])) != (1, n):
            one_by_one = "Record each text in a block of its own, or all of them as one batch."
            raise InvalidRecord(
                f"{text} is of {'1 text' if len(rows) == 1 else f'{len(rows)} texts'}, the attention in "
                f"{self._places[family]} of {n_texts}",
                hint=one_by_one if n_texts == 1 else "Give a list of lists, one for each row of the batch.",
            )
        else:
            given = rows[row % len(rows)]
            if len(given) in (n, of.n_places):
                given = tuple(compress(given, real))
            if n > of.n_places or len(given) == real.sum():  # of a text that grew some may have no name
                called = [given[rank] if rank < len(given) else f"⟨{rank}⟩" for rank in ranks]
            elif not fits(text, n) and any(fits(text, length) for length in self._lengths):
                called = list(map(str, ranks))  # names that are of something else in this pass
            else:
                found = "1 name" if len(given) == 1 else f"{len(given)} names"
                problem = f"{found} in {text}, but the attention in {self._places[family]} is of {real.sum()}"
                raise InvalidRecord(problem, hint=PADDING)
        for each, name in zip(every.tolist(), called, strict=True):
            self._called.setdefault(each, name)


def _equal(one: PlaceIds | None, other: PlaceIds | None) -> bool:
    return one is other or (one is not None and other is not None and np.array_equal(one, other))
