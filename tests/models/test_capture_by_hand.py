"""A softmax that is multiplied with values is attention, and other softmaxes are not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from attnviz.errors import InvalidRecord
from tests.models.captures import STATES, WEIGHTS, captured, drawn, only, softmaxed


@pytest.mark.parametrize(
    "run",
    [
        lambda: softmaxed() @ STATES,
        lambda: torch.einsum("bhqk,bhkd->bqhd", softmaxed(), STATES),
        lambda: torch.einsum("...kd, ...qk -> ...qd", STATES, softmaxed()),
        lambda: torch.baddbmm(torch.ones(6, 5, 4), softmaxed().flatten(0, 1), STATES.flatten(0, 1)),
        lambda: nn.Dropout(0.3).eval()(softmaxed()) @ STATES,
        lambda: softmaxed().double().type_as(STATES).clone().contiguous() @ STATES,
        lambda: softmaxed().masked_fill(torch.zeros(5, 5, dtype=torch.bool), 0) @ STATES,
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
        lambda: torch.einsum("bhqk->bhk", softmaxed()),
        lambda: softmaxed()[:, :, :, 1:] @ STATES[:, :, 1:],
        lambda: softmaxed().log_softmax(dim=-1) @ STATES,
        lambda: softmaxed().transpose(-2, -1) @ STATES,
    ],
)
def test_other_softmaxes_are_none_of_ours(run: Callable[[], Tensor]) -> None:
    assert captured(run) == []


@pytest.mark.parametrize("low", [-torch.inf, torch.finfo(torch.float32).min])
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


@pytest.mark.parametrize("low", [-1e20, -1e9])
def test_a_row_that_a_number_forbids_wholly_attends_evenly(low: float) -> None:
    """As courses write it: softmax of equal numbers is even, and nothing is undefined, as it is of -inf."""
    mask = torch.ones(5, 5, dtype=torch.bool).tril()
    mask[0] = False
    scores = (STATES @ STATES.mT).masked_fill(~mask, low)
    call = only(lambda: (STATES @ STATES.mT).masked_fill(~mask, low).softmax(dim=-1) @ STATES)
    np.testing.assert_allclose(call.weights, scores.softmax(dim=-1), atol=1e-6)
    mask[0] = True
    np.testing.assert_array_equal(call.attendable[0], mask.numpy())


def test_low_scores_are_not_forbidden_ones() -> None:
    call = only(lambda: (STATES @ STATES.mT - 10_000).softmax(dim=-1) @ STATES)
    assert call.attendable.all()
    call = only(lambda: (STATES @ STATES.mT + torch.full((5, 5), -1e4).triu(1)).softmax(dim=-1) @ STATES)
    np.testing.assert_array_equal(call.attendable[0], np.tri(5, dtype=bool))  # beside others they are


def test_what_minus_a_hundred_forbids_is_forbidden() -> None:
    """As in shifted windows; the 4e-44 that is left of a weight is no attention."""
    windows = torch.zeros(5, 5)
    windows[:2, 2:] = windows[2:, :2] = -100
    scores = STATES @ STATES.mT + windows
    assert (scores.softmax(dim=-1)[..., :2, 2:] > 0).any()
    call = only(lambda: (STATES @ STATES.mT + windows).softmax(dim=-1) @ STATES)
    np.testing.assert_array_equal(call.attendable[0], windows.numpy() == 0)
    assert (call.weights[..., windows.numpy() < 0] == 0).all()
    np.testing.assert_allclose(call.weights, scores.softmax(dim=-1).numpy(), atol=1e-30)


def test_scores_that_fall_with_distance_are_not_forbidden() -> None:
    """As those of linear biases do, to far below -100, without a gap."""
    distance = (torch.arange(300)[:, None] - torch.arange(300)).abs()
    states = drawn(3, 1, 1, 300, 4)
    call = only(lambda: (states @ states.mT - distance).softmax(dim=-1) @ states)
    assert call.attendable.all()


def test_columns_that_are_cut_off_are_a_sink() -> None:
    sink = torch.tensor([0.0, 1.0, 2.0]).view(1, 3, 1, 1).expand(2, 3, 5, 1)

    def scores() -> Tensor:
        return torch.cat([STATES @ STATES.transpose(-2, -1), sink], dim=-1)

    whole = scores().softmax(dim=-1)
    call = only(lambda: functional.softmax(scores(), dim=-1)[..., :-1].to(torch.float32) @ STATES)
    np.testing.assert_allclose(call.weights, whole[..., :5].numpy(), atol=1e-6)
    assert call.sink is not None
    np.testing.assert_allclose(call.sink, whole[..., 5].numpy(), atol=1e-6)
    assert call.attendable.shape == (2, 5, 5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_rounded_weights_sum_to_one(dtype: torch.dtype) -> None:
    call = only(lambda: (10 * softmaxed()).softmax(dim=-1).to(dtype) @ STATES.to(dtype))
    np.testing.assert_allclose(call.weights.sum(axis=-1), 1, atol=1e-6)
    np.testing.assert_allclose(call.weights, (10 * WEIGHTS).softmax(dim=-1).numpy(), atol=torch.finfo(dtype).eps)
    assert 0 < call.error < torch.finfo(dtype).eps


def test_dropout_by_hand_is_refused() -> None:
    with pytest.raises(InvalidRecord, match="drops 30% of the weights"):
        captured(lambda: nn.Dropout(0.3)(softmaxed()) @ STATES)


def test_merged_scores_whose_weights_get_an_axis_of_heads() -> None:
    value = drawn(44, 2, 3, 5, 4)

    def run() -> Tensor:
        heads = drawn(43, 6, 5, 5)
        scores = (heads @ heads.mT).masked_fill(torch.ones(5, 5, dtype=torch.bool).triu(1), -torch.inf)
        scores[3:, :, 4] = -torch.inf  # padding of the second text
        return scores.softmax(dim=-1).view(2, 3, 5, 5) @ value

    call = only(run)
    np.testing.assert_array_equal(call.attendable[0], np.tri(5, dtype=bool))
    np.testing.assert_array_equal(call.attendable[1], np.tri(5, dtype=bool) & (np.arange(5) < 4))
