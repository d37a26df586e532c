"""Weights of torch's kernel and of its modules, against the formula, their own, and kernels that lie."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attnviz.errors import InvalidRecord
from attnviz.models.attention import attention_weights
from attnviz.models.capture.call import Call
from attnviz.models.capture.tap import capture
from tests.models.captures import ALLOWED, KEY, QUERY, SDPA, VALUE, captured, drawn, lying, only, recorded

BIAS = drawn(5, 4, 5, 7) * 3
GROUPED = {"key": KEY[:, :2], "value": VALUE[:, :2], "enable_gqa": True}
ADDED = torch.zeros(ALLOWED.shape).masked_fill(~ALLOWED, -torch.inf)


@pytest.mark.parametrize("d_value", [6, 8])  # torch's operators one by one, and its fused kernel
@pytest.mark.parametrize(
    "run",
    [
        lambda value: SDPA(QUERY, KEY, value, ALLOWED),
        lambda value: SDPA(value=value, query=QUERY, key=KEY, attn_mask=ADDED),
        lambda value: SDPA(QUERY, KEY, value, ADDED.nan_to_num(neginf=torch.finfo(torch.float32).min)),
        lambda value: SDPA(QUERY, KEY, value, ADDED.nan_to_num(neginf=-1e4)),
        lambda value: SDPA(QUERY, KEY, value, ADDED.nan_to_num(neginf=-100)),
        lambda value: SDPA(QUERY, KEY, value, attn_mask=ALLOWED.expand(2, 4, 5, 7)),
    ],
    ids=["bool", "infinite, by name", "smallest", "minus ten thousand", "minus a hundred", "of every head"],
)
def test_masks(run: Callable[[Tensor], Tensor], d_value: int) -> None:
    call = only(lambda: run(VALUE[..., :d_value]))
    np.testing.assert_allclose(call.weights, attention_weights(QUERY, KEY, ALLOWED).numpy(), atol=1e-6)
    np.testing.assert_array_equal(call.attendable, ALLOWED[:, 0].numpy())
    assert (call.weights[~np.broadcast_to(ALLOWED.numpy(), call.weights.shape)] == 0).all()


@pytest.mark.parametrize(
    ("given", "scores"),
    [
        ({}, QUERY @ KEY.mT / math.sqrt(8)),
        ({"scale": 2.0}, QUERY @ KEY.mT * 2),
        ({"attn_mask": BIAS}, QUERY @ KEY.mT / math.sqrt(8) + BIAS),  # a bias forbids nothing
        ({"key": KEY[:, :1], "value": VALUE[:, :1], "enable_gqa": True}, QUERY @ KEY[:, :1].mT / math.sqrt(8)),
        (GROUPED, QUERY @ KEY[:, [0, 0, 1, 1]].mT / math.sqrt(8)),
    ],
)
def test_weights_are_the_formula(given: dict[str, Any], scores: Tensor) -> None:
    call = only(lambda: SDPA(**{"query": QUERY, "key": KEY, "value": VALUE} | given))
    np.testing.assert_allclose(call.weights, scores.softmax(dim=-1).numpy(), atol=1e-6)
    assert call.attendable.all()
    assert call.attendable.shape == (2, 5, 7)
    assert (call.path, call.number, float(call.sink.max())) == ("", 0, 0.0)
    assert 0 <= call.error < 1e-6


@pytest.mark.parametrize(
    ("leading", "merged"), [((), (1, 1)), ((3,), (1, 3)), ((2, 1, 4), (2, 4)), ((2, 3, 4), (6, 4))]
)
def test_leading_axes(leading: tuple[int, ...], merged: tuple[int, int]) -> None:
    query, key = drawn(7, *leading, 5, 8), drawn(8, *leading, 6, 8)
    allowed = torch.ones(5, 6, dtype=torch.bool).tril()
    call = only(lambda: SDPA(query, key, key, allowed))
    assert call.weights.shape == (*merged, 5, 6)
    expected = attention_weights(query, key, allowed).numpy()
    np.testing.assert_allclose(call.weights.reshape(*leading, 5, 6), expected, atol=1e-6)
    assert call.attendable.shape == (merged[0], 5, 6)


@pytest.mark.parametrize(
    ("dtype", "atol", "error"),
    [(torch.float16, 2e-3, 1e-3), (torch.bfloat16, 2e-2, 5e-3), (torch.float64, 1e-7, 1e-14)],
)
def test_dtypes(dtype: torch.dtype, atol: float, error: float) -> None:
    """Scores of ±30, so that rows are anything but uniform."""
    query, key, value = (10 * QUERY).to(dtype), KEY.to(dtype), VALUE.to(dtype)
    call = only(lambda: SDPA(query, key, value))
    assert call.weights.dtype == np.float32
    np.testing.assert_allclose(call.weights, attention_weights(query.double(), key.double()).numpy(), atol=atol)
    np.testing.assert_allclose(call.weights.sum(axis=-1), 1, atol=1e-6)
    assert call.error < error


@pytest.mark.parametrize("d_value", [6, 8])
@pytest.mark.parametrize("kind", ["bool", "infinite", "smallest"])
def test_a_query_that_may_attend_to_nothing_has_no_weights(kind: str, d_value: int) -> None:
    allowed = ALLOWED.clone()
    allowed[1, 0, 2] = False
    low = {"infinite": -torch.inf, "smallest": torch.finfo(torch.float32).min}.get(kind, 0.0)
    mask = allowed if kind == "bool" else torch.zeros(allowed.shape).masked_fill(~allowed, low)
    call = only(lambda: SDPA(QUERY, KEY, VALUE[..., :d_value], mask))
    assert (call.weights[1, :, 2] == 0).all()
    assert not call.attendable[1, 2].any()
    sums = call.weights.sum(axis=-1)
    sums[1, :, 2] = 1
    np.testing.assert_allclose(sums, 1, atol=1e-6)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_nested_tensors_are_named_and_not_read() -> None:
    texts = [drawn(11, 3, 8), drawn(12, 5, 8)]
    nested = torch.nested.nested_tensor(texts, layout=torch.jagged)
    calls: list[Call] = []
    with capture(calls.append) as watching:
        # Asks for a size that is no number.
        SDPA(*[nested.unflatten(-1, (2, 4)).transpose(1, 2)] * 3)  # type: ignore[no-untyped-call]
    assert not calls
    (said,) = watching.unread.describe()
    assert said.endswith("in nested tensors.")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_a_kernel_that_lies_is_refused(dtype: torch.dtype) -> None:
    query, key, value = QUERY.to(dtype), KEY.to(dtype), KEY.to(dtype)
    with lying(1.0):
        captured(lambda: SDPA(query, key, value))
    with lying(1.1), pytest.raises(InvalidRecord, match="do not give its output") as refused:
        captured(lambda: SDPA(query, key, value))
    assert "cannot be drawn" in str(refused.value)


@pytest.mark.parametrize("factored", [False, True])
def test_what_is_no_number_is_refused(factored: bool) -> None:
    with pytest.raises(InvalidRecord, match="reads or gives NaN"):
        recorded(lambda: SDPA(QUERY, KEY, KEY * math.nan), factored=factored)


# --- Weights of nn.MultiheadAttention, and of what is built of it, against its own ---


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
    ahead = torch.ones(5, 5, dtype=torch.bool).triu(2)  # the second head sees a token farther
    padding = torch.tensor([[0, 0, 0, 0, 0], [0, 0, 0, 1, 1], [0, 0, 0, 0, 1]], dtype=torch.bool)
    given: dict[str, Any] = {
        "no": {},
        "mask": {"attn_mask": later},
        "padding": {"key_padding_mask": padding},
        "both": {"attn_mask": later, "key_padding_mask": padding},
        "per head": {"attn_mask": torch.stack([later, ahead]).repeat(3, 1, 1)},
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
    allowed = allowed & ~later if masked in ("mask", "both") else allowed.expand(3, 5, 5)
    allowed = allowed & ~ahead if masked == "per head" else allowed  # by any head
    np.testing.assert_array_equal(call.attendable, allowed.numpy())
    assert call.error < 1e-6
    assert not call.sink.any()


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("added", [{"add_zero_attn": True}, {"add_bias_kv": True}])
def test_keys_that_are_no_tokens_are_a_sink(need_weights: bool, added: dict[str, bool]) -> None:
    module, states = multihead(batch_first=True, **added), drawn(21, 2, 5, 8)
    with torch.no_grad():
        _, weights = module(states, states, states, average_attn_weights=False)
    call = only(lambda: module(states, states, states, need_weights=need_weights))
    assert weights.shape == (2, 2, 5, 6)
    np.testing.assert_allclose(call.weights, weights[..., :5].numpy(), atol=1e-6)
    np.testing.assert_allclose(call.sink, weights[..., 5].numpy(), atol=1e-6)
    assert call.attendable.shape == (2, 5, 5)
