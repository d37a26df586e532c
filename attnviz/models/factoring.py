"""What the weights of a text are worked out from, instead of the weights. Knows torch and attention of ours."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnviz.models.attention import MultiHeadAttention
from attnviz.models.encoder import Encoder, EncoderBlock
from attnviz.records.factors import CAUSAL, EVERYWHERE, Factors


def encoder_factors(encoder: Encoder, ids: Int[Tensor, " token"], last: int, *, causal: bool) -> Iterator[Factors]:
    """The factors of the layers up to the last one wanted, of one text on the CPU; of that they are not yet summed.

    No more is held than the states of its tokens.
    """
    states = encoder.embedding(ids)
    for layer, block in enumerate(encoder.blocks[: last + 1]):
        assert isinstance(block, EncoderBlock)
        attention, before = block.attention, block.attention_residual.before(states)
        assert isinstance(attention, MultiHeadAttention)
        if layer == last:
            query, key, _ = _project(attention, before)  # no kernel is called: nobody wants the output
            yield Factors(log_sum_exp=None, **_parts(attention, query, key, causal=causal))
            return
        attended, factors = factor_attention(attention, before, causal=causal)
        yield factors
        states = block.add_feed_forward(block.attention_residual.after(states, attended))


def choose_heads(factors: Factors, heads: Sequence[int]) -> Factors:
    """Those of some heads, each of which has its own keys; a copy, so that the others are let go."""
    places = list(heads)
    if places == list(range(len(factors.query))):
        return factors
    bias = None if factors.bias is None else factors.bias[places]
    parts = {name: getattr(factors, name)[places] for name in ("query", "key")}
    sums = None if factors.log_sum_exp is None else factors.log_sum_exp[places]
    return replace(factors, **parts, log_sum_exp=sums, bias=bias)


def factor_attention(
    attention: MultiHeadAttention, states: Float[Tensor, "token d_model"], *, causal: bool
) -> tuple[Float[Tensor, "token d_model"], Factors]:
    """What a module of attention gives, and the factors of its weights: one call of the kernel gives both."""
    query, key, value = _project(attention, states)
    n_heads, n_tokens, _ = query.shape
    added = states.new_zeros(1, 2 * n_tokens - 1) if attention.position is None else attention.position(*[n_tokens] * 2)
    if causal:
        added[:, n_tokens:] = -torch.inf  # a vector of every distance, which no module keeps
    # From the last query to the first: then what is added overlaps in memory from query to query, see `fused`.
    output, log_sum_exp = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        *(each.unsqueeze(0) for each in (query.flip(1), key, value)),
        attn_mask=added.unfold(-1, n_tokens, 1).expand(n_heads, -1, -1).unsqueeze(0),
    )
    heads = output.squeeze(0).flip(1)
    return attention.output(heads.transpose(0, 1).flatten(-2)), Factors(
        log_sum_exp=log_sum_exp.squeeze(0).flip(1).contiguous().numpy(),
        **_parts(attention, query, key, causal=causal),
    )


def _project(attention: MultiHeadAttention, states: Float[Tensor, "token d_model"]) -> Iterator[Tensor]:
    """q, k and v [head, token, d_head]; v also where it is not wanted, as `own_norms` looks at it."""
    return (
        projected(states).unflatten(-1, (attention.n_heads, -1)).transpose(0, 1)
        for projected in (attention.query, attention.key, attention.value)
    )


def _parts(
    attention: MultiHeadAttention,
    query: Float[Tensor, "head token d_head"],
    key: Float[Tensor, "head token d_head"],
    *,
    causal: bool,
) -> dict[str, Any]:
    bias = None if attention.position is None else attention.position.bias
    return {
        "query": query.contiguous().numpy(),
        "key": key.contiguous().numpy(),
        "scale": 1 / math.sqrt(query.shape[-1]),
        "bias": None if bias is None else bias.detach().numpy(),
        "window": CAUSAL if causal else EVERYWHERE,
    }
