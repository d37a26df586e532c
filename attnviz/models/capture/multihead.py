"""F.multi_head_attention_forward, which nn.MultiheadAttention calls: asked for the weights of each head."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor
from torch.nn import functional

from attnviz.errors import InvalidRecord
from attnviz.models.capture.captured import (
    CapturedAttention,
    Kernel,
    check_error,
    find_allowed,
    refuse_dropout,
    renormalise,
    to_batch_heads,
)

SIGNATURE = inspect.signature(functional.multi_head_attention_forward)


def multi_head(
    kernel: Kernel, args: Sequence[Any], kwargs: Mapping[str, Any], what: str
) -> tuple[Any, CapturedAttention]:
    """What the caller asked torch's module for, and the weights of each head.

    Raises InvalidRecord where the call with weights gives another output than the one without.
    """
    bound = SIGNATURE.bind(*args, **kwargs)
    bound.apply_defaults()
    asked = bound.arguments
    refuse_dropout(asked["dropout_p"] if asked["training"] else 0.0, what)
    per_head = {**asked, "need_weights": True, "average_attn_weights": False}
    if asked["need_weights"]:
        output, own = kernel(**per_head)
        given = own.mean(dim=-3) if asked["average_attn_weights"] else own
        answer, again = (output, given), output
    else:
        answer = kernel(*args, **kwargs)
        with torch.no_grad(), torch._C.DisableTorchFunction():  # so that a capture around this one sees one call
            again, own = kernel(**per_head)
    with torch.no_grad(), torch._C.DisableTorchFunction():
        return answer, _split_up(asked, own.detach(), answer[0], again, what)


def _split_up(asked: Mapping[str, Any], own: Tensor, output: Tensor, again: Tensor, what: str) -> CapturedAttention:
    """Weights of tokens, and of the keys that the module adds behind them, which are no tokens."""
    n_keys = len(asked["key"]) if asked["static_k"] is None else asked["static_k"].shape[1]
    weights = to_batch_heads(own).to(torch.float32, copy=True)  # the caller may have asked for them, too
    attendable = _attendable_of_module(asked, (*weights.shape[:3], n_keys))
    nothing = ~attendable.any(dim=-1)
    sink = weights[..., n_keys:].sum(dim=-1) if weights.shape[-1] > n_keys else None
    weights = weights[..., :n_keys].masked_fill_(~attendable[:, None], 0)  # else NaN, or the same for every key
    if bool(weights.isnan().any()):
        raise InvalidRecord(f"{what} gives weights that are not a number", hint="Its input may hold NaN or infinity.")
    weights, sink, error = renormalise(weights, sink, own.dtype)
    if asked["need_weights"]:
        return CapturedAttention(weights, attendable, sink, "multiplied", error)
    error = check_error(max(error, _measure_error(output, again, nothing)), output.dtype, what)
    return CapturedAttention(weights, attendable, sink, "recomputed", error)


def _measure_error(output: Tensor, again: Tensor, nothing: Bool[Tensor, "batch query"]) -> float:
    """The difference of two outputs [query, (batch), d_model], besides rows where a query may attend to nothing."""
    besides = nothing.T.reshape(*output.shape[:-1], 1)
    difference = (output - again).masked_fill(besides, 0).abs().amax()
    largest = output.masked_fill(besides, 0).abs().amax()
    return float(difference) / max(float(largest), torch.finfo(torch.float32).tiny)


def _attendable_of_module(asked: Mapping[str, Any], shape: Sequence[int]) -> Bool[Tensor, "batch query key"]:
    """By any head. In the module's bool masks True forbids, in additive ones a very low number does."""
    n_batch, n_heads, n_queries, n_keys = shape
    attendable = torch.ones((), dtype=torch.bool, device=asked["query"].device).expand(n_batch, n_queries, n_keys)
    if asked["attn_mask"] is not None:
        passing = _passing(asked["attn_mask"])
        if passing.ndim == 3:
            passing = passing.view(n_batch, n_heads, n_queries, n_keys).any(dim=1)
        attendable = attendable & passing
    if asked["key_padding_mask"] is not None:
        attendable = attendable & _passing(asked["key_padding_mask"]).view(-1, 1, n_keys)
    return attendable


def _passing(mask: Tensor) -> Tensor:
    return ~mask if mask.dtype == torch.bool else find_allowed(mask)
