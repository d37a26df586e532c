"""What is known of a softmax and of its copies, until it is multiplied. Knows tensors; not how they are followed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float32
from torch import Tensor

from attnviz.models.capture.captured import CapturedAttention, renormalise, to_batch_heads


@dataclass(frozen=True, eq=False)
class Softmax:
    """What is known of a tensor that a softmax gave, or of a copy of it."""

    family: int  # the softmax and its copies
    shape: tuple[int, ...]  # [… head query key], also where a copy has other axes
    attendable: Bool[Tensor, "*axes query key"] | None  # None: every key
    sink: Float32[Tensor, "*axes query"] | None = None  # the share of columns that were cut off
    dropped: float = 0.0  # the share of the weights that dropout took


def query_first(softmax: Softmax, n_positions: Sequence[int]) -> bool | None:
    """Whether weights of 4 axes are [batch query head key], where all heads share their values; None: not known.

    By the positions that the module read, else by what its mask differs along, else by the number of keys.
    """
    n_batch, second, third, n_keys = softmax.shape
    for evidence in (
        (n_batch * second in n_positions, n_batch * third in n_positions),
        (_differs_along(softmax.attendable, 1), _differs_along(softmax.attendable, 2)),
        (second == n_keys, third == n_keys),
    ):
        if evidence[0] != evidence[1]:
            return evidence[0]
    return None


def _differs_along(attendable: Bool[Tensor, "*axes query key"] | None, axis: int) -> bool:
    return attendable is not None and bool((attendable != attendable.narrow(axis, 0, 1)).any())


def head_first(softmax: Softmax) -> Softmax:
    """[batch head query key] of [batch query head key]."""
    n_batch, n_queries, n_heads, n_keys = softmax.shape
    attendable = None if softmax.attendable is None else softmax.attendable.transpose(1, 2)
    sink = None if softmax.sink is None else softmax.sink.transpose(1, 2)
    return replace(softmax, shape=(n_batch, n_heads, n_queries, n_keys), attendable=attendable, sink=sink)


def read_product(softmax: Softmax, multiplied: Tensor) -> CapturedAttention:
    """Return weights as they were multiplied, but for `renormalise`. Both have the axes of the softmax, or fewer."""
    weights = to_batch_heads(multiplied.reshape(softmax.shape)).to(torch.float32, copy=True)
    n_batch, _, n_queries, n_keys = weights.shape
    sink = None if softmax.sink is None else to_batch_heads(softmax.sink.unsqueeze(-1)).squeeze(-1)
    if softmax.attendable is None:
        attendable = torch.ones((), dtype=torch.bool).expand(n_batch, n_queries, n_keys)
    else:
        by_any = to_batch_heads(softmax.attendable)
        attendable = by_any.any(dim=1)
        weights.masked_fill_(~attendable.unsqueeze(1), 0)  # else the same for every key, or what -100 leaves of one
    weights, sink, error = renormalise(weights, sink, multiplied.dtype)
    return CapturedAttention(weights, attendable, sink, "multiplied", error)


def reshape_softmax(softmax: Softmax, shape: tuple[int, ...]) -> Softmax:
    """The same softmax over tensors of another shape."""
    attendable = None if softmax.attendable is None else softmax.attendable.reshape(shape)
    sink = None if softmax.sink is None else softmax.sink.reshape(shape[:-1])
    return replace(softmax, shape=shape, attendable=attendable, sink=sink)


def note_shape(softmax: Softmax, result: Tensor) -> Softmax | None:
    """Of a copy with other axes. One with an axis for the heads says more than one in which they are merged."""
    if result.shape[-2:] != softmax.shape[-2:] or result.numel() != math.prod(softmax.shape):
        return None
    more = len(softmax.shape) == 3 and result.ndim > 3
    return reshape_softmax(softmax, tuple(result.shape)) if more else softmax


def note_slice(softmax: Softmax, source: Tensor, result: Tensor) -> Softmax | None:
    """Of all columns but the last ones: what they held goes to no key."""
    n_kept, n_columns = result.shape[-1] if result.ndim else 0, source.shape[-1]
    if result.shape[:-1] != source.shape[:-1] or result.data_ptr() != source.data_ptr() or not n_kept:
        return None
    if n_kept == n_columns:
        return softmax
    shape = (*softmax.shape[:-1], n_kept)
    sink = source[..., n_kept:].float().sum(dim=-1).reshape(shape[:-1])
    return replace(
        softmax,
        shape=shape,
        attendable=None if softmax.attendable is None else softmax.attendable[..., :n_kept],
        sink=sink if softmax.sink is None else softmax.sink + sink,
    )
