"""Layers that are called one by one, by a function or by a method that is no forward: outermost modules, one a layer.

They are known by what they read. The next layer is another module of the same class, and reads what the attention of
the one before it went into; a step of a loop, as in a generation, calls the same module again. Knows no paths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from torch import nn

from attnviz.models.capture.call import Call


@dataclass
class _Stack:
    """Modules of one class, in their order. The modules are kept, so that none comes in their place."""

    number: int  # of the pass that they are
    modules: list[nn.Module] = field(default_factory=list)
    first: int = 0  # which attention was the first that was seen in the last of them, or after it
    end: int = 0  # one more than that of the last one


class Stacks:
    """The passes of a capture: how many there were, and which one is open."""

    def __init__(self) -> None:
        self._by_class: dict[type[nn.Module], _Stack] = {}
        self._open: _Stack | None = None
        self._n_passes = 0

    @property
    def number(self) -> int:
        """Of the open pass, or the last one."""
        return 0 if self._open is None else self._open.number

    @property
    def place(self) -> int:
        """Which layer of its pass the open outermost module is."""
        return 0 if self._open is None else len(self._open.modules) - 1

    def enter(self, module: nn.Module, reads_after: int, n_seen: int) -> None:
        """An outermost module begins. `reads_after`: bit n is set where what it reads comes after attention n."""
        if self._open is not None:
            self._open.end = n_seen
        stack = self._by_class.get(type(module))
        before = 0 if stack is None else (1 << stack.end) - (1 << stack.first)
        is_new = stack is None or any(known is module for known in stack.modules)
        if stack is None or is_new or not reads_after & before:
            stack = self._by_class[type(module)] = _Stack(self._n_passes)
            self._n_passes += 1
        stack.modules.append(module)
        stack.first = n_seen
        self._open = stack


def number_layer(path: str, place: int) -> str:
    """Return a path within a layer as one within all layers."""
    return f"{place}.{path}".rstrip(".")


def number_first_layers(calls: Sequence[Call]) -> list[Call]:
    """Put the layer's number before the paths of first layers, which were seen before there was a second."""
    stacked = {call.number for call in calls if call.place_in_stack}
    return [
        replace(call, path=number_layer(call.path, 0), n_alike=(0, *call.n_alike))
        if call.number in stacked and not call.place_in_stack
        else call
        for call in calls
    ]
