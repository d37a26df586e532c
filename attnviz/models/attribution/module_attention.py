"""`F.multi_head_attention_forward`, which nn.MultiheadAttention calls, in its parts: weights, values and projection."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from attnviz.errors import InvalidModel
from attnviz.models.capture.captured import Kernel, to_batch_heads

SIGNATURE = inspect.signature(functional.multi_head_attention_forward)
UNSUPPORTED = ("bias_k", "bias_v", "static_k", "static_v", "add_zero_attn")  # keys that are no tokens


@dataclass(frozen=True, eq=False)
class ModuleAttention:
    """One call. `value` has a gradient where what it was made of has one; its bias is part of it."""

    weights: Float[Tensor, "batch head query key"]
    value: Float[Tensor, "batch head key d_value"]
    value_bias: Float[Tensor, "head 1 d_value"] | None
    output_weight: Float[Tensor, "d_model d_head_times_head"]
    output_bias: Float[Tensor, " d_model"] | None
    answered: Tensor | None  # the weights that the caller asked for
    batched: bool

    def mix_values(self) -> Float[Tensor, "batch head query d_value"]:
        """The mean of the values under the weights."""
        return self.weights @ self.value

    def project(self, mixed: Float[Tensor, "batch head query d_value"]) -> Tensor:
        """What the call gives: [query, batch, d_model], or [query, d_model] of a text without a batch."""
        output = functional.linear(mixed.permute(2, 0, 1, 3).flatten(-2), self.output_weight, self.output_bias)
        return output if self.batched else output.squeeze(1)


def module_attention(kernel: Kernel, args: Sequence[Any], kwargs: Mapping[str, Any]) -> ModuleAttention:
    """The parts of one call. Raises InvalidModel for keys that the module adds behind the tokens."""
    bound = SIGNATURE.bind(*args, **kwargs)
    bound.apply_defaults()
    asked, n_heads = bound.arguments, bound.arguments["num_heads"]
    added = [name for name in UNSUPPORTED if asked[name] is not None and asked[name] is not False]
    if added:
        raise InvalidModel(f"nn.MultiheadAttention with {added[0]} is not explained", hint="It adds keys of its own.")
    with torch.no_grad():
        _, weights = kernel(**{**asked, "need_weights": True, "average_attn_weights": False})
    batched, value = asked["value"].ndim == 3, asked["value"]
    value = value if batched else value.unsqueeze(1)
    weight = asked["v_proj_weight"] if asked["use_separate_proj_weight"] else asked["in_proj_weight"].chunk(3)[2]
    bias = None if asked["in_proj_bias"] is None else asked["in_proj_bias"].chunk(3)[2]
    projected = functional.linear(value, weight, bias)
    heads = projected.view(*projected.shape[:-1], n_heads, -1).permute(1, 2, 0, 3)
    answered = (weights.mean(dim=-3) if asked["average_attn_weights"] else weights) if asked["need_weights"] else None
    return ModuleAttention(
        weights=to_batch_heads(weights),
        value=heads,
        value_bias=None if bias is None else bias.view(n_heads, 1, -1),
        output_weight=asked["out_proj_weight"],
        output_bias=asked["out_proj_bias"],
        answered=answered,
        batched=batched,
    )
