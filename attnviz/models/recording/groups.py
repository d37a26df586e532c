"""Calls of attention that belong together, as the layers of one group. Knows paths and shapes; no records."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, compress

import numpy as np

from attnviz.errors import InvalidSelection
from attnviz.models.capture.call import Call, PlaceIds
from attnviz.models.capture.ids import PLACE_BITS, ROW_BITS, Family, family_of, place_of, row_of
from attnviz.models.capture.modules_at_work import NUMBER
from attnviz.models.capture.tap import Capture
from attnviz.models.protocols import LayersAndHeads
from attnviz.models.recording.joining import find_families, join_calls, number_tokens

GUESS = "That these are weights of attention over tokens is a guess: {}."
BESIDE = (
    "That these calls are layers is a guess: the one in {} reads nothing that those before it gave, so it may run "
    "beside them."
)
IN_FAMILY = (1 << PLACE_BITS + ROW_BITS) - 1  # the bits of an id that say which of its family it is


@dataclass(frozen=True, eq=False)
class Group:
    """Calls of one pass with the same shapes, whose paths are alike but for numbers. In order, they are its layers."""

    name: str  # "decoder.layers.*.self_attn"
    number: int  # of the pass
    calls: list[Call]
    layers: tuple[int, ...] = ()  # by the numbers in their paths; (): none of these rises
    n_layers_in_model: int | None = None
    not_seen: str = ""  # what attended in the same pass and is in no group, in sentences

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of each call's weights, [row, head, query, key]."""
        return self.calls[0].kept.shape

    @property
    def place(self) -> str:
        """Return the name of the group in error messages."""
        return self.name or "this block"

    @property
    def sides(self) -> list[PlaceIds]:
        """List the ids of the queries and keys of the calls, where they are known."""
        return [ids for call in self.calls for ids in (call.queries, call.keys) if ids is not None]

    @property
    def is_across(self) -> bool:
        """Tell whether tokens are known to attend to those of another text."""
        queries, keys = (find_families(ids) for ids in (self.calls[0].queries, self.calls[0].keys))
        return bool(queries and keys) and not {*queries} & {*keys}

    @property
    def guess(self) -> str:
        """Say in sentences why the weights may be over something else than tokens, or the calls no layers."""
        why = next((GUESS.format(call.guess) for call in self.calls if call.guess), "")
        given = accumulate(1 << call.place for call in self.calls)  # by the calls up to each
        others = zip(self.calls[1:], given, strict=False)
        beside = next((BESIDE.format(call.path) for call, before in others if not call.after & before), "")
        return " ".join(filter(None, (why, beside, self.not_seen)))


def group_calls(calls: Sequence[Call], watching: Capture, choice: LayersAndHeads) -> list[Group]:
    """Group the calls of each pass, in the order of their first calls, and leave what was chosen.

    Of several groups with one name each has its number behind it.

    Raises InvalidSelection for a layer or head that there is not, and InvalidRecord where parts of one layer are
    factored.
    """
    # By the pass, the number of each in its run of a module, and the path without numbers.
    kinds: dict[tuple[int, int, str], list[Call]] = defaultdict(list)
    turned = _turn(calls, watching.store.families)
    for call in sorted(join_calls(turned, watching.store), key=lambda call: call.place):
        kinds[call.number, call.nth, NUMBER.sub("*", call.path)].append(call)
    groups = [group for family in kinds.values() for group in _split(family, watching.store.families)]
    groups.sort(key=lambda group: (group.number, group.calls[0].place))
    names = [(group.number, group.name) for group in groups]
    marks = (f" #{names[: at + 1].count(name)}" if names.count(name) > 1 else "" for at, name in enumerate(names))
    named = [replace(group, name=(group.name + mark).strip()) for group, mark in zip(groups, marks, strict=True)]
    return _choose(named, choice, " ".join(watching.unread.describe()))


def _split(family: Sequence[Call], families: Sequence[Family]) -> list[Group]:
    """Make a group of the calls that have one shape and the same tokens in the same places.

    Of several groups as many numbers are written out as tell them apart, the outermost first, as in layers.1-3.
    """
    found: list[list[Call]] = []
    for call in family:
        calls = next((calls for calls in found if _is_like(call, calls[0], families)), [])
        found += [] if calls else [calls]
        calls.append(call)
    differing = [at for at, each in enumerate(_list_numbers(family)) if len({*each}) > 1]
    for n_written in (*range(len(differing) + 1), 0):  # where none tell them apart, none is
        names = [_write_out(calls, differing[:n_written]) for calls in found]
        if len({*names}) == len(found):
            break
    outermost = differing[n_written - 1] if n_written else 0
    return [
        Group(name, calls[0].number, calls, *_number_layers(calls, outermost))
        for name, calls in zip(names, found, strict=True)
    ]


def _number_layers(calls: Sequence[Call], outermost: int) -> tuple[tuple[int, ...], int | None]:
    """Find the first place in the paths whose numbers rise, and how many modules are numbered there."""
    for place, numbers in list(enumerate(_list_numbers(calls)))[outermost:]:
        if list(numbers) == sorted(set(numbers)):
            return numbers, max(call.n_alike[place] for call in calls) or None
    return (), None


def _list_numbers(calls: Sequence[Call]) -> list[tuple[int, ...]]:
    """List for each number in the paths that calls have but for their numbers what it is in each of them."""
    return list(zip(*(map(int, NUMBER.findall(call.path)) for call in calls), strict=False))


def _turn(calls: Sequence[Call], families: list[Family]) -> list[Call]:
    """Make places of the rows of families whose tokens are on the first axis of what was read, as in older modules."""
    turned, met = set[Family](), set[Family]()  # as families are met first: they may attend along both axes later
    sides = {id(ids): ids for call in calls for ids in (call.queries, call.keys) if ids is not None}
    for ids in sides.values():
        first = ids[:1][ids[:1] >= 0]
        read = {families[family] for family in find_families(first)}
        n_rows, n_places = (len(np.unique(of(first))) for of in (row_of, place_of))
        turned.update(read - met if n_rows > 1 == n_places else ())
        met.update(read if n_rows > 1 or n_places > 1 else ())
    for call in calls:  # steps of such a text, in which rows are no texts
        is_read = any(families[family] in turned for family in find_families(call.keys))
        if is_read and len(np.unique(row_of(call.queries), axis=0)) < len(call.queries):
            turned.update(families[family] for family in find_families(call.queries))
    for family in turned:
        family.n_rows, family.n_places, family.n_more = family.n_places, family.n_rows, family.n_more_rows
    numbers = [number for number, family in enumerate(families) if family in turned]
    for ids in list(sides.values()):
        is_turned = np.isin(family_of(ids), numbers)
        sides[id(ids)] = np.where(is_turned, number_tokens(family_of(ids), place_of(ids), row_of(ids)), ids)
    return [replace(call, queries=sides[id(call.queries)], keys=sides.get(id(call.keys))) for call in calls]


def _write_out(calls: Sequence[Call], written: Collection[int]) -> str:
    """Return the path that calls have but for their numbers, of which some are written out."""
    several = [sorted({*each}) for each in _list_numbers(calls)]
    shown = (f"{of[0]}-{of[-1]}" if 1 < len(of) == of[-1] - of[0] + 1 else ",".join(map(str, of)) for of in several)
    texts = iter([text if at in written else "*" for at, text in enumerate(shown)])
    return NUMBER.sub(lambda _: next(texts), calls[0].path)


def _is_like(call: Call, first: Call, families: Sequence[Family]) -> bool:
    """Tell whether a call has the shape and the tokens of an earlier one.

    It has them where they are the same, where those of the earlier one are learned, as queries are, and not among what
    it reads, or where a later layer made new ones of them in the same places.
    """
    keys, of_first = call.keys, first.keys
    if call.kept.shape != first.kept.shape or keys is None or of_first is None:
        return call.kept.shape == first.kept.shape and keys is of_first
    for one, two in ((np.asarray(call.queries), np.asarray(first.queries)), (keys, of_first)):
        if not (moved := one != two).any():
            continue
        of_new, of_old = family_of(one[moved]), two[moved]
        are_learned = (of_old < 0).all() and not np.isin(of_new, family_of(of_first)).any()
        may_be = [*families[first.n_families :], *(families[each] for each in find_families(two))]  # or read again
        are_made = call.after >> first.place & 1 and all(families[each] in may_be for each in np.unique(of_new))
        if not are_learned and (not are_made or ((one[moved] ^ of_old) & IN_FAMILY).any()):
            return False
    return True


def _choose(groups: Sequence[Group], choice: LayersAndHeads, not_seen: str) -> list[Group]:
    """Leave the chosen layers and heads, and the groups that have some.

    Raises InvalidSelection where no group has one, and where the numbers of layers are not known.
    """
    found, missing = [], {*(choice.layers or ())}
    for group in groups:
        numbers = group.layers or tuple(range(len(group.calls)))  # calls of one shared layer count from 0
        if choice.layers is not None and not group.layers and len({call.path for call in group.calls}) > 1:
            problem = f"layers of {group.place} cannot be chosen: no number in their paths rises from each to the next"
            raise InvalidSelection(problem, hint="Leave out layers.")
        chosen = [number in (numbers if choice.layers is None else choice.layers) for number in numbers]
        calls = [_choose_heads(call, choice) for call in compress(group.calls, chosen)]
        layers = tuple(compress(numbers, chosen))
        found += [replace(group, calls=calls, layers=layers, not_seen=not_seen)] if calls else []
        missing -= {*numbers}
    if missing:
        raise InvalidSelection(f"no attention was seen in layer {min(missing)}", hint="Layers count from 0.")
    return found


def _choose_heads(call: Call, choice: LayersAndHeads) -> Call:
    """Leave the chosen heads of a call that has all. Raises InvalidSelection."""
    if choice.heads is None or call.factors is not None or call.n_heads_in_model != call.kept.shape[1]:
        return call
    heads = choice.heads_of(call.kept.shape[1], f"the attention in {call.path or 'this block'}")
    return replace(call, kept=call.weights.take(heads, 1), sink=call.sink.take(heads, 1), heads=heads)
