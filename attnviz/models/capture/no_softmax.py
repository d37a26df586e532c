"""Attention without torch's softmax: by sigmoid, linear attention, and softmax or sparsemax written out.

A product of states with states, [query, key], that is multiplied with values again is such attention; so is one over
the keys, [channel, channel], that queries are multiplied with: q (kᵀ v). Where each row of the first sums to 1 they are
weights as good as any; else there are none to draw, and it is named. Follows tensors by identity, and keeps none.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from attnviz.models.capture.captured import Kernel
from attnviz.models.capture.flow import PRODUCTS, ByIdentity, is_projection, is_weight

BENDING = {"sigmoid", "relu", "exp", "elu", "gelu", "silu", "tanh", "softplus", "square", "pow", "clamp"}
BENDING |= {"softmax", "sparsemax"}
MISSED = 1e-3  # by which a row of weights may miss 1
LINEAR = "linear attention"


@dataclass(frozen=True)
class _Product:
    """A product of states with states, or what became of it."""

    shape: tuple[int, ...]  # its last two axes
    n_summed: int  # over how many numbers each of it is a sum
    through: str = ""  # the last function that is not linear


class ProductTracker:
    """The products of one capture that are alive."""

    def __init__(self) -> None:
        self._known: ByIdentity[_Product] = ByIdentity()

    def knows(self, tensor: object) -> bool:
        """Return whether a tensor is a product of states with keys, or what became of it."""
        return self._known.get(tensor) is not None

    def find_weights(self, sides: Sequence[Any]) -> Tensor | None:
        """Return which side of a product holds weights that no softmax of torch's gave: rows that sum to 1."""
        for side in sides:
            found = self._known.get(side)
            if found is None or found.through in ("", "softmax") or tuple(side.shape[-2:]) != found.shape:
                continue
            with torch.no_grad(), torch._C.DisableTorchFunction():
                if bool((side >= 0).all()) and bool(((side.sum(dim=-1) - 1).abs() <= MISSED).all()):
                    return torch.as_tensor(side)
        return None

    def look(
        self, function: Kernel, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any, n_read: Collection[int]
    ) -> str:
        """Follow what a function gave. Returns what attends in it without a softmax; "" where nothing does.

        `n_read`: how many positions the modules at work were given.
        """
        if not isinstance(result, Tensor) or not (function in PRODUCTS or self._known):
            return ""
        if function in PRODUCTS:
            return self._multiply(function, [*args, *kwargs.values()], result, n_read)
        given = [*args[:2], *kwargs.values()]
        found = next((known for one in given if (known := self._known.get(one)) is not None), None)
        if found is not None and tuple(result.shape[-2:]) == found.shape:
            name = str(getattr(function, "__name__", "")).rstrip("_")
            self._known[result] = replace(found, through=name) if name in BENDING else found
        return ""

    def _multiply(self, function: Kernel, args: Sequence[Any], result: Tensor, n_read: Collection[int]) -> str:
        sides = [one for one in args if isinstance(one, Tensor) and one.ndim >= 2][-2:]
        learned = [side for side in sides if is_weight(side)]
        if len(sides) < 2 or any(side.ndim < 3 for side in learned):  # a projection; keys by heads may be learned
            return ""
        if is_projection(function, args) and not any(map(self.knows, sides)):
            return ""
        for side, other in () if learned else (sides, sides[::-1]):
            found = self._known.get(side)
            if found is None or found.through == "softmax" or tuple(side.shape[-2:]) != found.shape:
                continue
            if (found.through or n_read) and all(_are_tokens(n, side, n_read) for n in found.shape):
                return found.through or "the product itself"
            if _are_tokens(found.n_summed, other, n_read) and not _are_tokens(found.shape[-1], other, n_read):
                return LINEAR
        self._known[result] = _Product(tuple(result.shape[-2:]), _count_summed(function, args, sides))
        return ""


def _are_tokens(n: int, of: Tensor, n_read: Collection[int]) -> bool:
    return n > 1 and (not n_read or n in n_read or len(of) * n in n_read)


def _count_summed(function: Kernel, args: Sequence[Any], sides: Sequence[Tensor]) -> int:
    if function is not torch.einsum or not isinstance(args[0], str):
        return int(sides[0].shape[-1])
    inputs, _, output = args[0].replace(" ", "").partition("->")
    sizes = {
        letter: n
        for term, side in zip(inputs.split(","), sides, strict=False)
        for letter, n in zip(term, side.shape, strict=False)
    }
    return math.prod(n for letter, n in sizes.items() if letter not in output)
