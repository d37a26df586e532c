"""Every attention that PyTorch computes while a capture is open, in any module and under any kernel.

Knows what is done with tensors; knows no tokens and no records. Each way to attend has a file: `kernels`, `multihead`
and `by_hand`; `flow` tells what each comes after, `modules_at_work` where it stands, and `keeping` what stays of it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode

from attnviz.models.capture.arguments import factors, list_sides
from attnviz.models.capture.by_hand import SOFTMAXES, WATCHED, SoftmaxTracker, TorchCall
from attnviz.models.capture.call import Call
from attnviz.models.capture.captured import Kernel
from attnviz.models.capture.fast_path import has_fast_path
from attnviz.models.capture.flow import PRODUCTS, Flow, Origin, is_weight, joins_features, list_tensors
from attnviz.models.capture.keeping import KERNELS, Keeper
from attnviz.models.capture.kernels import axes_of
from attnviz.models.capture.modules_at_work import ModulesAtWork
from attnviz.models.capture.no_softmax import ProductTracker
from attnviz.models.capture.operators import (
    gives_more,
    is_operator,
    is_unread_kernel,
    look_into_programs,
    read_operator,
)
from attnviz.models.capture.pooled import EXPONENTIALS, SUMS
from attnviz.models.capture.readable import why_unreadable
from attnviz.models.capture.unread import Unread
from attnviz.models.protocols import EVERY, LayersAndHeads

SIDES = ("query", "key", "value")


@contextmanager
def capture(
    take: Callable[[Call], None],
    choice: LayersAndHeads = EVERY,
    *,
    factored: bool = False,
    modules_as_heads: bool = False,
    named: Collection[int] = (),
) -> Iterator[Capture]:
    """Hand every attention that this thread computes to `take`, right when it is made. Nothing is kept here.

    `factored`: with q, k and log-sum-exp in the place of the weights. `modules_as_heads`: calls of one head in numbered
    modules are all handed over, whatever the choice, since these numbers may be those of heads. `named`: how many
    positions, of all rows of a batch, the caller has names for, which tells texts from heads where no module is given
    states.

    Raises InvalidRecord, out of the model's forward pass, where the weights do not give the output of the call, where
    the model is in training mode and drops some, or where its factors are asked for and it is not made of them.
    """
    watching = Capture(take, choice, factored, modules_as_heads, named)
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
    """What is done with tensors, and the modules at work."""

    def __init__(
        self,
        take: Callable[[Call], None],
        choice: LayersAndHeads,
        factored: bool,
        modules_as_heads: bool,
        named: Collection[int] = (),
    ) -> None:
        super().__init__()
        self._thread = threading.get_ident()
        self._following, self._flow, self._products = SoftmaxTracker(named), Flow(), ProductTracker()
        self.unread = Unread(self._following)
        self._at_work = ModulesAtWork(self._flow, self.unread, named)
        self._keeper = Keeper(take, choice, factored, modules_as_heads, self._at_work)
        self._repeating = False
        self.side_by_side: list[tuple[int, ...]] = []  # attentions whose outputs were, query by query, in this order

    @property
    def n_seen(self) -> int:
        """How many attentions were seen, also of layers that nobody asked for."""
        return self._at_work.n_seen

    def _looks_on(self) -> bool:
        return threading.get_ident() == self._thread and not self._repeating

    def enter(self, module: nn.Module, given: tuple[Any, ...]) -> None:
        """A module begins."""
        if self._looks_on():
            self._at_work.enter(module, given)

    def leave(self, module: nn.Module, given: tuple[Any, ...], output: Any) -> None:
        """A module ends, perhaps with an exception."""
        if self._looks_on():
            self._at_work.leave(module)

    def repeat(self, module: nn.Module, given: tuple[Any, ...], named: dict[str, Any], output: Any) -> Any:
        """Return what a module of torch would have given if nobody had looked, of those that then take a faster way."""
        if not self._looks_on() or not has_fast_path(module):
            return None
        if any(has_fast_path(each) for each in self._at_work.modules if each is not module):
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
        is_kernel, is_watched = function in KERNELS, function in WATCHED
        given = list(list_tensors((*args, *kwargs.values()))) if is_kernel or is_watched else []
        why = why_unreadable(given)
        if why and (is_kernel or function in SOFTMAXES):
            self.unread.without_numbers.append(why)
            return function(*args, **kwargs)
        if is_kernel:
            return self._run_kernel(TorchCall(function, args, kwargs))
        if why or not is_watched:
            result = function(*args, **kwargs)
            if joins_features(function, args, kwargs):
                self.side_by_side.append(self._flow.find_heads(list_tensors((*args, *kwargs.values()))))
            self._flow.follow(function, args, kwargs, result)
            self._following.note_use(function, list_sides(args, kwargs), result)
            self._look_for_products(function, args, kwargs, result, why)
            return result
        is_softmax = function in SOFTMAXES
        is_product = (is_softmax or function in EXPONENTIALS) and any(map(self._is_product, given[:1]))
        n_positions, n_read, name = tuple(self._at_work.n_positions), self._at_work.n_read, self._at_work.name_attention
        if function in PRODUCTS and (weights := self._products.find_weights(given)) is not None:
            self._following.adopt(weights, n_read, name)
        weights = next(filter(self._following.knows, given), None)
        call = TorchCall(function, args, kwargs)
        result, found = self._following.look(call, n_positions, n_read, name, is_product)
        if found is None:
            if is_product and is_softmax:
                self._following.expect(result, name())
            self._flow.follow(function, args, kwargs, result)
            self._look_for_products(function, args, kwargs, result)
        else:
            origin = self._flow.find_origin(weights)._replace(after=self._flow.after(*given))
            value = None if function in SUMS else factors(function, args, kwargs)[1]
            self._flow.mark(result, self._keeper.keep_product(found, origin, value))
        return result

    def _run_kernel(self, call: TorchCall) -> Any:
        """Let a kernel attend, and keep what it gives of that."""
        query, key, value = (call.args[i] if i < len(call.args) else call.kwargs[side] for i, side in enumerate(SIDES))
        sides = self._flow.after(query), self._flow.after(key)
        origin = Origin(self._flow.after(query, key, value), sides, isinstance(query, Tensor) and is_weight(query))
        axes = axes_of(*call, self._at_work.n_positions_besides(query))
        if axes is None:
            self._following.unclear.append(self._at_work.name_attention())
            result, after = call.result(), Origin(origin.after)
        else:
            result, after = self._keeper.keep_kernel(call, axes, origin, value, query is key)
        self._flow.mark(result, after)
        return result

    def _is_product(self, scores: object) -> bool:
        return self._flow.find_origin(scores).product is not None or self._products.knows(scores)

    def _look_for_products(
        self, function: Kernel, args: Sequence[Any], kwargs: Mapping[str, Any], result: object, why: str = ""
    ) -> None:
        found = self._products.look(function, args, kwargs, result, self._at_work.n_read)
        if found and why:
            self.unread.without_numbers.append(why)
        elif found:
            self.unread.no_softmax.append(f"{self._at_work.name_attention()} ({found})")

    def _run_operator(
        self, operator: Any, types: Sequence[type], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """Look at what an operator does as at the function that does the same."""
        call = None if why_unreadable((*args, *kwargs.values())) else read_operator(operator, args, kwargs)
        if call is None:
            if is_unread_kernel(operator):
                self.unread.kernels.append(f"{self._at_work.name_attention()} ({operator.__name__})")
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
