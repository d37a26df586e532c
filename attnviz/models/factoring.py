"""What the weights of a text are worked out from, instead of the weights. Knows torch and attention of ours."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnviz.factored import CAUSAL, EVERYWHERE, Factors
from attnviz.models.attention import MultiHeadAttention, SingleHeadAttention
from attnviz.models.encoder import Encoder, EncoderBlock


def encoder_factors(encoder: Encoder, ids: Int[Tensor, " token"], *, causal: bool) -> Iterator[Factors]:
    """The factors of each layer in turn, of one text on the CPU. No more is held than the states of its tokens."""
    states = encoder.embedding(ids)
    last = len(encoder.blocks) - 1
    for layer, block in enumerate(encoder.blocks):
        assert isinstance(block, EncoderBlock)
        attended, factors = factored(block.attention, block.attention_residual.before(states), causal=causal)
        yield factors
        if layer < last:
            states = block.add_feed_forward(block.attention_residual.after(states, attended))


def of_heads(factors: Factors, heads: Sequence[int]) -> Factors:
    """Those of some heads, each of which has its own keys; a copy, so that the others are let go."""
    places = list(heads)
    if places == list(range(len(factors.query))):
        return factors
    bias = None if factors.bias is None else factors.bias[places]
    parts = {name: getattr(factors, name)[places] for name in ("query", "key", "log_sum_exp")}
    return replace(factors, **parts, bias=bias)


def factored(
    attention: torch.nn.Module, states: Float[Tensor, "token d_model"], *, causal: bool
) -> tuple[Float[Tensor, "token d_model"], Factors]:
    """What a module of attention gives, and the factors of its weights: one call of the kernel gives both."""
    assert isinstance(attention, MultiHeadAttention | SingleHeadAttention)
    n_heads = attention.n_heads if isinstance(attention, MultiHeadAttention) else 1
    query, key, value = (
        projected(states).unflatten(-1, (n_heads, -1)).transpose(0, 1)
        for projected in (attention.query, attention.key, attention.value)
    )
    bias = None if attention.position is None else attention.position.bias
    n_tokens = len(states)
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
        query=query.contiguous().numpy(),
        key=key.contiguous().numpy(),
        log_sum_exp=log_sum_exp.squeeze(0).flip(1).contiguous().numpy(),
        scale=1 / math.sqrt(query.shape[-1]),
        bias=None if bias is None else bias.detach().numpy(),
        window=CAUSAL if causal else EVERYWHERE,
    )
