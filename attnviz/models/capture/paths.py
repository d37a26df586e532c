"""What modules are called within the outermost one, and how many are numbered alike."""

from __future__ import annotations

import re
import weakref
from collections import defaultdict
from collections.abc import Sequence

from torch import nn

COMPILED = "_orig_mod"  # the name of a module within what torch.compile makes of it
NUMBER = re.compile(r"(?<![^._])\d+(?![^.])")  # "3" in "layers.3.attn" and in "layer_3", not in "attn1"


def may_be_in(path: str, layers: Sequence[int] | None) -> bool:
    """Whether a path may be of one of these layers: without a number it may be any, as layers may share a module."""
    numbers = NUMBER.findall(path)
    return layers is None or not numbers or any(int(number) in layers for number in numbers)


class Paths:
    """The names of all modules in one. A module that stands in several places has a name for each."""

    def __init__(self, root: nn.Module) -> None:
        self.root = weakref.ref(root)
        self._names: dict[int, list[str]] = defaultdict(list)
        self._modules: dict[str, type[nn.Module]] = {}
        for name, module in root.named_modules(remove_duplicate=False):
            self._names[id(module)].append(name)
            self._modules[name] = type(module)
        self._known: dict[str, tuple[str, tuple[int, ...]]] = {}

    def find_path(self, at_work: Sequence[nn.Module]) -> tuple[str, tuple[int, ...]]:
        """The path of the innermost that has one; for each number in it, how many modules are numbered so."""
        path = ""
        for module in at_work:
            names = self._names.get(id(module), [])
            path = next((name for name in names if name.startswith(f"{path}.")), names[0] if names else path)
        if path not in self._known:
            shown = ".".join(part for part in path.split(".") if part != COMPILED)
            self._known[path] = shown, tuple(self._number_alike(path, found) for found in NUMBER.finditer(path))
        return self._known[path]

    def _number_alike(self, path: str, found: re.Match[str]) -> int:
        """One more than the highest number; 0 where other things are counted, too: embeddings, say, in a Sequential."""
        before = path[: found.start()]
        numbered = {}
        for name, kind in self._modules.items():
            rest = name[len(before) :]
            if name.startswith(before) and rest.isdecimal():
                numbered[int(rest)] = kind
        around = self._modules.get(before.rstrip("."), nn.Module)
        if issubclass(around, nn.Sequential) and len(set(numbered.values())) > 1:
            return 0
        return max(numbered) + 1
