"""Kernels that attend within one operator: what they were given, from which their weights are worked out beside them.

torch has them behind scaled_dot_product_attention, behind nn.MultiheadAttention and nn.TransformerEncoderLayer in
evaluation, and as flex_attention, whose changes to the scores come as code. The kernel that the model chose runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from attnviz.models.capture.follow import Operation
from attnviz.models.capture.kernels import Asked

# In the names of kernels, whoever wrote them.
SIGNS = ("attention", "attn", "transformer_encoder", "transformer_decoder")
NAMES = {"attn_bias": "attn_mask"}  # where a kernel's arguments have another name than the function's
FIELDS = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale")


def is_kernel(name: str) -> bool:
    """Tell whether an operator attends, by its name."""
    return any(sign in name for sign in SIGNS) and "backward" not in name


class Fused(NamedTuple):
    """A kernel that attends, read."""

    asked: Asked
    output: Tensor  # what it gave
    sums: Tensor | None = None  # its log-sum-exp, where it gives that
    finish: Callable[[Tensor], Tensor] | None = None  # what it does to weights · value before it gives them


def read_kernel(of: Operation) -> Fused | None:
    """Return what a kernel was asked for and what it gave; None where it is not known."""
    if of.name == "flex_attention":
        return _read_flex(of)
    arguments = of.function._schema.arguments
    given = {each.name: each.default_value for each in arguments if each.has_default_value()} | of.arguments
    output = of.results[0]
    if of.name.startswith("_scaled_dot_product"):
        named = {NAMES.get(name, name): value for name, value in given.items()}
        sums = of.result[1] if of.name.endswith("for_cpu") else None
        return Fused(Asked(**{name: named[name] for name in FIELDS if name in named}), output, sums)
    if of.name not in ("_native_multi_head_attention", "_transformer_encoder_layer_fwd"):
        return None
    within, behind = ((given[f"{part}_weight"], given[f"{part}_bias"]) for part in ("qkv", "proj"))
    if of.name == "_native_multi_head_attention":
        sides = [_pad(given[side]) for side in ("query", "key", "value")]
        asked = _project(sides, *within, given["num_head"], _mask(given["query"], given))
        return Fused(asked, output, finish=lambda mixed: functional.linear(mixed, *behind))
    states, first = _pad(given["src"]), _norm(given, 1)
    mask, read = _mask(given["src"], given), first(states) if given["norm_first"] else states
    asked = _project([read] * 3, *within, given["num_heads"], mask)

    def finish(mixed: Tensor) -> Tensor:
        after, second = states + functional.linear(mixed, *behind), _norm(given, 2)
        after = after if given["norm_first"] else first(after)
        inner = functional.linear(second(after) if given["norm_first"] else after, *_layer(given, 1))
        activate = functional.gelu if given["use_gelu"] else functional.relu
        after = after + functional.linear(activate(inner), *_layer(given, 2))
        return after if given["norm_first"] else second(after)

    return Fused(asked, output, finish=finish)


def _norm(given: dict[str, Any], number: int) -> Callable[[Tensor], Tensor]:
    parts = given[f"norm_weight_{number}"], given[f"norm_bias_{number}"], given["eps"]
    return lambda states: functional.layer_norm(states, states.shape[-1:], *parts)


def _layer(given: dict[str, Any], number: int) -> tuple[Tensor, Tensor]:
    return given[f"ffn_weight_{number}"], given[f"ffn_bias_{number}"]


def _pad(states: Tensor) -> Tensor:
    return states.to_padded_tensor(0.0) if states.is_nested else states


def _mask(states: Tensor, given: dict[str, Any]) -> Tensor | None:
    """Return [text, 1, query, key], True where attention is allowed. Types are those of torch: 0 a square, 1 padding.

    Of texts of several lengths these say it.
    """
    if states.is_nested:
        lengths = torch.tensor([len(text) for text in states.unbind()])
        return (torch.arange(int(lengths.max())) < lengths[:, None])[:, None, None]
    mask, kind = given["mask"], given["mask_type"]
    if mask is None:
        return None
    allowed: Tensor = ~mask if mask.dtype == torch.bool else mask > -torch.inf
    return allowed[:, None, None] if kind == 1 and allowed.ndim == 2 else allowed


def _project(states: list[Tensor], weight: Tensor, bias: Tensor | None, n_heads: int, mask: Tensor | None) -> Asked:
    biases: Sequence[Tensor | None] = (None,) * 3 if bias is None else bias.chunk(3)
    query, key, value = (
        functional.linear(of, of_weight, of_bias).view(*of.shape[:-1], n_heads, -1).transpose(1, 2)
        for of, of_weight, of_bias in zip(states, weight.chunk(3), biases, strict=True)
    )
    return Asked(query, key, value, attn_mask=mask)


def _read_flex(of: Operation) -> Fused:
    """Read flex_attention: whatever a score is changed to is the same as a bias, which is what it is changed by."""
    query, key, value, score_mod, block_mask, scale, options, *buffers = (*of.args, *of.kwargs.values())
    n_shared = query.shape[1] // key.shape[1]
    key, value = (side.repeat_interleave(n_shared, dim=1).expand(len(query), -1, -1, -1) for side in (key, value))
    work_out = sys.modules[type(of.function).__module__]._math_attention_inner
    before, after = work_out(query, key, value, score_mod, block_mask, scale, options, *buffers)
    bias = (after - before).to(query.dtype)
    return Fused(Asked(query, key, value, bias, scale=scale), of.results[0])
