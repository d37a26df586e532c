"""The modules at work while a capture is open: where each attention stands among them, and what they are given.

A path is the name of a module within the outermost one; numbers in it may be those of layers or heads.
"""

import re
import weakref
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import torch
from torch import Tensor, nn

from attnviz.models.capture.follow import list_tensors
from attnviz.models.capture.ids import MAX_NUMBERS, NOTHING, WORDS, At, Family, Known, Store, is_learned, nobody
from attnviz.models.capture.unread import why_unreadable

COMPILED = "_orig_mod"  # the name of a module within what torch.compile makes of it
NUMBER = re.compile(r"(?<![^._])\d+(?![^.])")  # "3" in "layers.3.attn" and in "layer_3", not in "attn1"


@dataclass(eq=False)
class Pass:
    """An outermost module, or several that are called one by one, by a function or by a method that is no forward.

    These are layers if they are modules of one class, each of which reads what the attention of the one before it went
    into. A step of a loop, as in a generation, calls the same module again, and is another pass.
    """

    number: int = 0
    modules: list[nn.Module] = field(default_factory=list)  # kept, so that none comes in the place of one
    seen: int = 0  # bit n: attention n was seen in the last of them, or after it


class ModulesAtWork:
    """Those that began and have not ended, the outermost first, and how many attentions were seen in all."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.calls: list[tuple[nn.Module, int]] = []  # and the number of each among all that were at work
        self._paths: Paths | None = None
        self._runs, self._passes, self._place_in_stack = count(1), count(1), 0
        self._pass, self._last_of_class = Pass(), dict[type[nn.Module], Pass]()
        self._round, self._in_round = 0, set[nn.Module]()  # of outermost modules, each of which runs in it once
        # By where they were read last: what they are of, and from which of its places on.
        self._words: dict[tuple[nn.Module, int], tuple[Tensor, Family, int]] = {}
        self.n_seen = 0  # attentions, also of layers that nobody asked for

    def enter(self, module: nn.Module, given: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        """Enter a module. What the outermost reads are tokens, as are states that nobody has seen being made."""
        n_texts: Collection[int] = ()
        rows: dict[int, At] = {}  # of what stands in a list of texts, or of images
        tensors = [one for one in given if isinstance(one, Tensor) and one.is_floating_point()]
        again = [one for one in tensors[:1] if (self.store.get(one) or NOTHING).is_copied]
        if not self.calls:
            known = self.store.get(next((one for one in given if isinstance(one, Tensor)), None))
            found = self._last_of_class.get(type(module))
            # Modules that a function calls one by one are layers of one stack as long as each is a new one of their
            # class and reads what the attention of the one before went into. Anything else begins another pass.
            if found is None or module in found.modules or known is None or not known.after & found.seen:
                found = self._last_of_class[type(module)] = Pass(next(self._passes))
            found.modules.append(module)
            if module in self._in_round and next(module.parameters(), None) is not None:
                self._round, self._in_round = self._round + 1, set()
            self._in_round.add(module)
            for one in module.buffers():  # are of no token, till states are written into them, as into a cache
                if one.is_floating_point() and self.store.get(one) is None:
                    self.store.put(one, Known(nobody(one.shape)))
            self.store.n_before = len(self.store.families)
            found.seen = 0
            self._pass, self._place_in_stack = found, len(found.modules) - 1
            tensors = list(list_tensors((given, named)))
            # One text that is read several times, as under guidance, is as many texts, unless there are words that say
            # which is which. A module that has no others in it may be given the heads of one text.
            again = [] if any(one.dtype in WORDS and one.ndim > 1 for one in tensors) else tensors
            # Whole numbers in a square may be a graph's edges.
            n_texts = {len(one) for one in tensors if one.ndim > 2 or (one.dtype in WORDS and len({*one.shape}) == 2)}
            for several in (each for each in (*given, *named.values()) if isinstance(each, list)):
                rows |= {id(one): (at, len(several)) for at, each in enumerate(several) for one in list_tensors([each])}
        for one in filter(self.store.is_repeated, again if module._modules else ()):
            self.store.put(one, NOTHING)
        for at, tensor in enumerate(tensors):
            with suppress(RuntimeError):  # what stands for other numbers does not say where they lie
                same = next(filter(tensor.is_set_to, tensors[:at]), tensor)
                if self.store.get(tensor) is None and (known := self.store.get(same)):
                    self.store.put(tensor, known)
            self._seed(tensor, n_texts, module, at, rows.get(id(tensor)))
        self.calls.append((module, next(self._runs)))

    def _find_axes(self, module: nn.Module) -> Collection[int]:
        """Return how many axes states [text, …, d] may have that a module reads; none where it does not say."""
        of_vectors = () if self.calls else (2,)
        # A map or a norm of the last axis says that it is that of features, whatever stands before it.
        if isinstance(module, nn.Linear | nn.LayerNorm) and len(getattr(module, "normalized_shape", "d")) == 1:
            return *of_vectors, 3, 4, 5
        # What stands in others and has nothing learned, as where axes are put in another order, does not say which of
        # them holds features. Where groups of channels are normed, these come before places.
        says_nothing = isinstance(module, nn.GroupNorm) or next(module.parameters(), None) is None
        return () if self.calls and says_nothing else (*of_vectors, 3)

    def _seed(self, tensor: Tensor, n_texts: Collection[int], module: nn.Module, at: int, row: At | None) -> None:
        """Give tokens their ids: numbers of words, or states [text, token, d].

        `n_texts`: of what is read beside it. What has as many rows without an axis of tokens is one token of each text.
        `at`: its place among what the module reads. `row`: its place in a list of texts, each of which is a row as in a
        batch, and how many these are. What has several rows itself is a batch.
        """
        if tensor.is_nested or type(tensor) is not Tensor or torch._C._get_tracing_state() is not None:
            return
        known, shape = self.store.get(tensor) or NOTHING, tensor.shape
        is_new = not is_learned(tensor) and known.ids is None and not known.after
        if tensor.is_floating_point() and is_new and tensor.ndim in self._find_axes(module):
            tokens = (len(tensor), 1) if tensor.ndim == 2 and len(tensor) in n_texts else shape[:-1]
            ids = self.store.seed_beside(known.move(lambda of: of[..., 0]).numbers, tokens, row)
            ids = ids.reshape(*shape[:-1], 1).expand(shape)
            is_given = not self.calls and shape.numel() <= MAX_NUMBERS
            self.store.put(tensor, Known(ids, numbers=self.store.seed(shape) if is_given else None))
        elif tensor.is_floating_point() and tensor.ndim > 3 and known is NOTHING and not self.calls:
            # Frames and patches may become rows, each still of its film or image.
            films = self.store.seed((len(tensor), 1), at=row)
            self.store.put(tensor, Known(None, numbers=films.reshape(-1, *(1,) * (tensor.ndim - 1)).expand(shape)))
        elif tensor.dtype in WORDS and 1 <= tensor.ndim <= 3 and not why_unreadable([tensor]):
            tokens = (len(tensor), 1) if tensor.ndim == 1 and len(tensor) in n_texts else shape
            words = tensor.to("cpu", copy=True)
            text, start = self._find_text(words, module, at)
            self.store.put(tensor, Known(self.store.seed(tokens, text, start, row).reshape(shape)))
            self._words[module, at] = words, self.store.families[-1], start

    def _find_text(self, words: Tensor, module: nn.Module, at: int) -> tuple[Family | None, int]:
        """Find the text that a module of this class has read and that is read again, and where in it words begin."""
        # Without a cache a model reads a text again with each word that is added, or, where it takes no more, without
        # the first.
        of_class = [each for each in self._words if (type(each[0]), each[1]) == (type(module), at)]
        for place in sorted(of_class, key=lambda place: place[0] is not module):  # first what it has read itself
            before, text, start = self._words[place]
            for axis, first in ((-1, 0), (0, 0), (-1, 1)):
                kept = before.movedim(axis, 0)[first:]
                if len(kept) and torch.equal(kept, words.movedim(axis, 0)[: len(kept)]):
                    return text, start + first
            # Beams begin as before, each in its row, and go on from the words of one another.
            if torch.equal(words[..., : text.n_places], before[..., : text.n_places]):
                text.is_changed = True
                return text, start
        return None, 0

    def leave(self, module: nn.Module) -> None:
        """Leave a module, perhaps with an exception, and those in it that had no chance to end."""
        places = (place for place, (each, _) in enumerate(self.calls) if each is module)
        # What failed further in has not left: it goes together with the module around it.
        del self.calls[max(places, default=len(self.calls)) :]
        self.store.n_before = self.store.n_before if self.calls else float("inf")

    def note_attention(self) -> int:
        """Count one more attention, and return its number."""
        self._pass.seen |= 1 << self.n_seen
        self.n_seen += 1
        return self.n_seen - 1

    def locate(self) -> dict[str, Any]:
        """Count one more attention, and return where it stands, as a `Call` has it."""
        path, n_alike = self.find_path()
        root, inner = (self.calls[place][0] if self.calls else None for place in (0, -1))
        is_fast = isinstance(inner, nn.MultiheadAttention) and not inner.training and not torch.is_grad_enabled()
        return {
            "path": path,
            "n_alike": n_alike,
            "n_families": len(self.store.families),
            "number": self._pass.number if self.calls else -self._round,
            "place": self.note_attention(),
            "place_in_stack": self._place_in_stack if self.calls else 0,
            "run": self.calls[-2:][0][1] if self.calls else 0,
            "root": "" if root is None else type(getattr(root, COMPILED, root)).__name__,
            "lacks_fast_path": is_fast,  # torch would have run it as one operator if nobody had looked
        }

    def find_path(self) -> tuple[str, tuple[int, ...]]:
        """Return the path of the innermost module with a name in the outermost one, and how many its numbers count."""
        modules = [module for module, _ in self.calls]
        if not modules:
            return "", ()
        if self._paths is None or self._paths.root() is not modules[0]:
            self._paths = Paths(modules[0])
        path, n_alike = self._paths.find_path(modules)
        place = self._place_in_stack
        return (f"{place}.{path}".rstrip("."), (0, *n_alike)) if place else (path, n_alike)


def may_be_in(path: str, layers: Sequence[int] | None) -> bool:
    """Tell whether a path may be of one of these layers: without a number of any, as layers may share a module."""
    numbers = NUMBER.findall(path)
    return layers is None or not numbers or any(int(number) in layers for number in numbers)


class Paths:
    """The names of all modules in one. A module that stands in several places has a name for each."""

    def __init__(self, root: nn.Module) -> None:
        self.root = weakref.ref(root)
        self._names: dict[int, list[str]] = defaultdict(list)
        for name, module in root.named_modules(remove_duplicate=False):
            self._names[id(module)].append(name)
        self._known: dict[tuple[int, ...], tuple[str, tuple[int, ...]]] = {}

    def find_path(self, at_work: Sequence[nn.Module]) -> tuple[str, tuple[int, ...]]:
        """Return the path of the innermost that has one; for each number in it, how many modules are numbered so."""
        key = tuple(map(id, at_work))
        if key not in self._known:
            path = ""
            for module in at_work:
                names = self._names.get(id(module), [])
                path = next((name for name in names if name.startswith(f"{path}.")), names[0] if names else path)
            shown = ".".join(part for part in path.split(".") if part != COMPILED)
            numbers = NUMBER.finditer(path)
            self._known[key] = shown, tuple(_number_alike(at_work[0], path[: each.start()]) for each in numbers)
        return self._known[key]


def _number_alike(root: nn.Module, before: str) -> int:
    """Count to the highest number behind the beginning of a path.

    0 where other things are numbered, too: embeddings, say, in a Sequential.
    """
    place, _, name = before.rpartition(".")
    around = root.get_submodule(place)
    parts = (
        (part.removeprefix(name), type(module)) for part, module in around._modules.items() if part.startswith(name)
    )
    numbered = {int(part): kind for part, kind in parts if part.isdecimal()}
    is_mixed = isinstance(around, nn.Sequential) and not name and len({*numbered.values()}) > 1
    return 0 if is_mixed else max(numbered) + 1
