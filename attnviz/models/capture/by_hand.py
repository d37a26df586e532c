"""Attention written by hand: a softmax that is later multiplied with a value. Follows tensors by identity.

Nothing here keeps a tensor alive: what is remembered of a softmax are its shape and, until its product, which keys its
scores let through.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from attnviz.models.capture.arguments import factors, list_arguments, list_operands, list_sides
from attnviz.models.capture.axes import batch_and_heads, split_heads
from attnviz.models.capture.captured import CapturedAttention, Kernel, find_allowed, refuse_dropout
from attnviz.models.capture.flow import PRODUCTS, ByIdentity
from attnviz.models.capture.pooled import EXPONENTIALS, MULTIPLYING, SUMS, TRANSPOSES, Pool, PoolTracker
from attnviz.models.capture.softmax import (
    Softmax,
    head_first,
    note_shape,
    note_slice,
    query_first,
    read_product,
    reshape_softmax,
)

SOFTMAXES: set[Kernel] = {functional.softmax, torch.softmax, Tensor.softmax, torch.special.softmax}
DROPOUTS: set[Kernel] = {functional.dropout, torch.dropout}
SLICES: set[Kernel] = {Tensor.__getitem__, Tensor.narrow, torch.narrow}
COPIES: set[Kernel] = {  # of them the first argument is followed
    *DROPOUTS,
    *(Tensor.to, Tensor.type, Tensor.type_as, Tensor.float, Tensor.double, Tensor.half, Tensor.bfloat16),
    *(Tensor.cpu, Tensor.cuda, Tensor.contiguous, Tensor.clone, torch.clone, Tensor.detach, torch.detach),
    *(Tensor.view, Tensor.view_as, Tensor.reshape, torch.reshape, Tensor.flatten, torch.flatten),
    *(Tensor.unflatten, torch.unflatten, Tensor.squeeze, torch.squeeze, Tensor.unsqueeze, torch.unsqueeze),
    *(Tensor.masked_fill, torch.masked_fill, Tensor.nan_to_num, torch.nan_to_num),
    *SLICES,
}
UNCLEAR_AXES = "its heads share their values, and which axis is theirs and which that of the queries cannot be told"
WATCHED = SOFTMAXES | COPIES | PRODUCTS | TRANSPOSES | EXPONENTIALS | MULTIPLYING | SUMS


class TorchCall(NamedTuple):
    """A function of torch that is called, and with what."""

    function: Kernel
    args: Sequence[Any]
    kwargs: Mapping[str, Any]

    def result(self) -> Any:
        """Let torch do it."""
        return self.function(*self.args, **self.kwargs)


class SoftmaxTracker:
    """The softmaxes of one capture that are alive and not multiplied yet.

    `named`: how many positions the texts have that the caller gave names for.
    """

    def __init__(self, named: Collection[int] = (), *, pools: bool = True) -> None:
        self._known: ByIdentity[Softmax] = ByIdentity()
        self._pools, self._follows_pools = PoolTracker(named), pools
        self._families = 0
        self.n_softmaxes = 0
        self.unclear: list[str] = []  # where products were whose heads could not be told from their batch
        self._traces: ByIdentity[int] = ByIdentity()  # the families of softmaxes over tokens, also in other axes
        self._places: dict[int, str] = {}
        self._expected: dict[int, str] = {}  # the places of families over products of states, until they are multiplied
        self.changed: dict[int, str] = {}  # of families that went through another function: what was in which

    def look(
        self,
        call: TorchCall,
        n_positions: Sequence[int],
        n_read: Collection[int],
        what: Callable[[], str],
        is_product: bool = False,
    ) -> tuple[Any, CapturedAttention | None]:
        """The call's own result, and the weights where it multiplies some.

        `n_positions`: how many positions, of all rows of a batch, each input of the module has; `n_read`: those of each
        input of any module at work; `what` names the attention in an error; `is_product`: of the scores of a softmax,
        whether they are one of states with states.

        Raises InvalidRecord where dropout is at work.
        """
        if call.function in SOFTMAXES:
            self.n_softmaxes += 1
            return self._softmax(call, n_read, what, is_product), None
        if not (self._known or self._pools or (self._follows_pools and call.function in EXPONENTIALS)):
            return call.result(), None
        if call.function in COPIES or call.function in TRANSPOSES:
            return self._copy(call), None
        sides = list_sides(call.args, call.kwargs)
        if call.function in MULTIPLYING or call.function in EXPONENTIALS:
            result = call.result()
            self.note_use(call.function, sides, result)
            if call.function in MULTIPLYING:
                self._pools.note_weighted(sides, result)
            elif self._follows_pools and isinstance(result, Tensor):
                self._families += 1
                pool = Pool(frozenset({self._families}), tuple(result.shape), is_product)
                self._pools.note_exponentials(pool, result)
            return result, None
        if call.function in SUMS:
            pooled = self._pools.read_sum(call.args, call.kwargs, n_read)
        else:
            if (seen := self._read_product(call, n_positions, what)) is not None:
                return call.result(), seen
            pooled = self._pools.read_product(call.function, sides, n_read)
        if pooled is None:
            return call.result(), None
        for family in pooled[1].families:
            self._end(family)
        refuse_dropout(pooled[1].dropped, what())
        return call.result(), pooled[0]

    def _softmax(self, call: TorchCall, n_read: Collection[int], what: Callable[[], str], is_product: bool) -> Any:
        scores, dim = list_arguments(call.args, call.kwargs, "input", "dim")
        if dim is None and isinstance(scores, Tensor):
            dim = 0 if scores.ndim in (0, 1, 3) else 1  # as torch takes it, with a warning
        passing = _find_passing(scores, dim)  # before the softmax, which may overwrite its scores
        result = call.result()
        if isinstance(scores, Tensor) and isinstance(result, Tensor) and result.numel():
            if scores.ndim >= 3 and dim in (-1, scores.ndim - 1):
                self._follow(result, passing, n_read, what)
            self._note_pool(scores, result, dim, is_product, passing is not None)
        return result

    def _note_pool(self, scores: Tensor, result: Tensor, dim: object, is_product: bool, is_masked: bool) -> None:
        """Follow a softmax whose axes its product will tell."""
        if self._follows_pools:
            softmax = self._known.get(result)
            self._families += softmax is None
            family = self._families if softmax is None else softmax.family
            pool = Pool(frozenset({family}), tuple(result.shape), is_product, is_masked)
            self._pools.note_softmax(pool, scores, result, dim)

    def knows(self, tensor: object) -> bool:
        """Return whether a tensor is followed as weights, or as states times weights."""
        return self._known.get(tensor) is not None or self._pools.knows(tensor)

    def expect(self, result: object, what: str) -> None:
        """Remember where a softmax over a product of states with states ran, until values are multiplied with it."""
        softmax = self._known.get(result)
        families = self._pools.find_families(result) if softmax is None else {softmax.family}
        if isinstance(result, Tensor) and result.ndim >= 3:  # one on two axes may be of pairs of texts and images
            self._expected |= dict.fromkeys(families, what)

    def find_unused(self, read: Collection[str]) -> list[str]:
        """Where softmaxes over products of states ran that no values were multiplied with as they were.

        Besides places whose attention was read: many a module works its weights out again, to show them.
        """
        return [what for family, what in self._expected.items() if family not in self.changed and what not in read]

    def adopt(self, weights: Tensor, n_read: Collection[int], what: Callable[[], str]) -> None:
        """Follow weights that no softmax of torch's gave, such as exp(scores) over their sum, as if one had."""
        if weights.ndim < 3:
            self._note_pool(weights, weights, -1, True, True)
            return
        with torch.no_grad(), torch._C.DisableTorchFunction():
            passing = weights > 0
            self._follow(weights, None if bool(passing.all()) else passing, n_read, what)

    def _follow(
        self, result: Tensor, attendable: Tensor | None, n_read: Collection[int], what: Callable[[], str]
    ) -> None:
        self._families += 1
        self._known[result] = Softmax(self._families, tuple(result.shape), attendable)
        n_keys = result.shape[-1]  # tokens; other softmaxes are over words of a vocabulary, classes or experts
        if len(result) * n_keys in n_read or (result.ndim == 3 and result.shape[-2] == n_keys):
            self._traces[result], self._places[self._families] = self._families, what()

    def note_use(self, function: Kernel, args: Sequence[Any], result: Any) -> None:
        """Remember of a softmax over tokens what it went through; a product with values takes that back."""
        if not (self._traces or self._pools) or not isinstance(result, Tensor) or not result.is_floating_point():
            return
        self._pools.note_change(args, result)
        for given in args[:2]:
            family = self._traces.get(given)
            if family is not None and family not in self.changed:
                self.changed[family] = f"{self._places[family]} ({getattr(function, '__name__', 'another function')})"

    def _copy(self, call: TorchCall) -> Any:
        (source,) = list_arguments(call.args, call.kwargs, "input")
        softmax = self._known.get(source)
        result = call.result()
        if (family := self._traces.get(source)) is not None and isinstance(result, Tensor):
            self._traces[result] = family
        if self._pools and (call.function not in SLICES or source.numel() == result.numel()):
            dropped = _find_dropout(*call.args, **call.kwargs) if call.function in DROPOUTS else 0.0
            self._pools.note_copy(source, result, dropped)
        if softmax is None or not isinstance(result, Tensor):
            return result
        if call.function in TRANSPOSES and (result.shape, result.stride()) != (source.shape, source.stride()):
            return result
        if call.function in DROPOUTS:
            softmax = replace(softmax, dropped=max(softmax.dropped, _find_dropout(*call.args, **call.kwargs)))
        with torch.no_grad(), torch._C.DisableTorchFunction():
            copied = note_slice(softmax, source, result) if call.function in SLICES else note_shape(softmax, result)
        if copied is not None:
            self._known[result] = copied
        return result

    def _end(self, family: int) -> None:
        """Forget a softmax that was multiplied, and its copies."""
        self.changed.pop(family, None)
        self._expected.pop(family, None)
        self._traces.drop(lambda other: other == family)
        self._known.drop(lambda other: other.family == family)
        self._pools.drop(family)

    def _read_product(
        self, call: TorchCall, n_positions: Sequence[int], what: Callable[[], str]
    ) -> CapturedAttention | None:
        weights, value = factors(*call)
        softmax = self._known.get(weights)
        if softmax is None or not isinstance(value, Tensor) or value.ndim < 3:
            return None
        assert isinstance(weights, Tensor)
        if weights.shape[-2:] != softmax.shape[-2:] or weights.numel() != math.prod(softmax.shape):
            return None
        self._end(softmax.family)
        if softmax.dropped:
            refuse_dropout(softmax.dropped, what())
        if len(softmax.shape) == 3:
            shape = split_heads(softmax.shape, n_positions)
            if shape is None:
                self.unclear.append(what())
                return None
            softmax = reshape_softmax(softmax, shape)
        with torch.no_grad(), torch._C.DisableTorchFunction():
            if len(softmax.shape) > 4 and (axes := batch_and_heads(softmax.shape, n_positions)) is not None:
                softmax = reshape_softmax(softmax, (*axes, *softmax.shape[-2:]))
            if weights.ndim == 4 and softmax.shape[1] > 1 and _share_values(call, weights, value):
                return _read_shared_values(softmax, weights.detach(), n_positions)
            return read_product(softmax, weights.detach())


def _find_passing(scores: object, dim: object) -> Tensor | None:
    """Return which scores let attention through, keys last; None where all do, or nothing can be said."""
    if not (isinstance(scores, Tensor) and scores.is_floating_point() and scores.numel() and isinstance(dim, int)):
        return None
    if not -scores.ndim <= dim < scores.ndim:
        return None
    with torch.no_grad(), torch._C.DisableTorchFunction():
        passing = find_allowed(scores.movedim(dim, -1))
        return None if bool(passing.all()) else passing


def _read_shared_values(softmax: Softmax, weights: Tensor, n_positions: Sequence[int]) -> CapturedAttention:
    """Of heads that share their values: the product does not tell which axis is theirs and which that of queries."""
    first = query_first(softmax, n_positions)
    if first:
        return read_product(head_first(softmax), weights.reshape(softmax.shape).transpose(1, 2))
    seen = read_product(softmax, weights)
    return replace(seen, guess=UNCLEAR_AXES) if first is None else seen


def _share_values(call: TorchCall, weights: Tensor, value: Tensor) -> bool:
    """Whether a product has the same values along the axis before the last two of its weights."""
    if call.function is not torch.einsum:
        return bool(value.shape[-3] == 1)
    first, second = str(call.args[0]).replace(" ", "").partition("->")[0].split(",")
    term, other = (first, second) if list_operands(call.args)[0] is weights else (second, first)
    return "." not in term and term[-3] not in other


def _find_dropout(
    input: Tensor, p: float | int = 0.5, training: bool = True, inplace: bool = False, **names: Any
) -> float:
    """The share of a tensor that dropout takes, whichever of torch's two it is."""
    return p if names.get("train", training) else 0.0
