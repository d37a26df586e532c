"""Whether tensors hold numbers that can be read. Under torch's transforms and tracers they stand for others."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor

TRACED = ("FakeTensor", "FunctionalTensor")  # by name, as importing them takes long


def why_unreadable(given: Iterable[object]) -> str:
    """Where the numbers of some tensors cannot be read, such as "under torch.jit.trace"; "" where they can be."""
    if torch._C._get_tracing_state() is not None:
        return "under torch.jit.trace"
    for tensor in given:
        if not isinstance(tensor, Tensor):
            continue
        if type(tensor).__name__ in TRACED:
            return "under torch.export or another tracer"
        if is_functorch_wrapped_tensor(tensor):
            return "under torch.vmap or another transform of torch.func"
        if tensor.is_meta:
            return "on the meta device"
    return ""
