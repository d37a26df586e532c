"""Modules at work, and which states they read. Knows no attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from attnviz.models.capture.flow import ByIdentity


@dataclass(eq=False)
class ModuleCall:
    """A module at work."""

    module: nn.Module
    number: int  # of all that were at work
    reads: tuple[int, ...] = ()  # the tensors given to it, by number
    # Of the states given to it, else to its parts, all rows together.
    n_positions: set[int] = field(default_factory=set)
    knows: bool = False  # whether those were given to itself


class StateNumbers:
    """A number for each tensor that modules read, the same as long as it is the same tensor."""

    def __init__(self) -> None:
        self._known: ByIdentity[int] = ByIdentity()
        self._n = 0

    def of(self, given: Sequence[Any]) -> tuple[int, ...]:
        """Of the tensors among the arguments by position."""
        return tuple(self._number(one) for one in given if isinstance(one, Tensor))

    def known(self, tensor: object) -> int | None:
        """The number of a tensor that some module read."""
        return self._known.get(tensor)

    def _number(self, tensor: Tensor) -> int:
        number = self._known.get(tensor)
        if number is None:
            self._n += 1
            self._known[tensor] = number = self._n
        return number
