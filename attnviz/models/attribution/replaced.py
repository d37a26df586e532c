"""A pass whose attention is replaced: does an answer need the weights that a model works out, or just any?

Permuted within each row, as Jain & Wallace (2019, arXiv:1902.10186, section 4.2.1) did; alike for every key, as
Wiegreffe & Pinter (2019, arXiv:1908.04626, section 3) did; or frozen to random numbers. Knows torch and no model, and
works under every kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from attnviz.models.capture.by_hand import SOFTMAXES
from attnviz.models.capture.captured import Kernel, allowed, to_batch_heads
from attnviz.models.capture.kernels import dot_product
from attnviz.models.capture.module_attention import module_attention

Replacement = Literal["permuted", "uniform", "random"]
Weights = Float[Tensor, "batch head query key"]
Allowed = Bool[Tensor, "batch #head query key"]


class ReplacedAttention(TorchFunctionMode):
    """While it is open, every head attends otherwise. To be opened anew for each pass; the seed says what is random."""

    def __init__(self, by: Replacement, seed: int = 0) -> None:
        super().__init__()
        self.n_replaced = 0  # attentions
        self._by, self._seed = REPLACEMENTS[by], seed

    def __torch_function__(
        self, function: Kernel, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if function is functional.scaled_dot_product_attention:
            output, seen = dot_product(function, args, kwargs, "an attention")
            value = to_batch_heads(args[2] if len(args) > 2 else kwargs["value"])
            n_heads = seen.weights.shape[1]
            value = value if value.shape[1] in (1, n_heads) else value.repeat_interleave(n_heads // value.shape[1], 1)
            weights = self._replaced(seen.weights, seen.attendable.unsqueeze(1).to(seen.weights.device))
            return (weights.to(value.dtype) @ value).reshape(output.shape)
        if function is functional.multi_head_attention_forward:
            found = module_attention(function, args, kwargs)
            return found.project(self._replaced(found.weights, found.weights > 0) @ found.value), found.answered
        scores = args[0] if args else kwargs.get("input")
        if function in SOFTMAXES and isinstance(scores, Tensor) and scores.ndim == 4:
            attendable = allowed(scores.detach())  # before the softmax, which may overwrite its scores
            result = function(*args, **kwargs)
            return self._replaced(result, attendable).to(result.dtype)
        return function(*args, **kwargs)

    def _replaced(self, weights: Weights, attendable: Allowed) -> Weights:
        generator = torch.Generator().manual_seed(self._seed * 1_000_003 + self.n_replaced)
        self.n_replaced += 1
        return self._by(weights, attendable.expand(weights.shape), generator)


def _permuted(weights: Weights, attendable: Allowed, generator: torch.Generator) -> Weights:
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
    "permuted": _permuted,
    "uniform": _uniform,
    "random": _random,
}
