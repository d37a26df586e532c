"""Attention whose axes only its product tells: a softmax on few axes, along any, transposed, or written out with exp.

So courses write the formula, softmax(q kᵀ / √d) v of one text, and so a recurrent network's states are pooled: one
weight a word, times the states, summed. The product says which axis is the keys', by what it sums over, and the
numbers do, which add up to 1 along it. Follows tensors by identity, and keeps none alive but within one product.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from attnviz.models.capture.arguments import list_operands
from attnviz.models.capture.captured import CapturedAttention, Kernel, renormalise
from attnviz.models.capture.flow import MATMULS, ByIdentity, is_weight

TRANSPOSES: set[Kernel] = {
    *(Tensor.transpose, torch.transpose, Tensor.permute, torch.permute, Tensor.t, torch.t),
    *(Tensor.swapaxes, torch.swapaxes, Tensor.movedim, torch.movedim, Tensor.expand, Tensor.expand_as),
    *(Tensor.T.__get__, Tensor.mT.__get__),  # type: ignore[attr-defined]  # properties of a class in C
}
MULTIPLYING: set[Kernel] = {
    *(torch.mul, torch.multiply, Tensor.mul, Tensor.multiply, Tensor.mul_),
    *(Tensor.__mul__, Tensor.__rmul__, Tensor.__imul__),
}
EXPONENTIALS: set[Kernel] = {torch.exp, Tensor.exp, Tensor.exp_}
SUMS: set[Kernel] = {torch.sum, Tensor.sum}
MAX_AXES = 3  # of a softmax that is no product of states: one of more may be over channels, heads or windows
MISSED = 1e-2  # by which weights of half precision may miss 1


@dataclass(frozen=True)
class Pool:
    """A softmax and its copies, or exponentials and what became of them: whether they sum to 1 is seen at the end."""

    families: frozenset[int]  # of the softmaxes that it comes of
    shape: tuple[int, ...]  # as it came
    is_product: bool  # whether its scores are a product of states with states
    is_masked: bool = True  # whether it gives no weight to some; else a weight of 0 is one that is too small
    may_have_heads: bool = True  # not so over what a projection gave, which may be a gate: of each token over experts
    dropped: float = 0.0


@dataclass(frozen=True, eq=False)
class _Weighted:
    """States times weights, which are summed next: the weights with the axes of the product."""

    pool: Pool
    weights: Float[Tensor, "*axes"]
    states: Sequence[int]  # their shape with the axes of the product


class PoolTracker:
    """The softmaxes of this kind that are alive and not multiplied yet.

    `named`: how many positions the texts have that the caller gave names for.
    """

    def __init__(self, named: Collection[int] = ()) -> None:
        self._known: ByIdentity[Pool] = ByIdentity()
        self._weighted: ByIdentity[_Weighted] = ByIdentity()
        self._named = named

    def __bool__(self) -> bool:
        return bool(self._known) or bool(self._weighted)

    def knows(self, tensor: object) -> bool:
        """Return whether a tensor is followed as weights, or as states times weights."""
        return self._known.get(tensor) is not None or self._weighted.get(tensor) is not None

    def find_families(self, tensor: object) -> frozenset[int]:
        """Return the softmaxes that a tensor comes of, of those that are followed."""
        pool = self._known.get(tensor)
        return frozenset() if pool is None else pool.families

    def drop(self, family: int) -> None:
        """Forget what was multiplied."""
        self._known.drop(lambda other: family in other.families)

    def note_softmax(self, pool: Pool, scores: Tensor, result: Tensor, dim: object) -> None:
        """Begin to follow a softmax, where it may be of this kind: one of parameters alone is the same for any text."""
        if not isinstance(dim, int) or not result.ndim or (scores.ndim == 1 and is_weight(scores)):
            return
        if pool.is_product or result.ndim <= MAX_AXES:
            is_gate = dim % result.ndim == result.ndim - 1 and scores.stride(dim) == 1
            self._known[result] = replace(pool, may_have_heads=pool.is_product or not is_gate)

    def note_exponentials(self, pool: Pool, result: Tensor) -> None:
        """Begin to follow what may be divided by its sum: a softmax that is written out."""
        if result.ndim and (pool.is_product or result.ndim <= MAX_AXES):
            self._known[result] = pool

    def note_copy(self, source: object, result: object, dropped: float) -> None:
        """Follow the same numbers in other axes."""
        pool = self._known.get(source)
        if pool is not None and isinstance(result, Tensor):
            self._known[result] = replace(pool, dropped=max(pool.dropped, dropped))

    def note_change(self, args: Sequence[Any], result: Tensor) -> None:
        """Follow what weights became, masked or divided by their sum, say: the numbers tell whether it is weights."""
        known = [self._known.get(one) for one in args[:3] if isinstance(one, Tensor) and one.shape == result.shape]
        pools = [pool for pool in known if pool is not None]
        if pools:
            families = frozenset[int]().union(*(pool.families for pool in pools))
            self._known[result] = replace(pools[0], families=families, is_masked=True)

    def note_weighted(self, args: Sequence[Any], result: object) -> None:
        """Follow states that were multiplied by weights, one by one, until they are summed."""
        tensors = [one for one in args[:2] if isinstance(one, Tensor)]
        known = [(place, pool) for place, one in enumerate(tensors) if (pool := self._known.get(one)) is not None]
        if len(tensors) < 2 or len(known) != 1 or not isinstance(result, Tensor):
            return
        place, pool = known[0]
        weights, states = tensors[place], tensors[1 - place]
        weights = weights[tuple(slice(1 if stride == 0 else None) for stride in weights.stride())]  # once, if expanded
        if result.numel() == weights.numel() or is_weight(states):
            return
        axes = (1,) * (result.ndim - weights.ndim) + tuple(weights.shape)
        of_states = (1,) * (result.ndim - states.ndim) + tuple(states.shape)
        self._weighted[result] = _Weighted(pool, weights.detach().reshape(axes), of_states)

    def read_sum(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], n_positions: Collection[int]
    ) -> tuple[CapturedAttention, Pool] | None:
        """Return the weights of states that are summed over words, and what they come of."""
        weighted = self._weighted.get(args[0] if args else kwargs.get("input"))
        dim = next((kwargs[name] for name in ("dim", "axis") if name in kwargs), args[1] if len(args) > 1 else None)
        dims = [dim] if isinstance(dim, int) else dim
        if weighted is None or not isinstance(dims, list | tuple):
            return None
        weights = weighted.weights
        keys = [each % weights.ndim for each in dims]
        many = [(n > 1, n_states > 1) for n, n_states in zip(weights.shape, weighted.states, strict=True)]
        batch = [axis for axis, (one, other) in enumerate(many) if axis not in keys and one == other]
        queries = [axis for axis, (one, other) in enumerate(many) if axis not in keys and one != other]  # and features
        return self._read(weighted.pool, weights, batch, queries, keys, n_positions)

    def read_product(
        self, function: Kernel, args: Sequence[Any], n_positions: Collection[int]
    ) -> tuple[CapturedAttention, Pool] | None:
        """Return the weights that a product of matrices sums states with, and what they come of."""
        if function is torch.einsum:
            return self._read_einsum(args, n_positions)
        if function not in MATMULS or len(args) < 2:
            return None
        for place in (0, 1):
            pool, weights, states = self._known.get(args[place]), args[place], args[1 - place]
            if pool is None or not isinstance(states, Tensor) or not _are_states(states, weights):
                continue
            keys = weights.ndim - 1 if place == 0 or weights.ndim == 1 else weights.ndim - 2
            batch = list(range(weights.ndim - 2)) if states.ndim > 2 else []
            queries = [axis for axis in range(weights.ndim) if axis != keys and axis not in batch]
            return self._read(pool, weights.detach(), batch, queries, [keys], n_positions)
        return None

    def _read_einsum(self, args: Sequence[Any], n_positions: Collection[int]) -> tuple[CapturedAttention, Pool] | None:
        operands = list_operands(args)
        if not isinstance(args[0], str):
            return None
        inputs, _, output = args[0].replace(" ", "").partition("->")
        terms = [_name_axes(term, one) for term, one in zip(inputs.split(","), operands, strict=True)]
        output = _name_axes(output, *operands)
        for place, (weights, term) in enumerate(zip(operands, terms, strict=True)):
            pool, other = self._known.get(weights), "".join(terms[:place] + terms[place + 1 :])
            if pool is None or not any(_are_states(one, weights) for one in operands if one is not weights):
                continue
            keys = [axis for axis, letter in enumerate(term) if letter in other and letter not in output]
            batch = [axis for axis, letter in enumerate(term) if letter in other and letter in output]
            queries = [axis for axis, letter in enumerate(term) if letter not in other]
            return self._read(pool, weights.detach(), batch, queries, keys, n_positions)
        return None

    def _read(
        self,
        pool: Pool,
        weights: Float[Tensor, "*axes"],
        batch: Sequence[int],
        queries: Sequence[int],
        keys: Sequence[int],
        n_positions: Collection[int],
    ) -> tuple[CapturedAttention, Pool] | None:
        """Return [text, head, query, key]; None where these are no weights over words."""
        n_keys, leading = math.prod(weights.shape[axis] for axis in keys), [weights.shape[axis] for axis in batch]
        n_texts = self._count_texts(pool, leading, n_keys, n_positions)
        if n_texts is None or not keys:
            return None
        with torch.no_grad(), torch._C.DisableTorchFunction():
            ordered = weights.permute(*batch, *queries, *keys).to(torch.float32, copy=True)
            ordered = ordered.reshape(n_texts, math.prod(leading) // n_texts, -1, n_keys)
            if not bool(((ordered.sum(dim=-1) - 1).abs() <= MISSED).all()) and not pool.dropped:
                return None
            attendable = (ordered > 0).any(dim=1) | (not pool.is_masked)
            ordered, _, error = renormalise(ordered, None, weights.dtype)
        is_pooled = not pool.is_product or len(pool.shape) < MAX_AXES or ordered.shape[2] == 1
        return CapturedAttention(ordered, attendable, None, "multiplied", error, is_pooled=is_pooled), pool

    def _count_texts(self, pool: Pool, leading: Sequence[int], n_keys: int, n_positions: Collection[int]) -> int | None:
        """Return how many texts the axes of a batch hold, besides heads; None where keys are no words.

        Gates over experts and soft choices of a class are softmaxes, too: words are what some module reads.
        """
        possible = [math.prod(leading[:place]) for place in range(len(leading), -1, -1)]
        if not pool.may_have_heads:
            possible = possible[:1] if len(pool.shape) < MAX_AXES or possible[0] == pool.shape[0] else []
        elif len(leading) > 1:
            possible = possible[1:]  # the last axis is that of heads
        fitting = [n for n in possible if n * n_keys in (n_positions or self._named)]
        return next(iter(fitting or (possible if pool.is_product or not n_positions else ())), None)


def _are_states(states: Tensor, weights: Tensor) -> bool:
    """Whether weights may be of these: not of parameters, nor of one table of words or classes for a whole batch."""
    return not is_weight(states) and states.ndim >= min(weights.ndim, 3) and states.ndim >= 2


def _name_axes(term: str, *operands: Tensor) -> str:
    """Give the axes that dots stand for letters of their own."""
    n_axes = max(one.ndim for one in operands) - len(term.replace("...", ""))
    return term.replace("...", "".join(chr(ord("Ω") - n) for n in range(n_axes, 0, -1)))
