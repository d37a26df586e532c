"""Which calls are layers, heads and passes, what they are called, and what is said where that is a guess."""

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
from tests.models.structures import Module, Stack, linears

X, Y = drawn(60, 1, 6, 16), drawn(61, 1, 6, 16)


def attention() -> nn.MultiheadAttention:
    return nn.MultiheadAttention(16, 4, batch_first=True)


def encoder(n_layers: int = 2) -> nn.TransformerEncoder:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    return nn.TransformerEncoder(layer, n_layers, enable_nested_tensor=n_layers == 2).eval()


# --- passes and layers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [False, True])
def test_two_calls_in_one_run_of_a_module(other: bool) -> None:
    """Of the same weights, as in DiffLlama, they are one layer; of others, a record each."""

    def attend(own: Any, states: Tensor) -> Tensor:
        query, key, value, second = own.qkvs(states).unflatten(-1, (4, 2, -1)).permute(2, 0, 3, 1, 4)
        first = functional.scaled_dot_product_attention(query, key, value)
        again = functional.scaled_dot_product_attention(query, second if other else key, value.flip(-1))
        return (first + again).transpose(1, 2).flatten(-2)

    maps = recorded(lambda: Stack([Module(attend, qkvs=nn.Linear(16, 64)) for _ in range(2)])(X))
    assert maps.groups == (("layers.* #1", "layers.* #2") if other else ("layers.*",))
    assert all(one.weights.shape == (2, 2, 6, 6) and one.self_attention for one in maps)
    assert not np.array_equal(maps[0].weights[0], maps[0].weights[1])


def test_generation_within_one_forward_pass_is_a_pass_each_step() -> None:
    """A token that was chosen ends what comes after what: the next step does not follow upon this one's layers."""

    def generate(own: Any, ids: Tensor) -> Tensor:
        for _ in range(2):
            ids = torch.cat([ids, own.encoder(own.words(ids)).argmax(dim=-1)[:, -1:]], dim=1)
        return ids

    maps = recorded(lambda: Module(generate, encoder=encoder(), words=nn.Embedding(16, 16))(torch.tensor([[1, 2]])))
    assert [one.weights.shape for one in maps] == [(2, 4, 2, 2), (2, 4, 3, 3)]


# --- numbers of layers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("stacked", "unseen"), [(Stack, (0, 2)), (lambda layers: nn.Sequential(*layers), ())])
def test_layers_have_the_numbers_of_the_model(stacked: Callable[..., nn.Module], unseen: tuple[int, ...]) -> None:
    """Attention in the layers 1 and 3 of 4, else something without any, as in Jamba.

    In a Sequential anything is counted: an embedding, a norm; so that nothing is said of what is beside layers.
    """
    layers = [encoder(1) if layer % 2 else nn.Linear(16, 16) for layer in range(4)]
    (maps,) = recorded(lambda: stacked(layers)(X))
    assert (maps.layer_numbers, maps.unseen_layers) == ((1, 3), unseen)


def test_a_shared_module_has_the_number_of_each_place() -> None:
    """As in Zamba, whose layers 0 and 2 are one block."""
    block = encoder(1)
    places = [Module(lambda own, states: own.part(states), part=part) for part in (block, nn.Linear(16, 16), block)]
    (maps,) = recorded(lambda: Stack(places)(X))
    assert (maps.layer_numbers, maps.unseen_layers) == ((0, 2), (1,))


def test_a_chosen_layer_of_one_module_keeps_its_number() -> None:
    attend = lambda own, states: own.attend(states, states, states)[0]  # noqa: E731
    model = Module(lambda own, states: own.layer(own.layer(states)), layer=Module(attend, attend=attention()))
    assert recorded(lambda: model(X), layers=[1])[0].layer_numbers == (1,)


# --- what is computed otherwise -----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("padded", [False, True])
def test_torchs_own_encoder_runs_by_its_parts_and_the_record_says_so(padded: bool) -> None:
    """Its fused layers give 0 at padding, and other last bits elsewhere."""
    model, states = encoder(), drawn(64, 2, 6, 16)
    padding = torch.tensor([[False] * 6, [False] * 4 + [padded] * 2])
    with torch.no_grad():
        expected = model(states, src_key_padding_mask=padding)
        with record() as maps:
            found = model(states, src_key_padding_mask=padding)
    torch.testing.assert_close(found[~padding], expected[~padding], atol=1e-6, rtol=1e-6)
    assert str(dict(maps[0].provenance.settings)["fast_path"]).startswith("off")
    assert torch.backends.mha.get_fastpath_enabled()
    assert [one.weights.shape for one in maps] == [(2, 4, 6, 6), (2, 4, 4, 4) if padded else (2, 4, 6, 6)]


@pytest.mark.parametrize("kernel", [True, False])
def test_under_autocast(kernel: bool) -> None:
    states = drawn(65, 1, 2, 6, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16), record() as maps:
        if kernel:
            functional.scaled_dot_product_attention(states * 3, states * 3, states)
        else:
            (states @ states.mT * 3).softmax(dim=-1) @ states
    rounded = (states * 3).bfloat16().float()
    if kernel:
        expected = (rounded @ rounded.mT / 8**0.5).softmax(dim=-1)
        np.testing.assert_allclose(maps[0].weights[0], expected[0].numpy(), atol=1e-6)
    np.testing.assert_allclose(maps[0].weights.sum(axis=-1), 1, atol=1e-6)
    with torch.autocast("cpu", dtype=torch.bfloat16):  # the maps are rounded anew for each head
        assert {one.weights.shape for one in recorded(lambda: blocks(2, kernel)(BATCH))} == {(2, 4, 5, 5)}


# --- layers that no module calls ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("layers", "expected"), [(None, (0, 1, 2)), ([0], (0,)), ([1, 2], (1, 2))])
def test_layers_that_a_function_calls_are_layers(layers: list[int] | None, expected: tuple[int, ...]) -> None:
    several, norm = list(encoder(3).layers), nn.LayerNorm(16)

    def run() -> None:
        states = X
        for layer in several:
            states = layer(norm(states))

    whole, (maps,) = recorded(run)[0], recorded(run, layers=layers)
    assert maps.layer_numbers == expected
    np.testing.assert_array_equal(maps.weights, whole.weights[list(expected)])


def test_an_encoder_and_a_decoder_without_a_forward_are_told_apart() -> None:
    """Both of the same class; the decoder reads states of its own, and attends to what the encoder gave."""

    def attend(own: Any, states: Tensor, memory: Tensor) -> Any:
        return states + own.attend(states, memory, memory)[0]

    encoding, decoding = ([Module(attend, attend=attention()) for _ in range(n)] for n in (2, 3))

    def run() -> None:
        memory, states = X, Y[:, :4]
        for layer in encoding:
            memory = layer(memory, memory)
        for layer in decoding:
            states = layer(states, memory)

    read, written = recorded(run)
    assert (read.weights.shape, written.weights.shape) == ((2, 4, 6, 6), (3, 4, 4, 6))


# --- Heads that are modules of their own, and other calls that run beside one another ---


BATCH = drawn(70, 2, 5, 16)


def one_head(fused: bool) -> Module:
    """One head, as lectures write it before they write several."""

    def forward(own: Any, states: Tensor) -> Any:
        query, key, value = own.query(states), own.key(states), own.value(states)
        scores = query @ key.mT / 2
        scores = scores.masked_fill(torch.ones(5, 5).triu(1) > 0, -torch.inf)
        own.weights = scores.softmax(dim=-1)
        if not fused:
            return own.weights @ value
        query, key, value = (one.unsqueeze(1) for one in (query, key, value))
        return functional.scaled_dot_product_attention(query, key, value, is_causal=True).squeeze(1)

    return Module(forward, **linears(query=4, key=4, value=4))


def multi_head(fused: bool) -> nn.Module:
    """Several heads in a list."""
    heads = nn.ModuleList([one_head(fused) for _ in range(4)])
    return Module(lambda own, states: states + torch.cat([head(states) for head in own.heads], dim=-1), heads=heads)


def branches() -> nn.Module:
    """Attentions of several heads each, side by side."""

    def forward(own: Any, states: Tensor) -> Tensor:
        return states + torch.stack([branch(states, states, states)[0] for branch in own.branches]).sum(dim=0)

    return Module(forward, branches=nn.ModuleList([nn.MultiheadAttention(16, 4, batch_first=True) for _ in range(2)]))


def loop() -> Any:
    """Several heads in a loop over parts of the states, whose outputs are averaged."""

    def forward(own: Any, states: Tensor) -> Tensor:
        query, key, value = own.both(states).unflatten(-1, (3, 4, 4)).unbind(-3)
        weights = [(query[..., head, :] @ key[..., head, :].mT / 2).softmax(-1) for head in range(4)]
        own.weights = torch.stack(weights, dim=1).detach()
        outputs = [each @ value[..., head, :] for head, each in enumerate(weights)]
        return states + torch.stack(outputs).mean(0).repeat(1, 1, 4)

    return Module(forward, **linears(both=48))


def blocks(n_layers: int, fused: bool) -> Any:
    torch.manual_seed(0)
    return nn.Sequential(*(multi_head(fused) for _ in range(n_layers))) if n_layers > 1 else multi_head(fused)


@pytest.mark.parametrize(("fused", "n_layers"), [(False, 3), (True, 3), (True, 1)])
@pytest.mark.parametrize(("layers", "heads"), [(None, None), ([-1], [1, 3]), ([0], None)])
def test_heads_that_are_modules(fused: bool, n_layers: int, layers: list[int] | None, heads: list[int] | None) -> None:
    model = blocks(n_layers, fused)
    chosen: dict[str, Any] = {"layers": layers and [each % n_layers for each in layers], "heads": heads}
    maps = recorded(lambda: model(BATCH), **chosen)
    multiplied = torch.stack([part.weights for part in model.modules() if hasattr(part, "weights")], dim=1)
    rows = multiplied.view(-1, n_layers, 4, 5, 5).numpy()  # batch, layer, head, query, key
    numbers, of_heads = chosen["layers"] or range(n_layers), heads or range(4)
    assert maps.groups == ("*.heads" if n_layers > 1 else "heads",)
    for row, one in zip(rows, maps, strict=True):
        np.testing.assert_allclose(one.weights, row[list(numbers)][:, list(of_heads)], atol=1e-6)
        assert one.layer_numbers == tuple(numbers)
        assert one.head_numbers == tuple(of_heads)
        np.testing.assert_array_equal(one.attendable[0], np.tri(5, dtype=bool))
        assert not one.provenance.facts.guess


@pytest.mark.parametrize("layers", [None, [2]])
def test_heads_that_are_modules_have_no_factors(layers: list[int] | None) -> None:
    with pytest.raises(InvalidRecord, match="heads attends in parts"):
        recorded(lambda: blocks(3, True)(BATCH), factored=True, layers=layers)


@pytest.mark.parametrize("n_layers", [1, 2])
def test_that_calls_beside_one_another_are_layers_is_a_guess(n_layers: int) -> None:
    model = nn.Sequential(*(branches() for _ in range(n_layers))).eval()
    maps = recorded(lambda: model(BATCH))
    guess = maps[0].provenance.facts.guess
    assert guess.startswith("That these calls are layers is a guess: the one in 0.branches.1 reads nothing")


def test_layers_without_numbers_of_their_own_cannot_be_chosen() -> None:
    model = nn.Sequential(*(branches() for _ in range(2))).eval()
    with pytest.raises(InvalidSelection, match="no number in their paths rises"), record(layers=[1]):
        model(BATCH)


def test_calls_in_a_loop_are_heads_of_one_layer() -> None:
    layers = [loop(), loop()]
    model = nn.Sequential(*layers)
    maps = recorded(lambda: model(BATCH), tokens=[list("abcde")] * 2)
    assert [one.weights.shape for one in maps] == [(2, 4, 5, 5)] * 2
    for row, one in enumerate(maps):
        right = [layer.weights[row].numpy() for layer in layers]
        np.testing.assert_allclose(one.weights, right, atol=1e-7)
        assert one.provenance.facts.guess == ""
    chosen = recorded(lambda: model(BATCH), layers=[1], heads=[2])
    assert (chosen[0].layer_numbers, chosen[0].head_numbers) == ((1,), (2,))
    np.testing.assert_array_equal(chosen[0].weights[0, 0], maps[0].weights[1, 2])
    with pytest.raises(InvalidSelection, match="no head 4"), record(heads=[4]):
        model(BATCH)
