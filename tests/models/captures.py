"""What the tests of capture run, and how they watch it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from attnviz.models.capture.call import Call
from attnviz.models.capture.tap import capture
from attnviz.models.recording.record import Recording, record

SDPA = functional.scaled_dot_product_attention


def drawn(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def captured(run: Callable[[], Any]) -> list[Call]:
    calls: list[Call] = []
    with torch.no_grad(), capture(calls.append):
        run()
    return calls


def recorded(run: Callable[[], Any], **asked: Any) -> Recording:
    """Record a run without gradients."""
    with torch.no_grad(), record(**asked) as maps:
        run()
    return maps


def only(run: Callable[[], Any]) -> Call:
    (call,) = captured(run)
    return call


@contextmanager
def lying(by: float) -> Iterator[None]:
    """Every fused kernel's output is off by a factor, from below what looks at it."""

    class Lying(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
        ) -> Any:
            output = func(*args, **(kwargs or {}))
            if "attention" not in func._schema.name and "transformer_encoder" not in func._schema.name:
                return output
            return (output[0] * by, *output[1:]) if isinstance(output, tuple) else output * by

    with Lying():  # type: ignore[no-untyped-call]
        yield


@contextmanager
def replaced(projection: nn.Module, head: int) -> Iterator[None]:
    """What a head gives, four numbers of each token, is 0 before it is projected, by hand."""

    def replace(_: nn.Module, given: tuple[Tensor]) -> tuple[Tensor]:
        changed = given[0].clone()
        changed[..., head * 4 : (head + 1) * 4] = 0
        return (changed,)

    with projection.register_forward_pre_hook(replace):
        yield


QUERY, KEY, VALUE = drawn(1, 2, 4, 5, 8), drawn(2, 2, 4, 7, 8), drawn(3, 2, 4, 7, 8)
ALLOWED = drawn(4, 2, 1, 5, 7) > -0.5
ALLOWED[..., 0] = True
STATES = drawn(40, 2, 3, 5, 4)  # batch, head, token, d_head
WEIGHTS = (STATES @ STATES.transpose(-2, -1)).softmax(dim=-1)


def softmaxed() -> Tensor:
    return (STATES @ STATES.transpose(-2, -1)).softmax(dim=-1)
