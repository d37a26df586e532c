"""The recall task, its networks, and what is measured of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from attnviz.capacity import LAYERS, NOISES, Trial
from attnviz.models.encoder_model import size_of
from attnviz.models.recall import RecallNetwork, draw_sequences, noise, sequences_to_test
from attnviz.models.recall_trial import run_trial

TRIAL = Trial("attention", heads=4, items=2, d_model=8, length=6, steps=3, seed=0)


def network(trial: Trial) -> RecallNetwork:
    torch.manual_seed(0)
    return RecallNetwork(trial).eval()


def test_every_role_stands_once_where_its_place_says() -> None:
    found = draw_sequences(50, 6, 3, torch.Generator().manual_seed(0))
    assert [sorted(row) for row in found.roles.tolist()] == [[0, 0, 0, 1, 2, 3]] * 50
    assert found.roles.gather(1, found.places).tolist() == [[1, 2, 3]] * 50
    assert len(set(map(tuple, found.places.tolist()))) > 20


@pytest.mark.parametrize("heads", [1, 4])
def test_attention_is_torchs_with_the_same_weights(heads: int) -> None:
    ours = network(replace(TRIAL, heads=heads))
    of_torch = nn.MultiheadAttention(8, heads, batch_first=True)
    projections = [ours.mixer.get_submodule(name) for name in ("query", "key", "value")]
    weights, biases = (torch.cat([p.get_parameter(name) for p in projections]).detach() for name in ("weight", "bias"))
    output = ours.mixer.get_submodule("output").state_dict()
    of_torch.load_state_dict(
        {"in_proj_weight": weights, "in_proj_bias": biases}
        | {f"out_proj.{name}": tensor for name, tensor in output.items()}
    )
    tested = sequences_to_test(TRIAL, 5)
    states = ours.roles(tested.roles) + ours.values(tested.values)
    attended, shares = of_torch(ours.query.expand(5, 1, -1), states, states, average_attn_weights=False)
    mixed = ours.mix(tested.roles, tested.values)
    torch.testing.assert_close(mixed.output, attended)
    torch.testing.assert_close(mixed.weights, shares)


def test_no_layer_has_more_parameters_than_attention() -> None:
    trial = replace(TRIAL, d_model=32, items=4, length=64)
    assert len({size_of(network(replace(trial, heads=heads))) for heads in (1, 2, 4, 8)}) == 1
    attention, *others = (size_of(network(replace(trial, layer=layer))) for layer in LAYERS)
    assert len(others) == 4
    assert all(0.94 * attention < size <= attention for size in others)


@pytest.mark.parametrize(
    ("layer", "reach"),
    [("recurrent", 80), ("gated recurrent", 80), ("convolution", 4), ("dilated convolutions", 64)],
)
def test_how_far_a_layer_sees(layer: str, reach: int) -> None:
    """The tokens before the query on which its state depends."""
    ours = network(replace(TRIAL, layer=layer, length=80))
    tested = sequences_to_test(replace(TRIAL, length=80), 1)
    states = (ours.roles(tested.roles) + ours.values(tested.values)).detach().requires_grad_()
    ours.mixer(ours.query.expand(1, 1, -1), states).output.sum().backward()
    assert states.grad is not None
    depends = states.grad[0].abs().sum(dim=1) > 0
    assert int(depends.sum()) == reach
    assert depends[-reach:].all()


def test_a_trial_comes_to_the_same_each_time() -> None:
    torch.manual_seed(7)
    first = run_trial(TRIAL)
    torch.manual_seed(8)
    assert run_trial(TRIAL) == first
    assert run_trial(replace(TRIAL, seed=1)) != first


def test_what_is_learned_is_measured() -> None:
    outcome, _ = run_trial(Trial("attention", heads=1, items=1, d_model=16, length=6, steps=150, seed=0))
    assert outcome.all_right == outcome.item_right > 0.95
    assert outcome.by_noise[0] == outcome.all_right > outcome.by_noise[-1]
    assert len(outcome.by_noise) == len(NOISES)
    assert outcome.weights[0][0] > 0.5  # the only item gets most of the attention
    assert outcome.margins[0] > 0
    role = outcome.text.split().index(next(token for token in outcome.text.split() if token[0] == "a"))
    assert outcome.maps[0].index(max(outcome.maps[0])) == role


def test_noise_ends_where_it_is_said_to() -> None:
    ours, tested = network(TRIAL), sequences_to_test(TRIAL, 20)
    with torch.inference_mode():
        clean = ours(tested.roles, tested.values)
        with noise(ours.mixer, 0.5):
            noisy = ours(tested.roles, tested.values)
        assert not torch.equal(noisy, clean)
        assert torch.equal(ours(tested.roles, tested.values), clean)
