"""Which attentions a tensor comes after, and whether it is a product of two tensors. Follows tensors by identity.

Nothing here keeps a tensor alive, and nothing is known of modules.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from operator import and_
from typing import Any, Generic, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from attnviz.models.capture.captured import Kernel

T = TypeVar("T")
MATMULS: set[Kernel] = {
    *(torch.matmul, Tensor.matmul, Tensor.__matmul__, Tensor.__rmatmul__, torch.bmm, Tensor.bmm),
    *(torch.mm, Tensor.mm, torch.mv, Tensor.mv),
}
ADDING: set[Kernel] = {torch.baddbmm, Tensor.baddbmm}
PRODUCTS: set[Kernel] = {*MATMULS, *ADDING, torch.einsum}
JOINING: set[Kernel] = {torch.cat, torch.concat, torch.concatenate, torch.hstack, torch.stack}
PROJECTIONS: set[Kernel] = {functional.linear, functional.conv1d, functional.conv2d, torch.addmm}  # by weights


class ByIdentity(Generic[T]):
    """Something about each of several tensors that are alive. By id, since == of tensors is not about identity."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Tensor], T]] = {}

    def __bool__(self) -> bool:
        return bool(self._known)

    def __setitem__(self, tensor: Tensor, value: T) -> None:
        place = id(tensor)
        self._known[place] = weakref.ref(tensor, partial(self._forget, place)), value

    def _forget(self, place: int, dead: weakref.ref[Tensor]) -> None:
        if place in self._known and self._known[place][0] is dead:
            del self._known[place]

    def get(self, tensor: object) -> T | None:
        """The value that is kept for this very tensor, if any."""
        found, value = self._known.get(id(tensor), (None, None))
        return value if found is not None and found() is tensor else None

    def drop(self, unwanted: Callable[[T], bool]) -> None:
        """Forget some values."""
        for place in [place for place, (_, value) in self._known.items() if unwanted(value)]:
            del self._known[place]


class Origin(NamedTuple):
    """Bit n stands for the n-th attention of a capture."""

    after: int = 0  # the attentions whose output went into the tensor
    product: tuple[int, int] | None = None  # what both sides of a product come after; forgotten in a projection
    is_learned: bool = False  # whether the left side of that product is a parameter: queries of no token

    @property
    def own_keys(self) -> bool | None:
        """Keys of the same states come after all that their queries come after, and keys of a cache after more."""
        query, key = self.product or (0, 0)
        if query == key == 0:
            return None
        return query != 0 and query & ~key == 0


NOWHERE = Origin()


class Flow:
    """Where the floating-point tensors of one capture come from. A choice of tokens, which are integers, ends it."""

    def __init__(self) -> None:
        self._origins: ByIdentity[Origin] = ByIdentity()

    def find_origin(self, tensor: object) -> Origin:
        """Where a tensor comes from; NOWHERE if that was not seen."""
        return self._origins.get(tensor) or NOWHERE

    def after(self, *tensors: object) -> int:
        """The attentions that any of them comes after."""
        found = 0
        for tensor in tensors:
            found |= self.find_origin(tensor).after
        return found

    def find_heads(self, outputs: Iterable[Tensor]) -> tuple[int, ...]:
        """Return the attentions that several tensors come after one each, besides what all come after; else nothing."""
        found = [self.after(tensor) for tensor in outputs]
        common = reduce(and_, found)
        own = [after & ~common for after in found]
        alone = len({*own}) == len(own) > 1 and all(each.bit_count() == 1 for each in own)
        return tuple(each.bit_length() - 1 for each in own) if alone else ()

    def mark(self, result: object, origin: Origin) -> None:
        """Keep where the tensors of a result come from."""
        for tensor in list_tensors((result,)):
            if origin != NOWHERE and tensor.is_floating_point():
                self._origins[tensor] = origin

    def follow(self, function: Kernel, args: Sequence[Any], kwargs: Mapping[str, Any], result: object) -> None:
        """What a function gives comes from what it was given."""
        is_product = function in PRODUCTS
        if not (is_product or self._origins):
            return
        if result is None:  # x[...] = y
            result = args[0] if args else None
        elif not isinstance(result, Tensor | tuple | list):
            return
        given = [*list_tensors(args), *list_tensors(kwargs.values())]
        origins = [self.find_origin(tensor) for tensor in given]
        after = 0
        for origin in origins:
            after |= origin.after
        product, is_learned = None, False
        known = any(origin.product is not None for origin in origins)
        if (
            is_product
            and not is_weight(given[-1])
            and (known or not is_projection(function, [*args, *kwargs.values()]))
        ):
            product = origins[-2].after if len(origins) > 1 else 0, origins[-1].after if origins else 0
            is_learned = len(given) > 1 and is_weight(given[-2])
        elif function not in PROJECTIONS:
            product, is_learned = next(
                ((origin.product, origin.is_learned) for origin in origins if origin.product is not None), (None, False)
            )
        self.mark(result, Origin(after, product, is_learned))


def joins_features(function: Kernel, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Return whether tensors [… query feature] are put side by side by a function, query by query."""
    if function not in JOINING:
        return False
    first = next(list_tensors((*args, *kwargs.values())))
    if function is torch.hstack:
        return first.ndim == 2
    dim = kwargs.get("dim", kwargs.get("axis", args[1] if len(args) > 1 else 0))
    return dim in ((-1, -2, first.ndim, first.ndim - 1) if function is torch.stack else (-1, first.ndim - 1))


def list_tensors(given: Iterable[Any]) -> Iterator[Tensor]:
    """Yield the tensors among some arguments, and those in their lists."""
    for each in given:
        if isinstance(each, Tensor):
            yield each
        elif isinstance(each, tuple | list):
            yield from (one for one in each if isinstance(one, Tensor))


def is_weight(tensor: Tensor) -> bool:
    """Return whether a tensor is a parameter, or a view of one."""
    return isinstance(tensor, nn.Parameter) or isinstance(tensor._base, nn.Parameter)


def is_projection(function: Kernel, args: Sequence[Any]) -> bool:
    """Return whether a product may be states @ matrix: one by rows, where scores take keys by columns, as in q @ k.T.

    That is so of a matrix that is no parameter, such as a course writes, unless a side is a product of states itself.
    """
    if function is torch.einsum:
        terms = args[0].replace(" ", "").partition("->")[0].split(",") if isinstance(args[0], str) else []
        return len(terms) == 2 and len(terms[1]) == 2 and terms[1][0] in terms[0] and terms[1][1] not in terms[0]
    sides = [one for one in args if isinstance(one, Tensor)][-2:]
    if len(sides) < 2 or sides[1].ndim != 2:
        return False
    return sides[1].stride(1) == 1 and not (sides[0].ndim == 2 and sides[0].stride(1) != 1)
