"""The functions of torch that multiply weights with values, for passes that change what they give.

A pass that is seen from inside works on functions, in which gradients flow; `capture` sees operators below these.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from attnviz.models.capture.captured import Kernel, refuse_dropout

SOFTMAXES: set[Kernel] = {functional.softmax, torch.softmax, Tensor.softmax, torch.special.softmax}
MATMULS: set[Kernel] = {
    *(torch.matmul, Tensor.matmul, Tensor.__matmul__, Tensor.__rmatmul__, torch.bmm, Tensor.bmm),
    *(torch.mm, Tensor.mm, torch.mv, Tensor.mv),
}
ADDING: set[Kernel] = {torch.baddbmm, Tensor.baddbmm}
PRODUCTS: set[Kernel] = {*MATMULS, *ADDING, torch.einsum}
DROPOUTS: set[Kernel] = {functional.dropout, torch.dropout}
COPIES: set[Kernel] = {  # of them the first argument is followed
    *DROPOUTS,
    *(Tensor.to, Tensor.type, Tensor.type_as, Tensor.float, Tensor.double, Tensor.half, Tensor.bfloat16),
    *(Tensor.cpu, Tensor.cuda, Tensor.contiguous, Tensor.clone, torch.clone, Tensor.detach, torch.detach),
    *(Tensor.view, Tensor.view_as, Tensor.reshape, torch.reshape, Tensor.flatten, torch.flatten),
    *(Tensor.masked_fill, torch.masked_fill, Tensor.nan_to_num, torch.nan_to_num, Tensor.__getitem__),
}
SIDES = ("input", "other", "mat2", "tensor2", "vec")  # as functions of two tensors call them, in this order


def factors(function: Kernel, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return what stands left and right in a product; nothing where it is none of weights with values."""
    sides = [*args, *(kwargs[name] for name in SIDES if name in kwargs)]
    if function in ADDING:
        names = ("input", "batch1", "batch2")
        _, left, right = (args[at] if at < len(args) else kwargs.get(name) for at, name in enumerate(names))
        return left, right
    if function in MATMULS:
        return sides[0], sides[1]
    equation, operands = args[0], list(args[1:])
    operands = list(operands[0]) if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands
    if not isinstance(equation, str) or len(operands) != 2:
        return None, None
    terms, _, output = equation.replace(" ", "").partition("->")
    first, _, second = terms.partition(",")
    for (term, other), (left, right) in zip(
        ((first, second), (second, first)), (operands, operands[::-1]), strict=True
    ):
        query, key = term[-2:-1], term[-1:]
        if key in other and key not in output and query in output and query not in other:
            return left, right
    return None, None


class WrittenOut:
    """The softmaxes of a pass that code multiplies itself. Follows tensors by identity, and keeps none."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Tensor], torch.Size]] = {}

    def look(self, function: Kernel, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Tensor | None:
        """Look at what a function gave. Returns the weights [batch head query key] that it multiplied with values."""
        if function in SOFTMAXES:
            if isinstance(result, Tensor) and result.ndim >= 3:
                self._note(result, result.shape)
        elif function in COPIES and args and (shape := self._shape(args[0])) is not None:
            if isinstance(result, Tensor) and result.shape[-1] <= shape[-1]:
                if function in DROPOUTS and not torch.equal(result, args[0]):
                    refuse_dropout(float(kwargs.get("p", args[1] if len(args) > 1 else 0.5)), "an attention")
                self._note(result, result.shape if result.ndim > 3 else shape)
        elif function in PRODUCTS:
            weights, value = factors(function, args, kwargs)
            shape = self._shape(weights)
            if shape is not None and isinstance(value, Tensor) and value.ndim > 2:
                found: Tensor = weights.detach().reshape(*shape[:-1], weights.shape[-1])
                return found if found.ndim == 4 else found[None]
        return None

    def _note(self, tensor: Tensor, shape: torch.Size) -> None:
        self._known[id(tensor)] = weakref.ref(tensor), shape

    def _shape(self, tensor: Any) -> torch.Size | None:
        found, shape = self._known.get(id(tensor), (None, None))
        return shape if found is not None and found() is tensor else None
