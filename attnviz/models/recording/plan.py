"""Of every row of every group: what its queries and keys are called, and which of them to keep. Knows no records.

The ids say who attends to whom. A caller's names belong to a text that was read: those in `keys` to the one that is
attended to by another, those in `tokens` to all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from attnviz.errors import InvalidRecord
from attnviz.models.capture.ids import Family
from attnviz.models.capture.ids import row_of as row_of_ids
from attnviz.models.recording.groups import Group
from attnviz.models.recording.names import PADDING, Names, Pieces, Text, row_of
from attnviz.models.recording.texts import find_families, find_places, is_turned, same_tokens
from attnviz.records.grid import Grid

WINDOWS = "Tokens are called by their places in the window, which may hold others in another layer."
MOVED = "Tokens are called by their places, which hold other tokens in another layer."


class AxisLabels(NamedTuple):
    """Of one row of a batch: what its queries and keys are called, and which positions are kept."""

    queries: Pieces
    keys: Pieces
    kept_queries: Bool[np.ndarray, " query"]
    kept_keys: Bool[np.ndarray, " key"]
    same: bool  # the queries are the keys
    guess: str = ""  # what of this is not certain
    grid: Grid | None = None  # of keys that are patches
    text: int = 0  # which text it is of
    window: int | None = None  # which window of that


class SideTokens(NamedTuple):
    """The queries or the keys of one row."""

    ids: Int[np.ndarray, " token"] | None  # None: not known, or no tokens
    n: int
    kept: Bool[np.ndarray, " token"]
    turned: bool = False
    n_ahead: int = 0  # keys of no token before all others


def plan_axes(
    groups: Sequence[Group], names: Names, families: Sequence[Family]
) -> Iterator[tuple[Group, list[AxisLabels]]]:
    """Each group with the sides of its rows. Raises InvalidRecord where names or attention_mask do not fit."""
    for _, of_pass in groupby(groups, key=lambda group: group.number):
        labels = PassLabels(list(of_pass), names, families)
        for group in labels.groups:
            yield group, [labels.label(group, row) for row in range(group.n_rows)]


class PassLabels:
    """The names of one pass."""

    def __init__(self, groups: Sequence[Group], names: Names, families: Sequence[Family]) -> None:
        self.groups, self._names, self._families = groups, names, families
        self._lengths = [n for group in groups for n in (group.n_queries, group.n_keys)]
        self._across = {group.name: self._is_across(group) for group in groups}
        crossed = names.keys is not None or any(self._across.values())
        self._masked: Text = "keys" if crossed else "tokens"
        self._texts: dict[int, Text] = {}
        self._real: dict[tuple[int, int], Bool[np.ndarray, " place"]] = {}  # of families by row: what is attended to
        self._there: dict[tuple[int, int], Bool[np.ndarray, " place"]] = {}  # and which are on an axis at all
        for group in sorted(groups, key=lambda group: not self._across[group.name]):
            self._assign(group)
        for group in groups:
            self._note_real(group)

    def _is_across(self, group: Group) -> bool:
        """Whether a group's tokens attend to another text; where ids do not say, by the numbers of both."""
        if group.calls[0].keys is None:
            of_keys = self._names.keys is not None and self._names.matches_length("keys", group.n_keys)
            return group.n_queries != group.n_keys or (of_keys and self._names.tokens is not None)
        return bool(group.is_across)

    def _assign(self, group: Group) -> None:
        """Decide whose names the families of a group have."""
        call, across = group.calls[0], self._across[group.name]
        for family in find_families(call.keys):
            named: Text = "tokens"
            if across or (self._names.tokens is None and self._names.keys is not None) or call.queries is None:
                named = "keys" if across or self._names.keys is not None else "tokens"
            if across and self._reads_tokens(group):
                named = "tokens"
            self._texts.setdefault(family, self._by_length(family, named))
        for family in find_families(call.queries):
            named = "keys" if across and self._reads_tokens(group) else "tokens"
            self._texts.setdefault(family, named)

    def _by_length(self, family: int, named: Text) -> Text:
        """Of two lists of names, the one that fits a text that is read together with another."""
        n, other = self._families[family].n_places, "keys" if named == "tokens" else "tokens"
        fits = self._names.matches_length("tokens", n), self._names.matches_length("keys", n)
        is_other = self._names.tokens and self._names.keys and fits[0] != fits[1] and fits[0] == (other == "tokens")
        return ("tokens" if fits[0] else "keys") if is_other and not self._families[family].is_mixed else named

    def _reads_tokens(self, group: Group) -> bool:
        """Whether the tokens are what is attended to, by their numbers alone: queries are another text's, or none."""
        names = self._names
        fits = names.matches_length("tokens", group.n_keys) and not names.matches_length("tokens", group.n_queries)
        return fits and (names.keys is None or names.matches_length("keys", group.n_queries))

    def _note_real(self, group: Group) -> None:
        call = group.calls[0]
        if call.keys is None or self._across[group.name]:
            return
        attended, turned = _find_attended(group), is_turned(call)
        for row, text in enumerate(group.texts):
            for family in find_families(call.keys[row]):
                of = call.keys[row] >> 40 == family
                places = find_places(call.keys[row][of], turned)
                real = self._real.setdefault((family, text), np.zeros(int(places.max()) + 1, dtype=bool))
                if len(real) <= places.max():
                    real = np.pad(real, (0, int(places.max()) + 1 - len(real)))
                real[places] |= attended[row][of]
                self._real[family, text] = real
                there = np.zeros(len(real), dtype=bool)
                there[places] = True
                known = self._there.get((family, text), there[:0])
                there[: len(known)] |= known[: len(there)]
                self._there[family, text] = there

    def label(self, group: Group, row: int) -> AxisLabels:
        """What the queries and keys of a row are called."""
        call, text = group.calls[0], group.texts[row]
        turned = is_turned(call)
        attended = _find_attended(group)[row]
        of_keys = None if call.keys is None else call.keys[row]
        of_queries = None if call.queries is None else call.queries[row]
        alike = same_tokens(group.calls)
        is_window = group.n_windows > 1
        kept = self._keep(group, of_keys, text, attended, turned)
        same = of_keys is not None and of_queries is not None and np.array_equal(of_keys, of_queries)
        if of_keys is None and not call.is_pooled:
            same = not self._across[group.name] and group.n_queries == group.n_keys
        if same:
            kept_queries = kept
        elif of_queries is None:
            kept_queries = np.ones(group.n_queries, dtype=bool)
        else:
            kept_queries = self._keep_queries(group, of_queries, text, turned)
        window = group.texts[:row].count(text) if is_window else None
        if not alike and of_keys is not None:
            called = tuple(map(str, range(int(kept.sum()))))
            queries = called if same else tuple(map(str, range(int(kept_queries.sum()))))
            guess = WINDOWS if is_window else MOVED
            return AxisLabels(queries, called, kept_queries, kept, same, guess, None, text, window)
        n_ahead = 0 if of_keys is None else int(np.argmax(of_keys >= 0))
        keys = self._name(group, SideTokens(of_keys, group.n_keys, kept, turned, n_ahead), text, self._side(group))
        if same:
            queries = keys
        elif call.is_pooled:
            queries = self._name_queries(group, text)
        else:
            queries = self._name(
                group, SideTokens(of_queries, group.n_queries, kept_queries, turned, n_ahead), text, "tokens"
            )
        return AxisLabels(queries, keys, kept_queries, kept, same, "", None, text, window)

    def _side(self, group: Group) -> Text:
        """Whose names keys have of which nothing is known."""
        across = self._across[group.name]
        return "keys" if across or (self._names.tokens is None and self._names.keys is not None) else "tokens"

    def _keep(
        self, group: Group, ids: np.ndarray | None, text: int, attended: Bool[np.ndarray, " key"], turned: bool
    ) -> Bool[np.ndarray, " key"]:
        """Which keys are no padding: by attention_mask, else those that are attended to."""
        kept = attended.copy()
        if self._names.real is None:
            return kept
        if ids is None:
            if self._masked == self._side(group):
                self._check_mask(group, len(set(group.texts)), group.n_keys)
                kept = np.array(self._names.real[text])
            return kept
        for family in find_families(ids):
            if self._texts.get(family) == self._masked and not self._families[family].is_mixed:
                of = ids >> 40 == family
                places = find_places(ids[of], turned)
                if not turned and group.n_steps == 1 and not group.calls[0].apart:
                    self._check_mask(group, len(set(group.texts)), self._families[family].n_places)
                real = self._names.real[text % len(self._names.real)]
                inside = places < len(real)
                kept[of] = np.where(inside, real[places.clip(max=len(real) - 1)], True)
        return kept

    def _check_mask(self, group: Group, n_texts: int, n: int) -> None:
        real = self._names.real
        assert real is not None
        if real.shape != (n_texts, n):
            given, wanted = " × ".join(map(str, real.shape)), f"{n_texts} × {n}"
            raise InvalidRecord(
                f"attention_mask is of {given} tokens, the attention in {group.place} of {wanted}",
                hint="Give the mask that the model was given, [batch, token].",
            )

    def _keep_queries(
        self, group: Group, ids: Int[np.ndarray, " query"], text: int, turned: bool
    ) -> Bool[np.ndarray, " query"]:
        """Those that are no padding where their text attends to itself."""
        kept = np.ones(len(ids), dtype=bool)
        for family in find_families(ids):
            real = self._real.get((family, text))
            if real is not None:
                of = ids >> 40 == family
                places = find_places(ids[of], turned)
                kept[of] = np.where(places < len(real), real[places.clip(max=len(real) - 1)], True)
        return self._keep(group, ids, text, kept, turned) if self._names.real is not None else kept

    def _name_queries(self, group: Group, text: int) -> Pieces:
        """What is called by no token: learned queries, states of a loop, the mean of a text."""
        n = group.n_queries
        if self._names.keys is not None and self._names.matches_length("tokens", n):
            return row_of(self._names.tokens or (), "tokens", text, group, len(set(group.texts)))
        return ("⟨query⟩",) if n == 1 else tuple(f"⟨query {place}⟩" for place in range(n))

    def _name(self, group: Group, side: SideTokens, text: int, unknown: Text) -> Pieces:
        """What the kept tokens of one side are called."""
        if side.ids is None:
            return self._name_by_number(group, side, text, unknown)
        families = find_families(side.ids)
        called = [""] * side.n
        for nth, at in enumerate(np.flatnonzero(side.ids < 0), 1):
            called[at] = self._name_before(side, families, text, int(at)) or f"⟨before {nth}⟩"
        for family in families:
            of = side.ids >> 40 == family
            rows = row_of_ids(side.ids)
            for row in [text] if side.turned else np.unique(rows[of]).tolist():  # packed texts have a row each
                among = of if side.turned else of & (rows == row)
                for at, name in zip(np.flatnonzero(among), self._call(group, side, among, family, row), strict=True):
                    called[at] = name
        return tuple(name for name, kept in zip(called, side.kept, strict=True) if kept)

    def _name_before(self, side: SideTokens, families: Sequence[int], text: int, at: int) -> str:
        """What a key before all tokens is called where there are as many names as keys; "" elsewhere."""
        rows = self._names.find_names(self._texts.get(families[0], "tokens")) if families else None
        given = rows[text] if rows is not None and text < len(rows) else ()
        return given[at] if families and len(given) == side.n > self._families[families[0]].n_places else ""

    def _call(
        self, group: Group, side: SideTokens, of: Bool[np.ndarray, " token"], family: int, text: int
    ) -> list[str]:
        """Name the tokens of a family on a side."""
        assert side.ids is not None
        n_texts = len(set(group.texts)) if side.turned else self._families[family].n_rows
        if self._families[family].is_new:
            return [f"⟨new {nth}⟩" for nth in range(int(of.sum()))]
        places = find_places(side.ids[of], side.turned)
        named = self._texts.get(family, "tokens")
        rows = self._names.find_names(named)
        mixed = self._families[family].is_mixed
        n_places = (
            max(int(places.max()) + 1, 1) if side.turned or group.n_steps > 1 else self._families[family].n_places
        )
        if rows is None or (mixed and not self._matches(named, len(places))):
            if mixed:
                return [f"⟨mixed {place}⟩" for place in places]
            padding = self._find_padding(family, text, n_places)
            return [str(place - padding[:place].sum()) for place in places]
        given = row_of(rows, named, text, group, n_texts)
        mask = self._names.real
        if len(given) == n_places or (mask is not None and named == self._masked and len(given) == mask.shape[1]):
            kept = np.array(self._real.get((family, text), np.ones(n_places, dtype=bool)))
            ranks = np.cumsum(kept) - 1
            return [given[p] if p < len(given) else f"⟨{ranks[p]}⟩" for p in places]
        if len(given) == n_places + side.n_ahead:
            return [given[place + side.n_ahead] for place in places]
        if len(given) == side.n:
            return [given[at] for at in np.flatnonzero(of)]
        real = self._real.get((family, text))
        kept = np.zeros(n_places, dtype=bool)
        kept[places[side.kept[of]]] = True
        if real is not None and len(real) == n_places:
            kept |= real & kept if self._names.real is not None else real
        if len(given) == kept.sum():
            ranks = (np.cumsum(kept) - 1).clip(min=0)
            return [given[ranks[place]] for place in places]
        if group.n_steps > 1 or group.calls[0].apart:
            real_ranks = np.cumsum(kept) - 1
            at_place = (
                real_ranks if len(given) < kept.sum() and not kept[: places.max() + 1].all() else np.arange(n_places)
            )
            return [given[at_place[p]] if at_place[p] < len(given) else f"⟨{at_place[p]}⟩" for p in places]
        if len(find_families(side.ids)) > 1:  # read together with another text, which may be the one that is named
            return [f"⟨{at}⟩" for at in np.flatnonzero(of)]
        if self._leaves_out(named, n_places):
            return [str(place) for place in places]
        raise _misfit(len(given), named, group, int(kept.sum()))

    def _find_padding(self, family: int, text: int, n: int) -> Bool[np.ndarray, " place"]:
        """Which places are there, and nobody attends to them; by attention_mask where that is given."""
        found = np.zeros(n, dtype=bool)
        real, there = self._real.get((family, text)), self._there.get((family, text))
        if real is not None and there is not None:
            found[: len(there)] = (there & ~real[: len(there)])[:n]
        if self._names.real is not None and self._texts.get(family) == self._masked and text < len(self._names.real):
            found[: self._names.real.shape[1]] = ~self._names.real[text][:n]
        return found

    def _matches(self, named: Text, n: int) -> bool:
        return self._names.matches_length(named, n) and not self._leaves_out(named, n)

    def _leaves_out(self, named: Text, n: int) -> bool:
        """Whether names fit something else in this pass, and not this."""
        others = any(self._names.matches_length(named, other) for other in self._lengths if other != n)
        return others and not self._names.matches_length(named, n)

    def _name_by_number(self, group: Group, side: SideTokens, text: int, named: Text) -> Pieces:
        """Where nothing is known of tokens: by the caller's names if there are as many."""
        rows, n_kept = self._names.find_names(named), int(side.kept.sum())
        if rows is None:
            return tuple(map(str, range(n_kept)))
        given = row_of(rows, named, text, group, len(set(group.texts)))
        if len(given) == n_kept:
            return given
        if len(given) == side.n:
            return tuple(piece for piece, kept in zip(given, side.kept, strict=True) if kept)
        if self._leaves_out(named, side.n):
            return tuple(map(str, range(n_kept)))
        raise _misfit(len(given), named, group, n_kept)


def _misfit(n_given: int, named: str, group: Group, n: int) -> InvalidRecord:
    found = "1 name" if n_given == 1 else f"{n_given} names"
    return InvalidRecord(f"{found} in {named}, but the attention in {group.place} is of {n}", hint=PADDING)


def _find_attended(group: Group) -> Bool[np.ndarray, "row key"]:
    """Which keys any query attends to, in any layer."""
    return np.asarray(np.any([call.attended for call in group.calls], axis=0))
