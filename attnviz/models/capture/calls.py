"""Every attention that PyTorch computes while a capture is open, in any module and under any kernel.

Knows modules and where a call stands among them; knows no tokens and no records. Each way to attend has a file:
`kernels`, `multihead` and `by_hand`; `flow` tells what each comes after.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode

from attnviz.errors import InvalidRecord
from attnviz.models.capture.by_hand import SOFTMAXES, WATCHED, SoftmaxTracker, TorchCall, factors
from attnviz.models.capture.call import Call, Kept
from attnviz.models.capture.captured import CapturedAttention, Kernel, unpack_groups
from attnviz.models.capture.factored import FactoringKernel
from attnviz.models.capture.fast_path import has_fast_path
from attnviz.models.capture.flow import PRODUCTS, ByIdentity, Flow, Origin, is_weight
from attnviz.models.capture.kernels import axes_of, dot_product
from attnviz.models.capture.multihead import multi_head
from attnviz.models.capture.no_softmax import ProductTracker
from attnviz.models.capture.operators import (
    gives_more,
    is_operator,
    is_unread_kernel,
    look_below_functions,
    look_into_programs,
    read_operator,
)
from attnviz.models.capture.paths import COMPILED, NUMBER, Paths, may_be_in
from attnviz.models.capture.readable import why_unreadable
from attnviz.models.capture.room import LayersRoom
from attnviz.models.capture.stack import Stacks, number_layer
from attnviz.models.capture.unread import WHAT, Unread
from attnviz.models.capture.values import some_values
from attnviz.models.protocols import EVERY, LayersAndHeads

SIDES = ("query", "key", "value")
KERNELS: dict[Kernel, Callable[..., tuple[Any, CapturedAttention]]] = {
    functional.scaled_dot_product_attention: dot_product,
    functional.multi_head_attention_forward: multi_head,
}
DENSE = "Leave out factored."


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


@contextmanager
def capture(
    take: Callable[[Call], None],
    choice: LayersAndHeads = EVERY,
    *,
    factored: bool = False,
    modules_as_heads: bool = False,
) -> Iterator[Capture]:
    """Hand every attention that this thread computes to `take`, right when it is made. Nothing is kept here.

    `factored`: with q, k and log-sum-exp in the place of the weights. `modules_as_heads`: calls of one head in numbered
    modules are all handed over, whatever the choice, since these numbers may be those of heads.

    Raises InvalidRecord, out of the model's forward pass, where the weights do not give the output of the call, where
    the model is in training mode and drops some, or where its factors are asked for and it is not made of them.
    """
    watching = Capture(take, choice, factored, modules_as_heads)
    with ExitStack() as stack:
        if "torch._dynamo" in sys.modules:  # else nothing is compiled, and importing it takes seconds
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        for handle in (
            register_module_forward_pre_hook(watching.enter),
            register_module_forward_hook(watching.repeat, with_kwargs=True),
            register_module_forward_hook(watching.leave, always_call=True),
        ):
            stack.callback(handle.remove)
        stack.enter_context(look_into_programs())
        yield stack.enter_context(watching)


class Capture(TorchFunctionMode):
    """The modules at work, and what is done with tensors in them."""

    def __init__(
        self, take: Callable[[Call], None], choice: LayersAndHeads, factored: bool, modules_as_heads: bool
    ) -> None:
        super().__init__()
        self._take, self._choice, self._modules_as_heads = take, choice, modules_as_heads
        self._factoring = FactoringKernel(choice) if factored else None
        self._thread = threading.get_ident()
        self._frames: list[ModuleCall] = []
        self._states: ByIdentity[int] = ByIdentity()  # the numbers of tensors that modules read
        self._state_numbers = count(1)
        self._room = LayersRoom()
        self._stacks, self._n_runs = Stacks(), 0
        self.n_seen = 0  # attentions, also of layers that nobody asked for
        self._following, self._flow, self._products = SoftmaxTracker(), Flow(), ProductTracker()
        self._paths: Paths | None = None
        self._repeating = False
        self.unread = Unread(self._following)

    def enter(self, module: nn.Module, given: tuple[Any, ...]) -> None:
        """A module begins."""
        if threading.get_ident() != self._thread or self._repeating:
            return
        states = next((one for one in given if isinstance(one, Tensor)), None)
        if not self._frames:
            self._stacks.enter(module, self._flow.after(states), self.n_seen)
        self._n_runs += 1
        reads = tuple(self._number_of(one) for one in given if isinstance(one, Tensor))
        self._frames.append(ModuleCall(module, self._n_runs, reads))
        if isinstance(module, torch.jit.ScriptModule):
            self._frames[-1].below = look_below_functions()
            self._frames[-1].below.__enter__()
            self._frames[-1].n_before, self._frames[-1].path = self.n_seen, self._path()[0]
        if states is None:
            return
        if isinstance(module, nn.MultiheadAttention) and states.is_nested:
            raise InvalidRecord(
                "nn.MultiheadAttention takes nested tensors only in a kernel that keeps its weights",
                hint="Give it a padded tensor and key_padding_mask.",
            )
        if states.ndim == 2 or (states.ndim > 2 and states.is_floating_point()):
            self._frames[-1].n_rows = len(states) if not states.is_nested else states.size(0)
        floats = [one for one in given if isinstance(one, Tensor) and one.is_floating_point() and not one.is_nested]
        n_read = {one.shape[:-1].numel() for one in floats if one.ndim >= 2}
        for frame in self._frames:
            frame.n_read |= n_read
        if states.is_floating_point() and states.ndim >= 2 and not states.is_nested:
            alike = (one for one in given if isinstance(one, Tensor) and one.is_floating_point())
            n_positions = {one.shape[:-1].numel() for one in alike if one.ndim == states.ndim and not one.is_nested}
            self._frames[-1].knows = True
            for frame in self._frames:
                if frame is self._frames[-1] or not frame.knows:
                    frame.n_positions |= n_positions

    def leave(self, module: nn.Module, given: tuple[Any, ...], output: Any) -> None:
        """A module ends, perhaps with an exception."""
        if threading.get_ident() != self._thread or self._repeating:
            return
        if any(frame.module is module for frame in self._frames):
            while not self._end(self._frames.pop(), module):  # one that had no chance to end
                pass

    def _end(self, frame: ModuleCall, module: nn.Module) -> bool:
        """Whether it is the one that ends."""
        if frame.below is not None:
            frame.below.__exit__(None, None, None)
            if self.n_seen == frame.n_before:
                self.unread.scripted.append(f"{frame.path or 'this block'} ({type(frame.module).__name__})")
        return frame.module is module

    def repeat(self, module: nn.Module, given: tuple[Any, ...], named: dict[str, Any], output: Any) -> Any:
        """What a module would have given if nobody had looked, of those of torch that then take a faster way."""
        if threading.get_ident() != self._thread or self._repeating or not has_fast_path(module):
            return None
        if any(has_fast_path(frame.module) for frame in self._frames if frame.module is not module):
            return None
        if why_unreadable(given):
            return None
        self._repeating = True
        try:
            with torch._C.DisableTorchFunction():
                alone = module.forward(*given, **named)
        finally:
            self._repeating = False
        self._flow.mark(alone, self._flow.find_origin(output))
        return alone

    def __torch_function__(
        self, function: Kernel, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if is_operator(function):
            return self._run_operator(function, types, args, kwargs)
        kernel = KERNELS.get(function)
        if (kernel is not None or function in SOFTMAXES) and (why := why_unreadable((*args, *kwargs.values()))):
            self.unread.without_numbers.append(why)
            return function(*args, **kwargs)
        if kernel is not None:
            query, key, value = (args[i] if i < len(args) else kwargs[name] for i, name in enumerate(SIDES))
            sides = self._flow.after(query), self._flow.after(key)
            origin = Origin(self._flow.after(query, key, value), sides, isinstance(query, Tensor) and is_weight(query))
            result, after = self._note_kernel(function, args, kwargs, origin, value, query is key)
            self._flow.mark(result, after)
            return result
        if function not in WATCHED:
            result = function(*args, **kwargs)
            self._flow.follow(function, args, kwargs, result)
            self._following.note_use(function, args, result)
            self._look_for_products(function, args, kwargs, result)
            return result
        n_positions = tuple(self._frames[-1].n_positions) if self._frames else ()
        is_attention = function in SOFTMAXES and bool(args) and self._is_product(args[0])
        n_read = self._frames[0].n_read if self._frames else set()
        if function in PRODUCTS and (weights := self._products.find_weights(args)) is not None:
            self._following.adopt(weights, n_read, self._what)
        result, found = self._following.look(TorchCall(function, args, kwargs), n_positions, n_read, self._what)
        if found is None:
            if is_attention:
                self._following.expect(result, self._what())
            self._flow.follow(function, args, kwargs, result)
            self._look_for_products(function, args, kwargs, result)
        else:
            weights, value = factors(function, args, kwargs)
            origin = self._flow.find_origin(weights)._replace(after=self._flow.after(weights, value))
            self._flow.mark(result, self._note_product(found, origin, value))
        return result

    def _is_product(self, scores: object) -> bool:
        return self._flow.find_origin(scores).product is not None or self._products.knows(scores)

    def _look_for_products(
        self, function: Kernel, args: Sequence[Any], kwargs: Mapping[str, Any], result: object
    ) -> None:
        found = self._products.look(function, args, kwargs, result, self._frames[0].n_read if self._frames else ())
        if found:
            self.unread.no_softmax.append(f"{self._what()} ({found})")

    def _run_operator(
        self, operator: Any, types: Sequence[type], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """Look at what an operator does as at the function that does the same."""
        call = None if why_unreadable((*args, *kwargs.values())) else read_operator(operator, args, kwargs)
        if call is None:
            if is_unread_kernel(operator):
                self.unread.kernels.append(f"{self._what()} ({operator.__name__})")
            result = operator(*args, **kwargs)
            self._flow.follow(operator, args, kwargs, result)
            self._following.note_use(operator, args, result)
            self._look_for_products(operator, args, kwargs, result)
            return result
        found = self.__torch_function__(call.function, types, call.args, call.kwargs)
        if not gives_more(operator):
            return found
        result = operator(*args, **kwargs)
        self._flow.mark(result, self._flow.find_origin(found))
        return result

    def _note_kernel(
        self,
        function: Kernel,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        origin: Origin,
        value: Any,
        same: bool,
    ) -> tuple[Any, Origin]:
        """What a kernel gives, and where that comes from. `same`: queries and keys are one tensor."""
        axes = axes_of(function, args, kwargs, self._n_positions_besides(args[0] if args else kwargs["query"]))
        if axes is None:
            self._following.unclear.append(self._what())
            return function(*args, **kwargs), Origin(origin.after)
        if not (self._may_be_head(axes[1]) or may_be_in(self._path()[0], self._choice.layers)):
            return function(*args, **kwargs), self._note_skipped(origin)
        if self._factoring is None:
            in_room = function is functional.scaled_dot_product_attention and self._choice.heads is None
            more: dict[str, Any] = {"room": self._take_room} if in_room else {}  # which holds all heads until the end
            if function is functional.scaled_dot_product_attention:
                more["axes"] = axes
            result, seen = KERNELS[function](function, args, kwargs, self._what(), **more)
            if self._frames:
                n_groups = getattr(self._frames[-1].module, "num_key_value_groups", 1)
                seen = unpack_groups(seen, n_groups, self._frames[-1].n_positions)
            return result, self._hand_over(self._on_host(seen), origin, value, same)
        if function is functional.multi_head_attention_forward:
            raise InvalidRecord(f"{self._what()} is of nn.MultiheadAttention, which keeps its q and k", hint=DENSE)
        result, rows, error = self._factoring(function, args, kwargs, self._what())
        if (len(rows), rows.n_heads) != axes[:2]:
            raise InvalidRecord(f"{self._what()} has no axis each for texts and heads", hint=DENSE)
        attendable = np.broadcast_to(rows.attended[:, None], (len(rows), *rows.shape[2:]))
        kept = Kept(rows, attendable, None, "factored", error, rows.n_heads)
        return result, self._hand_over(kept, origin, value, same)

    def _note_product(self, seen: CapturedAttention, origin: Origin, value: Any) -> Origin:
        """Of attention written by hand. Raises InvalidRecord where its factors are asked for."""
        chosen = may_be_in(self._path()[0], self._choice.layers) or self._may_be_head(seen.weights.shape[1])
        if not chosen or (self._factoring is not None and origin.product is None):
            return self._note_skipped(origin)
        if self._factoring is not None:
            raise InvalidRecord(
                f"{self._what()} is written out as softmax(…) @ value: its q and k are gone", hint=DENSE
            )
        return self._hand_over(self._on_host(seen), origin, value)

    def _take_room(self, shape: Sequence[int]) -> Float32[Tensor, "batch head query key"]:
        path, n_alike = self._path()
        return self._room.take(NUMBER.sub("*", path), max(1, math.prod(n_alike)), shape)

    def _on_host(self, seen: CapturedAttention) -> Kept:
        n_heads, seen = seen.weights.shape[1], self._choose_heads(seen)
        attendable = seen.attendable.detach().cpu().numpy()
        sink = None if seen.sink is None else seen.sink.detach().cpu().numpy()
        kept = self._room.as_array(seen.weights)
        return Kept(kept, attendable, sink, seen.how, seen.error, n_heads, seen.guess, seen.is_pooled)

    def _may_be_head(self, n_heads: int) -> bool:
        """Whether a call may be one head of a layer whose heads are modules: it is chosen later, among the others."""
        return self._modules_as_heads and n_heads == 1 and bool(self._path()[1])

    def _heads(self, n_heads: int) -> tuple[int, ...]:
        return (0,) if self._may_be_head(n_heads) else self._choice.heads_of(n_heads, self._what())

    def _choose_heads(self, seen: CapturedAttention) -> CapturedAttention:
        if self._choice.heads is None:
            return seen
        heads = list(self._heads(seen.weights.shape[1]))
        return replace(seen, weights=seen.weights[:, heads], sink=None if seen.sink is None else seen.sink[:, heads])

    def _note_skipped(self, origin: Origin) -> Origin:
        """Where the output of a call comes from of which nothing is kept."""
        self.n_seen += 1
        self.unread.places_read.add(self._what())
        return Origin(origin.after | 1 << self.n_seen - 1)

    def _hand_over(self, seen: Kept, origin: Origin, value: Any, same: bool = False) -> Origin:
        """Returns where the output comes from. `same`: queries and keys are one tensor."""
        path, n_alike = self._path()
        kept = seen._asdict()
        n_heads = kept.pop("n_heads")
        n_read = self._frames[0].n_read if self._frames else set()
        kept["is_pooled"] |= origin.is_learned or (seen.how == "multiplied" and origin.product is None)
        kept["guess"] = seen.guess or self._guess(seen, origin)
        self._take(
            Call(
                path=path,
                number=self._stacks.number,
                **kept,
                place=self.n_seen,
                after=origin.after,
                run=self._frames[-1].number if self._frames else 0,
                reads=self._reads(path),
                own_keys=same or origin.own_keys,
                n_alike=n_alike,
                values=some_values(value, seen.kept.shape),
                heads=self._heads(n_heads),
                n_heads_in_model=None if self._choice == EVERY else n_heads,
                root=self._root(),
                place_in_stack=self._stacks.place,
                n_rows_read=self._frames[0].n_rows if self._frames else 0,
                keys_are_read=not n_read or seen.kept.shape[0] * seen.kept.shape[3] in n_read,
            )
        )
        return self._note_skipped(origin)

    def _reads(self, path: str) -> tuple[int, ...]:
        """What was given to the module at work whose name ends with the last number of a path."""
        numbers = list(NUMBER.finditer(path))
        if not numbers or self._paths is None:
            return ()
        at_work, numbered = [frame.module for frame in self._frames], path[: numbers[-1].end()]
        places = (n for n in range(len(at_work)) if self._paths.find_path(at_work[: n + 1])[0] == numbered)
        return next((self._frames[n].reads for n in places), ())

    def _number_of(self, states: Tensor) -> int:
        """The same as long as it is the same tensor."""
        if (number := self._states.get(states)) is None:
            self._states[states] = number = next(self._state_numbers)
        return number

    def _n_positions_besides(self, query: object) -> set[int]:
        """Of the innermost module that reads anything but the queries themselves, which may have axes for heads."""
        number = self._states.get(query)
        apart = (frame.n_positions for frame in reversed(self._frames) if number is None or number not in frame.reads)
        found = next(filter(None, apart), None)
        return found or (self._frames[-1].n_positions if self._frames else set())

    def _guess(self, seen: Kept, origin: Origin) -> str:
        """Why these weights may be of something else than tokens."""
        n_batch, _, n_queries, _ = seen.kept.shape
        if n_queries == 1 or seen.is_pooled or origin.is_learned:  # queries of no token, perhaps without a product
            return ""
        if origin.product is None:
            n_keys = seen.kept.shape[3]
            if n_queries != n_keys and self._frames and n_batch * n_keys in self._frames[0].n_read:
                return ""
            return "no product of queries with keys was seen under this softmax"
        n_positions = set[int]().union(*(frame.n_positions for frame in self._frames))
        if n_positions and n_batch * n_queries not in n_positions:
            queries = f"{n_queries} queries" if n_batch == 1 else f"{n_queries} queries in each of {n_batch} texts"
            return f"{queries} are not the number of tokens that the module read"
        return ""

    def _root(self) -> str:
        """The name of the outermost module's class, of a compiled one as it was written."""
        return type(getattr(self._frames[0].module, COMPILED, self._frames[0].module)).__name__ if self._frames else ""

    def _what(self) -> str:
        return f"{WHAT}{self._path()[0] or 'this block'}"

    def _path(self) -> tuple[str, tuple[int, ...]]:
        """Of the innermost module that has a name within the outermost one, and how many its numbers count."""
        if not self._frames:
            return "", ()
        root = self._frames[0].module
        if self._paths is None or self._paths.root() is not root:
            self._paths = Paths(root)
        path, n_alike = self._paths.find_path([frame.module for frame in self._frames])
        return (path, n_alike) if self._stacks.place == 0 else (number_layer(path, self._stacks.place), (0, *n_alike))
