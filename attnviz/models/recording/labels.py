"""What the tokens of a pass are called, and which of them are padding: the ids say who is who. Knows no records.

Every token has one name, on whichever side and in whichever layer it is met. A caller's names belong to a text that was
read: those in `keys` to the one that is attended to by another, those in `tokens` to all others. Padding is what no
query attends to, or what attention_mask says. Where ids are not known, as many queries as keys are taken for one text.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, compress, count, groupby
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Bool

from attnviz.display import escape_for_display, format_count
from attnviz.errors import InvalidRecord
from attnviz.models.capture.call import Call, PlaceIds
from attnviz.models.capture.ids import PLACE_BITS, Family, Store, family_of, nobody, place_of, row_of
from attnviz.models.recording.groups import Group
from attnviz.models.recording.joining import find_families, number_tokens
from attnviz.records import Tokens, name_tokens
from attnviz.records.grid import Grid

Pieces = tuple[str, ...]
Text = Literal["tokens", "keys"]
BOTH: tuple[Text, Text] = ("tokens", "keys")
UNFIT = "Names were given that fit a window and no whole text: tokens are called by their places."
ONCE = "Names were given once, for each of {} texts."
MASK = "It is [batch, token], 1 for a token, 0 for padding."
PADDING = "If some of them are padding, give attention_mask."


@dataclass(frozen=True, eq=False)
class Names:
    """What the caller called things."""

    tokens: tuple[Pieces, ...] | None
    keys: tuple[Pieces, ...] | None
    real: Bool[np.ndarray, "row token"] | None  # of the keys in a model that has both, else of the tokens
    grid: Grid | None = None  # where keys are its patches

    def matches_length(self, text: Text, n: int) -> bool:
        """Tell whether names of one side's tokens were given, of which the longest text has as many."""
        rows = getattr(self, text)
        return rows is not None and max(map(len, rows), default=0) == n


def read_names(what: str, names: Sequence[str] | Sequence[Sequence[str]] | None) -> tuple[Pieces, ...] | None:
    """Read one row of names for each text. Raises InvalidRecord for what is no list of pieces."""
    if names is None:
        return None
    is_list = isinstance(names, Iterable) and not isinstance(names, str)  # and not the model, as it is easily typed
    rows = list(names) if is_list and not all(isinstance(name, str) for name in names) else [names]
    if not is_list or not all(isinstance(row, Sequence) and not isinstance(row, str) for row in rows):
        problem = f"{what} are not a list of strings, or of such lists"
        raise InvalidRecord(problem, hint='Give its pieces, as in ["the", "cat"].')
    return tuple(tuple(map(str, row)) for row in rows)


def name_patches(grid: Grid, groups: Sequence[Group]) -> tuple[Pieces, ...]:
    """Name the patches, for each row of the batch: of the fewest keys that any group has and that fit.

    Raises InvalidRecord where none fit, and for one image of a batch of several.
    """
    fitting = [group for group in groups if grid.fits(group.shape[3])]
    group = min(fitting or groups, key=lambda each: each.shape[3])
    n_texts = len({*count_windows(group)[0]})
    if grid.pixels is not None and n_texts > 1:
        raise InvalidRecord(f"one image, but a batch of {n_texts}", hint="Give the model one image at a time.")
    return (grid.names(group.shape[3]),) * n_texts


def real_tokens(attention_mask: Any, keys: object) -> Bool[np.ndarray, "row token"] | None:
    """Read which tokens are no padding from a mask as Hugging Face has it: an array, tensor or lists, 1 for a token.

    Raises InvalidRecord for anything else, and where keys are patches: without padding they would lie elsewhere.
    """
    if attention_mask is None:
        return None
    if isinstance(keys, Grid):
        raise InvalidRecord("attention_mask does not go with a Grid", hint="Leave padding out: patches have none.")
    on_host = attention_mask.detach().cpu() if hasattr(attention_mask, "detach") else attention_mask
    mask = np.atleast_2d(np.asarray(on_host, dtype=object))  # rows of several lengths stay lists
    if mask.ndim != 2:
        raise InvalidRecord(f"attention_mask has {mask.ndim} axes", hint=MASK)
    if not np.isin(mask, (0, 1)).all():  # such as one that is added to scores, where 0 is a token
        other = mask[~np.isin(mask, (0, 1))][0]
        raise InvalidRecord(f"attention_mask holds {escape_for_display(str(other), 20)}", hint=MASK)
    return np.asarray(mask == 1)


class AxisLabels(NamedTuple):
    """Of one row of a batch: what its queries and keys are called, and which positions are kept."""

    queries: Tokens
    keys: Tokens  # the same object where the queries are the keys
    kept_queries: Bool[np.ndarray, " query"]
    kept_keys: Bool[np.ndarray, " key"]
    guess: str = ""  # what of this is not certain
    grid: Grid | None = None  # of keys that are patches
    text: int = 0  # which text it is of
    window: int | None = None  # which window of that; None: all of it
    n_windows: int | None = None  # how many that has


def label(groups: Sequence[Group], names: Names, store: Store) -> Iterator[tuple[Group, list[AxisLabels]]]:
    """Yield each group with the sides of its rows. Raises InvalidRecord where names or attention_mask do not fit."""

    make = cache(lambda _, *shape: np.asarray(store.seed(shape)))  # the first tells families apart
    for group in groups:
        group.calls[:] = [call if call.keys is not None else _guess_sides(call, names, make) for call in group.calls]
    # What another text attends to is that of `keys`, also where a function runs an encoder, and then a decoder.
    sources = {family for group in groups if group.is_across for family in find_families(group.sides[1])}
    found, bearers = list[tuple[Group, list[AxisLabels]]](), defaultdict[object, set[object]](set)
    for _, of_pass in groupby(groups, key=lambda group: group.number):
        several = list(of_pass)
        labels = PassLabels(several, names, store.families, sources, bearers)
        found += [(group, labels.label(group)) for group in several]
    for group, sides in found:
        ids = np.concatenate(group.sides[:2], axis=1)
        n_texts = max(len(bearers[row]) for row in [-1, *(ids >> PLACE_BITS).ravel().tolist()])
        once = ONCE.format(n_texts) if n_texts > 1 else ""
        yield group, [side._replace(guess=" ".join(filter(None, (once, side.guess)))) for side in sides]


def _guess_sides(call: Call, names: Names, make: Callable[..., PlaceIds]) -> Call:
    """Say what stands on the axes of a call of which nothing is known.

    As many rows as texts are named are of these, and no heads. As many queries as keys are of one text, unless two are
    named. A single query is of no token.
    """
    n_rows, n_heads, n_queries, n_keys = call.kept.shape
    n_texts = max(len(rows or ()) for rows in (names.tokens, names.keys))
    if call.factors is None and n_rows == 1 < n_texts and n_heads % n_texts == 0:
        n_rows, n_heads = n_texts, n_heads // n_texts
        kept, sink = (of.reshape(n_rows, n_heads, *of.shape[2:]) for of in (call.weights, call.sink))
        attendable, heads = np.repeat(call.attendable, n_rows, axis=0), tuple(range(n_heads))
        guess = "which of its rows are of which text is not known" if n_heads > 1 else ""
        call = replace(call, kept=kept, attendable=attendable, sink=sink, heads=heads, guess=guess)
    are_two = n_queries != n_keys or (names.tokens is not None and names.matches_length("keys", n_keys))
    guess = call.guess or ("which tokens they are of is not known" if call.root else "")
    queries = nobody((n_rows, 1)).numpy() if n_queries == 1 < n_keys else make("tokens", n_rows, n_queries)
    return replace(call, queries=queries, keys=make("keys" if are_two else "tokens", n_rows, n_keys), guess=guess)


def count_windows(group: Group) -> tuple[list[int], int]:
    """Tell which text each row of a group is of, and how many windows each has; 1: each row is a whole text.

    Queries may be the same for all texts, which their keys then tell apart.
    """
    both = (np.concatenate(sides, axis=1) for sides in (group.sides[:2], group.sides[1::-1]))
    found = ([int(row_of(ids[ids >= 0][0])) if (ids >= 0).any() else row for row, ids in enumerate(of)] for of in both)
    texts = max(found, key=lambda texts: len({*texts}))
    return texts, len(texts) // max(1, len({*texts}))


class PassLabels:
    """The names of one pass."""

    def __init__(
        self, groups: Sequence[Group], names: Names, families: Sequence[Family], sources: Collection[int], bearers: Any
    ) -> None:
        self._names, self._families, self._sources, self._bearers = names, families, sources, bearers
        calls = [(np.asarray(call.keys), call.attended) for group in groups for call in group.calls]
        of_keys = np.concatenate([keys.ravel() for keys, _ in calls])
        attended = np.concatenate([keys[attended] for keys, attended in calls])
        self._padding = np.setdiff1d(of_keys[of_keys >= 0], attended)
        self._met: dict[int, tuple[int, int, str]] = {}  # of families: rows, places, and where they were met first
        for place, ids in ((group.place, ids) for group in groups for ids in group.sides):
            for family in find_families(ids):
                of, own = families[family], ids[family_of(ids) == family]
                n_rows, n_places, first = self._met.get(family, (of.n_rows, of.n_places + of.n_more, place))
                n_places = max(n_places, int(place_of(own).max()) + 1)
                self._met[family] = max(n_rows, int(row_of(own).max()) + 1), n_places, first
        self._whole = {n for _, n, _ in self._met.values()}
        self._sizes = {(n_texts, n) for n_texts, n, _ in self._met.values()}
        self._lengths = self._whole.union(*(group.shape[2:] for group in groups))
        self._texts: dict[int, Text] = {}
        for group in sorted(groups, key=lambda group: not group.is_across):
            self._assign(group)
        # What learned queries made, as many as a text that bears the names has tokens, is not called like that.
        self._n_learned = {group.shape[2] for group in groups if not find_families(group.calls[0].queries)}
        self._said = {(text, self._met[each][1]) for each, text in self._texts.items() if not families[each].is_mixed}
        self._called: dict[int, str] = {}  # tokens, by their ids
        self._new = count()  # that the model put in itself, as they are met
        self._alone: dict[int, Iterator[int]] = defaultdict(count)  # by row, mixtures that were made one by one
        if names.real is not None:
            self._mask(names.real, names.keys is not None or any(group.is_across for group in groups))

    def _assign(self, group: Group) -> None:
        """Decide whose names the families of a group have: of two lists it is the one that fits."""
        queries, keys = (find_families(ids) for ids in group.sides[:2])
        fits = self._names.matches_length
        if group.is_across:
            n_queries, n_keys = (self._met[families[0]][1] for families in (queries, keys))
            orders = BOTH, BOTH[::-1]
            asking, asked = max(orders, key=lambda order: fits(order[0], n_queries) + fits(order[1], n_keys))
            self._texts = {**dict.fromkeys(queries, asking), **dict.fromkeys(keys, asked), **self._texts}
            return
        is_asking = bool(queries) and queries[0] not in self._sources
        others = {each for each in keys if queries and not self._families[each].is_mixed}.difference(queries)
        for family in (*keys, *queries):
            # A text may attend to itself and to another at once, as the decoder of T5Gemma 2.
            order = BOTH if is_asking and family not in others else BOTH[::-1]
            given = [text for text in order if getattr(self._names, text) is not None] or order
            given = [*order[:1]] if others and self._names.keys is not None else given
            fitting = (text for text in given if fits(text, self._met[family][1]))
            self._texts.setdefault(family, next(fitting, given[0]))

    def _mask(self, real: Bool[np.ndarray, "row token"], is_of_keys: bool) -> None:
        """Take for padding what attention_mask says. Raises InvalidRecord where it fits nothing."""
        masked = [family for family, text in self._texts.items() if (text == "keys") == is_of_keys]
        masked = [family for family in masked if not self._families[family].is_mixed]
        fitting = []
        for family in masked:
            n_rows, n_places, _ = self._met[family]
            is_grown = n_places > self._families[family].n_places
            fitting += [family] if len(real) == n_rows and (is_grown or real.shape[1] == n_places) else []
        others = self._padding[~np.isin(family_of(self._padding), fitting)]
        self._padding = np.concatenate([others, *(number_tokens(each, *np.nonzero(~real)) for each in fitting)])
        if masked and not fitting:
            *size, place = self._met[masked[0]]
            given, wanted = (" × ".join(map(str, shape)) for shape in (real.shape, size))
            problem = f"attention_mask is of {given} tokens, the attention in {place} of {wanted}"
            raise InvalidRecord(problem, hint="Give the mask that the model was given, [batch, token].")

    def label(self, group: Group) -> list[AxisLabels]:
        """Say what the queries and keys of each row are called."""
        queries, keys = group.sides[:2]
        texts, n_windows = count_windows(group)
        attended, attends = (np.any([call.attendable.any(axis) for call in group.calls], axis=0) for axis in (1, 2))
        kept_keys = np.where(keys >= 0, ~np.isin(keys, self._padding), attended)
        # Of what is no token, as queries that are learned, some may be room: as many as the longest text asks.
        is_room = (queries < 0) & ~attends & attends.any(axis=1, keepdims=True)
        kept_queries = ~np.isin(queries, self._padding) & ~is_room
        # Lists may be of windows, as of the graphs of a batch, whose nodes stand one after another.
        real = [ids[(ids >= 0) & there].tolist() for ids, there in zip(keys, kept_keys, strict=True)]
        rows, n_keys = self._names.tokens or (), group.shape[3]
        is_short = any(self._names.matches_length(text, n_keys) for text in BOTH) and n_keys not in self._whole
        are_listed = n_windows > 1 and [*map(len, real)] == [*map(len, rows)]
        guess = UNFIT if n_windows > 1 and is_short and not are_listed else ""
        if are_listed:
            self._called.update(zip(chain(*real), chain(*rows), strict=True))
        found = []
        for row, text in enumerate(texts):
            same = np.array_equal(queries[row], keys[row])
            kept = (kept_keys if same else kept_queries)[row]
            of_keys = self._call(keys[row], kept_keys[row], n_windows, text if same else None)
            of_queries = of_keys if same else self._call(queries[row], kept, n_windows, text)
            grid = self._names.grid if of_keys.pieces in (self._names.keys or ()) else None
            window = (texts[:row].count(text), n_windows) if n_windows > 1 else ()
            found.append(AxisLabels(of_queries, of_keys, kept, kept_keys[row], guess, grid, text, *window))
        return found

    def _call(self, ids: PlaceIds, kept: Bool[np.ndarray, " token"], n_windows: int, text: int | None = None) -> Tokens:
        """Name the kept tokens of a side.

        `text`: which one queries are of. Those of no token are learned, states of a loop, or means of a text. Several
        texts, or a text and what is no token, that stand on one axis may have been named together, also without that.
        """
        families, known = find_families(ids), ids[ids >= 0]
        if text is not None and not families:
            rows, n = self._names.tokens, int(kept.sum())
            if rows and self._names.keys is not None and self._names.matches_length("tokens", n):
                return name_tokens(rows[min(text, len(rows) - 1)])
            return name_tokens(("⟨query⟩",) if n == 1 else tuple(f"⟨query {place}⟩" for place in range(n)))
        last = max(np.flatnonzero(ids >= 0).tolist(), default=len(ids))
        others = [f"⟨before {at + 1}⟩" if at < last else f"⟨after {at - last}⟩" for at in range(len(ids))]
        if n_windows == 1 and (len(families) > 1 or 0 < len(known) < len(ids)):
            rows, row = getattr(self._names, self._texts[families[0]]), int(row_of(known).min())
            given = rows[row] if rows is not None and row < len(rows) else ()
            there = zip(*np.unique(family_of(known), return_counts=True), strict=True)
            named = known if len(given) == len(known) else ids
            if len(given) == len(named) and len(given) not in [self._met[family][1] for family, n in there if n > 1]:
                others = list(given) if named is ids else others
                self._called.update(zip(named.tolist(), given, strict=True))
        for each in known.tolist():
            if each not in self._called:
                self._name(each)
        called = [self._called[each] if each >= 0 else other for each, other in zip(ids.tolist(), others, strict=True)]
        return name_tokens(tuple(compress(called, kept)))

    def _name(self, token: int) -> None:
        """Name a token, and all of its row. Raises InvalidRecord where names do not fit."""
        family, row = family_of(token), row_of(token)
        of, (n_texts, n, place), text = self._families[family], self._met[family], self._texts[family]
        every = token - place_of(token) + np.arange(n)
        real = ~np.isin(every, self._padding)
        rows, fits = getattr(self._names, text), self._names.matches_length
        ranks = (real.cumsum() - real).tolist()  # among those that are no padding
        called = list(map(str, ranks))
        if of.is_new:
            every, called = every[[place_of(token)]], [f"⟨new {next(self._new)}⟩"]
        elif of.is_mixed and (not fits(text, n) or (n in self._n_learned and (text, n) in self._said)):
            first = next(self._alone[row]) if n == 1 else 0
            called = [f"⟨mixed {first + at}⟩" for at in range(n)]
        elif rows is not None and (len(rows) == n_texts or (len(rows), max(map(len, rows))) not in self._sizes):
            given, there = rows[row % len(rows)], f"the attention in {place}"
            are_theirs = fits(text, n) or not any(fits(text, length) for length in self._lengths)
            if are_theirs and len(rows) != n_texts and (len(rows), len(given)) != (1, n):
                one_by_one = "Record each text in a block of its own, or all of them as one batch."
                hint = one_by_one if n_texts == 1 else "Give a list of lists, one for each row of the batch."
                raise InvalidRecord(f"{text} is of {format_count(len(rows), 'texts')}, {there} of {n_texts}", hint=hint)
            # Of a text that grew some may have no name, and the word that was chosen last and never read may have one.
            # Lists of one length name its padding, too. Of a text that changed only the beginning has names.
            is_grown, own = n > of.n_places and not of.is_changed, real[: of.n_places] if of.is_changed else real
            if len(given) in (of.n_places, n, n + is_grown) and (len({*map(len, rows)}) == 1 or not is_grown):
                given = tuple(compress(given, [*real, True]))
            if len(given) == own.sum() or (is_grown and len(given) <= own.sum() + 1):
                called = [given[rank] if rank < len(given) else f"⟨{rank}⟩" for rank in ranks]
                self._bearers[text, row % len(rows)] |= {(id(of), row)} if not of.is_mixed else {*()}
                self._bearers[token >> PLACE_BITS] = self._bearers[text, row % len(rows)]
            elif are_theirs:  # else they are of others
                problem = f"{format_count(len(given), 'names')} in {text}, but {there} is of {own.sum()}"
                raise InvalidRecord(problem, hint=PADDING)
        for each, name in zip(every.tolist(), called, strict=True):
            self._called.setdefault(each, name)
