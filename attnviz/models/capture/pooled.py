"""Attention without an axis for heads: a softmax on one or two axes, or along another than the last, times states.

So courses write the formula, softmax(q kᵀ / √d) v of one text, and so a recurrent network's states are pooled: one
weight a word, times the states, summed. No axis says which is the keys': the product does, by what it sums over, and
the numbers, which add up to 1 along it. Follows tensors by identity, and keeps none alive but within one product.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnviz.models.capture.captured import CapturedAttention, Kernel
from attnviz.models.capture.flow import MATMULS, ByIdentity

TRANSPOSES: set[Kernel] = {
    *(Tensor.transpose, torch.transpose, Tensor.permute, torch.permute, Tensor.t, torch.t),
    *(Tensor.swapaxes, torch.swapaxes, Tensor.movedim, torch.movedim, Tensor.expand, Tensor.expand_as),
    *(Tensor.T.__get__, Tensor.mT.__get__),  # type: ignore[attr-defined]  # properties of a class in C
}
MULTIPLYING: set[Kernel] = {torch.mul, torch.multiply, Tensor.mul, Tensor.multiply, Tensor.__mul__, Tensor.__rmul__}
SUMS: set[Kernel] = {torch.sum, Tensor.sum}
MAX_AXES = 3  # of a softmax along another axis than the last: one of more is over channels, heads or windows
MISSED = 1e-2  # by which weights of half precision may miss 1


@dataclass(frozen=True)
class _Pool:
    """A softmax and its copies."""

    family: int
    dropped: float = 0.0


@dataclass(frozen=True, eq=False)
class _Weighted:
    """States times weights, which are summed next: the weights with the axes of the product."""

    pool: _Pool
    weights: Float[Tensor, "*axes"]
    states: Sequence[int]  # their shape with the axes of the product


class PoolTracker:
    """The softmaxes of this kind that are alive and not multiplied yet."""

    def __init__(self) -> None:
        self._known: ByIdentity[_Pool] = ByIdentity()
        self._weighted: ByIdentity[_Weighted] = ByIdentity()
        self._n_families = 0

    def __bool__(self) -> bool:
        return bool(self._known) or bool(self._weighted)

    def note_softmax(self, result: Tensor, dim: object) -> None:
        """Begin to follow a softmax, where it is of this kind."""
        is_last = dim in (-1, result.ndim - 1)
        if isinstance(dim, int) and result.ndim <= (2 if is_last else MAX_AXES) and result.shape[dim] > 1:
            self._n_families += 1
            self._known[result] = _Pool(self._n_families)

    def note_copy(self, source: object, result: object, dropped: float) -> None:
        """Follow the same numbers in other axes."""
        pool = self._known.get(source)
        if pool is not None and isinstance(result, Tensor):
            self._known[result] = replace(pool, dropped=max(pool.dropped, dropped))

    def note_weighted(self, args: Sequence[Any], result: object) -> None:
        """Follow states that were multiplied by weights, one by one, until they are summed."""
        tensors = [one for one in args[:2] if isinstance(one, Tensor)]
        pools = [self._known.get(one) for one in tensors]
        if len(tensors) < 2 or not isinstance(result, Tensor) or (pools[0] is None) == (pools[1] is None):
            return
        place = 0 if pools[0] is not None else 1
        pool, weights, states = pools[place], tensors[place], tensors[1 - place]
        if pool is None or isinstance(states, nn.Parameter):
            return
        weights = weights[tuple(slice(1 if stride == 0 else None) for stride in weights.stride())]  # once, if expanded
        axes = (1,) * (result.ndim - weights.ndim) + tuple(weights.shape)
        of_states = (1,) * (result.ndim - states.ndim) + tuple(states.shape)
        self._weighted[result] = _Weighted(pool, weights.detach().reshape(axes), of_states)

    def read_sum(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], n_positions: Collection[int]
    ) -> tuple[CapturedAttention, float] | None:
        """Return the weights of states that are summed over words, and the share that was dropped."""
        weighted = self._weighted.get(args[0] if args else kwargs.get("input"))
        dim = next((kwargs[name] for name in ("dim", "axis") if name in kwargs), args[1] if len(args) > 1 else None)
        dim = dim[0] if isinstance(dim, list | tuple) and len(dim) == 1 else dim
        if weighted is None or not isinstance(dim, int):
            return None
        weights, keys = weighted.weights, dim % weighted.weights.ndim
        queries = [axis for axis in range(weights.ndim) if axis != keys and weighted.states[axis] == 1]
        batch = [axis for axis in range(weights.ndim) if axis != keys and axis not in queries]
        return self._read(weighted.pool, weights, batch, queries, keys, n_positions)

    def read_product(
        self, function: Kernel, args: Sequence[Any], n_positions: Collection[int]
    ) -> tuple[CapturedAttention, float] | None:
        """Return the weights that a product of matrices sums states with, and the share that was dropped."""
        if function is torch.einsum:
            return self._read_einsum(args, n_positions)
        if function not in MATMULS or len(args) < 2:
            return None
        for place in (0, 1):
            pool, weights, states = self._known.get(args[place]), args[place], args[1 - place]
            if pool is None or not isinstance(states, Tensor) or isinstance(states, nn.Parameter) or states.ndim < 2:
                continue
            keys = weights.ndim - 1 if place == 0 or weights.ndim == 1 else weights.ndim - 2
            batch = list(range(weights.ndim - 2)) if states.ndim > 2 else []
            queries = [axis for axis in range(weights.ndim) if axis != keys and axis not in batch]
            return self._read(pool, weights.detach(), batch, queries, keys, n_positions)
        return None

    def _read_einsum(self, args: Sequence[Any], n_positions: Collection[int]) -> tuple[CapturedAttention, float] | None:
        operands = list(args[1:])
        operands = list(operands[0]) if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands
        if not isinstance(args[0], str) or len(operands) != 2 or "." in args[0]:
            return None
        inputs, _, output = args[0].replace(" ", "").partition("->")
        terms = inputs.split(",")
        for place in (0, 1):
            pool, term, other = self._known.get(operands[place]), terms[place], terms[1 - place]
            if pool is None or isinstance(operands[1 - place], nn.Parameter):
                continue
            summed = [letter for letter in term if letter in other and letter not in output]
            if len(summed) != 1:
                return None
            keys = term.index(summed[0])
            batch = [axis for axis, letter in enumerate(term) if letter in other and letter in output]
            queries = [axis for axis, letter in enumerate(term) if letter not in other]
            return self._read(pool, operands[place].detach(), batch, queries, keys, n_positions)
        return None

    def _read(
        self,
        pool: _Pool,
        weights: Float[Tensor, "*axes"],
        batch: Sequence[int],
        queries: Sequence[int],
        keys: int,
        n_positions: Collection[int],
    ) -> tuple[CapturedAttention, float] | None:
        """Return [text, 1, query, key]; None where these are no weights over words.

        Gates over experts and soft choices of a class are softmaxes, too: words are what some module reads.
        """
        n_keys, n_texts = weights.shape[keys], math.prod(weights.shape[axis] for axis in batch)
        if n_positions and n_texts * n_keys not in n_positions:
            return None
        with torch.no_grad(), torch._C.DisableTorchFunction():
            ordered = weights.permute(*batch, *queries, keys).to(torch.float32, copy=True)
            ordered = ordered.reshape(n_texts, 1, -1, n_keys)
            if not bool(((ordered.sum(dim=-1) - 1).abs() <= MISSED).all()) and not pool.dropped:
                return None
            attendable = ordered[:, 0] > 0
        self._known.drop(lambda other: other.family == pool.family)
        return CapturedAttention(ordered, attendable, None, "multiplied", 0.0, is_pooled=True), pool.dropped
