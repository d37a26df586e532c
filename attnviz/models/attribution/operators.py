"""Operators as a pass runs them, one after another, and those among them that attend: seen where `record` sees them.

At the dispatcher every way to write a thing has become one of a few operators. Attention is known by the rule of
`capture`, and by no other: what runs within a capture is handed over as soon as it has attended, and `Attending` says
which operator that was, so that its values, its output and the projection behind it are at hand, in the graph.

The dispatcher lies below autograd. Numbers can be changed there, gradients cannot: they are changed on the node that
autograd makes for an operator right after it ran (see `held`).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from attnviz.errors import InvalidModel
from attnviz.models.attention import Norms, value_norms
from attnviz.models.capture.call import Call
from attnviz.models.capture.captured import is_kernel
from attnviz.models.capture.tap import Operators, capture

LINEAR = ("mm", "addmm")  # a linear layer is one of them; what it reads and its weight [read, given] come last
ROUNDED = 0.02  # by how much an output in half precision may miss, as a share of the largest value


class WordInputs(Operators):
    """While it is open, the vectors looked up in `words` have a gradient.

    A model reads ids: so none has to offer a way to read vectors, and it works under every kernel.
    """

    def __init__(self, words: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._words = words
        self._found: list[Tensor] = []

    @property
    def vectors(self) -> Tensor:
        """Return the word embeddings of the pass, [text, token, d].

        Raises InvalidModel for a model that looks its words up twice, or not at all.
        """
        if len(self._found) != 1:
            raise InvalidModel(
                f"the words are looked up {len(self._found)} times in one pass, where one is explained",
                hint="Explained are encoders and decoders that read one text; of encoder-decoders none is.",
            )
        return self._found[0]

    def run(self, name: str, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Run an operator. What it gives for words is a leaf of the graph."""
        result = super().run(name, func, args, kwargs)
        if name == "embedding" and args[0] is self._words:
            self._found.append(result.requires_grad_())
        return result


@dataclass(eq=False)
class AttendingCall:
    """One attention: its weights, and the operator that multiplied them with values."""

    call: Call
    value: Tensor  # [… group key d_value] as the operator read it: of grouped-query attention, fewer groups than heads
    mixed: Tensor  # [… head query d_value] as it gave it, in the graph
    turned: bool = False  # whether it multiplied values with weights, and not weights with values
    read_by: Tensor | None = None  # [head · d_value, d_model]: the weight of the linear layer that reads all heads

    @property
    def weights(self) -> Float[Tensor, "row head query key"]:
        """Return the weights after softmax; a row is a text."""
        return torch.from_numpy(self.call.weights).to(self.mixed.device)

    @property
    def n_heads(self) -> int:
        """Count all heads of the model, also where some were chosen."""
        return self.call.n_heads_in_model or self.call.kept.shape[1]

    @property
    def is_in_order(self) -> bool:
        """Check that the weights, whose rows were ordered by text and head, reproduce the output as it stands."""
        value = self.by_head(self.value).float()
        missed = (self.weights @ value - self.by_head(self.mixed).float()).abs().amax()
        return bool(missed <= ROUNDED * value.abs().amax())

    def by_head(self, of: Tensor) -> Float[Tensor, "row head place d_value"]:
        """Lay out values, the output, or its gradient."""
        of = of.detach().mT if self.turned else of.detach()
        groups = of.reshape(self.call.kept.shape[0], -1, *of.shape[-2:])
        return groups.repeat_interleave(self.n_heads // groups.shape[1], dim=1)

    def weight_gradient(self, of_mixed: Tensor) -> Float[Tensor, "row head query key"]:
        """Compute ∂L/∂A from ∂L/∂O, the gradient of `mixed`: (∂L/∂O_i) · v_j. No weights need be in the graph."""
        return self.by_head(of_mixed) @ self.by_head(self.value).mT

    def value_norms(self) -> Norms:
        """Compute ‖v_j W_O‖ of each head of the first text (Kobayashi et al. 2020), where a projection was found."""
        assert self.read_by is not None
        return value_norms(self.by_head(self.value)[0], self.read_by.T.reshape(self.read_by.shape[1], self.n_heads, -1))


class Attending(Operators):
    """Opened within a capture that hands its calls to `calls`: tells of each attention, and once it is projected.

    A projection is known by its input: the very numbers that the attention before it gave, its heads side by side.
    """

    def __init__(
        self,
        calls: Sequence[Call],
        attended: Callable[[AttendingCall], object] = lambda _: None,
        projected: Callable[[AttendingCall], object] = lambda _: None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._calls, self._attended, self._projected = calls, attended, projected
        self._last: AttendingCall | None = None  # whose projection has not been found

    def run(self, name: str, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Run an operator, and look whether it attended or projected what did."""
        n_before = len(self._calls)
        result = func(*args, **kwargs)
        with _disable_current_modes():
            if len(self._calls) > n_before:
                self._last = found = _read_operator(self._calls[-1], name, args, result)
                if found is not None:
                    self._attended(found)
            elif (
                self._last is not None
                and name in LINEAR
                and reads_heads(args[-2], self._last.by_head(self._last.mixed))
            ):
                self._last.read_by = args[-1].detach()
                self._projected(self._last)
                self._last = None
        return result


@contextmanager
def attending(**told: Callable[[AttendingCall], object]) -> Iterator[None]:
    """Tell of every attention that runs in the block. Raises InvalidRecord as `capture` does."""
    calls: list[Call] = []
    with capture(calls.append), Attending(calls, **told):
        yield


def _read_operator(call: Call, name: str, args: Sequence[Any], result: Any) -> AttendingCall | None:
    """Find the values of an operator that attended; None where it projects them itself, or sums element by element.

    In a product one side has rows that sum to one. The operator has an axis of rows and heads, as the weights have.
    """
    if name.startswith("_scaled_dot_product") or name == "flex_attention":
        found = AttendingCall(call, args[2], result[0] if isinstance(result, tuple) else result)
    elif is_kernel(name) or not isinstance(args[-1], Tensor) or args[-1].ndim < 2:
        return None
    else:
        left, right = args[-2:]
        missed = [(side.sum(axis) - 1).abs().mean() for side, axis in ((left, -1), (right, -2))]
        turned = bool(missed[1] < missed[0])
        found = AttendingCall(call, left if turned else right, result, turned)
    n_rows, _, *sizes = call.kept.shape
    output, value = ((each.mT if found.turned else each).shape for each in (found.mixed, found.value))
    n_heads, n_groups = output[:-2].numel(), value[:-2].numel()
    is_by_head = n_heads == n_rows * found.n_heads and n_groups % n_rows == 0 and n_heads % n_groups == 0
    return found if is_by_head and [output[-2], value[-2]] == sizes else None


def reads_heads(state: Tensor, heads: Float[Tensor, "row head query d_value"]) -> bool:
    """Tell whether a linear layer reads just what an attention gave, its heads side by side."""
    if state.numel() != heads.numel() or state.shape[-1] != heads.shape[1] * heads.shape[3]:
        return False
    return torch.equal(heads.transpose(1, 2).reshape(state.shape), state.detach())
