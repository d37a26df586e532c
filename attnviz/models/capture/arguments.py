"""What stands on each side of a product: the arguments of torch's functions, whichever way they are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attnviz.models.capture.captured import Kernel
from attnviz.models.capture.flow import ADDING, MATMULS

SIDES = ("input", "other", "mat2", "tensor2", "vec")  # as functions of two tensors call them, in this order


def list_operands(args: Sequence[Any]) -> list[Any]:
    """Return the operands of torch.einsum, in either form."""
    operands = list(args[1:])
    return list(operands[0]) if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands


def list_sides(args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """Return the arguments by place, and those of `SIDES` behind them that were given by name."""
    return [*args, *(kwargs[name] for name in SIDES if name in kwargs)]


def factors(function: Kernel, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return what stands left and right in a product; nothing where it is none of weights with values."""
    if function in ADDING:
        _, left, right = list_arguments(args, kwargs, "input", "batch1", "batch2")
        return left, right
    if function in MATMULS:
        left, right = list_sides(args, kwargs)[:2]
        return left, right
    equation, operands = args[0], list_operands(args)
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


def list_arguments(args: Sequence[Any], kwargs: Mapping[str, Any], *names: str) -> list[Any]:
    """Return arguments, whether they were given by place or by name."""
    return [args[place] if place < len(args) else kwargs.get(name) for place, name in enumerate(names)]
