"""Passes of a model seen from inside or changed: word vectors with a gradient, and attention that is another.

A model reads ids, and the vectors that are looked up for them get a gradient, or others are put in their place: no
model has to offer a way to read vectors. Knows torch and no model, and works under every kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnviz.errors import InvalidModel
from attnviz.models.attribution.operators import AttendingCall, Operators, attending

Change = Callable[[Tensor], Tensor]
Replacement = Literal["permuted", "uniform", "random"]
Weights = Float[Tensor, "row head query key"]
Allowed = Bool[Tensor, "row #head query key"]


class WordInputs(Operators):
    """While it is open, the vectors looked up in `words` have a gradient. `change` makes others of them."""

    def __init__(self, words: Tensor, change: Change | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._words, self._change = words, change
        self._found: list[Tensor] = []

    @property
    def vectors(self) -> Tensor:
        """[text, token, d]. Raises InvalidModel for a model that looks its words up twice, or not at all."""
        if len(self._found) != 1:
            raise InvalidModel(
                f"the words are looked up {len(self._found)} times in one pass, where one is explained",
                hint="Explained are encoders and decoders that read one text; of encoder-decoders none is.",
            )
        return self._found[0]

    def run(self, name: str, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Run an operator. What it gives for words is a leaf of the graph, unless they were changed."""
        result = super().run(name, func, args, kwargs)
        if name == "embedding" and args[0] is self._words:
            result = result if self._change is None else self._change(result)
            self._found.append(result if result.requires_grad else result.requires_grad_())
        return result


@contextmanager
def replace_attention(by: Replacement, seed: int = 0) -> Iterator[list[AttendingCall]]:
    """While it is open, every head attends otherwise: does an answer need the weights of its model, or just any?

    Permuted within each row, as Jain & Wallace (2019, arXiv:1902.10186, section 4.2.1) did; alike for every key, as
    Wiegreffe & Pinter (2019, arXiv:1908.04626, section 3) did; or frozen to random numbers. To be opened anew for each
    pass; the seed says what is random. Yields the attentions that were replaced.
    """
    found: list[AttendingCall] = []

    def replace(attention: AttendingCall) -> None:
        if not attention.is_in_order:
            return
        generator = torch.Generator().manual_seed(seed * 1_000_003 + len(found))
        weights, mixed = attention.weights, attention.mixed
        allowed = torch.tensor(attention.call.attendable, device=mixed.device).unsqueeze(1)
        other = REPLACEMENTS[by](weights, allowed.expand(weights.shape), generator)
        output = other.to(mixed.dtype) @ attention.by_head(attention.value)
        mixed.copy_((output.mT if attention.turned else output).reshape(mixed.shape))
        found.append(attention)

    with attending(attended=replace):
        yield found


def _permute(weights: Weights, attendable: Allowed, generator: torch.Generator) -> Weights:
    """Each row's weights in a random order among the keys that it may attend to."""
    noise = torch.rand(weights.shape, generator=generator).to(weights.device)
    order = noise.masked_fill(~attendable, 2.0).argsort(dim=-1)  # attendable keys first, in a random order
    first = attendable.to(torch.int8).argsort(dim=-1, descending=True, stable=True)  # the same keys in their order
    return torch.zeros_like(weights).scatter(-1, first, weights.gather(-1, order))


def _uniform(weights: Weights, attendable: Allowed, generator: torch.Generator) -> Weights:
    """As much for each key that a row may attend to."""
    return (attendable / attendable.sum(dim=-1, keepdim=True).clamp(min=1)).to(weights.dtype)


def _random(weights: Weights, attendable: Allowed, generator: torch.Generator) -> Weights:
    """Shares of exponential numbers, which spread over all distributions evenly; nothing of the text is in them."""
    drawn = -torch.rand(weights.shape, generator=generator).clamp(min=1e-12).log().to(weights.device)
    drawn = drawn * attendable
    return (drawn / drawn.sum(dim=-1, keepdim=True).clamp(min=torch.finfo(drawn.dtype).tiny)).to(weights.dtype)


REPLACEMENTS: dict[Replacement, Callable[[Weights, Allowed, torch.Generator], Weights]] = {
    "permuted": _permute,
    "uniform": _uniform,
    "random": _random,
}
