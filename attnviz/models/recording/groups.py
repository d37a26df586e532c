"""Calls of attention that belong together, the layers of one group, and which names belong to its queries and keys.

Knows paths and shapes; no records.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool

from attnviz.display import escape_for_display
from attnviz.errors import InvalidRecord, InvalidSelection
from attnviz.models.capture.call import Call, PlaceIds
from attnviz.models.capture.modules_at_work import NUMBER
from attnviz.models.protocols import LayersAndHeads
from attnviz.models.recording.joining import find_families, join_passes
from attnviz.records.grid import Grid

GUESS = "That these are weights of attention over tokens is a guess: {}."
BESIDE = (
    "That these calls are layers is a guess: the one in {} reads nothing that those before it gave, so it may run "
    "beside them."
)


@dataclass(frozen=True, eq=False)
class Group:
    """Calls of one pass with the same shapes, whose paths are alike but for numbers. In order, they are its layers."""

    name: str  # "decoder.layers.*.self_attn"
    number: int  # of the pass
    calls: list[Call]
    outermost: int = 0  # which number of the path may be the layer's, the first that may
    not_seen: str = ""  # what attended in the same pass and is in no group, in sentences

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of each call's weights, [row, head, query, key]."""
        return self.calls[0].shape

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
        why, before = next((GUESS.format(call.guess) for call in self.calls if call.guess), ""), 0
        beside = ""
        for call in self.calls:
            if before and not call.after & before and not beside:
                beside = BESIDE.format(call.path)
            before |= 1 << call.place
        return " ".join(filter(None, (why, beside, self.not_seen)))

    @cached_property  # calls are let go one by one
    def layers(self) -> tuple[tuple[int, ...], int | None]:
        """Return the model's own layer numbers and how many there are. Calls of one shared layer count from 0."""
        return self.rising or (tuple(range(len(self.calls))), None)

    @cached_property
    def rising(self) -> tuple[tuple[int, ...], int | None] | None:
        """Find the first place in the paths whose numbers rise, and how many modules are numbered there."""
        found = list(zip(*(map(int, NUMBER.findall(call.path)) for call in self.calls), strict=False))
        for place, numbers in list(enumerate(found))[self.outermost :]:
            if list(numbers) == sorted(set(numbers)):
                return numbers, max(call.n_alike[place] for call in self.calls) or None
        return None


def group_calls(calls: Iterable[Call], taken_back: Collection[int] = ()) -> list[Group]:
    """Group the calls of each pass, in the order of their first calls. `taken_back`: as `Store` has it."""
    # By the pass, the how manieth each is in its run of a module, and the path without numbers.
    kinds: dict[tuple[int, int, str], list[Call]] = defaultdict(list)
    for call, nth in join_passes(_passes(list(calls)), taken_back):
        kinds[call.number, nth, NUMBER.sub("*", call.path)].append(call)
    groups: list[Group] = []
    for (number, nth, path), family in kinds.items():
        mark = f" #{nth + 1}" if nth or (number, 1, path) in kinds else ""
        family.sort(key=lambda call: call.place)
        groups += [replace(group, name=(group.name + mark).strip()) for group in _split(number, path, family)]
    return sorted(groups, key=lambda group: (group.number, group.calls[0].place))


def _split(number: int, path: str, family: Sequence[Call]) -> list[Group]:
    """Make a group for each shape: of several the outermost number that differs is written out, as in layers.1-3."""
    shapes: dict[tuple[int, ...], list[Call]] = defaultdict(list)
    for call in family:
        shapes[call.shape].append(call)
    numbers = {call: [int(each) for each in NUMBER.findall(call.path)] for call in family}
    differing = (at for at, each in enumerate(zip(*numbers.values(), strict=False)) if len({*each}) > 1)
    at, groups = next(differing, None) if len(shapes) > 1 else None, []
    for nth, calls in enumerate(shapes.values(), 1):
        parts = path.split("*")
        if at is not None:
            several = sorted({numbers[call][at] for call in calls})
            first, last = several[0], several[-1]
            in_a_row = several == list(range(first, last + 1)) and last > first
            written = f"{first}-{last}" if in_a_row else ",".join(map(str, several))
            parts[at : at + 2] = [parts[at] + written + parts[at + 1]]
        elif len(shapes) > 1:
            parts[-1] += f" #{nth}"
        groups.append(Group("*".join(parts), number, calls, at or 0))
    return groups


def choose_layers(groups: Sequence[Group], choice: LayersAndHeads) -> list[Group]:
    """Choose the groups that have chosen layers, without their others.

    Raises InvalidSelection where none has, and where the numbers of layers are not known.
    """
    if choice.layers is None:
        return list(groups)
    found = []
    for group in groups:
        if group.rising is None and len({call.path for call in group.calls}) > 1:
            raise InvalidSelection(
                f"the layers of {group.place} cannot be chosen: no number in their paths rises from each to the next",
                hint="Leave out layers.",
            )
        calls = [call for call, number in zip(group.calls, group.layers[0], strict=True) if number in choice.layers]
        found += [replace(group, calls=calls)] if calls else []
    missing = {*choice.layers} - {number for group in found for number in group.layers[0]}
    if missing:
        raise InvalidSelection(f"no attention was seen in layer {min(missing)}", hint="Layers count from 0.")
    return found


def _passes(calls: Sequence[Call]) -> list[tuple[Call, int]]:
    """Number the passes of calls, and the how manieth each is in its run of a module.

    A module that reads what it gave is a further layer: some models share one among all. One that runs again on
    something else begins another pass. Several calls in one run are kept apart; those of the same weights are one, as
    where a kernel takes the values of a layer in two halves.
    """
    earlier: dict[tuple[int, str], list[tuple[Call, int, int]]] = defaultdict(list)
    for call in calls:
        before, again, nth = earlier[call.number, call.path], 0, 0
        if reads := [each for each in before if call.after >> each[0].place & 1]:
            _, again, nth = reads[-1]
        elif before and before[-1][0].run == call.run:
            if any(_same(call, other) for other, *_ in before if other.run == call.run):
                continue
            again, nth = before[-1][1], before[-1][2] + 1
        elif before:
            again = max(each for _, each, _ in before) + 1
        before.append((call, again, nth))
    found = sorted((each for several in earlier.values() for each in several), key=lambda each: each[0].place)
    numbers = {key: number for number, key in enumerate(sorted({(call.number, again) for call, again, _ in found}))}
    return [(replace(call, number=numbers[call.number, again]), nth) for call, again, nth in found]


def _same(call: Call, other: Call) -> bool:
    are_weights = call.factors is None and other.factors is None
    return are_weights and call.shape == other.shape and np.array_equal(call.weights, other.weights)


Pieces = tuple[str, ...]
Text = Literal["tokens", "keys"]
MASK = "It is [batch, token], 1 for a token, 0 for padding."
PADDING = "If some of them are padding, give attention_mask."


@dataclass(frozen=True, eq=False)
class Names:
    """What the caller called things."""

    tokens: tuple[Pieces, ...] | None
    keys: tuple[Pieces, ...] | None
    real: Bool[np.ndarray, "row token"] | None  # of the keys in a model that has both, else of the tokens
    grid: Grid | None = None  # where keys are its patches

    def find_names(self, text: Text) -> tuple[Pieces, ...] | None:
        """Return the names of one side's tokens, where they were given."""
        return self.tokens if text == "tokens" else self.keys

    def matches_length(self, text: Text, n: int) -> bool:
        """Tell whether the longest text has as many names."""
        rows = self.find_names(text)
        if rows is None:
            return False
        by_mask = self.real is not None and self.real.shape[1] == n and (text == "keys") == (self.keys is not None)
        return by_mask or max(map(len, rows), default=0) == n


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
    n_rows = group.shape[0]
    if grid.pixels is not None and n_rows > 1:
        raise InvalidRecord(f"one image, but a batch of {n_rows}", hint="Give the model one image at a time.")
    return (grid.names(group.shape[3]),) * n_rows


def real_tokens(attention_mask: Any, keys: object) -> Bool[np.ndarray, "row token"] | None:
    """Read which tokens are no padding from a mask as Hugging Face has it: an array, tensor or lists, 1 for a token.

    Raises InvalidRecord for anything else, and where keys are patches: without padding they would lie elsewhere.
    """
    if attention_mask is None:
        return None
    if isinstance(keys, Grid):
        raise InvalidRecord("attention_mask does not go with a Grid", hint="Leave padding out: patches have none.")
    on_host = attention_mask.detach().cpu() if hasattr(attention_mask, "detach") else attention_mask
    try:
        mask = np.atleast_1d(np.asarray(on_host))
    except ValueError as error:  # rows of several lengths
        raise InvalidRecord("attention_mask has rows of several lengths", hint=MASK) from error
    mask = mask[None] if mask.ndim == 1 else mask
    if mask.ndim != 2:
        raise InvalidRecord(f"attention_mask has {mask.ndim} axes", hint=MASK)
    if not np.isin(mask, (0, 1)).all():  # such as one that is added to scores, where 0 is a token
        other = mask[~np.isin(mask, (0, 1))][0]
        raise InvalidRecord(f"attention_mask holds {escape_for_display(str(other), 20)}", hint=MASK)
    return np.asarray(mask == 1)
