"""Heads that are modules of their own, and other calls that run beside one another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from attnviz.errors import InvalidRecord, InvalidSelection
from attnviz.models.recording.record import record
from tests.models.captures import drawn, recorded
from tests.models.structures import Module, linears

X = drawn(70, 2, 5, 16)


class Head(nn.Module):
    """One head, as lectures write it before they write several."""

    def __init__(self, fused: bool) -> None:
        super().__init__()
        self.fused, self.weights = fused, torch.empty(0)
        self.query, self.key, self.value = (nn.Linear(16, 4, bias=False) for _ in range(3))

    def forward(self, states: Tensor) -> Tensor:
        query, key, value = self.query(states), self.key(states), self.value(states)
        scores = query @ key.mT / 2
        scores = scores.masked_fill(torch.ones(5, 5).triu(1) > 0, -torch.inf)
        self.weights = scores.softmax(dim=-1)
        if not self.fused:
            mixed: Tensor = self.weights @ value
            return mixed
        query, key, value = (one.unsqueeze(1) for one in (query, key, value))
        return functional.scaled_dot_product_attention(query, key, value, is_causal=True).squeeze(1)


def multi_head(fused: bool) -> nn.Module:
    """Several heads in a list."""
    heads = nn.ModuleList([Head(fused) for _ in range(4)])
    return Module(lambda own, states: states + torch.cat([head(states) for head in own.heads], dim=-1), heads=heads)


def branches() -> nn.Module:
    """Attentions of several heads each, side by side."""

    def forward(own: Any, states: Tensor) -> Tensor:
        return states + torch.stack([branch(states, states, states)[0] for branch in own.branches]).sum(dim=0)

    return Module(forward, branches=nn.ModuleList([nn.MultiheadAttention(16, 4, batch_first=True) for _ in range(2)]))


def loop(join: Callable[[list[Tensor]], Tensor]) -> Any:
    """Several heads in a loop over parts of the states, whose outputs `join` puts side by side."""

    def forward(own: Any, states: Tensor) -> Tensor:
        query, key, value = own.both(states).unflatten(-1, (3, 4, 4)).unbind(-3)
        weights = [(query[..., head, :] @ key[..., head, :].mT / 2).softmax(-1) for head in range(4)]
        own.weights = torch.stack(weights, dim=1).detach()
        return states + join([each @ value[..., head, :] for head, each in enumerate(weights)])

    return Module(forward, **linears(both=48))


def blocks(n_layers: int, fused: bool) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(*(multi_head(fused) for _ in range(n_layers))) if n_layers > 1 else multi_head(fused)


def weights_of(model: nn.Module) -> np.ndarray:
    """[batch, layer, head, query, key] that the heads multiplied."""
    found = torch.stack([part.weights for part in model.modules() if isinstance(part, Head)], dim=1)
    return np.asarray(found.view(len(found), -1, 4, *found.shape[2:]).detach().numpy())


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("n_layers", [1, 3])
@pytest.mark.parametrize(
    ("layers", "heads"), [(None, None), ([0], None), ([-1], None), (None, [2]), ([-1], [1, 3]), ([0], [0])]
)
def test_modules_of_one_head_on_the_same_states_are_heads_of_one_layer(
    fused: bool, n_layers: int, layers: list[int] | None, heads: list[int] | None
) -> None:
    model = blocks(n_layers, fused)
    chosen: dict[str, Any] = {
        "layers": layers and [n_layers - 1 if each < 0 else each for each in layers],
        "heads": heads,
    }
    maps = recorded(lambda: model(X), **chosen)
    rows, numbers, of_heads = weights_of(model), chosen["layers"] or range(n_layers), heads or range(4)
    assert maps.groups == ("*.heads" if n_layers > 1 else "heads",)
    for row, one in zip(rows, maps, strict=True):
        np.testing.assert_allclose(one.weights, row[list(numbers)][:, list(of_heads)], atol=1e-6)
        assert one.layer_numbers == tuple(numbers)
        assert one.head_numbers == tuple(of_heads)
        np.testing.assert_array_equal(one.attendable[0], np.tri(5, dtype=bool))
        assert not one.provenance.facts.guess


@pytest.mark.parametrize("layers", [None, [2]])
def test_heads_that_are_modules_have_no_factors(layers: list[int] | None) -> None:
    with pytest.raises(InvalidRecord, match=r"the heads of .*heads\.0 are calls of their own"):
        recorded(lambda: blocks(3, True)(X), factored=True, layers=layers)


def test_one_head_in_each_layer_is_no_head_of_one() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Sequential(Head(False), nn.Linear(4, 16)) for _ in range(3)))
    choices: list[dict[str, Any]] = [{}, {"layers": [1, 2]}, {"heads": [0]}]
    for chosen in choices:
        maps = recorded(lambda: model(X), **chosen)
        assert maps[0].layer_numbers == tuple(chosen.get("layers", range(3)))
        assert maps[0].weights.shape[1] == 1
        assert not maps[0].provenance.facts.guess
    with pytest.raises(InvalidSelection, match="no head 1"), record(heads=[1]):
        model(X)


@pytest.mark.parametrize("n_layers", [1, 2])
def test_that_calls_beside_one_another_are_layers_is_a_guess(n_layers: int) -> None:
    model = nn.Sequential(*(branches() for _ in range(n_layers))).eval()
    maps = recorded(lambda: model(X))
    guess = maps[0].provenance.facts.guess
    assert guess.startswith("That these calls are layers is a guess: the one in 0.branches.1 reads nothing")


def test_layers_without_numbers_of_their_own_cannot_be_chosen() -> None:
    model = nn.Sequential(*(branches() for _ in range(2))).eval()
    with pytest.raises(InvalidSelection, match="no number in their paths rises"), record(layers=[1]):
        model(X)


@pytest.mark.parametrize(
    "join",
    [lambda heads: torch.cat(heads, dim=-1), lambda heads: torch.stack(heads, dim=2).flatten(2)],
    ids=["cat", "stack"],
)
def test_calls_whose_outputs_are_put_side_by_side_are_heads_of_one_layer(
    join: Callable[[list[Tensor]], Tensor],
) -> None:
    layers = [loop(join), loop(join)]
    model = nn.Sequential(*layers)
    maps = recorded(lambda: model(X), tokens=[list("abcde")] * 2)
    assert [one.weights.shape for one in maps] == [(2, 4, 5, 5)] * 2
    for row, one in enumerate(maps):
        right = [layer.weights[row].numpy() for layer in layers]
        np.testing.assert_allclose(one.weights, right, atol=1e-7)
        assert one.provenance.facts.guess == ""
    chosen = recorded(lambda: model(X), layers=[1], heads=[2])
    assert (chosen[0].layer_numbers, chosen[0].head_numbers) == ((1,), (2,))
    np.testing.assert_array_equal(chosen[0].weights[0, 0], maps[0].weights[1, 2])
    with pytest.raises(InvalidSelection, match="no head 4"), record(heads=[4]):
        model(X)


def test_heads_whose_outputs_are_averaged_are_heads_of_one_layer() -> None:
    model = loop(lambda heads: torch.stack(heads).mean(0).repeat(1, 1, 4))
    maps = recorded(lambda: model(X[:1]))
    np.testing.assert_allclose(maps[0].weights[0], model.weights[0].numpy(), atol=1e-7)
