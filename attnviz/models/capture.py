"""Every attention that PyTorch computes while a capture is open, in any module and under any kernel.

Knows modules and where a call stands among them; knows no tokens and no records. Each way to attend has a file:
`capture_kernels`, `capture_multihead` and `capture_by_hand`.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float32
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode

from attnviz.errors import BadRecord
from attnviz.models.capture_by_hand import WATCHED, Following
from attnviz.models.capture_kernels import dot_product
from attnviz.models.capture_multihead import multi_head
from attnviz.models.capture_seen import How, Kernel, Seen

KERNELS: dict[Kernel, Callable[..., tuple[Any, Seen]]] = {
    functional.scaled_dot_product_attention: dot_product,
    functional.multi_head_attention_forward: multi_head,
}
COMPILED = "_orig_mod"  # the name of a module within what torch.compile makes of it


@dataclass(frozen=True, eq=False)
class Call:
    """One attention as it was computed. The arrays are nobody else's.

    In a row that may attend to nothing all weights are 0; every other row and its sink together sum to 1.
    """

    path: (
        str  # of the module within the outermost one, such as "encoder.layer.3.attention.self"; "" where there is none
    )
    number: int  # of the outermost forward pass since the capture began: a step of a generation is a pass
    weights: Float32[np.ndarray, "batch head query key"]  # after softmax
    attendable: Bool[np.ndarray, "batch query key"]  # by any head
    sink: Float32[np.ndarray, "batch head query"] | None  # the share that goes to no key
    how: How  # worked out from what a kernel was given, or the very numbers that the model multiplied
    error: float  # largest |weights · value - output of the call itself|, relative to the largest |value|


@contextmanager
def capture(take: Callable[[Call], None]) -> Iterator[Capture]:
    """Hand every attention that this thread computes to `take`, right when it is made. Nothing is kept here.

    Raises BadRecord, out of the model's forward pass, where the weights do not give the output of the call, or where
    the model is in training mode and drops some.
    """
    watching = Capture(take)
    with ExitStack() as stack:
        if "torch._dynamo" in sys.modules:  # else nothing is compiled, and importing it takes seconds
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        for handle in (
            register_module_forward_pre_hook(watching.enter),
            register_module_forward_hook(watching.leave, always_call=True),
        ):
            stack.callback(handle.remove)
        yield stack.enter_context(watching)


@dataclass(eq=False)
class Frame:
    """A module at work."""

    module: nn.Module
    n_positions: int | None = None  # of the first states that were given to it or to a part of it, all rows together


class Capture(TorchFunctionMode):
    """The modules at work, and what is done with tensors in them."""

    def __init__(self, take: Callable[[Call], None]) -> None:
        super().__init__()
        self._take = take
        self._thread = threading.get_ident()
        self._frames: list[Frame] = []
        self._n_passes = 0
        self._following = Following()
        self._names: dict[int, str] = {}
        self._root: weakref.ref[nn.Module] | None = None  # whose names they are

    @property
    def unclear(self) -> int:
        """How many products of weights were left out, because their heads could not be told from their batch."""
        return self._following.unclear

    def enter(self, module: nn.Module, given: tuple[Any, ...]) -> None:
        """A module begins."""
        if threading.get_ident() != self._thread:
            return
        if not self._frames:
            self._n_passes += 1
        self._frames.append(Frame(module))
        states = next((one for one in given if isinstance(one, Tensor)), None)
        if states is None:
            return
        if isinstance(module, nn.MultiheadAttention) and states.is_nested:
            raise BadRecord(
                "nn.MultiheadAttention takes nested tensors only in a kernel that keeps its weights",
                hint="Give it a padded tensor and key_padding_mask.",
            )
        if states.is_floating_point() and states.ndim >= 2 and not states.is_nested:
            for frame in self._frames:
                if frame.n_positions is None:
                    frame.n_positions = states.shape[:-1].numel()

    def leave(self, module: nn.Module, given: tuple[Any, ...], output: Any) -> None:
        """A module ends, perhaps with an exception."""
        if threading.get_ident() == self._thread and any(frame.module is module for frame in self._frames):
            while self._frames.pop().module is not module:  # one that had no chance to end
                pass

    def __torch_function__(
        self, function: Kernel, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """What torch calls instead of each of its functions."""
        kwargs = kwargs or {}
        kernel = KERNELS.get(function)
        if kernel is not None:
            result, seen = kernel(function, args, kwargs, self._what())
            self._hand_over(_unpacked(seen, self._frames[-1]) if self._frames else seen)
            return result
        if function not in WATCHED:
            return function(*args, **kwargs)
        n_positions = self._frames[-1].n_positions if self._frames else None
        result, found = self._following.look(function, args, kwargs, n_positions, self._what)
        if found is not None:
            self._hand_over(found)
        return result

    def _hand_over(self, seen: Seen) -> None:
        arrays = [
            None if tensor is None else tensor.detach().cpu().numpy()
            for tensor in (seen.weights, seen.attendable, seen.sink)
        ]
        weights, attendable, sink = arrays
        assert weights is not None
        assert attendable is not None
        self._take(Call(self._path(), max(0, self._n_passes - 1), weights, attendable, sink, seen.how, seen.error))

    def _what(self) -> str:
        return f"the attention in {self._path() or 'this block'}"

    def _path(self) -> str:
        """Of the innermost module that has a name within the outermost one."""
        if not self._frames:
            return ""
        root = self._frames[0].module
        if self._root is None or self._root() is not root:
            self._names = {id(module): name for name, module in root.named_modules()}
            self._root = weakref.ref(root)
        found = next((self._names[id(f.module)] for f in reversed(self._frames) if id(f.module) in self._names), "")
        return ".".join(part for part in found.split(".") if part != COMPILED)


def _unpacked(seen: Seen, frame: Frame) -> Seen:
    """One query of each head, where Hugging Face handed the heads that share a key over as if they were queries.

    It does so in grouped-query attention of a single token. There are then more queries than positions in the module.
    """
    n_batch, n_shared, n_queries, n_keys = seen.weights.shape
    n_groups = getattr(frame.module, "num_key_value_groups", 1)
    if n_queries == 1 or n_groups != n_queries or frame.n_positions != n_batch:
        return seen
    weights = seen.weights.reshape(n_batch, n_shared * n_queries, 1, n_keys)
    return replace(seen, weights=weights, attendable=seen.attendable.any(dim=1, keepdim=True))
