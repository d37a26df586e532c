"""The modules at work while a capture is open: where each attention stands among them, and what they were given."""

from __future__ import annotations

import math
from collections.abc import Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import torch
from torch import Tensor, nn

from attnviz.errors import InvalidRecord
from attnviz.models.capture.flow import ByIdentity, Flow, Origin
from attnviz.models.capture.operators import look_below_functions
from attnviz.models.capture.paths import COMPILED, NUMBER, Paths
from attnviz.models.capture.stack import Stacks, number_layer
from attnviz.models.capture.unread import WHAT, Unread


@dataclass(eq=False)
class ModuleCall:
    """A module at work."""

    module: nn.Module
    number: int  # of all that were at work
    reads: tuple[int, ...] = ()  # the tensors given to it, by number
    # Of the states given to it, else to its parts, all rows together.
    n_positions: set[int] = field(default_factory=set)
    n_read: set[int] = field(default_factory=set)  # of everything that it or its parts were given
    n_rows: int = 0  # of the first tensor that it was given, where that has texts on its first axis
    knows: bool = False  # whether those were given to itself
    below: AbstractContextManager[Any] | None = None  # at work while a scripted module is
    n_before: int = 0  # attentions that were seen before it
    path: str = ""  # of a scripted one


class ModulesAtWork:
    """Those that began and have not ended, the outermost first, and how many attentions were seen in all.

    `named`: how many positions the texts have that the caller gave names for.
    """

    def __init__(self, flow: Flow, unread: Unread, named: Collection[int] = ()) -> None:
        self._flow, self._unread, self._named = flow, unread, set(named)
        self._calls: list[ModuleCall] = []
        self._states: ByIdentity[int] = ByIdentity()  # the numbers of tensors that modules read
        self._state_numbers = count(1)
        self._paths: Paths | None = None
        self._n_runs = 0
        self.stacks = Stacks()
        self.n_seen = 0  # attentions, also of layers that nobody asked for

    def enter(self, module: nn.Module, given: tuple[Any, ...]) -> None:
        """A module begins. Raises InvalidRecord for nested tensors that nobody can read the attention of."""
        states = next((one for one in given if isinstance(one, Tensor)), None)
        if not self._calls:
            self.stacks.enter(module, self._flow.after(states), self.n_seen)
        self._n_runs += 1
        reads = tuple(self._number_of(one) for one in given if isinstance(one, Tensor))
        self._calls.append(ModuleCall(module, self._n_runs, reads))
        if isinstance(module, torch.jit.ScriptModule):
            self._calls[-1].below = look_below_functions()
            self._calls[-1].below.__enter__()
            self._calls[-1].n_before, self._calls[-1].path = self.n_seen, self.find_path()[0]
        if states is None:
            return
        if isinstance(module, nn.MultiheadAttention) and states.is_nested:
            raise InvalidRecord(
                "nn.MultiheadAttention takes nested tensors only in a kernel that keeps its weights",
                hint="Give it a padded tensor and key_padding_mask.",
            )
        if states.ndim == 2 or (states.ndim > 2 and states.is_floating_point()):
            self._calls[-1].n_rows = len(states) if not states.is_nested else states.size(0)
        self._count_positions(states, given)

    def _count_positions(self, states: Tensor, given: tuple[Any, ...]) -> None:
        """Note how many positions the innermost module was given, also of those around it that were given none."""
        floats = [one for one in given if isinstance(one, Tensor) and one.is_floating_point() and not one.is_nested]
        n_read = {one.shape[:-1].numel() for one in floats if one.ndim >= 2}
        module = self._calls[-1].module
        if isinstance(module, nn.Embedding) and not states.is_nested:  # sentences, and all their words
            n_read |= {states.shape[:end].numel() for end in range(min(2, states.ndim), states.ndim + 1)}
        if isinstance(module, nn.Conv1d | nn.Conv2d):  # whose positions are behind the channels
            n_read |= {one.numel() // module.in_channels for one in floats}
        for call in self._calls:
            call.n_read |= n_read
        if states.is_floating_point() and states.ndim >= 2 and not states.is_nested:
            n_positions = {one.shape[:-1].numel() for one in floats if one.ndim == states.ndim}
            self._calls[-1].knows = True
            for call in self._calls:
                if call is self._calls[-1] or not call.knows:
                    call.n_positions |= n_positions

    def leave(self, module: nn.Module) -> None:
        """A module ends, perhaps with an exception, and those in it that had no chance to end."""
        if any(call.module is module for call in self._calls):
            while not self._end(self._calls.pop(), module):
                pass

    def _end(self, call: ModuleCall, module: nn.Module) -> bool:
        """End a module; return whether it is the one that ends."""
        if call.below is not None:
            call.below.__exit__(None, None, None)
            if self.n_seen == call.n_before:
                self._unread.scripted.append(f"{call.path or 'this block'} ({type(call.module).__name__})")
        return call.module is module

    def note_attention(self, origin: Origin) -> Origin:
        """Count one more attention, and return where its output comes from."""
        self.n_seen += 1
        self._unread.places_read.add(self.name_attention())
        return Origin(origin.after | 1 << self.n_seen - 1)

    @property
    def modules(self) -> list[nn.Module]:
        """From the outermost to the innermost."""
        return [call.module for call in self._calls]

    @property
    def innermost(self) -> ModuleCall | None:
        """The one in all others; None outside of any module."""
        return self._calls[-1] if self._calls else None

    @property
    def n_positions(self) -> set[int]:
        """How many positions the innermost was given, else those that have names."""
        return (self._calls[-1].n_positions if self._calls else set()) or self._named

    @property
    def n_positions_of_all(self) -> set[int]:
        """How many positions any of them was given."""
        return set[int]().union(*(call.n_positions for call in self._calls))

    @property
    def n_read(self) -> set[int]:
        """How many positions each tensor has that any of them was given."""
        return self._calls[0].n_read if self._calls else set()

    @property
    def n_rows_read(self) -> int:
        """How many texts the outermost was given; 0: not known."""
        return self._calls[0].n_rows if self._calls else 0

    def n_positions_besides(self, query: object) -> set[int]:
        """Return those of the innermost module that reads more than the queries, which may have axes for heads."""
        number = self._states.get(query)
        apart = (call.n_positions for call in reversed(self._calls) if number is None or number not in call.reads)
        return next(filter(None, apart), None) or self.n_positions

    def _number_of(self, states: Tensor) -> int:
        """Return a number for a tensor: the same as long as it is the same one."""
        if (number := self._states.get(states)) is None:
            self._states[states] = number = next(self._state_numbers)
        return number

    def reads(self, path: str) -> tuple[int, ...]:
        """Return what was given to the module at work whose name ends with the last number of a path."""
        numbers = list(NUMBER.finditer(path))
        if not numbers or self._paths is None:
            return ()
        at_work, numbered = self.modules, path[: numbers[-1].end()]
        places = (n for n in range(len(at_work)) if self._paths.find_path(at_work[: n + 1])[0] == numbered)
        return next((self._calls[n].reads for n in places), ())

    def name_root(self) -> str:
        """Return the name of the outermost module's class, of a compiled one as it was written."""
        return type(getattr(self._calls[0].module, COMPILED, self._calls[0].module)).__name__ if self._calls else ""

    def name_attention(self) -> str:
        """Write what errors and notes call the attention that is computed now."""
        return f"{WHAT}{self.find_path()[0] or 'this block'}"

    def find_path(self) -> tuple[str, tuple[int, ...]]:
        """Return the path of the innermost module with a name in the outermost one, and how many its numbers count."""
        if not self._calls:
            return "", ()
        root = self._calls[0].module
        if self._paths is None or self._paths.root() is not root:
            self._paths = Paths(root)
        path, n_alike = self._paths.find_path(self.modules)
        return (path, n_alike) if self.stacks.place == 0 else (number_layer(path, self.stacks.place), (0, *n_alike))

    def find_layers(self) -> tuple[str, int]:
        """Return that path with "*" for each number, and of how many modules it may be."""
        path, n_alike = self.find_path()
        return NUMBER.sub("*", path), max(1, math.prod(n_alike))
