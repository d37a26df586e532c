"""Which layer, which keys, and what was not seen: small modules of the structures that people publish."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import attnviz
from attnviz.errors import InvalidRecord

STATES = torch.randn(1, 5, 16, generator=torch.Generator().manual_seed(0))


class Attention(nn.Module):
    """Heads by the kernel, or by hand with something between softmax and values."""

    def __init__(self, n_heads: int = 4, between: nn.Module | None = None, n_memory: int = 0) -> None:
        super().__init__()
        self.n_heads, self.between, self.both = n_heads, between, nn.Linear(16, 48)
        self.memory = nn.Parameter(torch.randn(2, 1, n_heads, n_memory, 16 // n_heads))

    def forward(self, states: Tensor) -> Tensor:
        query, key, value = (
            part.reshape(len(states), -1, self.n_heads, 16 // self.n_heads).transpose(1, 2)
            for part in self.both(states).chunk(3, -1)
        )
        if self.between is None:
            memory = self.memory.expand(-1, len(states), -1, -1, -1)
            key, value = torch.cat([memory[0], key], 2), torch.cat([memory[1], value], 2)
            mixed = functional.scaled_dot_product_attention(query, key, value)
        else:
            mixed = self.between((query @ key.mT / 2).softmax(-1)) @ value
        return mixed.transpose(1, 2).flatten(-2)


class Heads(nn.Module):
    """Talking heads: a linear map over heads, Shazeer et al., 2020."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(4, 4)

    def forward(self, weights: Tensor) -> Tensor:
        mixed: Tensor = self.mix(weights.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return mixed


class Stack(nn.Module):
    def __init__(self, layers: Sequence[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, states: Tensor) -> Tensor:
        for layer in self.layers:
            states = states + (layer[1](layer[0](states)) if isinstance(layer, nn.ModuleList) else layer(states))
        return states


def groups(maps: attnviz.Recording) -> list[tuple[str, tuple[int, ...], tuple[int, ...]]]:
    return [(one.provenance.facts.group, one.layer_numbers, one.weights.shape) for one in maps]


def test_a_stack_with_a_layer_of_other_heads_keeps_its_numbers() -> None:
    with attnviz.record() as maps:
        Stack([Attention(n) for n in (2, 4, 4, 4)]).eval()(STATES)
    assert groups(maps) == [("layers.0", (0,), (1, 2, 5, 5)), ("layers.1-3", (1, 2, 3), (3, 4, 5, 5))]


def test_layers_that_are_lists_count_by_the_outer_number() -> None:
    layers = [nn.ModuleList([nn.LayerNorm(16), Attention(n), nn.Identity()]) for n in (4, 4, 2)]
    with attnviz.record() as maps:
        Stack(layers).eval()(STATES)
    assert groups(maps) == [("layers.0-1.*", (0, 1), (2, 4, 5, 5)), ("layers.2.*", (2,), (1, 2, 5, 5))]


def test_a_module_that_attends_twice_with_other_rows_is_two_groups() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attend = Attention()

        def forward(self, states: Tensor) -> Tensor:
            windows: Tensor = self.attend(states.view(4, 4, 16))
            means: Tensor = self.attend(windows.mean(1)[None])
            return windows + means.squeeze(0)[:, None]

    with attnviz.record() as maps:
        Twice().eval()(torch.randn(1, 16, 16))
    assert [name for name, *_ in groups(maps)] == ["attend #1"] * 4 + ["attend #2"]


def test_what_was_changed_before_the_values_is_said() -> None:
    talking = [Attention(between=Heads()), Attention(between=Heads()), Attention()]
    with attnviz.record() as maps:
        Stack(talking).eval()(STATES)
    said = "Not in here: attention whose weights were changed before the values: layers.0 (linear), layers.1 (linear)."
    assert groups(maps) == [("layers.*", (2,), (1, 4, 5, 5))]
    assert maps.not_seen == maps[0].provenance.facts.guess == dict(maps[0].provenance.settings)["guess"] == said
    assert said in repr(maps)
    with pytest.raises(InvalidRecord, match=r"changed before the values: this block \(linear\)"), attnviz.record():
        Attention(between=Heads()).eval()(STATES)


def test_weights_that_are_only_looked_at_are_not_changed() -> None:
    class Looks(nn.Module):
        def forward(self, weights: Tensor) -> Tensor:
            self.entropy = -(weights * weights.log()).sum(-1)
            return weights

    with attnviz.record() as maps:
        Attention(between=Looks()).eval()(STATES)
    assert (len(maps), maps.not_seen) == (1, "")


def test_a_traced_part_is_named() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(Attention().eval(), STATES)  # type: ignore[no-untyped-call]
    with attnviz.record() as maps:
        nn.Sequential(Attention().eval(), traced)(STATES)
    assert len(maps) == 1
    assert "what attends in traced or scripted modules, in which nothing is seen: 1 (" in maps.not_seen


@pytest.mark.parametrize("between", [None, nn.Identity()])
def test_an_exported_program_is_read_as_the_model_is(between: nn.Module | None) -> None:
    model = nn.Sequential(Attention(between=between), Attention(between=between)).eval()
    with attnviz.record(tokens=list("abcde")) as right:
        model(STATES)
    exported = torch.export.export(model, (STATES,)).module()
    with attnviz.record(tokens=list("abcde")) as maps:
        exported(STATES)
    (one,) = maps
    np.testing.assert_allclose(one.weights, right[0].weights, atol=1e-6)


def test_memory_before_the_tokens_is_called_so() -> None:
    with attnviz.record(tokens=list("abcde")) as maps:
        Attention(n_memory=3).eval()(STATES)
    (one,) = maps
    assert one.keys.pieces == ("⟨before 1⟩", "⟨before 2⟩", "⟨before 3⟩", *"abcde")
    assert one.queries.pieces == tuple("abcde")
