"""Which token each number belongs to: an integer beside every number of a tensor. Knows tensors and no modules.

An id says of which tensor of tokens (its family), in which row of it, and at which place a token was read. Ids are a
tensor of the numbers' own shape, expanded where numbers share one, as the features of a token do: so they cost next to
nothing, and whatever a model does to the order of numbers is done to their ids, by the same operator. A number that
comes of several tokens gets the id of a new one, whose family says that it is a mixture.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

PLACE_BITS, ROW_BITS = 24, 16
NOBODY = -1  # the id of what is of no token: a parameter, room in a cache
Ids = Int[Tensor, "..."]


@dataclass(frozen=True, eq=False)
class Family:
    """Tokens that were read together, or what was made of some."""

    n_places: int
    number: int  # of the pass that they were read in
    is_mixed: bool  # whether each comes of several tokens
    n_rows: int = 1
    is_new: bool = False  # whether the model put them in itself: a start, or a word that it chose


class Softmax(NamedTuple):
    """What is known of numbers that came out of a softmax."""

    shape: tuple[int, ...]  # of all of them
    axis: int | None  # of the keys; None: moved since
    allowed: Bool[Tensor, ...] | None  # which scores let attention through, in the numbers' own shape; None: all
    place: str
    is_cut: bool = False  # whether keys behind the others were cut off: a sink
    changed: str = ""  # by which operator its numbers were changed
    dropped: float = 0.0  # the share that dropout took


class Known(NamedTuple):
    """What is known of a tensor's numbers."""

    ids: Ids | None  # None: not known
    after: int = 0  # bit n: they come after attention n
    softmax: Softmax | None = None
    columns: Ids | None = None  # of a product of states with states, the ids of the right side's


class Store:
    """What is known of tensors that are alive. Keeps none of them."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Tensor], Known]] = {}
        self.families: list[Family] = []
        self._mixed: dict[object, Ids] = {}  # by what was mixed: the same tokens are the same mixture again
        self.number = 0  # of the pass that is open

    def get(self, tensor: object) -> Known | None:
        """What is known of this very tensor, if anything."""
        found = self._known.get(id(tensor))
        return found[1] if found is not None and found[0]() is tensor else None

    def put(self, tensor: Tensor, known: Known) -> None:
        """Keep it for as long as the tensor lives."""
        place = id(tensor)
        self._known[place] = weakref.ref(tensor, partial(self._forget, place)), known

    def _forget(self, place: int, dead: weakref.ref[Tensor]) -> None:
        found = self._known.get(place)
        if found is not None and found[0] is dead:
            del self._known[place]

    def seed(self, shape: Sequence[int], is_new: bool = False) -> Ids:
        """New tokens: rows are the first axis of several, places all others."""
        n_rows = shape[0] if len(shape) > 1 else 1
        n_places = max(1, torch.Size(shape).numel() // max(1, n_rows))
        first = len(self.families) << PLACE_BITS + ROW_BITS
        self.families.append(Family(n_places, self.number, False, n_rows, is_new))
        rows = torch.arange(n_rows)[:, None] << PLACE_BITS
        return (rows + torch.arange(n_places) + first).reshape(tuple(shape))

    def mix(self, ids: Ids, of: Ids | None = None) -> Ids:
        """New tokens, each of which was made of several; in the rows of those. `of`: all that they were made of."""
        few = collapse(ids)
        whole = few if of is None else collapse(of)
        key = few.shape, whole.shape, whole.contiguous().numpy().tobytes()
        if key not in self._mixed:
            self._mixed[key] = self._number(few)
        return self._mixed[key].expand(ids.shape)

    def make(self, keys: Ids, n: int) -> Ids:
        """[row, query] of new tokens, `n` for each row [row, key] that they are made of; the same for the same keys."""
        apart, of_row = torch.unique(keys, dim=0, return_inverse=True)
        return self.mix(apart[:, :1].expand(-1, n).contiguous(), apart)[of_row]

    def _number(self, few: Ids) -> Ids:
        first = len(self.families) << PLACE_BITS + ROW_BITS
        rows = row_of(few).clamp(min=0)
        flat = rows.flatten()
        order = flat.argsort(stable=True)
        counts = torch.bincount(flat, minlength=1)
        places = torch.empty_like(flat)
        places[order] = torch.arange(len(flat)) - (counts.cumsum(0) - counts)[flat[order]]
        self.families.append(Family(int(counts.max()) if len(flat) else 1, self.number, True))
        return torch.as_tensor(first + (rows << PLACE_BITS) + places.view(few.shape))

    def merge(self, one: Ids, other: Ids) -> Ids:
        """Of numbers that are made of both: a token stays itself with what is of nobody, or of another text.

        Of two texts, such as words and their positions, it is the one with more rows, else the one that was read first.
        """
        if one.data_ptr() == other.data_ptr() and one.stride() == other.stride():
            return one
        if one.ndim and one.stride(-1) == 0 == other.stride(-1) and one.shape[-1] > 1:
            return self.merge(one[..., :1], other[..., :1]).expand(one.shape)
        if torch.equal(one, other):
            return one
        family, of_other = family_of(one), family_of(other)
        mixed = (family == of_other) & (one != other) & (one >= 0)
        if bool(mixed.any()):
            return torch.where(mixed, self.mix(torch.where(one < 0, other, one)), self._choose(one, other))
        return self._choose(one, other)

    def _choose(self, one: Ids, other: Ids) -> Ids:
        first, second = (self._rank(ids) for ids in (one, other))
        return torch.where((other < 0) | ((one >= 0) & (first <= second)), one, other)

    def _rank(self, ids: Ids) -> Ids:
        """Shared by rows of a batch comes behind, then what was read later."""
        shared = ids.ndim > 1 and ids.stride(0) == 0 and ids.shape[0] > 1
        return torch.as_tensor(family_of(ids) + (shared << 40))


def family_of(ids: Any) -> Any:
    """Return the numbers of families; of nobody -1."""
    return ids >> PLACE_BITS + ROW_BITS


def row_of(ids: Any) -> Any:
    """Return the rows of tokens; of nobody all bits."""
    return (ids >> PLACE_BITS) & (1 << ROW_BITS) - 1


def place_of(ids: Any) -> Any:
    """Return the places of tokens in their rows."""
    return ids & (1 << PLACE_BITS) - 1


def collapse(shadow: Tensor) -> Tensor:
    """Leave one of each axis along which all is the same."""
    for axis in range(shadow.ndim):
        if shadow.stride(axis) == 0 and shadow.shape[axis] > 1:
            shadow = shadow.narrow(axis, 0, 1)
    return shadow


def varies(ids: Ids | None, axis: int) -> bool:
    """Whether ids differ along an axis."""
    if ids is None or ids.shape[axis] < 2 or ids.stride(axis) == 0:
        return False
    few = collapse(ids)
    return bool((few != few.narrow(axis, 0, 1)).any())


def is_learned(tensor: object) -> bool:
    """Whether a tensor is a parameter, or a view of one."""
    return isinstance(tensor, nn.Parameter) or (isinstance(tensor, Tensor) and isinstance(tensor._base, nn.Parameter))


def reshape(shadow: Tensor, shape: Sequence[int]) -> Tensor:
    """The same in another shape, without a copy of what is the same along the last axis."""
    try:
        return shadow.view(tuple(shape))
    except RuntimeError:
        if shadow.ndim and len(shape) and shadow.stride(-1) == 0 and shadow.shape[-1] == shape[-1]:
            return shadow[..., 0].reshape(tuple(shape[:-1])).unsqueeze(-1).expand(tuple(shape))
        return shadow.reshape(tuple(shape))


def mark_changed(softmax: Softmax | None, name: str) -> Softmax | None:
    """What is known of a softmax whose numbers an operator changed."""
    return None if softmax is None else softmax._replace(allowed=None, axis=None, changed=softmax.changed or name)
