"""Whatever attends: nothing is kept, each thread captures its own, and calls have the places of their modules."""

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules import module as hooks

from attnviz.errors import InvalidRecord
from attnviz.models.capture.call import Call
from attnviz.models.capture.tap import capture
from tests.models.captures import KEY, QUERY, SDPA, STATES, VALUE, WEIGHTS, captured, drawn, only, softmaxed
from tests.models.structures import Attention, Module, Stack


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


def model() -> Any:
    """Two blocks of attention and a map behind it."""
    return Stack([nn.Sequential(Attention(2), nn.Linear(16, 16)) for _ in range(2)])


def places(calls: Sequence[Call]) -> list[tuple[int, str]]:
    return [(call.number, call.path) for call in calls]


def test_paths_and_passes() -> None:
    own, states = model(), drawn(50, 1, 3, 16)
    both = ["layers.0.0", "layers.1.0"]

    def run() -> None:
        own(states)
        own(states)
        own.layers[0](states)

    expected = [(number, path) for number in (1, 2) for path in both] + [(3, "0")]
    assert places(captured(run)) == expected
    own.layers[1] = own.layers[0]  # shared by two layers, and called twice
    assert places(captured(lambda: own(states))) == [(1, "layers.0.0")] * 2


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
def test_a_pass_that_fails_is_over(kind: type[BaseException]) -> None:
    """Of what is interrupted torch lets no module end, and whoever goes on is the one around them."""
    own, states = model(), drawn(50, 1, 3, 16)

    def fail(*_: object) -> None:
        raise kind("a bug of the model")

    def try_it(around: Any, states: Tensor) -> None:
        with own.layers[0][1].register_forward_hook(fail), pytest.raises(kind, match="a bug of the model"):
            around.inner(states)

    around = Module(try_it, inner=own)
    calls = captured(lambda: [around(states), own(states)])
    assert places(calls) == [(1, "inner.layers.0.0"), (2, "layers.0.0"), (2, "layers.1.0")]


def test_two_threads_capture_each_their_own() -> None:
    found: dict[int, list[Call]] = {}
    barrier, begun = threading.Barrier(2), threading.Event()

    def run(n_tokens: int) -> None:
        own, states = model(), drawn(50, 1, n_tokens, 16)
        calls: list[Call] = []
        assert n_tokens == 3 or begun.wait()
        with capture(calls.append):
            begun.set()
            for _ in range(5):
                barrier.wait()
                own(states)
            if n_tokens == 4:  # the first to begin is the first to end
                threads[0].join()
        found[n_tokens] = calls

    threads = [threading.Thread(target=run, args=(n,)) for n in (3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shapes = {n: {call.weights.shape for call in calls} for n, calls in found.items()}
    assert shapes == {3: {(1, 2, 3, 3)}, 4: {(1, 2, 4, 4)}}
    assert places(found[3]) == places(found[4])
    assert len(found[3]) == 10
    assert torch.backends.mha.get_fastpath_enabled()


def test_a_capture_within_a_capture() -> None:
    own, states = model(), drawn(50, 1, 3, 16)
    outer: list[Call] = []
    inner: list[Call] = []
    with torch.no_grad(), capture(outer.append), capture(inner.append):
        own(states)
        softmaxed() @ STATES
        SDPA(QUERY, KEY, VALUE)
    assert len(inner) == len(outer) == 4
    for one, other in zip(inner, outer, strict=True):
        np.testing.assert_array_equal(one.weights, other.weights)


def test_nothing_is_left_behind() -> None:
    before = len(hooks._global_forward_pre_hooks), len(hooks._global_forward_hooks)
    with capture(lambda call: None):
        assert len(hooks._global_forward_hooks) == before[1] + 1
    with pytest.raises(ValueError, match="of mine"), capture(lambda call: None):
        raise ValueError("of mine")
    assert (len(hooks._global_forward_pre_hooks), len(hooks._global_forward_hooks)) == before
    calls = captured(lambda: None)
    SDPA(QUERY, KEY, VALUE)
    assert calls == []


def test_composite_operators_give_the_same_bits() -> None:
    """Torch has linear upsampling in Python, too, with other last bits."""
    grow = torch.inference_mode()(nn.Upsample(scale_factor=2, mode="linear").forward)
    right = grow(STATES[0])
    with capture(lambda call: None):
        assert torch.equal(grow(STATES[0]), right)


# --- A softmax that is multiplied with values is attention, and other softmaxes are not ---


@pytest.mark.parametrize(
    "run",
    [
        lambda: softmaxed() @ STATES,
        lambda: torch.einsum("bhqk,bhkd->bqhd", softmaxed(), STATES),
        lambda: torch.baddbmm(torch.ones(6, 5, 4), softmaxed().flatten(0, 1), STATES.flatten(0, 1)),
        lambda: nn.Dropout(0.3).eval()(softmaxed()) @ STATES,
        lambda: softmaxed().double().type_as(STATES).clone().contiguous() @ STATES,
        lambda: softmaxed().masked_fill(torch.zeros(5, 5, dtype=torch.bool), 0) @ STATES,
    ],
)
def test_a_softmax_that_is_multiplied(run: Callable[[], Tensor]) -> None:
    call = only(run)
    np.testing.assert_allclose(call.weights, WEIGHTS.numpy(), atol=1e-7)
    assert (call.how, call.error, float(call.sink.max())) == ("multiplied", 0.0, 0.0)
    assert call.attendable.all()
    assert call.attendable.shape == (2, 5, 5)


@pytest.mark.parametrize(
    "run",
    [
        lambda: softmaxed(),  # a classifier of every token
        lambda: softmaxed() @ torch.ones(5, 4),  # soft words from a vocabulary
        lambda: STATES.transpose(-2, -1) @ softmaxed(),
        lambda: torch.einsum("bhqk->bhk", softmaxed()),
        lambda: softmaxed()[:, :, :, 1:] @ STATES[:, :, 1:],
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


EARLIER = torch.ones(5, 5, dtype=torch.bool).tril()
WINDOWS = torch.arange(5)[:, None] // 3 == torch.arange(5) // 3


@pytest.mark.parametrize(
    ("low", "allowed", "among"),
    [
        (-1e4, torch.ones(5, 5, dtype=torch.bool), -1e4),  # low scores, and no other in their rows
        *((low, torch.ones(5, 5, dtype=torch.bool), low) for low in (-1e20, -1e9)),  # evenly, as courses write it
        (-1e4, EARLIER, 0),
        (-1e9, EARLIER, 0),
        (-9e15, EARLIER, 0),  # as Veličković et al. (2018) have it
        (-100, WINDOWS, 0),  # as in shifted windows; the 4e-44 that is left of a weight is no attention
    ],
)
def test_scores_that_a_number_forbids(low: float, allowed: Tensor, among: float) -> None:
    def scores() -> Tensor:
        return STATES @ STATES.mT + torch.full((5, 5), low).masked_fill(allowed, among)

    call = only(lambda: scores().softmax(dim=-1) @ STATES)
    np.testing.assert_array_equal(call.attendable[0], allowed.numpy())
    assert (call.weights[..., ~allowed.numpy()] == 0).all()
    np.testing.assert_allclose(call.weights, scores().softmax(dim=-1).numpy(), atol=1e-30)


def test_scores_that_fall_with_distance_are_not_forbidden() -> None:
    """As those of linear biases do, to far below -100, without a gap."""
    distance = (torch.arange(300)[:, None] - torch.arange(300)).abs()
    states = drawn(3, 1, 1, 300, 4)
    call = only(lambda: (states @ states.mT - distance).softmax(dim=-1) @ states)
    assert call.attendable.all()


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
