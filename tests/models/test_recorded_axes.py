"""Weights whose axes are not [batch head query key], and tensors of which nothing can be read."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention.bias import causal_lower_right, causal_upper_left

from attnviz.errors import InvalidRecord
from attnviz.models.recording.record import record
from tests.models.captures import SDPA, drawn, recorded
from tests.models.structures import Module, linears


def attention(attend: Callable[..., tuple[Tensor, Tensor]]) -> Any:
    """4 heads of one text each, in whatever way; keeps [batch head query key]."""

    def forward(own: Any, states: Tensor) -> Tensor:
        own.weights, output = attend(own.query(states), own.key(states), own.value(states))
        return output

    torch.manual_seed(0)
    return Module(forward, **linears(query=16, key=16, value=16))


def shared(query: Tensor, key: Tensor, value: Tensor, causal: bool = False, named: bool = False) -> Any:
    """Queries before heads, and one key and value for all heads."""
    query, key, value = query.view(*query.shape[:2], 4, 4), key[..., :4], value[..., :4]
    scores = query @ key.mT.unsqueeze(1)
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[1], scores.shape[3]).triu(1)[:, None] > 0, -torch.inf)
    weights = scores.softmax(dim=-1)
    output = torch.einsum("bqhk,bkd->bqhd", weights, value) if named else weights @ value.unsqueeze(1)
    return weights.transpose(1, 2), output


def grouped(query: Tensor, key: Tensor, value: Tensor, fused: bool = False) -> Any:
    """2 keys and values for 2 heads each, on an axis of their own."""
    query = query.view(*query.shape[:2], 2, 2, 4).permute(0, 2, 3, 1, 4)
    key, value = (one[..., :8].view(*one.shape[:2], 2, 1, 4).permute(0, 2, 3, 1, 4) for one in (key, value))
    weights = (query @ key.mT / 2).softmax(dim=-1)
    wide = [one.expand(-1, -1, 2, -1, -1) for one in (key, value)]
    output = SDPA(query, wide[0], wide[1]) if fused else weights @ value
    return weights.flatten(1, 2), output


def single(query: Tensor, key: Tensor, value: Tensor, causal: bool = False) -> Any:
    scores = query @ key.mT / 4
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[1:]).triu(1) > 0, -torch.inf)
    return scores.softmax(dim=-1).unsqueeze(1), SDPA(query, key, value, is_causal=causal)


@pytest.mark.parametrize("n_tokens", [3, 4, 5])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_queries_before_heads_that_share_their_values(n_tokens: int, causal: bool, named: bool) -> None:
    """Also with as many heads as tokens."""
    module = attention(partial(shared, causal=causal, named=named))
    maps = recorded(lambda: module(drawn(80, 2, n_tokens, 16)))
    for row, one in enumerate(maps):
        assert not one.provenance.facts.guess
        np.testing.assert_allclose(one.weights[0], module.weights[row].detach().numpy(), atol=1e-6)
        if causal:
            np.testing.assert_array_equal(one.attendable[0], np.tri(n_tokens, dtype=bool))


@pytest.mark.parametrize(
    "attend",
    [grouped, partial(grouped, fused=True), single, partial(single, causal=True)],
    ids=["by hand, 5 axes", "5 axes", "3 axes", "3 axes, causal"],
)
@pytest.mark.parametrize("n_texts", [1, 2, 3])
def test_what_the_module_reads_tells_texts_from_heads(attend: Callable[..., Any], n_texts: int) -> None:
    module = attention(attend)
    maps = recorded(lambda: module(drawn(82, n_texts, 5, 16)))
    assert len(maps) == n_texts
    for one, expected in zip(maps, module.weights.detach().numpy(), strict=True):
        np.testing.assert_allclose(one.weights[0], expected, atol=1e-6)
        np.testing.assert_array_equal(one.attendable[0], (expected > 0).any(axis=0))
        assert not one.provenance.facts.guess


@pytest.mark.parametrize("factored", [False, True])
@pytest.mark.parametrize("bias", [causal_lower_right, causal_upper_left])
def test_masks_that_do_not_hold_their_numbers(bias: Callable[..., Tensor], factored: bool) -> None:
    query, keys = drawn(85, 1, 2, 3, 8), drawn(86, 1, 2, 5, 8)
    allowed = np.tri(3, 5, 2 if bias is causal_lower_right else 0, dtype=bool)
    maps = recorded(lambda: SDPA(query, keys, keys, attn_mask=bias(3, 5)), factored=factored)
    scores = (query @ keys.mT / 8**0.5).masked_fill(~torch.from_numpy(allowed), -torch.inf)
    expected = scores.softmax(dim=-1)[0].numpy()[..., : maps[0].weights.shape[-1]]
    np.testing.assert_allclose(maps[0].weights[0], expected, atol=1e-6)


def by_hand(states: Tensor) -> Tensor:
    return (states @ states.mT).softmax(dim=-1) @ states


def fused(states: Tensor) -> Tensor:
    return SDPA(states, states, states)


def traced(states: Tensor) -> Any:
    trace: Callable[..., Any] = torch.jit.trace
    return trace(fused, states, check_trace=False)


def exported(states: Tensor) -> Any:
    layer = nn.TransformerEncoderLayer(4, 2, batch_first=True).eval()
    return torch.export.export(layer, (states[0],))


def on_meta(states: Tensor) -> Any:
    return nn.TransformerEncoderLayer(4, 2, device="meta", batch_first=True).eval()(states[0].to("meta"))


@pytest.mark.filterwarnings("ignore:`torch.jit")
@pytest.mark.parametrize(
    ("run", "where"),
    [
        (torch.vmap(fused), "under torch.vmap"),
        (torch.vmap(by_hand), "under torch.vmap"),
        (torch.func.grad(lambda states: fused(states).sum()), "under torch.vmap or another transform of torch.func"),
        (lambda states: torch.func.jvp(by_hand, (states,), (states,)), "under torch.vmap or another transform"),
        (traced, "under torch.jit.trace"),
        (exported, "under torch.export"),
        (on_meta, "on the meta device"),
    ],
    ids=["vmap", "vmap by hand", "grad", "jvp", "trace", "export", "meta"],
)
def test_where_nothing_can_be_read_the_model_goes_on(run: Callable[[Tensor], Any], where: str) -> None:
    states = drawn(87, 2, 2, 3, 4)
    with pytest.raises(InvalidRecord, match=f"attention {where}.* cannot be recorded"), record():
        run(states)
    with record() as maps:
        run(states)
        fused(states)
    assert len(maps) == 2
    assert maps[0].provenance.facts.guess == maps.not_seen
    assert maps.not_seen.startswith(f"Not in here: attention {where}")


def test_a_memory_that_is_learned_is_recorded_and_called_a_guess() -> None:
    """States that attend to keys, and values, which are learned."""

    def forward(own: Any, ids: Tensor) -> Any:
        states = own.words(ids).unflatten(-1, (2, 4)).transpose(1, 2)
        own.weights = (states @ own.memory.mT).softmax(-1)
        return own.weights @ own.memory

    model: Any = Module(forward, words=nn.Embedding(9, 8), memory=nn.Parameter(torch.randn(1, 2, 5, 4)))
    maps = recorded(lambda: model(torch.tensor([[1, 2, 3], [4, 5, 6]])))
    assert [one.weights.shape for one in maps] == [(1, 2, 3, 5)] * 2
    for one, weights in zip(maps, model.weights, strict=True):
        assert one.weights[0] == pytest.approx(weights.numpy(), abs=1e-6)
        assert "is a guess: what they weigh is learned" in one.provenance.facts.guess


def test_texts_that_a_model_repeats_are_rows_and_no_heads() -> None:
    """Each text is read twice, as by the beams of a search."""

    def forward(own: Any, ids: Tensor) -> Tensor:
        states = own.words(ids.repeat_interleave(2, 0)).unflatten(-1, (2, 4)).transpose(1, 2)
        return SDPA(states, states, states)

    model, ids = Module(forward, words=nn.Embedding(9, 8)), torch.tensor([[1, 2, 3], [4, 5, 6]])
    maps = recorded(lambda: model(ids))
    assert [one.weights.shape for one in maps] == [(1, 2, 3, 3)] * 4
    refused = pytest.raises(InvalidRecord, match="tokens is of 2 texts, the attention in this block of 4")
    with refused, record(tokens=[list("abc"), list("def")]):
        model(ids)


@pytest.mark.parametrize("n_texts", [1, 3])
def test_tokens_on_the_first_axis_are_named(n_texts: int) -> None:
    """As torch's modules have them unless they are told otherwise: [token, text, d]."""
    module, states = nn.MultiheadAttention(8, 2).eval(), drawn(90, 5, n_texts, 8)
    maps = recorded(lambda: module(states, states, states), tokens=[list("abcde")] * n_texts)
    assert [one.keys.pieces for one in maps] == [tuple("abcde")] * n_texts
