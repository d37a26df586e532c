"""What a model gives, worked out again from its parameters without torch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from attnviz.errors import ExecutionError
from attnviz.models import arithmetic
from attnviz.models.encoder_model import EncoderModel
from attnviz.records import attention_trace as worked_module
from attnviz.records.attention_trace import VerifiedTrace
from attnviz.specs import ModelOptions, NormKind, PoolKind
from tests.made import load_encoder, save_classifier

TEXT = "the film was not good but the acting saved it"
MODELS = {
    "one trained head": ModelOptions(model="single"),
    "eight trained heads": ModelOptions(),
    "random": ModelOptions(model="random:2", seed=3),
    "narrow": ModelOptions(model="multi:4", d_model=4),
    "dot": ModelOptions(model="dot"),
    "layers": ModelOptions(model="multi:4", d_model=16, layers=3),
    "padding": ModelOptions(model="random:2", max_tokens=14, show_padding=True),
    "one wide head in layers": ModelOptions(model="single", d_model=8, layers=2),
}


def worked(ready: EncoderModel, layer: int = 0, query: int = 3, text: str = TEXT) -> VerifiedTrace:
    return ready.trace(text, "text", layer, query)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_the_arithmetic_gives_what_the_model_gives(model: ModelOptions, causal: bool) -> None:
    """The weights of the record that `heatmap` saves, of every layer and of the first and last query."""
    ready = load_encoder(replace(model, causal=causal), [TEXT])
    maps = ready.attention(TEXT)
    for layer in range(maps.n_layers):
        for query in (0, 9):
            found = worked(ready, layer, query)
            weights = np.stack([head.weights for head in found.trace.heads])
            assert np.abs(weights - maps.weights[layer, :, query]).max() < 1e-6
            assert found.error == np.abs(found.trace.output - found.model_output).max() < found.allowed / 10
            assert found.trace.attendable.tolist() == maps.attendable[layer, query].tolist()
            assert (found.layer, found.n_layers) == (layer, maps.n_layers)


@pytest.mark.parametrize("pool", ["mean", "cls"])
@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize(("n_heads", "max_distance"), [(4, 0), (4, 3), (1, 3)])
def test_of_a_checkpoint_of_each_kind(
    norm: NormKind, pool: PoolKind, n_heads: int, max_distance: int, tmp_path: Path
) -> None:
    save_classifier(
        tmp_path / "saved",
        TEXT,
        n_heads=n_heads,
        std=0.5,
        storage="int8",
        classifier={"pool": pool},
        norm=norm,
        max_distance=max_distance,
    )
    ready = load_encoder(ModelOptions(model=str(tmp_path / "saved")), [])
    for layer in (0, 1):
        found = worked(ready, layer)
        assert found.normed == (norm == "pre")
        assert found.error < found.allowed / 10
        assert len(found.trace.tokens) == 10 + (pool == "cls")


def test_a_text_of_one_token() -> None:
    ready = load_encoder(ModelOptions(model="random:2"), ["good"])
    found = worked(ready, query=0, text="good")
    assert [head.weights.tolist() for head in found.trace.heads] == [[1.0], [1.0]]


@pytest.mark.parametrize("broken", ["scaling", "bias", "nan"])
def test_arithmetic_that_gives_something_else_is_refused(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ready = load_encoder(ModelOptions(model="random:2"), [TEXT])
    assert worked(ready)
    (attention,) = ready.attentions
    if broken == "scaling":
        honest = worked_module.trace_head
        monkeypatch.setattr(arithmetic, "trace_head", lambda q, *rest: honest(q * np.sqrt(len(q)), *rest))
    elif broken == "bias":
        honest_projection = arithmetic.projection
        monkeypatch.setattr(
            arithmetic,
            "projection",
            lambda of: replace(honest_projection(of), bias=honest_projection(of).bias + (of is attention.output)),
        )
    else:
        torch.nn.init.constant_(attention.output.bias, torch.nan)  # type: ignore[union-attr,arg-type]
    with pytest.raises(ExecutionError, match="the output is off by"):
        worked(ready)


def test_looking_leaves_the_model_as_it_was() -> None:
    ready = load_encoder(ModelOptions(model="random:2"), [TEXT])
    before = ready.attention(TEXT).weights.tobytes()
    worked(ready)
    assert not ready.attentions[0]._forward_hooks
    assert ready.attention(TEXT).weights.tobytes() == before
