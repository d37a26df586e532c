"""The modules at work while a capture is open: where each attention stands among them, and what they are given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attnviz.models.capture.ids import Ids, Known, Store, is_learned
from attnviz.models.capture.paths import COMPILED, Paths
from attnviz.models.capture.stack import Stacks, number_layer
from attnviz.models.capture.unread import WHAT, Unread


@dataclass(eq=False)
class ModuleCall:
    """A module at work."""

    module: nn.Module
    number: int  # of all that were at work
    n_before: int = 0  # attentions that were seen before it


class ModulesAtWork:
    """Those that began and have not ended, the outermost first, and how many attentions were seen in all."""

    def __init__(self, store: Store, unread: Unread) -> None:
        self.store, self._unread = store, unread
        self._calls: list[ModuleCall] = []
        self._paths: Paths | None = None
        self._n_runs = 0
        self.stacks = Stacks()
        self.n_seen = 0  # attentions, also of layers that nobody asked for

    def enter(self, module: nn.Module, given: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        """A module begins. What the outermost reads are tokens, as are states that nobody has seen being made."""
        if not self._calls:
            first = next((one for one in given if isinstance(one, Tensor)), None)
            known = self.store.get(first)
            self.stacks.enter(module, 0 if known is None else known.after, self.n_seen)
            self.store.number = self.stacks.number
            tensors = list(_list_tensors((*given, *named.values())))
            by_text = any(one.ndim > 2 and one.is_floating_point() for one in tensors)
            for tensor in tensors:
                self._seed(tensor, by_text)
        else:
            for tensor in given:
                if isinstance(tensor, Tensor) and tensor.ndim == 3 and tensor.is_floating_point():
                    self._seed(tensor, True)
        self._n_runs += 1
        self._calls.append(ModuleCall(module, self._n_runs, self.n_seen))

    def _seed(self, tensor: Tensor, by_text: bool) -> None:
        """Give tokens their ids: numbers of words, or states [text, token, d]. `by_text`: of two axes, [text, d]."""
        if tensor.is_nested or type(tensor) is not Tensor or torch._C._get_tracing_state() is not None:
            return
        ids: Ids
        if tensor.dtype == torch.int64 and 1 <= tensor.ndim <= 3:
            ids = self.store.seed(tensor.shape)
        elif tensor.is_floating_point() and tensor.ndim in (2, 3) and self._is_new(tensor):
            shape = (*tensor.shape[:-1], 1) if tensor.ndim == 2 and by_text else tensor.shape[:-1]
            ids = self.store.seed(shape)
            ids = (ids if len(shape) == tensor.ndim else ids.unsqueeze(-1)).expand(tensor.shape)
        else:
            return
        self.store.put(tensor, Known(ids))

    def _is_new(self, tensor: Tensor) -> bool:
        known = self.store.get(tensor)
        return not is_learned(tensor) and (known is None or (known.ids is None and not known.after))

    def leave(self, module: nn.Module, given: tuple[Any, ...], output: Any) -> None:
        """A module ends, perhaps with an exception, and those in it that had no chance to end."""
        if not any(call.module is module for call in self._calls):
            return
        while (call := self._calls.pop()).module is not module:
            pass
        if isinstance(module, torch.jit.ScriptModule) and self.n_seen == call.n_before and not _is_inner(self._calls):
            path = self.find_path(module)[0] or "this block"
            self._unread.scripted.append(f"{path} ({type(module).__name__})")
        states, known = (output[0] if isinstance(output, tuple) else output), self.store.get(given[0] if given else 0)
        is_recurrent = isinstance(module, nn.RNNBase) and isinstance(states, Tensor)
        ids = None if known is None or not is_recurrent else known.ids
        if known is not None and ids is not None and states.shape[:-1] == ids.shape[:-1]:
            self.store.put(states, known._replace(ids=ids[..., :1].expand(states.shape)))  # a state for each token

    def note_attention(self) -> int:
        """Count one more attention, and return its number."""
        self.n_seen += 1
        return self.n_seen - 1

    @property
    def run(self) -> int:
        """Which run of a module is innermost; 0 outside of any."""
        return self._calls[-1].number if self._calls else 0

    def name_root(self) -> str:
        """Return the name of the outermost module's class, of a compiled one as it was written."""
        return type(getattr(self._calls[0].module, COMPILED, self._calls[0].module)).__name__ if self._calls else ""

    def name_attention(self) -> str:
        """Write what errors and notes call the attention that is computed now."""
        return f"{WHAT}{self.find_path()[0] or 'this block'}"

    def find_path(self, inner: nn.Module | None = None) -> tuple[str, tuple[int, ...]]:
        """Return the path of the innermost module with a name in the outermost one, and how many its numbers count."""
        modules = [call.module for call in self._calls] + ([] if inner is None else [inner])
        if not modules:
            return "", ()
        if self._paths is None or self._paths.root() is not modules[0]:
            self._paths = Paths(modules[0])
        path, n_alike = self._paths.find_path(modules)
        return (path, n_alike) if self.stacks.place == 0 else (number_layer(path, self.stacks.place), (0, *n_alike))


def _is_inner(calls: list[ModuleCall]) -> bool:
    return any(isinstance(call.module, torch.jit.ScriptModule) for call in calls)


def _list_tensors(given: Iterable[Any]) -> Iterator[Tensor]:
    for each in given:
        if isinstance(each, Tensor):
            yield each
        elif isinstance(each, Mapping):
            yield from _list_tensors(each.values())
        elif isinstance(each, list | tuple):
            yield from _list_tensors(each)
