"""Operators as torch's dispatcher runs them, one after another: whatever way a thing is written, it is one of a few."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from torch._ops import HigherOrderOperator
from torch.utils._python_dispatch import TorchDispatchMode


class Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While it is open, each operator that is not made of other operators comes by `run`."""

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Tell torch not to look after compiling at each operator: importing what compiles takes seconds."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = {} if kwargs is None else dict(kwargs)
        name, is_composite = _name(func)
        if is_composite and not self.takes_whole(name, args):
            with self:  # in inference mode what is made of other operators comes whole
                return func.decompose(*args, **kwargs)
        return self.run(name, func, args, kwargs)

    def takes_whole(self, name: str, args: Sequence[Any]) -> bool:
        """Tell whether an operator that is made of other operators is to come by `run` itself."""
        return False

    def run(self, name: str, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Run an operator, which subclasses do in a way of their own. In place or not, it has one name."""
        return func(*args, **kwargs)


@cache
def _name(func: Any) -> tuple[str, bool]:
    """Return the name of an operator, and whether it is made of other operators."""
    if isinstance(func, HigherOrderOperator):
        return str(func.__name__), False
    space, _, name = func._schema.name.partition("::")
    name = name if space == "aten" else f"{space}::{name}"
    return str(name if name.startswith("_") else name.rstrip("_")), space == "aten" and func._can_decompose()
