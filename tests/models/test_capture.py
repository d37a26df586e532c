"""What is captured against the formula, against torch's own weights, and against kernels that lie."""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules import module as hooks
from torch.overrides import TorchFunctionMode

from attnviz.errors import BadRecord
from attnviz.models.attention import attention_weights
from attnviz.models.capture import Call, capture

SDPA = functional.scaled_dot_product_attention


def drawn(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def captured(run: Callable[[], Any]) -> list[Call]:
    calls: list[Call] = []
    with torch.no_grad(), capture(calls.append):
        run()
    return calls


def only(run: Callable[[], Any]) -> Call:
    (call,) = captured(run)
    return call


@contextmanager
def lying(by: float) -> Iterator[None]:
    """Every kernel's output is off by a factor."""

    class Lying(TorchFunctionMode):
        def __torch_function__(
            self, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
        ) -> Any:
            output = function(*args, **(kwargs or {}))
            if function is SDPA:
                return output * by
            return (output[0] * by, output[1]) if function is functional.multi_head_attention_forward else output

    with Lying():
        yield


QUERY, KEY, VALUE = drawn(1, 2, 4, 5, 8), drawn(2, 2, 4, 7, 8), drawn(3, 2, 4, 7, 6)
ALLOWED = drawn(4, 2, 1, 5, 7) > -0.5
ALLOWED[..., 0] = True
ADDED = torch.zeros(ALLOWED.shape).masked_fill(~ALLOWED, -torch.inf)


# --- F.scaled_dot_product_attention -------------------------------------------------------------------------------


def test_weights_are_the_formula() -> None:
    call = only(lambda: SDPA(QUERY, KEY, VALUE))
    np.testing.assert_allclose(call.weights, attention_weights(QUERY, KEY).numpy(), atol=1e-6)
    assert call.attendable.all()
    assert call.attendable.shape == (2, 5, 7)
    assert (call.path, call.number, call.sink, call.how) == ("", 0, None, "recomputed")
    assert 0 <= call.error < 1e-6


@pytest.mark.parametrize(
    "run",
    [
        lambda: SDPA(QUERY, KEY, VALUE, ALLOWED),
        lambda: SDPA(value=VALUE, query=QUERY, key=KEY, attn_mask=ADDED),
        lambda: SDPA(QUERY, KEY, VALUE, ADDED.nan_to_num(neginf=torch.finfo(torch.float32).min)),
        lambda: SDPA(QUERY, KEY, VALUE, ADDED.nan_to_num(neginf=-1e9)),
        lambda: SDPA(QUERY, KEY, VALUE, attn_mask=ALLOWED.expand(2, 4, 5, 7)),
    ],
    ids=["bool", "infinite, by name", "smallest", "minus a billion", "of every head"],
)
def test_masks(run: Callable[[], Tensor]) -> None:
    call = only(run)
    np.testing.assert_allclose(call.weights, attention_weights(QUERY, KEY, ALLOWED).numpy(), atol=1e-6)
    np.testing.assert_array_equal(call.attendable, ALLOWED[:, 0].numpy())


def test_a_bias_forbids_nothing() -> None:
    bias = drawn(5, 4, 5, 7) * 3
    call = only(lambda: SDPA(QUERY, KEY, VALUE, bias))
    expected = (QUERY @ KEY.transpose(-2, -1) / math.sqrt(8) + bias).softmax(dim=-1)
    np.testing.assert_allclose(call.weights, expected.numpy(), atol=1e-6)
    assert call.attendable.all()


def test_attendable_is_by_any_head() -> None:
    allowed = torch.ones(1, 2, 3, 3, dtype=torch.bool).tril()
    allowed[0, 1, 0, 2] = True
    states = drawn(6, 1, 2, 3, 4)
    call = only(lambda: SDPA(states, states, states, allowed))
    expected = np.tri(3, dtype=bool)
    expected[0, 2] = True
    np.testing.assert_array_equal(call.attendable[0], expected)


@pytest.mark.parametrize("n_keys", [5, 7])
def test_causal(n_keys: int) -> None:
    call = only(lambda: SDPA(QUERY, KEY[:, :, :n_keys], VALUE[:, :, :n_keys], is_causal=True))
    lower = np.tri(5, n_keys, dtype=bool)
    np.testing.assert_array_equal(call.attendable, np.stack([lower, lower]))
    assert (call.weights[..., ~lower] == 0).all()
    np.testing.assert_allclose(call.weights.sum(axis=-1), 1, atol=1e-6)


def test_scale() -> None:
    call = only(lambda: SDPA(QUERY, KEY, VALUE, scale=2.0))
    np.testing.assert_allclose(call.weights, (QUERY @ KEY.transpose(-2, -1) * 2).softmax(-1).numpy(), atol=1e-6)


@pytest.mark.parametrize("n_groups", [1, 2])
def test_grouped_queries(n_groups: int) -> None:
    key, value = KEY[:, :n_groups], VALUE[:, :n_groups]
    call = only(lambda: SDPA(QUERY, key, value, enable_gqa=True))
    own = KEY[:, :n_groups].repeat_interleave(4 // n_groups, dim=1)
    np.testing.assert_allclose(call.weights, attention_weights(QUERY, own).numpy(), atol=1e-6)


@pytest.mark.parametrize(("leading", "expected"), [((), (1, 1)), ((3,), (1, 3)), ((2, 3, 4), (6, 4))])
def test_leading_axes(leading: tuple[int, ...], expected: tuple[int, int]) -> None:
    query, key = drawn(7, *leading, 5, 8), drawn(8, *leading, 6, 8)
    allowed = torch.ones(5, 6, dtype=torch.bool).tril()
    call = only(lambda: SDPA(query, key, key, allowed))
    assert call.weights.shape == (*expected, 5, 6)
    np.testing.assert_allclose(
        call.weights.reshape(*leading, 5, 6), attention_weights(query, key, allowed).numpy(), atol=1e-6
    )
    assert call.attendable.shape == (expected[0], 5, 6)


def test_a_mask_of_more_leading_axes_keeps_to_its_rows() -> None:
    states = drawn(9, 2, 3, 1, 4, 8)
    allowed = torch.ones(2, 1, 1, 4, 4, dtype=torch.bool)
    allowed[1, ..., 3] = False
    call = only(lambda: SDPA(states, states, states, allowed))
    np.testing.assert_array_equal(call.attendable[:, 0, 3], [True] * 3 + [False] * 3)


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


@pytest.mark.parametrize("kind", ["bool", "infinite", "smallest"])
def test_a_query_that_may_attend_to_nothing_has_no_weights(kind: str) -> None:
    allowed = ALLOWED.clone()
    allowed[1, 0, 2] = False
    low = {"infinite": -torch.inf, "smallest": torch.finfo(torch.float32).min}.get(kind, 0.0)
    mask = allowed if kind == "bool" else torch.zeros(allowed.shape).masked_fill(~allowed, low)
    call = only(lambda: SDPA(QUERY, KEY, VALUE, mask))
    assert (call.weights[1, :, 2] == 0).all()
    assert not call.attendable[1, 2].any()
    sums = call.weights.sum(axis=-1)
    sums[1, :, 2] = 1
    np.testing.assert_allclose(sums, 1, atol=1e-6)


def test_many_cells_are_worked_out_a_few_heads_at_a_time() -> None:
    states = drawn(10, 2, 3, 600, 4)
    call = only(lambda: SDPA(states, states, states, is_causal=True))
    expected = attention_weights(states, states, torch.ones(600, 600, dtype=torch.bool).tril())
    np.testing.assert_allclose(call.weights, expected.numpy(), atol=1e-6)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_nested_tensors_are_padded() -> None:
    texts = [drawn(11, 3, 2, 4), drawn(12, 5, 2, 4)]
    nested = torch.nested.nested_tensor(texts, layout=torch.jagged).transpose(1, 2)
    call = only(lambda: SDPA(nested, nested, nested))
    assert call.weights.shape == (2, 2, 5, 5)
    for row, text in enumerate(texts):
        n = len(text)
        states = text.transpose(0, 1)
        np.testing.assert_allclose(call.weights[row, :, :n, :n], attention_weights(states, states).numpy(), atol=1e-6)
        assert call.attendable[row, :n, :n].all()
        assert call.attendable[row].sum() == n * n


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_a_kernel_that_lies_is_refused(dtype: torch.dtype) -> None:
    query, key, value = QUERY.to(dtype), KEY.to(dtype), VALUE.to(dtype)
    with lying(1.0):
        captured(lambda: SDPA(query, key, value))
    with lying(1.1), pytest.raises(BadRecord, match="do not give its output") as refused:
        captured(lambda: SDPA(query, key, value))
    assert "cannot be drawn" in str(refused.value)


def test_a_small_lie_is_refused_in_full_precision() -> None:
    with lying(1.001), pytest.raises(BadRecord, match="do not give its output"):
        captured(lambda: SDPA(QUERY, KEY, VALUE))


def test_what_is_not_a_number_is_refused() -> None:
    with pytest.raises(BadRecord, match="miss it by nan"):
        captured(lambda: SDPA(QUERY, KEY, VALUE * math.nan))


def test_training_mode_is_refused() -> None:
    with pytest.raises(BadRecord, match=r"drops 10% of the weights.*model\.eval\(\)"):
        captured(lambda: SDPA(QUERY, KEY, VALUE, dropout_p=0.1))


def test_gradients_flow_as_before() -> None:
    query = QUERY.clone().requires_grad_()
    SDPA(query, KEY, VALUE).sum().backward()  # type: ignore[no-untyped-call]
    expected, query.grad = query.grad, None
    calls: list[Call] = []
    with capture(calls.append):
        SDPA(query, KEY, VALUE).sum().backward()  # type: ignore[no-untyped-call]
    torch.testing.assert_close(query.grad, expected)
    assert len(calls) == 1


# --- nn.MultiheadAttention and what is built of it -----------------------------------------------------------------


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
    assert call.how == ("recomputed" if asked == "nothing" else "multiplied")
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


def test_a_module_without_a_batch() -> None:
    module, states = multihead(), drawn(22, 5, 8)
    with torch.no_grad():
        _, weights = module(states, states, states, average_attn_weights=False)
    call = only(lambda: module(states, states, states, need_weights=False))
    np.testing.assert_allclose(call.weights[0], weights.numpy(), atol=1e-6)


def test_a_causal_hint_counts_as_the_mask() -> None:
    module, states = multihead(batch_first=True), drawn(23, 1, 4, 8)
    mask = nn.Transformer.generate_square_subsequent_mask(4)
    call = only(lambda: module(states, states, states, attn_mask=mask, is_causal=True, need_weights=False))
    np.testing.assert_array_equal(call.attendable[0], np.tri(4, dtype=bool))
    with pytest.raises(BadRecord, match="do not give its output"):  # the hint says another thing than the mask
        captured(
            lambda: module(states, states, states, attn_mask=torch.zeros(4, 4), is_causal=True, need_weights=False)
        )


@pytest.mark.parametrize("need_weights", [True, False])
def test_a_padded_query_of_the_module_has_no_weights(need_weights: bool) -> None:
    """Padding on the left and a causal mask leave the first query nothing."""
    module, states = multihead(batch_first=True), drawn(24, 1, 3, 8)
    masks = {
        "attn_mask": torch.ones(3, 3, dtype=torch.bool).triu(1),
        "key_padding_mask": torch.tensor([[True, False, False]]),
    }
    call = only(lambda: module(states, states, states, need_weights=need_weights, **masks))
    np.testing.assert_allclose(call.weights[0].sum(axis=-1), [[0, 1, 1]] * 2, atol=1e-6)
    np.testing.assert_array_equal(call.attendable[0].sum(axis=-1), [0, 1, 2])


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_module_in_half_precision(dtype: torch.dtype, need_weights: bool) -> None:
    module, states = multihead(batch_first=True), drawn(31, 2, 9, 8) * 3
    with torch.no_grad():
        _, weights = module(states, states, states, average_attn_weights=False)
    module, states = module.to(dtype), states.to(dtype)
    call = only(lambda: module(states, states, states, need_weights=need_weights))
    np.testing.assert_allclose(call.weights.sum(axis=-1), 1, atol=1e-6)
    np.testing.assert_allclose(call.weights, weights.numpy(), atol=20 * torch.finfo(dtype).eps)


def test_weights_that_a_module_gives_are_the_callers() -> None:
    module, states = multihead(batch_first=True), drawn(32, 2, 5, 8)

    def run() -> None:
        _, weights = module(states, states, states, average_attn_weights=False)
        weights.zero_()

    np.testing.assert_allclose(only(run).weights.sum(axis=-1), 1, atol=1e-6)


def test_a_module_that_lies_is_refused() -> None:
    module, states = multihead(batch_first=True), drawn(25, 1, 3, 8)
    with lying(1.01), pytest.raises(BadRecord, match="do not give its output"):
        captured(lambda: module(states, states, states, need_weights=False))


@pytest.mark.parametrize("need_weights", [True, False])
def test_a_module_in_training_mode_is_refused(need_weights: bool) -> None:
    module, states = multihead(dropout=0.25).train(), drawn(26, 5, 8)
    with pytest.raises(BadRecord, match="drops 25% of the weights"):
        captured(lambda: module(states, states, states, need_weights=need_weights))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_nested_tensors_in_the_module_end_in_one_line() -> None:
    module = multihead(batch_first=True)
    nested = torch.nested.nested_tensor([drawn(27, 3, 8), drawn(28, 5, 8)], layout=torch.jagged)
    with pytest.raises(BadRecord, match=r"nested tensors.*key_padding_mask"):
        captured(lambda: module(nested, nested, nested))
    assert len(captured(lambda: module(drawn(29, 1, 3, 8), drawn(29, 1, 3, 8), drawn(29, 1, 3, 8)))) == 1


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_the_fast_path_of_an_encoder_gives_way() -> None:
    """Weights are the slow path's, and real tokens come out as the fast path, in nested tensors, gives them."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2).eval()
    states = drawn(30, 2, 5, 8)
    padding = torch.tensor([[False] * 5, [False, False, False, True, True]])
    outputs: list[Tensor] = []
    with torch.no_grad():
        fast = encoder(states, src_key_padding_mask=padding)
    assert (fast[1, 3:] == 0).all()  # nested tensors know no padding: it was the fast path
    calls = captured(lambda: outputs.append(encoder(states, src_key_padding_mask=padding)))
    torch.testing.assert_close(outputs[0][~padding], fast[~padding], atol=1e-5, rtol=1e-5)
    assert [call.path for call in calls] == ["layers.0.self_attn", "layers.1.self_attn"]
    with torch.no_grad():
        for call, one in zip(calls, encoder.layers, strict=True):
            assert isinstance(one, nn.TransformerEncoderLayer)
            _, weights = one.self_attn(states, states, states, key_padding_mask=padding, average_attn_weights=False)
            np.testing.assert_allclose(call.weights, weights.numpy(), atol=1e-6)
            torch.backends.mha.set_fastpath_enabled(False)
            try:
                states = one(states, src_key_padding_mask=padding)
            finally:
                torch.backends.mha.set_fastpath_enabled(True)


# --- by hand ------------------------------------------------------------------------------------------------------

STATES = drawn(40, 2, 3, 5, 4)  # batch, head, token, d_head
WEIGHTS = (STATES @ STATES.transpose(-2, -1)).softmax(dim=-1)


def softmaxed() -> Tensor:
    return (STATES @ STATES.transpose(-2, -1)).softmax(dim=-1)


@pytest.mark.parametrize(
    "run",
    [
        lambda: softmaxed() @ STATES,
        lambda: torch.matmul(softmaxed(), STATES),
        lambda: torch.matmul(input=softmaxed(), other=STATES),
        lambda: softmaxed().matmul(STATES),
        lambda: torch.einsum("bhqk,bhkd->bqhd", softmaxed(), STATES),
        lambda: torch.einsum("...kd, ...qk -> ...qd", STATES, softmaxed()),
        lambda: torch.bmm(softmaxed().view(6, 5, 5), STATES.view(6, 5, 4)),
        lambda: torch.baddbmm(torch.ones(6, 5, 4), softmaxed().flatten(0, 1), STATES.flatten(0, 1)),
        lambda: functional.softmax(STATES @ STATES.transpose(-2, -1), -1) @ STATES,
        lambda: torch.softmax(STATES @ STATES.transpose(-2, -1), dim=3) @ STATES,
        lambda: nn.Softmax(dim=-1)(STATES @ STATES.transpose(-2, -1)) @ STATES,
        lambda: nn.Dropout(0.3).eval()(softmaxed()) @ STATES,
        lambda: functional.dropout(softmaxed(), 0.0, training=True) @ STATES,
        lambda: softmaxed().double().type_as(STATES).clone().contiguous() @ STATES,
        lambda: softmaxed().masked_fill(torch.zeros(5, 5, dtype=torch.bool), 0) @ STATES,
        lambda: softmaxed().view(6, 5, 5).view(2, 3, 5, 5)[:, :] @ STATES,
        lambda: softmaxed().to(torch.float64) @ STATES.double(),
    ],
)
def test_a_softmax_that_is_multiplied(run: Callable[[], Tensor]) -> None:
    call = only(run)
    np.testing.assert_allclose(call.weights, WEIGHTS.numpy(), atol=1e-7)
    assert (call.how, call.error, call.sink) == ("multiplied", 0.0, None)
    assert call.attendable.all()
    assert call.attendable.shape == (2, 5, 5)


@pytest.mark.parametrize(
    "run",
    [
        lambda: softmaxed(),  # a classifier of every token
        lambda: softmaxed() @ torch.ones(5, 4),  # soft words from a vocabulary
        lambda: (STATES @ STATES.transpose(-2, -1)).softmax(dim=-2) @ STATES,
        lambda: STATES.transpose(-2, -1) @ softmaxed(),
        lambda: (STATES[0, 0] @ STATES[0, 0].T).softmax(dim=-1) @ STATES,
        lambda: torch.einsum("bqhk,bhkd->bqhd", softmaxed()[:, :, :3], STATES[:, :3]),
        lambda: torch.einsum("bhqk->bhk", softmaxed()),
        lambda: softmaxed()[:, :, :, 1:] @ STATES[:, :, 1:],
        lambda: softmaxed().log_softmax(dim=-1) @ STATES,
        lambda: softmaxed().transpose(-2, -1) @ STATES,
    ],
)
def test_other_softmaxes_are_none_of_ours(run: Callable[[], Tensor]) -> None:
    assert captured(run) == []


@pytest.mark.parametrize("low", [-torch.inf, torch.finfo(torch.float32).min, -1e9])
def test_scores_that_are_forbidden_by_hand(low: float) -> None:
    def run() -> Tensor:
        scores = (STATES @ STATES.transpose(-2, -1)).masked_fill(later, low)
        return scores.softmax(dim=-1).nan_to_num() @ STATES

    later = torch.ones(5, 5, dtype=torch.bool).triu(1)
    later[0] = True  # the first query may attend to nothing
    call = only(run)
    np.testing.assert_array_equal(call.attendable, (~later).expand(2, 5, 5).numpy())
    assert (call.weights[:, :, 0] == 0).all()
    np.testing.assert_allclose(call.weights[:, :, 1:].sum(axis=-1), 1, atol=1e-6)


def test_low_scores_are_not_forbidden_ones() -> None:
    call = only(lambda: (STATES @ STATES.transpose(-2, -1) - 10_000).softmax(dim=-1) @ STATES)
    assert call.attendable.all()


def test_columns_that_are_cut_off_are_a_sink() -> None:
    sink = torch.tensor([0.0, 1.0, 2.0]).view(1, 3, 1, 1).expand(2, 3, 5, 1)
    scores = torch.cat([STATES @ STATES.transpose(-2, -1), sink], dim=-1)
    whole = scores.softmax(dim=-1)
    call = only(lambda: functional.softmax(scores, dim=-1)[..., :-1].to(torch.float32) @ STATES)
    np.testing.assert_allclose(call.weights, whole[..., :5].numpy(), atol=1e-7)
    assert call.sink is not None
    np.testing.assert_allclose(call.sink, whole[..., 5].numpy(), atol=1e-7)
    assert call.attendable.shape == (2, 5, 5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_rounded_weights_sum_to_one(dtype: torch.dtype) -> None:
    call = only(lambda: (10 * softmaxed()).softmax(dim=-1).to(dtype) @ STATES.to(dtype))
    np.testing.assert_allclose(call.weights.sum(axis=-1), 1, atol=1e-6)
    np.testing.assert_allclose(call.weights, (10 * WEIGHTS).softmax(dim=-1).numpy(), atol=torch.finfo(dtype).eps)
    assert 0 < call.error < torch.finfo(dtype).eps


@pytest.mark.parametrize("dropout", [nn.Dropout(0.3), lambda weights: torch.dropout(weights, 0.3, True)])
def test_dropout_by_hand_is_refused(dropout: Callable[[Tensor], Tensor]) -> None:
    with pytest.raises(BadRecord, match="drops 30% of the weights"):
        captured(lambda: dropout(softmaxed()) @ STATES)


class Merged(nn.Module):
    """Heads and batch on one axis, as older code has them."""

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.project = nn.Identity()

    def forward(self, *, states: Tensor) -> Tensor:
        states = self.project(states)
        n_batch, n_tokens, _ = states.shape
        heads = states.view(n_batch, n_tokens, self.n_heads, -1).transpose(1, 2)
        heads = heads.reshape(n_batch * self.n_heads, n_tokens, -1)
        weights = torch.bmm(heads, heads.transpose(1, 2)).softmax(dim=-1)
        return torch.bmm(weights, heads)


@pytest.mark.parametrize(("n_batch", "n_heads"), [(1, 4), (3, 1), (1, 1)])
def test_merged_heads_of_one_text_or_one_head_of_many(n_batch: int, n_heads: int) -> None:
    states = drawn(41, n_batch, 5, 8)
    assert only(lambda: Merged(n_heads)(states=states)).weights.shape == (n_batch, n_heads, 5, 5)


def test_heads_that_cannot_be_told_from_the_batch_are_left_out() -> None:
    calls: list[Call] = []
    with capture(calls.append) as watching:
        Merged(2)(states=drawn(42, 3, 5, 8))
    assert calls == []
    assert watching.unclear == 1


def test_merged_scores_whose_weights_get_an_axis_of_heads() -> None:
    scores = drawn(43, 6, 5, 5).masked_fill(torch.ones(5, 5, dtype=torch.bool).triu(1), -torch.inf)
    scores[3:, :, 4] = -torch.inf  # padding of the second text
    value = drawn(44, 2, 3, 5, 4)
    call = only(lambda: scores.softmax(dim=-1).view(2, 3, 5, 5) @ value)
    np.testing.assert_array_equal(call.attendable[0], np.tri(5, dtype=bool))
    np.testing.assert_array_equal(call.attendable[1], np.tri(5, dtype=bool) & (np.arange(5) < 4))


# --- memory, threads, modules --------------------------------------------------------------------------------------


def test_no_layer_is_kept() -> None:
    """By the time of the next layer nobody holds the last one's weights."""
    arrays: list[weakref.ref[Any]] = []
    tensors: list[weakref.ref[Tensor]] = []

    def take(call: Call) -> None:
        assert all(array() is None for array in arrays)
        arrays.append(weakref.ref(call.weights))

    with capture(take):
        for _ in range(3):
            SDPA(QUERY, KEY, VALUE)
        for _ in range(3):
            weights = softmaxed()
            tensors.append(weakref.ref(weights))
            weights @ STATES
            del weights
            assert tensors[-1]() is None
    assert len(arrays) == 6


def test_arrays_are_nobody_elses() -> None:
    def run() -> None:
        weights = softmaxed()
        weights @ STATES
        weights.zero_()

    np.testing.assert_allclose(only(run).weights, WEIGHTS.numpy(), atol=1e-7)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attn = nn.MultiheadAttention(8, 2, batch_first=True)
        self.out = nn.Linear(8, 8)

    def forward(self, states: Tensor, fail: bool = False) -> Tensor:
        attended = self.out(self.attn(states, states, states, need_weights=False)[0])
        if fail:
            raise ValueError("a bug of the model")
        assert isinstance(attended, Tensor)
        return attended


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])

    def forward(self, states: Tensor, fail: bool = False) -> Tensor:
        for block in self.blocks:
            states = block(states, fail)
        return states


def places(calls: Sequence[Call]) -> list[tuple[int, str]]:
    return [(call.number, call.path) for call in calls]


def test_paths_and_passes() -> None:
    model, states = Model().eval(), drawn(50, 1, 3, 8)
    both = ["blocks.0.attn", "blocks.1.attn"]

    def run() -> None:
        model(states)
        model(states)
        model.blocks[0](states)

    expected = [(number, path) for number in (0, 1) for path in both] + [(2, "attn")]
    assert places(captured(run)) == expected


def test_a_shared_layer_is_called_twice() -> None:
    model, states = Model().eval(), drawn(50, 1, 3, 8)
    model.blocks[1] = model.blocks[0]
    assert places(captured(lambda: model(states))) == [(0, "blocks.0.attn")] * 2


def test_a_pass_that_fails_is_over() -> None:
    model, states = Model().eval(), drawn(50, 1, 3, 8)

    def run() -> None:
        with pytest.raises(ValueError, match="a bug of the model"):
            model(states, fail=True)
        model(states)

    assert places(captured(run)) == [(0, "blocks.0.attn"), (1, "blocks.0.attn"), (1, "blocks.1.attn")]


def test_another_thread_is_not_captured() -> None:
    """It runs while this thread is within a pass of its own."""
    model, other, states = Model().eval(), Model().eval(), drawn(50, 1, 3, 8)

    def meanwhile(*_: Any) -> None:
        thread = threading.Thread(target=lambda: other(states))
        thread.start()
        thread.join()

    model.blocks[1].register_forward_pre_hook(meanwhile)
    assert places(captured(lambda: model(states))) == [(0, "blocks.0.attn"), (0, "blocks.1.attn")]


def test_two_threads_capture_each_their_own() -> None:
    found: dict[int, list[Call]] = {}
    barrier = threading.Barrier(2)

    def run(n_tokens: int) -> None:
        model, states = Model().eval(), drawn(50, 1, n_tokens, 8)
        calls: list[Call] = []
        with capture(calls.append):
            for _ in range(5):
                barrier.wait()
                model(states)
        found[n_tokens] = calls

    threads = [threading.Thread(target=run, args=(n,)) for n in (3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {n: {call.weights.shape for call in calls} for n, calls in found.items()} == {
        3: {(1, 2, 3, 3)},
        4: {(1, 2, 4, 4)},
    }
    assert places(found[3]) == places(found[4])
    assert len(found[3]) == 10


def test_a_capture_within_a_capture() -> None:
    model, states = Model().eval(), drawn(50, 1, 3, 8)
    outer: list[Call] = []
    inner: list[Call] = []
    with torch.no_grad(), capture(outer.append), capture(inner.append):
        model(states)
        softmaxed() @ STATES
        SDPA(QUERY, KEY, VALUE)
    assert len(inner) == len(outer) == 4
    for one, other in zip(inner, outer, strict=True):
        np.testing.assert_array_equal(one.weights, other.weights)


@pytest.mark.filterwarnings("ignore:Using `torch.compile:UserWarning")  # that hooks fire for the wrapper, too
def test_a_compiled_model_is_captured() -> None:
    model, states = Model().eval(), drawn(50, 1, 3, 8)
    expected = captured(lambda: model(states))
    compiled = torch.compile(model, backend="eager")
    calls = captured(lambda: compiled(states))
    assert places(calls) == places(expected)
    np.testing.assert_allclose(calls[1].weights, expected[1].weights, atol=1e-6)


def test_nothing_is_left_behind() -> None:
    before = len(hooks._global_forward_pre_hooks), len(hooks._global_forward_hooks)
    with capture(lambda call: None):
        assert len(hooks._global_forward_hooks) == before[1] + 1
    with pytest.raises(ValueError, match="of mine"), capture(lambda call: None):
        raise ValueError("of mine")
    assert (len(hooks._global_forward_pre_hooks), len(hooks._global_forward_hooks)) == before
    calls: list[Call] = []
    with capture(calls.append):
        pass
    SDPA(QUERY, KEY, VALUE)
    assert calls == []
