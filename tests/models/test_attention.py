"""The core against torch's own, against the formula, and against laws that can be checked by hand."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from attnviz.errors import InvalidOption
from attnviz.models import attention
from attnviz.models.attention import (
    MultiHeadAttention,
    attend_fused,
    attention_weights,
    causal,
)
from tests.models.captures import drawn

sizes = st.integers(1, 9)
seeds = st.integers(0, 2**16)


@given(seed=seeds, n_queries=sizes, n_keys=sizes)
def test_biases_lie_key_by_key(seed: int, n_queries: int, n_keys: int) -> None:
    """In whatever blocks: of another order in memory, a softmax takes twice the time."""
    line = drawn(seed, 2, n_queries + n_keys - 1)
    assert all(attention._bias(line, n_queries, n_keys, slice(n, n_queries)).is_contiguous() for n in range(n_queries))


@pytest.mark.parametrize("n_heads", [2, 4, 8])
def test_more_heads_have_as_many_parameters(n_heads: int) -> None:
    def count(module: nn.Module) -> int:
        return sum(parameter.numel() for parameter in module.parameters())

    assert count(MultiHeadAttention(16, n_heads)) == count(MultiHeadAttention(16, 1)) == 4 * (16 * 16 + 16)


def test_what_is_given_stays_as_it_is_and_gets_gradients() -> None:
    """Scores are worked on in place: neither queries and keys nor what may be attended to are."""
    query, key, attendable = drawn(0, 4, 3).requires_grad_(), drawn(1, 5, 3).requires_grad_(), drawn(2, 4, 5) > -1
    attendable[:, 0] = True
    before = [each.clone() for each in (query, key, attendable)]
    weights = attention_weights(query, key, attendable)
    assert all(torch.equal(one, other) for one, other in zip(before, (query, key, attendable), strict=True))
    plain = (query @ key.T / math.sqrt(3)).masked_fill(~attendable, -torch.inf).softmax(dim=-1)
    gradients = (torch.autograd.grad((each**2).sum(), (query, key)) for each in (weights, plain))
    for ours, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, expected)


def test_a_query_that_may_attend_to_nothing_is_refused() -> None:
    attendable = causal(3)
    attendable[2] = False
    with pytest.raises(InvalidOption, match="query 2 may attend to no key"):
        attention_weights(drawn(1, 3, 4), drawn(2, 3, 4), attendable)
    with pytest.raises(InvalidOption, match="query 2 may attend to no key"):
        attend_fused(drawn(1, 3, 4), drawn(2, 3, 4), drawn(3, 3, 4), attendable)


@pytest.mark.parametrize("n_heads", [0, -1, 7, 10**9])
def test_heads_that_do_not_divide_the_width_are_refused(n_heads: int) -> None:
    with pytest.raises(InvalidOption, match=rf"64 is not divisible by {n_heads} \(try 1, 2, 4, 8 …\)"):
        MultiHeadAttention(64, n_heads)


@pytest.mark.parametrize("rows", ["none", "one for all queries", "one per query", "one per head"])
@given(biased=st.booleans(), at_once=st.sampled_from([1, 2**23]), seed=seeds, n_queries=sizes, n_keys=sizes)
def test_fused_is_attend_of_attention_weights(
    rows: str, biased: bool, at_once: int, seed: int, n_queries: int, n_keys: int
) -> None:
    """And both are the softmax of the scores with the bias of every pair, looked up by its distance."""
    query, key, value = (drawn(seed + i, 2, 3, n, 4) for i, n in enumerate((n_queries, n_keys, n_keys)))
    shapes = {"one for all queries": (2, 1, 1, n_keys), "one per query": (n_queries, n_keys)}
    attendable = None
    if rows != "none":
        attendable = drawn(seed + 3, *shapes.get(rows, (2, 3, n_queries, n_keys))) > 0
        attendable[..., seed % n_keys] = True
    by_distance = drawn(seed + 4, 3, n_queries + n_keys - 1) if biased else None
    scores = query @ key.transpose(-2, -1) / 2
    if by_distance is not None:
        scores += by_distance[:, torch.arange(n_keys) - torch.arange(n_queries)[:, None] + n_queries - 1]
    if attendable is not None:
        scores = scores.masked_fill(~attendable, -torch.inf)
    with pytest.MonkeyPatch.context() as patch, torch.no_grad():
        patch.setattr(attention, "SCORES_AT_ONCE", at_once)
        patch.setattr(attention, "BIASES_AT_ONCE", at_once)
        weights = attention_weights(query, key, attendable, by_distance)
        torch.testing.assert_close(weights, scores.softmax(dim=-1), atol=1e-6, rtol=1e-5)
        output = attend_fused(query, key, value, attendable, by_distance)
    torch.testing.assert_close(output, weights @ value, atol=1e-6, rtol=1e-5)
