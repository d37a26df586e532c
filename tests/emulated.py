"""A device that this machine does not have: tensors of `twin:0`, whose numbers lie on the CPU.

A private-use backend of torch in pure Python. Operators run on the CPU's copies, so that results can be held against
the CPU's. Refused as on a GPU: tensors of host and device in one operator (but numbers without axes, and indices), and
`.numpy()` of a tensor of the device. As on mps, float64 is refused. Counted: how often the host waits for the device.
"""

# mypy: ignore-errors
# torch gives the inside of its dispatcher no types.
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

aten = torch.ops.aten
CROSSING = {aten._to_copy.default, aten.copy_.default, aten.to.device, aten.to.dtype_layout}
INDEXING = {aten.index.Tensor, aten.index_put_.default, aten.index_put.default, aten._index_put_impl_.default}
WAITING = ("nonzero", "masked_select", "equal", "_local_scalar_dense")


class Backend:
    """What torch asks of a device's module."""

    is_initialized = is_available = lambda self: True
    current_device = lambda self: 0  # noqa: E731
    _is_in_bad_fork = lambda self: False  # noqa: E731
    manual_seed_all = lambda self, seed: None  # noqa: E731
    device_count = lambda self: 1  # noqa: E731
    get_amp_supported_dtype = lambda self: [torch.float16]  # noqa: E731


# Before the first backward pass of the process, at which torch counts devices.
_setup_privateuseone_for_python_backend("twin", backend_module=Backend())


class Twin(torch.Tensor):
    """A tensor of the device."""

    inner: torch.Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls: type[Twin], inner: torch.Tensor) -> Twin:
        """Take a tensor of the CPU for its numbers."""
        place = {"strides": inner.stride(), "storage_offset": inner.storage_offset(), "dtype": inner.dtype}
        made: Any = torch.Tensor._make_wrapper_subclass(cls, inner.size(), device=torch.device("twin:0"), **place)
        made.inner = inner
        return made  # type: ignore[no-any-return]

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return run(func, args, kwargs or {})

    def tolist(self) -> Any:
        """Wait for the device."""
        Emulated.n_waits += 1
        return self.inner.tolist()


class Emulated(TorchDispatchMode):
    """While it is open, `twin:0` is a device."""

    n_operators = n_waits = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return run(func, args, kwargs or {})


def run(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Run an operator where its tensors are. Raises RuntimeError for a mix, TypeError for float64."""
    tensors = [one for one in tree_flatten((args, kwargs))[0] if isinstance(one, torch.Tensor)]
    twins = [one for one in tensors if isinstance(one, Twin)]
    wanted = kwargs.get("device", next((one for one in args if isinstance(one, torch.device)), None))
    if not twins and not is_twin(wanted):
        return func(*args, **kwargs)
    Emulated.n_operators += 1
    if twins and func not in CROSSING:
        held = tensors
        if func in INDEXING and isinstance(args[0], Twin):
            held = [one for one in tree_flatten(args[2:])[0] if isinstance(one, torch.Tensor)]
        if any(not isinstance(one, Twin) and one.ndim > 0 for one in held):
            raise RuntimeError(f"expected all tensors to be on the same device: {func.name()}")
    moved = is_twin(wanted) if wanted is not None else bool(twins)
    Emulated.n_waits += any(name in func.name() for name in WAITING) or (func in CROSSING and bool(twins) and not moved)
    if func.name() == "aten::_fused_sdp_choice":
        return 0  # the formula
    if func is aten.copy_.default:
        Emulated.n_waits += isinstance(args[1], Twin) and not isinstance(args[0], Twin)
        unwrap(args[0]).copy_(unwrap(args[1]))
        return args[0]
    given, named = tree_map(unwrap, args), tree_map(unwrap, kwargs)
    if named.get("device") is not None:
        named["device"] = torch.device("cpu")
    if func in CROSSING:
        named.pop("non_blocking", None)
    result = func(*given, **named)
    found = [one for one in tree_flatten(result)[0] if isinstance(one, torch.Tensor)]
    if moved and any(one.dtype == torch.float64 for one in found):
        raise TypeError(f"this device has no float64: {func.name()}")
    written = [each for each in func._schema.arguments if each.alias_info is not None and each.alias_info.is_write]
    place = func._schema.arguments.index(written[0]) if written and not written[0].kwarg_only else None
    if place is not None and isinstance(args[place], Twin):
        return args[place]
    if isinstance(kwargs.get("out"), Twin):
        return kwargs["out"]
    return tree_map(lambda one: Twin(one) if moved and type(one) is torch.Tensor else one, result)


def is_twin(device: Any) -> bool:
    """Return whether a device is this one."""
    return device is not None and torch.device(device).type == "twin"


def unwrap(one: Any) -> Any:
    """Return the numbers of a tensor of the device, on the CPU; anything else as it is."""
    if isinstance(one, torch.device):
        return torch.device("cpu")
    return one.inner if isinstance(one, Twin) else one


@contextmanager
def emulated() -> Iterator[None]:
    """Have the device for a while. For a process of its own: a private-use backend is not taken away again."""
    torch.__future__.set_overwrite_module_params_on_conversion(True)  # else .to() keeps the class of a parameter
    torch.inference_mode = lambda on=True: torch.no_grad() if on else torch.enable_grad()  # type: ignore[assignment,misc]
    torch._C._set_only_lift_cpu_tensors(True)  # torch.tensor(…, device=) is made on the CPU, then moved
    with Emulated():
        yield
