"""The operators below torch's functions: what scripted, traced, frozen and exported programs run, and direct kernels.

Each is read as the function of torch's that does the same, so that there is one way to see attention.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch._ops import HigherOrderOperator, OpOverload, OpOverloadPacket
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from attnviz.errors import InvalidRecord
from attnviz.models.capture.by_hand import WATCHED, TorchCall
from attnviz.models.capture.captured import Kernel

FLEX_MODULE = "torch.nn.attention.flex_attention"
RUN_UNCOMPILED = "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG"  # torch's own switch, named in its warning
NAMES = {"attn_bias": "attn_mask"}  # of arguments, where a kernel's are not those of the function
OF_FUNCTION = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")
ALIKE = {"_softmax": "softmax", "_safe_softmax": "softmax", "_unsafe_view": "view"}
OF_TO = ("dtype", "device", "non_blocking", "memory_format")
SIGNS = ("attention", "attn", "transformer")  # in the names of kernels, whoever wrote them


def is_operator(function: Kernel) -> bool:
    """Return whether it is an operator of torch's dispatcher in the place of a function."""
    return isinstance(function, OpOverload | OpOverloadPacket | HigherOrderOperator)


def read_operator(operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> TorchCall | None:
    """Return the function of torch's that an operator does the work of, with its arguments; None for any other.

    A fused kernel is read as scaled_dot_product_attention, and flex_attention as that with a bias.
    """
    if isinstance(operator, HigherOrderOperator):
        return _read_flex(operator, args, kwargs) if operator.__name__ == "flex_attention" else None
    schema = _find_schema(operator)
    space, _, name = schema.name.partition("::")
    if space != "aten":
        return None
    if name.lstrip("_").startswith("scaled_dot_product") and "backward" not in name:
        given = {argument.name: value for argument, value in zip(schema.arguments, args, strict=False)} | dict(kwargs)
        named = {NAMES.get(key, key): value for key, value in given.items()}
        sides = {key: value for key, value in named.items() if key in OF_FUNCTION}
        return TorchCall(functional.scaled_dot_product_attention, (), sides)
    if ALIKE.get(name) == "softmax":
        return TorchCall(torch.softmax, args[:2], {})
    if name == "_to_copy":  # which also changes the layout and the kind of memory
        if kwargs.get("layout") not in (None, torch.strided) or kwargs.get("pin_memory"):
            return None
        return TorchCall(Tensor.to, args, {key: kwargs[key] for key in OF_TO if kwargs.get(key) is not None})
    found = _find_function(ALIKE.get(name, name))
    return None if found is None else TorchCall(found, args, kwargs)


def gives_more(operator: Any) -> bool:
    """Return whether an operator gives more than the function that does the same, such as a log-sum-exp."""
    return isinstance(operator, HigherOrderOperator) or len(_find_schema(operator).returns) > 1


def is_unread_kernel(operator: Kernel) -> bool:
    """Return whether an operator attends, by its name, in a way that `read_operator` cannot read."""
    name = operator.__name__ if isinstance(operator, HigherOrderOperator) else _find_schema(operator).name
    return any(sign in name for sign in SIGNS) and "backward" not in name


def _find_schema(operator: Any) -> Any:
    overloads: Any = getattr(operator, "overloads", None)  # of a packet of them
    return (operator if overloads is None else getattr(operator, overloads()[0]))._schema


@cache
def _find_function(name: str) -> Kernel | None:
    """Find the function that is watched by its name: aten::bmm is torch.bmm."""
    found = (getattr(place, name, None) for place in (torch, Tensor, functional))
    return next((each for each in found if each in WATCHED), None)


def _read_flex(operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> TorchCall:
    """Whatever a score is changed to is the same as a bias, which is what it is changed by.

    Raises InvalidRecord where a gradient is asked for: run uncompiled, torch's kernel does not give the right one.
    """
    query, key, value, score_mod, block_mask, scale, options, *buffers = (*args, *kwargs.values())
    if torch.is_grad_enabled() and any(one.requires_grad for one in (query, key, value)):
        raise InvalidRecord(
            "flex_attention is not recorded where gradients are asked for", hint="Record under torch.no_grad()."
        )
    with torch.no_grad(), torch._C.DisableTorchFunction():
        n_shared = query.shape[1] // key.shape[1]
        key, value = (side.repeat_interleave(n_shared, dim=1).expand(len(query), -1, -1, -1) for side in (key, value))
        work_out = sys.modules[type(operator).__module__]._math_attention_inner
        before, after = work_out(query, key, value, score_mod, block_mask, scale, options, *buffers)
        bias = (after - before).to(query.dtype)
    return TorchCall(functional.scaled_dot_product_attention, (query, key, value), {"attn_mask": bias, "scale": scale})


class BelowFunctions(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Hand each operator of a program that knows no Python to whoever watches the functions of torch.

    That is the function mode at work: in a handler of this mode, a call from Python comes by it first.
    """

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func is torch.ops.aten._local_scalar_dense.default and not isinstance(args[0], Tensor):
            return args[0]  # a constant of the program, which comes as a number
        return func(*args, **(kwargs or {}))


def look_below_functions() -> AbstractContextManager[Any]:
    """Open a `BelowFunctions`, which torch leaves without types."""
    below: Any = BelowFunctions
    return below()  # type: ignore[no-any-return]


class _Watch:
    """Two switches of torch's that all captures share: the first one sets them, the last one takes them back."""

    def __init__(self) -> None:
        self._lock, self._n_open, self._undo = threading.Lock(), 0, ExitStack()

    def open(self) -> None:
        """Begin with one more capture."""
        with self._lock:
            self._n_open += 1
            if self._n_open == 1:
                _set(self._undo, torch.jit.ScriptFunction, "__call__", _call_watched)
                if FLEX_MODULE in sys.modules:
                    _set(self._undo, sys.modules[FLEX_MODULE], RUN_UNCOMPILED, True)

    def close(self) -> None:
        """End one."""
        with self._lock:
            self._n_open -= 1
            if not self._n_open:
                self._undo.close()


def _set(undo: ExitStack, owner: Any, name: str, value: object) -> None:
    undo.callback(setattr, owner, name, getattr(owner, name))
    setattr(owner, name, value)


_watch = _Watch()
_call_scripted = torch.jit.ScriptFunction.__call__


def _call_watched(function: Any, *args: Any, **kwargs: Any) -> Any:
    with look_below_functions():
        return _call_scripted(function, *args, **kwargs)


@contextmanager
def look_into_programs() -> Iterator[None]:
    """Let operators of scripted functions be seen, and let flex_attention run as its operator."""
    _watch.open()
    try:
        yield
    finally:
        _watch.close()
