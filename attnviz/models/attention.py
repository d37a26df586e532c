"""Attention itself (Vaswani et al. 2017, arXiv:1706.03762). Knows torch; no texts, vocabularies or files."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32
from torch import Tensor, nn
from torch.nn import functional

from attnviz.errors import InvalidOption
from attnviz.models.sizes import head_size

SCORES_AT_ONCE = 2**17  # that the processor's cache holds
BIASES_AT_ONCE = 2**21  # of all heads and texts of a batch: 8 MiB
KEYS_AT_ONCE = 512  # whose lengths are worked out

Norms = Float32[np.ndarray, "head key"]


def attention_weights(
    query: Float[Tensor, "*batch query d_head"],
    key: Float[Tensor, "*batch key d_head"],
    attendable: Bool[Tensor, "*#batch #query key"] | None = None,
    by_distance: Float[Tensor, "*#batch distance"] | None = None,
) -> Float[Tensor, "*batch query key"]:
    """Compute softmax(q kᵀ / √d_head + bias) over the attendable keys, section 3.2.1. Each row sums to 1.

    `by_distance` is the bias by how far the key lies behind the query, see `PositionBias`. Raises InvalidOption when a
    query may attend to nothing: its softmax is undefined (NaN).
    """
    hidden = _find_hidden(attendable)
    query = query / math.sqrt(query.shape[-1])
    if torch.is_grad_enabled():
        scores = query @ key.transpose(-2, -1)
        if by_distance is not None:  # in place, as is what follows: a layer's scores are large
            scores += _bias(by_distance, query.shape[-2], key.shape[-2], slice(0, query.shape[-2]))
        if hidden is not None:
            scores.masked_fill_(hidden, -torch.inf)
        return scores.softmax(dim=-1)
    *batch, n_queries, n_keys = *query.shape[:-1], key.shape[-2]
    weights = query.new_empty(*batch, n_queries, n_keys)
    queries, keys = query.reshape(-1, *query.shape[-2:]), key.transpose(-2, -1).reshape(-1, key.shape[-1], n_keys)
    biases = None if by_distance is None else by_distance.expand(*batch, -1).reshape(len(queries), -1)
    masks = None if hidden is None else hidden.expand(*batch, -1, -1).reshape(len(queries), *hidden.shape[-2:])
    # Some maps of the batch or some rows of one at a time, as many as the processor's cache holds.
    step = max(1, SCORES_AT_ONCE // (n_queries * n_keys))
    for first in range(0, len(queries), step):
        heads = slice(first, first + step)
        for block in _blocks((1, n_queries, n_keys), SCORES_AT_ONCE):
            factors = queries[heads, block], keys[heads]
            bias = None if biases is None else _bias(biases[heads], n_queries, n_keys, block)  # of its own memory
            scores = torch.bmm(*factors) if bias is None else bias.baddbmm_(*factors)
            if masks is not None:
                scores.masked_fill_(_rows(masks[heads], block), -torch.inf)
            torch.softmax(scores, dim=-1, out=weights.view(-1, n_queries, n_keys)[heads, block])
    return weights


def attend_fused(
    query: Float[Tensor, "*batch query d_head"],
    key: Float[Tensor, "*batch key d_head"],
    value: Float[Tensor, "*batch key d_head"],
    attendable: Bool[Tensor, "*#batch #query key"] | None = None,
    by_distance: Float[Tensor, "*#batch distance"] | None = None,
) -> Float[Tensor, "*batch query d_head"]:
    """Compute `attention_weights(query, key) @ value` by a kernel of torch's that never holds the weights.

    Of a bias by distance no more is held than of some queries at a time, and nothing where every key is attendable:
    the kernel takes the queries from the last to the first, whose biases overlap in memory.
    """
    hidden = _find_hidden(attendable)
    if by_distance is None:
        return functional.scaled_dot_product_attention(query, key, value, attn_mask=attendable)
    if hidden is None:
        mask = _as_mask(by_distance.unfold(-1, key.shape[-2], 1), query)
        return functional.scaled_dot_product_attention(query.flip(-2), key, value, attn_mask=mask).flip(-2)
    sizes = (*query.shape[:-1], key.shape[-2])
    outputs, room = [], query.new_empty(0)
    for block in _blocks(sizes, BIASES_AT_ONCE):
        bias = _as_mask(_bias(by_distance, query.shape[-2], key.shape[-2], block), query)
        of_block = _rows(hidden, block)
        if torch.is_grad_enabled():
            mask = bias.masked_fill(of_block, -torch.inf)
        else:  # in the same memory: of masks that come and go between outputs, the allocator keeps each
            shape = np.broadcast_shapes(bias.shape, of_block.shape)  # that of torch imports sympy
            room = room if room.numel() >= math.prod(shape) else query.new_empty(math.prod(shape))
            mask = room[: math.prod(shape)].view(shape).copy_(bias).masked_fill_(of_block, -torch.inf)
        outputs.append(functional.scaled_dot_product_attention(query[..., block, :], key, value, attn_mask=mask))
    return outputs[0] if len(outputs) == 1 else torch.cat(outputs, dim=-2)


def _as_mask(bias: Tensor, query: Tensor) -> Tensor:
    """Give a bias as many axes as the queries have: with fewer, the kernel without weights is not taken."""
    return bias.reshape((1,) * (query.ndim - bias.ndim) + bias.shape)


def _bias(
    by_distance: Float[Tensor, "*#batch distance"], n_queries: int, n_keys: int, block: slice
) -> Float[Tensor, "*#batch query key"]:
    """Lay out a bias for a block of queries: each has the numbers of the query before it, one place further on.

    Keys lie side by side: where they are more than the queries, `flip` would give the copy the other order, and a
    softmax twice the time.
    """
    of_block = by_distance[..., n_queries - block.stop : n_queries - block.start - 1 + n_keys]
    backwards = of_block.unfold(-1, n_keys, 1)
    n_rows = backwards.shape[-2]
    if n_rows >= n_keys:
        return backwards.flip(-2)
    return backwards.index_select(-2, torch.arange(n_rows - 1, -1, -1, device=backwards.device))


def _rows(hidden: Bool[Tensor, "*batch #query key"], block: slice) -> Bool[Tensor, "*batch _rows key"]:
    """Select the rows of a mask that a block of queries needs."""
    return hidden if hidden.shape[-2] == 1 else hidden[..., block, :]


def _blocks(shape: Sequence[int], at_once: int) -> list[slice]:
    """Split queries so that no more than `at_once` cells [*batch, query, key] are worked on at a time."""
    *batch, n_queries, n_keys = shape
    step = max(1, at_once // max(1, math.prod(batch) * n_keys))
    return [slice(start, min(start + step, n_queries)) for start in range(0, n_queries, step)]


def causal(n_tokens: int) -> Bool[Tensor, "query key"]:
    """Let each token attend to itself and to what stands before it."""
    return torch.ones(n_tokens, n_tokens, dtype=torch.bool).tril()


def not_padding(real: Bool[Tensor, "*batch key"]) -> Bool[Tensor, "*batch 1 key"]:
    """Let no query attend to padding. `real` is True for each key that is a token of the text."""
    return real.unsqueeze(-2)


def _find_hidden(attendable: Bool[Tensor, "*batch #query key"] | None) -> Bool[Tensor, "*batch #query key"] | None:
    """Find which keys may not be attended to; None where every key may. Raises InvalidOption for a query with none."""
    if attendable is None or bool(attendable.all()):
        return None
    empty = ~attendable.any(dim=-1)
    if empty.any():
        query = int(empty.nonzero()[0, -1])
        problem = f"query {query} may attend to no key"
        raise InvalidOption(problem, hint="Its weights are undefined; trim padding before attention.")
    return ~attendable


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

    def forward(self, n_queries: int, n_keys: int) -> Float[Tensor, "head distance"]:
        """Return what each head adds to a score, from a key n_queries - 1 before its query to n_keys - 1 behind."""
        distances = torch.arange(1 - n_queries, n_keys, device=self.bias.device)
        return self.bias.index_select(1, distances.clamp_(-self.max_distance, self.max_distance) + self.max_distance)


class DotAttention(nn.Module):
    """One head without projections: queries, keys and values are the states themselves, and so is their mean."""

    n_heads = 1

    def forward(
        self,
        queries: Float[Tensor, "*batch query d_model"],
        memory: Float[Tensor, "*batch key d_model"],
        attendable: Bool[Tensor, "*#batch #query key"] | None = None,
    ) -> AttentionOutput:
        """Attend from queries to memory. `attendable` is True where attention is allowed."""
        weights = attention_weights(queries, memory, attendable)
        return AttentionOutput(weights @ memory, weights.unsqueeze(-3))


class MultiHeadAttention(nn.Module):
    """Attention in `n_heads` subspaces of d_model / n_heads each, concatenated and projected, section 3.2.2.

    `queries` attend to `memory`; for self-attention both are the same. One head has the full width: one distribution
    per query, so one average of all it attends to. Several have as many parameters, but for a position bias. Raises
    InvalidOption when d_model is not divisible by n_heads.
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
        query, key, value = self.project(queries, memory)
        every_head = None if attendable is None else attendable.unsqueeze(-3)
        bias = None if self.position is None else self.position(query.shape[-2], key.shape[-2])
        if not need_weights:
            return AttentionOutput(
                self.output(self._concatenate(attend_fused(query, key, value, every_head, bias))), None
            )
        weights = attention_weights(query, key, every_head, bias)
        return AttentionOutput(self.output(self._concatenate(weights @ value)), weights)

    def project(
        self, queries: Float[Tensor, "*batch query d_model"], memory: Float[Tensor, "*batch key d_model"]
    ) -> tuple[Float[Tensor, "*batch head _ d_head"], ...]:
        """Return q, k and v of each head."""
        return tuple(map(self._split, (self.query(queries), self.key(memory), self.value(memory))))

    def value_norms(self, memory: Float[Tensor, "key d_model"]) -> Norms:
        """Return how long what each value of a text moves is: see `value_norms`."""
        return value_norms(
            self._split(self.value(memory)), self.output.weight.reshape(len(self.output.weight), self.n_heads, -1)
        )

    def _split(self, states: Float[Tensor, "*batch token d_model"]) -> Float[Tensor, "*batch head token d_head"]:
        return states.reshape(*states.shape[:-1], self.n_heads, self.d_head).transpose(-3, -2)

    def _concatenate(self, heads: Float[Tensor, "*batch head token d_head"]) -> Float[Tensor, "*batch token d_model"]:
        return heads.transpose(-3, -2).flatten(-2)


def value_norms(value: Float[Tensor, "head key d_value"], projection: Float[Tensor, "d_model head d_value"]) -> Norms:
    """Return ‖v_j W_O‖ of each head and key: times a weight, how much of the output it moves.

    Kobayashi et al. 2020 (arXiv:2004.10102, equation 5). It is separable: one number for each key, not for each pair.
    """
    with torch.no_grad():
        by_head = projection.permute(1, 2, 0)  # [head, d_value, d_model]
        found = [torch.linalg.vector_norm(keys @ by_head, dim=-1) for keys in torch.split(value, KEYS_AT_ONCE, dim=1)]
        return np.asarray(torch.cat(found, dim=1).float().cpu().numpy())
