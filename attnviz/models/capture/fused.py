"""Kernels that attend within one operator: what they were given, from which their weights are worked out beside them.

torch has them behind scaled_dot_product_attention, behind nn.MultiheadAttention and nn.TransformerEncoderLayer in
evaluation, and as flex_attention, whose changes to the scores come as code. The kernel that the model chose runs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from attnviz.models.capture.follow import Operation
from attnviz.models.capture.kernels import Asked

SIGNS = (
    "attention",
    "attn",
    "transformer_encoder",
    "transformer_decoder",
)  # in the names of kernels, whoever wrote them
NAMES = {"attn_bias": "attn_mask"}  # where a kernel's arguments have another name than the function's
FIELDS = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale")


def is_kernel(name: str) -> bool:
    """Whether an operator attends, by its name."""
    return any(sign in name for sign in SIGNS) and "backward" not in name


def read_kernel(of: Operation) -> tuple[Asked, Tensor | None, Tensor | None] | None:
    """Return what a kernel was asked for, what it gave of that where it says so, and its log-sum-exp; None: unknown."""
    if of.name == "flex_attention":
        return _read_flex(of)
    given = _name_arguments(of)
    if of.name.startswith("_scaled_dot_product"):
        asked = {NAMES.get(name, name): value for name, value in given.items()}
        sums = of.result[1] if of.name.endswith("for_cpu") else None
        return Asked(**{name: asked[name] for name in FIELDS if name in asked}), of.result[0], sums
    if of.name == "_native_multi_head_attention":
        parts = given["qkv_weight"], given["qkv_bias"]
        sides = [_pad(given[side]) for side in ("query", "key", "value")]
        return _project(sides, *parts, given["num_head"], _mask(given)), None, None
    if of.name == "_transformer_encoder_layer_fwd":
        states = _pad(given["src"])
        if given["norm_first"]:
            norm = given["norm_weight_1"], given["norm_bias_1"], given["eps"]
            states = functional.layer_norm(states, states.shape[-1:], *norm)
        mask = _within(given["src"]) if given["src"].is_nested else _mask(given)
        return _project([states] * 3, given["qkv_weight"], given["qkv_bias"], given["num_heads"], mask), None, None
    return None


def _name_arguments(of: Operation) -> dict[str, Any]:
    arguments = of.function._schema.arguments
    found = {each.name: each.default_value for each in arguments if each.has_default_value()}
    return found | dict(zip((each.name for each in arguments), of.args, strict=False)) | of.kwargs


def _pad(states: Tensor) -> Tensor:
    return states.to_padded_tensor(0.0) if states.is_nested else states


def _within(nested: Tensor) -> Tensor:
    """Which keys of each text there are."""
    lengths = torch.tensor([len(text) for text in nested.unbind()])
    return (torch.arange(int(lengths.max())) < lengths[:, None])[:, None, None]


def _mask(given: dict[str, Any]) -> Tensor | None:
    """[text, 1, query, key], True where attention is allowed. Types are those of torch: 0 a square, 1 padding."""
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


def _read_flex(of: Operation) -> tuple[Asked, Tensor, None]:
    """Whatever a score is changed to is the same as a bias, which is what it is changed by."""
    query, key, value, score_mod, block_mask, scale, options, *buffers = (*of.args, *of.kwargs.values())
    n_shared = query.shape[1] // key.shape[1]
    key, value = (side.repeat_interleave(n_shared, dim=1).expand(len(query), -1, -1, -1) for side in (key, value))
    work_out = sys.modules[type(of.function).__module__]._math_attention_inner
    before, after = work_out(query, key, value, score_mod, block_mask, scale, options, *buffers)
    bias = (after - before).to(query.dtype)
    output = of.result[0] if isinstance(of.result, tuple) else of.result
    return Asked(query, key, value, bias, scale=scale), output, None
