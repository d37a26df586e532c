"""Attention below torch's functions, and without torch's softmax: as right as any, or named."""

from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import attnviz
from attnviz.errors import InvalidRecord
from attnviz.models.capture import captured as kernels
from tests.models.captures import SDPA, captured, drawn, lying, recorded
from tests.models.structures import STATES, Attention, Mix, Module, Stack, by_softmax, linears

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit", "ignore::torch.jit.TracerWarning")
MADE = "what mixes tokens otherwise, and so has no weights that sum to 1: "


@pytest.fixture(autouse=True)
def _same_weights() -> None:
    torch.manual_seed(0)


def trace(model: nn.Module) -> Any:
    return torch.jit.trace(model, STATES, check_trace=False)  # type: ignore[no-untyped-call]


def freeze(model: nn.Module) -> Any:
    return torch.jit.freeze(trace(model))


def export(model: nn.Module) -> Any:
    return torch.export.export(model, (STATES,)).module()


@pytest.mark.parametrize("compile_", [trace, freeze, export])
@pytest.mark.parametrize("mix", [by_softmax, functional.scaled_dot_product_attention])
def test_a_program_has_the_weights_of_the_model_it_was_made_of(compile_: Callable[..., Any], mix: Mix) -> None:
    model = Stack([Attention(mix=mix), Attention(mix=mix)]).eval()
    with torch.no_grad():
        program = compile_(model)
        with attnviz.record() as right:
            expected = model(STATES)
        with attnviz.record() as maps:
            output = program(STATES)
    assert torch.equal(output, program(STATES))
    assert torch.allclose(output, expected, atol=1e-6)
    assert (len(maps), maps.not_seen) == (1, "")
    np.testing.assert_allclose(maps[0].weights, right[0].weights, atol=1e-6)


def test_a_kernel_that_is_all_of_a_layer_is_named() -> None:
    encoder = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True).eval()
    with torch.no_grad():
        fused = trace(encoder)
    maps = recorded(lambda: Stack([Attention(), fused])(STATES))
    assert [one.weights.shape for one in maps] == [(1, 4, 5, 5)]
    assert "kernels that keep their weights: layers.1 (_transformer_encoder_layer_fwd)" in maps.not_seen


@pytest.mark.parametrize("shared", [1, 2])
def test_flex_attention_is_read_whatever_changes_its_scores(shared: int) -> None:
    def bend(score: Tensor, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return 3 * torch.tanh((score + query - key) / 3)

    query, key, value = torch.randn(1, 4, 5, 8), torch.randn(1, 4 // shared, 5, 8), torch.randn(1, 4 // shared, 5, 8)
    block = create_block_mask(lambda b, h, q, k: q >= k, None, None, 5, 5, device="cpu")
    place = torch.arange(5)
    scores = query @ key.repeat_interleave(shared, 1).mT / 8**0.5
    scores = 3 * torch.tanh((scores + place[:, None] - place) / 3)
    right = scores.masked_fill(~torch.ones(5, 5, dtype=torch.bool).tril(), -torch.inf).softmax(-1)
    with torch.no_grad(), attnviz.record() as maps:
        output = flex_attention(query, key, value, bend, block, enable_gqa=shared > 1)
    np.testing.assert_allclose(maps[0].weights, right, atol=1e-6)
    assert isinstance(output, Tensor)
    assert torch.allclose(output, right @ value.repeat_interleave(shared, 1), atol=1e-5)


def test_keys_that_a_written_out_softmax_forbids_are_forbidden() -> None:
    def causal(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        powers = (query @ key.mT).masked_fill(~torch.ones(5, 5, dtype=torch.bool).tril(), -torch.inf).exp()
        return powers / powers.sum(-1, keepdim=True) @ value

    maps = recorded(lambda: Attention(mix=causal)(STATES))
    assert np.array_equal(maps[0].attendable[0], np.tri(5, dtype=bool))


def linearly(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    query, key = functional.elu(query) + 1, functional.elu(key) + 1
    return query @ (key.mT @ value) / (query @ key.sum(-2, keepdim=True).mT)


def gated(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Let half of the channels gate the others before a convolution, as in a conformer (Gulati et al. 2020)."""
    half = functional.glu(torch.cat([query, key], -1).flatten(0, 1).mT, 1)
    return functional.conv1d(half, torch.ones(4, 1, 3), padding=1, groups=4).mT.view_as(value)


def step_by_step(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Carry a state on from token to token."""
    states: accumulate[Tensor] = accumulate(value.unbind(-2), lambda state, of_token: state.div(2).add(of_token))
    return query * key * torch.stack([*states], dim=-2)


MIXES = (
    (lambda query, key, value: functional.avg_pool2d(value.mT, (1, 3), 1, (0, 1)).mT - value, "pooling"),
    # of channels, as in XCiT
    (lambda query, key, value: ((query.mT @ key).softmax(-1) @ value.mT).mT, "linear attention"),
    (gated, "convolution"),
    (lambda query, key, value: torch.sigmoid(query @ key.mT) @ value, "weights that do not sum to 1"),
    (linearly, "linear attention"),
    (lambda query, key, value: linearly(query, key, value * value.softmax(-1)[..., :1]), "linear attention"),
    (step_by_step, "sums of different tokens"),
)


@pytest.mark.parametrize("states", [STATES, drawn(2, 2, 5, 16)])
@pytest.mark.parametrize(("mix", "name"), MIXES)
def test_what_attends_without_a_softmax_is_named(mix: Mix, name: str, states: Tensor) -> None:
    maps = recorded(lambda: Stack([Attention(), Attention(mix=mix), Attention(mix=mix)])(states))
    assert maps.not_seen == f"Not in here: {MADE}layers.1 ({name}), layers.2 ({name})."
    assert [one.queries.pieces for one in maps] == [tuple("01234")] * len(states)


def test_sums_over_the_edges_of_a_graph_are_named() -> None:
    """As a graph library writes attention, with the way to a record of it."""

    def along(own: Any, nodes: Tensor, edges: Tensor) -> Tensor:
        states, (source, target) = own.token(nodes), edges
        shares = own.score(states[source] + states[target]).exp()
        shares = shares / torch.zeros(5, 1).index_add(0, target, shares)[target]
        return torch.zeros_like(states).index_add(0, target, shares * states[source])

    edges = torch.tensor([[0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 0, 2]])
    with pytest.raises(InvalidRecord, match=r"sums over edges, whose weights attnviz.from_attentions\(\(edge_index"):
        recorded(lambda: Module(along, **linears(token=16, score=1))(STATES[0], edges))


def test_rotated_queries_and_products_of_weights_are_nothing_of_the_kind() -> None:
    def rotated(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        turn = (torch.rand(1, 2, 1) @ torch.arange(5.0)[None, None]).mT.repeat(1, 1, 2).cos()
        return functional.scaled_dot_product_attention(query * turn, key * turn, value)

    def by_pairs(query: Tensor, key: Tensor, value: Tensor) -> Tensor:  # as in Bahdanau et al. 2015
        return (query.unsqueeze(-2) + key.unsqueeze(-3)).tanh().sum(-1).softmax(-1) @ value

    maps = recorded(lambda: Stack([Attention(mix=rotated), nn.Linear(16, 16), Attention(mix=by_pairs)])(STATES))
    assert (maps.groups, maps.not_seen) == (("layers.*",), "")


def test_weights_are_worked_out_in_full_whatever_the_script_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with TF32, whose rounding no processor has: of a kernel that misses by 1e-3, in its place."""
    used, exact = [], kernels._work_out

    def noted(*args: Any) -> Tensor:
        used.append(torch.get_float32_matmul_precision())
        return exact(*args)

    monkeypatch.setattr(kernels, "_work_out", noted)
    sides, before = torch.randn(3, 1, 2, 5, 8), torch.get_float32_matmul_precision()
    with lying(1.001), pytest.raises(InvalidRecord, match="do not give its output"):
        captured(lambda: SDPA(*sides))
    try:
        torch.set_float32_matmul_precision("high")
        with lying(1.001):
            captured(lambda: SDPA(*sides))
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)
    assert set(used) == {"highest"}


def test_states_turned_as_complex_numbers_keep_their_names() -> None:
    """Rotary positions as Llama's own code has them (Touvron et al. 2023)."""

    def turn(states: Tensor) -> Tensor:
        pairs = torch.view_as_complex(torch.unflatten(states, -1, (2, 2)).contiguous())
        return torch.view_as_real(pairs * torch.polar(torch.ones(5, 1), torch.arange(5.0)[:, None])).flatten(-2)

    (one,) = recorded(lambda: Attention(mix=lambda q, k, v: SDPA(turn(q), turn(k), v))(STATES), tokens=list("abcde"))
    assert one.queries.pieces == one.keys.pieces == tuple("abcde")
