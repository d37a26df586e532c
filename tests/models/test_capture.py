"""Whatever attends: nothing is kept, each thread captures its own, and calls have the places of their modules."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules import module as hooks

from attnviz.models.capture.call import Call
from attnviz.models.capture.tap import capture
from tests.models.captures import KEY, QUERY, SDPA, STATES, VALUE, WEIGHTS, captured, drawn, only, softmaxed
from tests.models.structures import Module


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

    def attend(own: Any, states: Tensor, fail: bool = False) -> Any:
        attended = own.out(own.attn(states, states, states, need_weights=False)[0])
        if fail:
            raise ValueError("a bug of the model")
        return attended

    def run(own: Any, states: Tensor, fail: bool = False) -> Tensor:
        for block in own.blocks:
            states = block(states, fail)
        return states

    blocks = [Module(attend, attn=nn.MultiheadAttention(8, 2, batch_first=True), out=nn.Linear(8, 8)) for _ in range(2)]
    return Module(run, blocks=nn.ModuleList(blocks))


def places(calls: Sequence[Call]) -> list[tuple[int, str]]:
    return [(call.number, call.path) for call in calls]


def test_paths_and_passes() -> None:
    own, states = model(), drawn(50, 1, 3, 8)
    both = ["blocks.0.attn", "blocks.1.attn"]

    def run() -> None:
        own(states)
        own(states)
        own.blocks[0](states)

    expected = [(number, path) for number in (0, 1) for path in both] + [(2, "attn")]
    assert places(captured(run)) == expected
    own.blocks[1] = own.blocks[0]  # shared by two layers, and called twice
    assert places(captured(lambda: own(states))) == [(0, "blocks.0.attn")] * 2


def test_a_pass_that_fails_is_over() -> None:
    own, states = model(), drawn(50, 1, 3, 8)

    def run() -> None:
        with pytest.raises(ValueError, match="a bug of the model"):
            own(states, True)
        own(states)

    assert places(captured(run)) == [(0, "blocks.0.attn"), (1, "blocks.0.attn"), (1, "blocks.1.attn")]


def test_two_threads_capture_each_their_own() -> None:
    found: dict[int, list[Call]] = {}
    barrier = threading.Barrier(2)

    def run(n_tokens: int) -> None:
        own, states = model(), drawn(50, 1, n_tokens, 8)
        calls: list[Call] = []
        with capture(calls.append):
            for _ in range(5):
                barrier.wait()
                own(states)
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


def test_a_capture_within_a_capture() -> None:
    own, states = model(), drawn(50, 1, 3, 8)
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
