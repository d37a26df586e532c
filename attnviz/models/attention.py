"""Attention itself (Vaswani et al. 2017, arXiv:1706.03762). Knows torch; no texts, vocabularies or files."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from attnviz.errors import InvalidOption
from attnviz.models.sizes import head_size


def attention_weights(
    query: Float[Tensor, "*batch query d_head"],
    key: Float[Tensor, "*batch key d_head"],
    attendable: Bool[Tensor, "*#batch #query key"] | None = None,
    position_bias: Float[Tensor, "*#batch query key"] | None = None,
) -> Float[Tensor, "*batch query key"]:
    """softmax(q kᵀ / √d_head + position bias) over the attendable keys, section 3.2.1. Each row sums to 1.

    Raises InvalidOption when a query may attend to nothing: its softmax is undefined (NaN).
    """
    scores = query @ key.transpose(-2, -1)
    scores /= math.sqrt(query.shape[-1])  # in place, as is what follows: a layer's scores are large
    if position_bias is not None:
        scores += position_bias
    if attendable is not None and not attendable.all():
        _refuse_empty_rows(attendable)
        scores.masked_fill_(~attendable, -torch.inf)
    return scores.softmax(dim=-1)


def attend(
    weights: Float[Tensor, "*batch query key"], value: Float[Tensor, "*batch key d_value"]
) -> Float[Tensor, "*batch query d_value"]:
    """weights · value: for each query, the mean of the values under its weights."""
    return weights @ value


def fused(
    query: Float[Tensor, "*batch query d_head"],
    key: Float[Tensor, "*batch key d_head"],
    value: Float[Tensor, "*batch key d_head"],
    attendable: Bool[Tensor, "*#batch #query key"] | None = None,
    position_bias: Float[Tensor, "*#batch query key"] | None = None,
) -> Float[Tensor, "*batch query d_head"]:
    """`attend(attention_weights(query, key), value)` by a kernel of torch's that never holds the weights."""
    if attendable is not None:
        _refuse_empty_rows(attendable)
    mask = attendable
    if position_bias is not None:
        mask = position_bias if attendable is None else position_bias.masked_fill(~attendable, -torch.inf)
    return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)


def causal(n_tokens: int) -> Bool[Tensor, "query key"]:
    """Each token attends to itself and to what stands before it."""
    return torch.ones(n_tokens, n_tokens, dtype=torch.bool).tril()


def not_padding(real: Bool[Tensor, "*batch key"]) -> Bool[Tensor, "*batch 1 key"]:
    """No query attends to padding. `real` is True for each key that is a token of the text."""
    return real.unsqueeze(-2)


def _refuse_empty_rows(attendable: Tensor) -> None:
    empty = ~attendable.any(dim=-1)
    if empty.any():
        query = int(empty.nonzero()[0, -1])
        raise InvalidOption(
            f"query {query} may attend to no key", hint="Its weights are undefined; trim padding before attention."
        )


class AttentionOutput(NamedTuple):
    """What a module of attention gives: its output, and the weights of each of its heads unless they are not needed."""

    output: Float[Tensor, "*batch query d_model"]
    weights: Float[Tensor, "*batch head query key"] | None


class PositionBias(nn.Module):
    """A learned number per head and distance from query to key, added to the score (Raffel et al. 2020, section 2.1).

    Keys farther away than `max_distance` share the number of that distance, on either side (arXiv:1910.10683, whose
    buckets of distances are left out). The scores of a text are the same wherever it begins.
    """

    def __init__(self, n_heads: int, max_distance: int) -> None:
        super().__init__()
        self.max_distance = max_distance
        self.bias = nn.Parameter(torch.zeros(n_heads, 2 * max_distance + 1))

    def forward(self, n_queries: int, n_keys: int) -> Float[Tensor, "head query key"]:
        """The number that each head adds to a score, by how far the key lies from the query."""
        places = torch.arange(max(n_queries, n_keys), device=self.bias.device)
        distance = places[:n_keys] - places[:n_queries].unsqueeze(1)
        return self.bias[:, distance.clamp(-self.max_distance, self.max_distance) + self.max_distance]


class DotAttention(nn.Module):
    """One head without projections: queries, keys and values are the states themselves, and so is their mean."""

    def forward(
        self,
        queries: Float[Tensor, "*batch query d_model"],
        memory: Float[Tensor, "*batch key d_model"],
        attendable: Bool[Tensor, "*#batch #query key"] | None = None,
    ) -> AttentionOutput:
        """Attend from queries to memory. `attendable` is True where attention is allowed."""
        weights = attention_weights(queries, memory, attendable)
        return AttentionOutput(attend(weights, memory), weights.unsqueeze(-3))


class SingleHeadAttention(nn.Module):
    """One head over the whole width: one distribution per query, so one average of all it attends to.

    `queries` attend to `memory`; for self-attention both are the same.
    """

    def __init__(self, d_model: int, max_distance: int = 0) -> None:
        super().__init__()
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)
        self.position = PositionBias(1, max_distance) if max_distance else None

    def forward(
        self,
        queries: Float[Tensor, "*batch query d_model"],
        memory: Float[Tensor, "*batch key d_model"],
        attendable: Bool[Tensor, "*#batch #query key"] | None = None,
        *,
        need_weights: bool = True,
    ) -> AttentionOutput:
        """Attend from queries to memory with one head. `attendable` is True where attention is allowed."""
        query, key, value = self.query(queries), self.key(memory), self.value(memory)
        bias = None if self.position is None else self.position(query.shape[-2], key.shape[-2])
        if not need_weights:
            # The quick kernel wants an axis of heads.
            one_head = None if attendable is None else attendable.unsqueeze(-3)
            heads = fused(query.unsqueeze(-3), key.unsqueeze(-3), value.unsqueeze(-3), one_head, bias)
            return AttentionOutput(self.output(heads.squeeze(-3)), None)
        weights = attention_weights(query, key, attendable, None if bias is None else bias.squeeze(0))
        return AttentionOutput(self.output(attend(weights, value)), weights.unsqueeze(-3))


class MultiHeadAttention(nn.Module):
    """Attention in `n_heads` subspaces of d_model / n_heads each, concatenated and projected, section 3.2.2.

    As many parameters as one head of full width has. Raises InvalidOption when d_model is not divisible by n_heads.
    """

    def __init__(self, d_model: int, n_heads: int, max_distance: int = 0) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.d_head = head_size(d_model, n_heads)
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)
        self.position = PositionBias(n_heads, max_distance) if max_distance else None

    def forward(
        self,
        queries: Float[Tensor, "*batch query d_model"],
        memory: Float[Tensor, "*batch key d_model"],
        attendable: Bool[Tensor, "*#batch #query key"] | None = None,
        *,
        need_weights: bool = True,
    ) -> AttentionOutput:
        """Attend from queries to memory with every head. `attendable` is True where attention is allowed."""
        query, key, value = map(self._split, (self.query(queries), self.key(memory), self.value(memory)))
        every_head = None if attendable is None else attendable.unsqueeze(-3)
        bias = None if self.position is None else self.position(query.shape[-2], key.shape[-2])
        if not need_weights:
            return AttentionOutput(self.output(self._concatenate(fused(query, key, value, every_head, bias))), None)
        weights = attention_weights(query, key, every_head, bias)
        return AttentionOutput(self.output(self._concatenate(attend(weights, value))), weights)

    def _split(self, states: Float[Tensor, "*batch token d_model"]) -> Float[Tensor, "*batch head token d_head"]:
        return states.reshape(*states.shape[:-1], self.n_heads, self.d_head).transpose(-3, -2)

    def _concatenate(self, heads: Float[Tensor, "*batch head token d_head"]) -> Float[Tensor, "*batch token d_model"]:
        return heads.transpose(-3, -2).flatten(-2)
