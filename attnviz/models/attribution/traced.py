"""Each attention of one pass in its parts, under any kernel: weights, values, output and the projection behind it.

A kernel gives no weights and none have to be in the graph for their gradient: ∂L/∂A_ij = (∂L/∂O_i) · v_j. Knows torch
and no model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from attnviz.models.attribution.inputs import WordInputs
from attnviz.models.capture.by_hand import WATCHED, SoftmaxTracker, TorchCall, factors
from attnviz.models.capture.captured import Kernel, to_batch_heads
from attnviz.models.capture.kernels import dot_product
from attnviz.models.capture.module_attention import module_attention
from attnviz.models.capture.norms import projection_of


@dataclass(eq=False)
class TracedAttention:
    """One attention. `mixed` is in the graph: weights · value, before heads are put together."""

    weights: Float[Tensor, "batch head query key"]
    value: Tensor  # [batch, group, key, d_value]: of grouped-query attention, fewer groups than heads
    mixed: Float[Tensor, "batch head query d_value"]
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
        self._softmaxes = SoftmaxTracker()

    def compute(self, function: Kernel, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The function's own result; of attention its parts are kept."""
        if function is functional.scaled_dot_product_attention:
            output, seen = dot_product(function, args, kwargs, "an attention")
            value = args[2] if len(args) > 2 else kwargs["value"]
            self.attentions.append(TracedAttention(seen.weights, value, output))
            return output
        if function is functional.multi_head_attention_forward:
            found = module_attention(function, args, kwargs)
            mixed = found.mixed()
            heads = found.output_weight.view(len(found.output_weight), found.weights.shape[1], -1)
            self.attentions.append(TracedAttention(found.weights, found.value, mixed, heads))
            return found.project(mixed), found.answered
        if function in WATCHED:
            result, multiplied = self._softmaxes.look(TorchCall(function, args, kwargs), (), lambda: "an attention")
            if multiplied is not None:
                _, value = factors(function, args, kwargs)
                self.attentions.append(TracedAttention(multiplied.weights, value, result))
            return result
        if self.attentions and (last := self.attentions[-1]).projection is None:
            with torch.no_grad(), torch._C.DisableTorchFunction():
                last.projection = projection_of(last.mixed, function, args, kwargs)
        return function(*args, **kwargs)
