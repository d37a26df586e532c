"""Weights of nn.MultiheadAttention, and of what is built of it, against its own."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attnviz.errors import InvalidRecord
from tests.models.captures import captured, drawn, lying, only


def multihead(**settings: Any) -> nn.MultiheadAttention:
    torch.manual_seed(0)
    return nn.MultiheadAttention(8, 2, **settings).eval()


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("asked", ["nothing", "averaged", "per head"])
@pytest.mark.parametrize("masked", ["no", "mask", "padding", "both", "per head"])
def test_multihead_attention(batch_first: bool, asked: str, masked: str) -> None:
    module = multihead(batch_first=batch_first)
    states = drawn(20, 3, 5, 8) if batch_first else drawn(20, 5, 3, 8)
    later = torch.ones(5, 5, dtype=torch.bool).triu(1)
    padding = torch.tensor([[0, 0, 0, 0, 0], [0, 0, 0, 1, 1], [0, 0, 0, 0, 1]], dtype=torch.bool)
    given: dict[str, Any] = {
        "no": {},
        "mask": {"attn_mask": later},
        "padding": {"key_padding_mask": padding},
        "both": {"attn_mask": later, "key_padding_mask": padding},
        "per head": {"attn_mask": torch.stack([later, ~later.logical_not()]).repeat(3, 1, 1)},
    }[masked]
    wanted = {"need_weights": asked != "nothing", "average_attn_weights": asked != "per head"}
    with torch.no_grad():
        _, weights = module(states, states, states, **given, average_attn_weights=False)
        output, own = module(states, states, states, **given, **wanted)
    answers: list[tuple[Tensor, Tensor | None]] = []
    call = only(lambda: answers.append(module(states, states, states, **given, **wanted)))
    np.testing.assert_allclose(call.weights, weights.numpy(), atol=1e-6)
    torch.testing.assert_close(answers[0][0], output, atol=1e-6, rtol=1e-5)
    assert (answers[0][1] is None) == (asked == "nothing")
    if own is not None:
        torch.testing.assert_close(answers[0][1], own)
    allowed = ~(padding.unsqueeze(1) if masked in ("padding", "both") else torch.zeros(3, 1, 5, dtype=torch.bool))
    allowed = allowed & ~later if masked in ("mask", "both", "per head") else allowed.expand(3, 5, 5)
    np.testing.assert_array_equal(call.attendable, allowed.numpy())
    assert call.error < 1e-6
    assert call.sink is None


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("added", [{"add_zero_attn": True}, {"add_bias_kv": True}])
def test_keys_that_are_no_tokens_are_a_sink(need_weights: bool, added: dict[str, bool]) -> None:
    module, states = multihead(batch_first=True, **added), drawn(21, 2, 5, 8)
    with torch.no_grad():
        _, weights = module(states, states, states, average_attn_weights=False)
    call = only(lambda: module(states, states, states, need_weights=need_weights))
    assert weights.shape == (2, 2, 5, 6)
    np.testing.assert_allclose(call.weights, weights[..., :5].numpy(), atol=1e-6)
    assert call.sink is not None
    np.testing.assert_allclose(call.sink, weights[..., 5].numpy(), atol=1e-6)
    assert call.attendable.shape == (2, 5, 5)


def test_a_causal_hint_counts_as_the_mask() -> None:
    module, states = multihead(batch_first=True), drawn(23, 1, 4, 8)
    mask = nn.Transformer.generate_square_subsequent_mask(4)
    call = only(lambda: module(states, states, states, attn_mask=mask, is_causal=True, need_weights=False))
    alone = only(lambda: module(*[states[0]] * 3, attn_mask=mask, is_causal=True, need_weights=False))  # no batch
    np.testing.assert_allclose(alone.weights, call.weights, atol=1e-6)
    np.testing.assert_array_equal(call.attendable[0], np.tri(4, dtype=bool))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
@pytest.mark.parametrize("is_padded", [False, True])
@pytest.mark.parametrize("kind", ["multihead", "relu", "gelu", "gelu, norm first"])
def test_a_fast_path_is_held_against_what_it_gave(kind: str, is_padded: bool) -> None:
    states = drawn(27, 2, 5, 8)
    padding = torch.arange(5) > torch.tensor([[4], [2]]) if is_padded else None
    if kind == "multihead":
        run = partial(multihead(batch_first=True), *[states] * 3, key_padding_mask=padding)
    else:
        layer = nn.TransformerEncoderLayer(8, 2, 16, 0, kind[:4], batch_first=True, norm_first="first" in kind)
        run = partial(nn.TransformerEncoder(layer, 1, enable_nested_tensor="first" not in kind).eval(), states)
        run = partial(run, src_key_padding_mask=padding)
    assert only(run).error < 1e-6
    with lying(1.01), pytest.raises(InvalidRecord, match="do not give its output"):
        captured(run)
