"""Attention itself (Vaswani et al. 2017, arXiv:1706.03762); and one query of a layer, worked out again without torch.

The second is done from what an attention got and its parameters. Knows no vocabularies and no files.
"""

import math
from typing import NamedTuple, cast

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Float64
from torch import Tensor, nn
from torch.nn import functional

from attnviz.errors import InvalidOption
from attnviz.models.sizes import head_size
from attnviz.records import Tokens
from attnviz.records.attention_trace import AttentionTrace, Projection, trace_head

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
    scores = query / math.sqrt(query.shape[-1]) @ key.transpose(-2, -1)
    if by_distance is not None:  # in place, as is what follows: a layer's scores are large
        scores += _bias(by_distance, key.shape[-2])
    if hidden is not None:
        scores.masked_fill_(hidden, -torch.inf)
    return scores.softmax(dim=-1) if scores.requires_grad else torch.softmax(scores, dim=-1, out=scores)


def attend_fused(
    query: Float[Tensor, "*batch query d_head"],
    key: Float[Tensor, "*batch key d_head"],
    value: Float[Tensor, "*batch key d_head"],
    attendable: Bool[Tensor, "*#batch #query key"] | None = None,
    by_distance: Float[Tensor, "*#batch distance"] | None = None,
) -> Float[Tensor, "*batch query d_head"]:
    """Compute `attention_weights(query, key) @ value` by a kernel of torch's that never holds the weights.

    Nothing is held of a bias by distance where every key is attendable: the kernel takes the queries from the last to
    the first, whose biases overlap in memory.
    """
    hidden = _find_hidden(attendable)
    if by_distance is None:
        return functional.scaled_dot_product_attention(query, key, value, attn_mask=attendable)
    if hidden is not None:
        mask = _bias(by_distance, key.shape[-2]).masked_fill(hidden, -torch.inf)
        return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    mask = by_distance.unfold(-1, key.shape[-2], 1)
    # With fewer axes than the queries have, the kernel without weights is not taken.
    mask = mask.reshape((1,) * (query.ndim - mask.ndim) + mask.shape)
    return functional.scaled_dot_product_attention(query.flip(-2), key, value, attn_mask=mask).flip(-2)


def _bias(by_distance: Float[Tensor, "*#batch distance"], n_keys: int) -> Float[Tensor, "*#batch query key"]:
    """Lay out a bias: each query has the numbers of the query before it, one place further on."""
    return by_distance.unfold(-1, n_keys, 1).flip(-2)


def causal(n_tokens: int) -> Bool[Tensor, "query key"]:
    """Let each token attend to itself and to what stands before it."""
    return torch.ones(n_tokens, n_tokens, dtype=torch.bool).tril()


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


class OutputWeights(NamedTuple):
    """The linear layer that reads the heads of one layer, side by side."""

    module: nn.Module
    n_heads: int
    by_rows: bool = False  # whether a row of its weight, and not a column, belongs to a number that it reads

    @property
    def weight(self) -> Float[Tensor, "d_model heads"]:
        """Return the weight of the layer, to be written to."""
        found = self.module.weight
        assert isinstance(found, Tensor)
        return found.T if self.by_rows else found

    def select(self, numbers: Float[Tensor, "*axes heads"], head: int) -> Float[Tensor, "*axes d_value"]:
        """Return the part of all heads' numbers, or of the weight, that is a head's, to be written to."""
        d_value = numbers.shape[-1] // self.n_heads
        return numbers[..., head * d_value : (head + 1) * d_value]


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
        weights = attention_weights(query, key, every_head, bias) if need_weights else None
        heads = attend_fused(query, key, value, every_head, bias) if weights is None else weights @ value
        return AttentionOutput(self.output(heads.transpose(-3, -2).flatten(-2)), weights)

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


def value_norms(value: Float[Tensor, "head key d_value"], projection: Float[Tensor, "d_model head d_value"]) -> Norms:
    """Return ‖v_j W_O‖ of each head and key: times a weight, how much of the output it moves.

    Kobayashi et al. 2020 (arXiv:2004.10102, equation 5). It is separable: one number for each key, not for each pair.
    """
    with torch.no_grad():
        by_head = projection.permute(1, 2, 0)  # [head, d_value, d_model]
        found = [torch.linalg.vector_norm(keys @ by_head, dim=-1) for keys in torch.split(value, KEYS_AT_ONCE, dim=1)]
        return np.asarray(torch.cat(found, dim=1).float().cpu().numpy())


TOLERANCE = 1e-4  # of the largest component: float32 comes far closer, and a step done wrongly does not


def work_through(
    attention: nn.Module,
    tokens: Tokens,
    query: int,
    states: Float64[np.ndarray, "token d_model"],
    attendable: Bool[np.ndarray, " token"],
    n_heads: int,
) -> AttentionTrace:
    """Work out one query from the states that attention got and its parameters, in float64 and head by head."""
    if isinstance(attention, DotAttention):
        only = trace_head(states[query], states, states, attendable)
        return AttentionTrace(tokens, query, attendable, states, (only,), None)
    queries, keys, values = (
        np.split(states @ of.matrix + of.bias, n_heads, axis=1)
        for of in (projection(cast(nn.Linear, getattr(attention, name))) for name in ("query", "key", "value"))
    )
    biases: list[Float64[np.ndarray, " key"]] | list[None] = [None] * n_heads
    if isinstance(attention.position, PositionBias):  # what each head adds to the scores of this query, by distance
        farthest = attention.position.max_distance
        distances = np.clip(np.arange(len(states)) - query, -farthest, farthest)
        biases = list(attention.position.bias.detach().cpu().double().numpy()[:, distances + farthest])
    heads = tuple(
        trace_head(of_queries[query], of_keys, of_values, attendable, bias)
        for of_queries, of_keys, of_values, bias in zip(queries, keys, values, biases, strict=True)
    )
    return AttentionTrace(tokens, query, attendable, states, heads, projection(cast(nn.Linear, attention.output)))


def projection(linear: nn.Linear) -> Projection:
    """Read a linear layer, whose matrix torch keeps the other way round."""
    matrix, bias = linear.weight.detach().cpu().double().numpy().T, linear.bias.detach().cpu().double().numpy()
    return Projection(matrix, bias)
