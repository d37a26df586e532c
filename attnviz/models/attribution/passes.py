"""Passes of a model seen from inside or changed: word vectors with a gradient, attentions in parts, other attention.

A model reads ids, and the vectors that `functional.embedding` looks up for them are put in by hand: no model has to
offer a way to read vectors. A kernel gives no weights and none have to be in the graph for their gradient:
∂L/∂A_ij = (∂L/∂O_i) · v_j. Knows torch and no model, and works under every kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from attnviz.errors import InvalidModel
from attnviz.models.attribution.functions import SOFTMAXES, WrittenOut, factors
from attnviz.models.attribution.module_attention import module_attention
from attnviz.models.attribution.norms import projection_of
from attnviz.models.capture.captured import Kernel, find_allowed, to_batch_heads
from attnviz.models.capture.kernels import dot_product

Change = Callable[[Tensor], Tensor]
Replacement = Literal["permuted", "uniform", "random"]
Weights = Float[Tensor, "batch head query key"]
Allowed = Bool[Tensor, "batch #head query key"]


class WordInputs(TorchFunctionMode):
    """While it is open, the vectors looked up in `words` have a gradient. `change` makes others of them."""

    def __init__(self, words: Tensor, change: Change | None = None) -> None:
        super().__init__()
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

    def __torch_function__(
        self, function: Kernel, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if function is functional.embedding and (args[1] if len(args) > 1 else kwargs["weight"]) is self._words:
            vectors = function(*args, **kwargs).detach()
            if self._change is not None:
                vectors = self._change(vectors)
            self._found.append(vectors if vectors.requires_grad else vectors.requires_grad_())
            return self._found[-1]
        return self.compute(function, args, kwargs)

    def compute(self, function: Kernel, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Any other function, which subclasses compute in a way of their own."""
        return function(*args, **kwargs)


@dataclass(eq=False)
class TracedAttention:
    """One attention. `mixed` is in the graph: weights · value, before heads are put together."""

    weights: Float[Tensor, "batch head query key"]
    value: Tensor  # [batch, group, key, d_value]: of grouped-query attention, fewer groups than heads
    mixed: Float[Tensor, "*batch_head query d_value"]  # DeBERTa multiplies with batch and heads as one axis
    projection: Float[Tensor, "d_model head d_value"] | None = None  # None: no linear layer came behind it

    def weight_gradient(self, of_mixed: Tensor) -> Float[Tensor, "batch head query key"]:
        """∂L/∂A from ∂L/∂O, the gradient of `mixed`."""
        return to_batch_heads(of_mixed) @ self.values_of_heads().transpose(-2, -1)

    def values_of_heads(self) -> Float[Tensor, "batch head key d_value"]:
        """The values that each head mixes."""
        value, n_heads = to_batch_heads(self.value.detach()), self.weights.shape[1]
        return value if value.shape[1] == n_heads else value.repeat_interleave(n_heads // value.shape[1], dim=1)

    def value_norms(self) -> Float[Tensor, "batch head key"] | None:
        """‖v_j W_O‖ of each head: times a weight, how much of the output it moves (Kobayashi et al. 2020)."""
        if self.projection is None:
            return None
        moved = torch.einsum("bhkd,mhd->bhkm", self.values_of_heads(), self.projection.detach())
        return torch.as_tensor(torch.linalg.vector_norm(moved, dim=-1))


class TracedPass(WordInputs):
    """One pass of a model, whose attentions are kept in their order."""

    def __init__(self, words: Tensor) -> None:
        super().__init__(words)
        self.attentions: list[TracedAttention] = []
        self._written_out = WrittenOut()

    def compute(self, function: Kernel, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The function's own result; of attention its parts are kept."""
        if function is functional.scaled_dot_product_attention:
            output, seen = dot_product(function, args, kwargs, "an attention")
            value = args[2] if len(args) > 2 else kwargs["value"]
            self.attentions.append(TracedAttention(seen.weights, value, output))
            return output
        if function is functional.multi_head_attention_forward:
            found = module_attention(function, args, kwargs)
            mixed = found.mix_values()
            heads = found.output_weight.view(len(found.output_weight), found.weights.shape[1], -1)
            self.attentions.append(TracedAttention(found.weights, found.value, mixed, heads))
            return found.project(mixed), found.answered
        result = function(*args, **kwargs)
        with torch.no_grad(), torch._C.DisableTorchFunction():
            multiplied = self._written_out.look(function, args, kwargs, result)
        if multiplied is not None:
            _, value = factors(function, args, kwargs)
            self.attentions.append(TracedAttention(multiplied.float(), value, result))
            return result
        if self.attentions and (last := self.attentions[-1]).projection is None:
            with torch.no_grad(), torch._C.DisableTorchFunction():
                last.projection = projection_of(last.mixed, function, args, kwargs)
        return result


class ReplacedAttention(TorchFunctionMode):
    """While it is open, every head attends otherwise: does an answer need the weights of its model, or just any?

    Permuted within each row, as Jain & Wallace (2019, arXiv:1902.10186, section 4.2.1) did; alike for every key, as
    Wiegreffe & Pinter (2019, arXiv:1908.04626, section 3) did; or frozen to random numbers. To be opened anew for each
    pass; the seed says what is random.
    """

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
            weights = self._replace(seen.weights, seen.attendable.unsqueeze(1).to(seen.weights.device))
            return (weights.to(value.dtype) @ value).reshape(output.shape)
        if function is functional.multi_head_attention_forward:
            found = module_attention(function, args, kwargs)
            return found.project(self._replace(found.weights, found.weights > 0) @ found.value), found.answered
        scores = args[0] if args else kwargs.get("input")
        if function in SOFTMAXES and isinstance(scores, Tensor) and scores.ndim == 4:
            attendable = find_allowed(scores.detach())  # before the softmax, which may overwrite its scores
            result = function(*args, **kwargs)
            return self._replace(result, attendable).to(result.dtype)
        return function(*args, **kwargs)

    def _replace(self, weights: Weights, attendable: Allowed) -> Weights:
        generator = torch.Generator().manual_seed(self._seed * 1_000_003 + self.n_replaced)
        self.n_replaced += 1
        return self._by(weights, attendable.expand(weights.shape), generator)


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
