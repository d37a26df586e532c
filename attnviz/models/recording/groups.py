"""Calls of attention that belong together, the layers of one group. Knows paths and shapes; no tokens, no records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from attnviz.errors import InvalidSelection
from attnviz.models.capture.call import Call
from attnviz.models.capture.paths import NUMBER
from attnviz.models.protocols import LayersAndHeads
from attnviz.models.recording.joining import join_passes
from attnviz.models.recording.texts import attends_across, find_texts

GUESS = "That these are weights of attention over tokens is a guess: {}."
BESIDE = (
    "That these calls are layers is a guess: the one in {} reads nothing that those before it gave, so it may run "
    "beside them."
)


Family = tuple[int, str, int]  # the pass, the path without numbers, the how manieth in its run of a module


@dataclass(frozen=True, eq=False)
class Group:
    """Calls of one pass with the same shapes, whose paths are alike but for numbers. In order, they are its layers."""

    name: str  # "decoder.layers.*.self_attn"
    number: int  # of the pass
    calls: list[Call]
    family: str = ""  # the name of all calls of this kind, also of those with other shapes
    not_seen: str = ""  # what attended in the same pass and is in no group, in sentences
    layer_place: int | None = None  # which number of the path is the layer's, where other groups of the kind say so

    @property
    def n_rows(self) -> int:
        """How many texts the batch has."""
        return self.calls[0].shape[0]

    @property
    def n_queries(self) -> int:
        """How many queries a text has."""
        return self.calls[0].shape[2]

    @property
    def n_keys(self) -> int:
        """How many keys a text has."""
        return self.calls[0].shape[3]

    @property
    def n_steps(self) -> int:
        """How many passes it was joined from."""
        return self.calls[0].n_steps

    @property
    def place(self) -> str:
        """What an error calls it."""
        return self.name or "this block"

    @cached_property
    def texts(self) -> list[int]:
        """Which text each row is of."""
        return find_texts(self.calls[0])

    @property
    def n_windows(self) -> int:
        """Into how many windows each text was cut."""
        return max(1, self.n_rows // max(1, len(set(self.texts))))

    @property
    def is_across(self) -> bool | None:
        """Whether tokens attend to those of another text; None where that is not known."""
        return attends_across(self.calls[0])

    @property
    def guess(self) -> str:
        """Why its weights may be of something else than tokens, or its calls no layers, in sentences."""
        why = next((call.guess for call in self.calls if call.guess), "")
        beside = self._beside()
        sentences = GUESS.format(why) if why else "", BESIDE.format(beside.path) if beside else "", self.not_seen
        return " ".join(filter(None, sentences))

    def _beside(self) -> Call | None:
        """The first call that comes after none of those before it."""
        before = 0
        for call in self.calls:
            if before and not call.after & before:
                return call
            before |= 1 << call.place
        return None

    @cached_property  # calls are let go one by one
    def layers(self) -> tuple[tuple[int, ...], int | None]:
        """The model's own numbers of the layers, and how many it has. Calls of one shared layer count from 0."""
        return self._rising() or (tuple(range(len(self.calls))), None)

    def _rising(self) -> tuple[tuple[int, ...], int | None] | None:
        """The numbers in the first place where they rise, and how many modules are numbered so."""
        found = [[int(number) for number in NUMBER.findall(call.path)] for call in self.calls]
        n_numbers = min(map(len, found))
        if self.layer_place is not None:
            places: Iterable[int] = (self.layer_place,)
        else:
            places = range(n_numbers - self.name.count("*"), n_numbers)
        for place in places:
            numbers = tuple(each[place] for each in found)
            if list(numbers) == sorted(set(numbers)):
                return numbers, max(call.n_alike[place] for call in self.calls) or None
        return None


def group_calls(calls: Iterable[Call]) -> list[Group]:
    """The groups of each pass, in the order of their first calls."""
    families: dict[tuple[int, str, int], list[Call]] = defaultdict(list)
    several: set[tuple[int, str]] = set()
    for call, nth in join_passes(_passes(list(calls))):
        families[call.number, star_numbers(call.path), nth].append(call)
        if nth:
            several.add((call.number, star_numbers(call.path)))
    groups: list[Group] = []
    for (number, path, nth), family in _join_wrapped(families).items():
        mark = f" #{nth + 1}" if (number, path) in several else ""
        groups += [
            replace(group, name=(group.name + mark).strip(), family=path + mark)
            for group in _join_alike(number, family)
        ]
    return sorted(groups, key=lambda group: group.number)


def _join_wrapped(families: Mapping[Family, list[Call]]) -> dict[Family, list[Call]]:
    """Join a family with that of layers which are the same but for modules around them, such as base_layer."""
    found: dict[Family, list[Call]] = {}
    for key in sorted(families, key=lambda key: len(key[1])):
        within = next((other for other in found if _wraps(key, families[key], other, found[other])), key)
        calls = [replace(call, path=_unwrap(call.path, within[1])) for call in families[key]]
        found[within] = sorted([*found.get(within, ()), *calls], key=lambda call: call.place)
    return dict(sorted(found.items(), key=lambda item: item[1][0].place))


def _unwrap(path: str, starred: str) -> str:
    """Leave out the names of a path that another has not: layers.1.base_layer as layers.* is layers.1."""
    parts = iter(path.split("."))
    return ".".join(next(part for part in parts if name in (part, star_numbers(part))) for name in starred.split("."))


def _wraps(key: Family, calls: Sequence[Call], other: Family, others: Sequence[Call]) -> bool:
    (number, path, nth), (other_number, shorter, other_nth) = key, other
    names, least = iter(path.split(".")), shorter.split(".")
    if (number, nth) != (other_number, other_nth) or path.count("*") != shorter.count("*") or "*" not in path:
        return False
    if not all(name in names for name in least):  # in this order
        return False
    mine, theirs = ({tuple(NUMBER.findall(call.path)) for call in each} for each in (calls, others))
    return not mine & theirs and calls[0].shape == others[0].shape


def choose_layers(groups: Sequence[Group], choice: LayersAndHeads) -> list[Group]:
    """The groups that have chosen layers, without their others.

    Raises InvalidSelection where none has, and where the numbers of layers are not known.
    """
    if choice.layers is None:
        return list(groups)
    found = []
    for group in groups:
        if group._rising() is None and len({call.path for call in group.calls}) > 1:
            raise InvalidSelection(
                f"the layers of {group.place} cannot be chosen: no number in their paths rises from each to the next",
                hint="Leave out layers.",
            )
        calls = [call for call, number in zip(group.calls, group.layers[0], strict=True) if number in choice.layers]
        if calls:
            found.append(replace(group, calls=calls))
    missing = {*choice.layers} - {number for group in found for number in group.layers[0]}
    if missing:
        raise InvalidSelection(f"no attention was seen in layer {min(missing)}", hint="Layers count from 0.")
    return found


def _passes(calls: Sequence[Call]) -> list[tuple[Call, int]]:
    """Calls with the numbers of their passes, and the how manieth each is in its run of a module.

    A module that reads what it gave is a further layer: some models share one among all. One that runs again on
    something else begins another pass. Several calls in one run are kept apart; those of the same weights are one.
    """
    earlier: dict[tuple[int, str], list[tuple[Call, int, int]]] = defaultdict(list)
    found: list[tuple[Call, tuple[int, int], int]] = []
    for call in calls:
        before = earlier[call.number, call.path]
        again, nth = 0, 0
        if reads := [each for each in before if call.after >> each[0].place & 1]:
            _, again, nth = reads[-1]
        elif before and before[-1][0].run == call.run:
            if any(_same(call, other) for other, _, _ in before if other.run == call.run):
                continue
            again, nth = before[-1][1], before[-1][2] + 1
        elif before:
            again = max(each for _, each, _ in before) + 1
        before.append((call, again, nth))
        found.append((call, (call.number, again), nth))
    numbers = {key: number for number, key in enumerate(sorted({key for _, key, _ in found}))}
    return [(replace(call, number=numbers[key]), nth) for call, key, nth in found]


def _same(call: Call, other: Call) -> bool:
    """As where a kernel takes the values of a layer in two halves."""
    if call.factors is not None or other.factors is not None:
        return call.factors is not None and other.factors is not None and call.factors.same(other.factors)
    return call.shape == other.shape and np.array_equal(call.weights, other.weights)


def star_numbers(path: str, n_kept: int = 0) -> str:
    """The path with its numbers, besides the first ones, replaced by *."""
    numbers = iter(range(path.count(".") + 1))
    return NUMBER.sub(lambda found: found[0] if next(numbers) < n_kept else "*", path)


def _join_alike(number: int, family: Sequence[Call]) -> list[Group]:
    """One group; where shapes differ, as between stages of Swin, groups that share the first numbers of the path.

    Where that leaves each call alone, as in a stack whose first layer has other heads, the layers of one shape are a
    group, and the outermost number that differs in the stack is the layer's.
    """
    paths = [NUMBER.findall(call.path) for call in family]
    for n_kept in range(max(map(len, paths)) + 1):
        groups: dict[str, list[Call]] = defaultdict(list)
        for call in family:
            groups[star_numbers(call.path, n_kept)].append(call)
        if len(groups) == len(family) > 1:
            break
        if all(len({call.shape for call in group}) == 1 for group in groups.values()):
            return [Group(name, number, group) for name, group in groups.items()]
    shapes: dict[tuple[int, ...], list[Call]] = defaultdict(list)
    for call in family:
        shapes[call.shape].append(call)
    place = next((place for place, found in enumerate(zip(*paths, strict=False)) if len(set(found)) > 1), None)
    return [
        Group(_name_layers(calls, place, nth), number, calls, layer_place=place)
        for nth, calls in enumerate(shapes.values(), 1)
    ]


def _name_layers(calls: Sequence[Call], place: int | None, nth: int) -> str:
    """Name some layers of a stack by their numbers, layers.1-3; calls of one path by their order."""
    if place is None:
        return f"{star_numbers(calls[0].path)} #{nth}".strip()
    numbers = [int(NUMBER.findall(call.path)[place]) for call in calls]
    first, last = min(numbers), max(numbers)
    together = first < last and sorted(set(numbers)) == list(range(first, last + 1))
    written = f"{first}-{last}" if together else ",".join(map(str, sorted(set(numbers))))
    places = iter(range(len(calls[0].path)))
    return NUMBER.sub(lambda _: written if next(places) == place else "*", calls[0].path)
