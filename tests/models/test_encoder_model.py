"""Models at work: from a text to a record, and what they give worked out again without torch."""

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from attnviz.errors import ExecutionError, TooLarge
from attnviz.models.attention import projection
from attnviz.models.built_in import RECALL, SHIPPED
from attnviz.models.encoder_model import EncoderModel
from attnviz.models.protocols import MEASURED, Classifies
from attnviz.records import AttentionMaps
from attnviz.records import attention_trace as worked_module
from attnviz.records.attention_trace import VerifiedTrace
from attnviz.specs import ModelOptions, NormKind, PoolKind
from tests.made import load_encoder, save_classifier
from tests.pretrained import opened

TEXT = "the film was not good but the acting saved the film"
N_HEADS = {"single": 1, "multi": 8, "multi:4": 4, "random:2": 2, "dot": 1}


def attention(spec: ModelOptions, text: str = TEXT) -> AttentionMaps:
    """Of a width that nobody has trained unless the spec says so: random weights, a vocabulary of the text."""
    return load_encoder(replace(spec, d_model=spec.d_model or 64), [text]).attention(text, "text")


@pytest.mark.parametrize(("model", "n_heads"), N_HEADS.items())
@pytest.mark.parametrize("causal", [False, True])
def test_every_model_gives_a_record_that_says_what_it_is(model: str, n_heads: int, causal: bool) -> None:
    maps = attention(ModelOptions(model=model, causal=causal, seed=3))
    assert maps.weights.shape == (1, n_heads, 11, 11)
    assert maps.keys is maps.queries
    assert not maps.provenance.trained
    assert maps.provenance.revision == "random, seed 3"
    assert dict(maps.provenance.settings)["tokens_in_text"] == 11
    assert np.array_equal(maps.attendable[0], np.tri(11, dtype=bool) if causal else np.ones((11, 11), dtype=bool))


def test_opening_a_model_leaves_the_callers_random_numbers_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    attention(ModelOptions())
    assert torch.rand(1) == expected


def test_what_comes_with_attnviz_is_trained() -> None:
    """Whatever the text, and with the vocabulary that it was trained with."""
    maps = load_encoder(ModelOptions(model="multi:4", seed=3), []).attention(TEXT)
    assert maps.weights.shape == (2, 4, 11, 11)
    assert maps.provenance.trained
    assert maps.provenance.model == "multi:4"
    weights = (SHIPPED / "multi-4" / "model.safetensors").read_bytes()
    assert maps.provenance.revision == hashlib.sha256(weights).hexdigest()
    assert dict(maps.provenance.settings)["vocabulary_entries"] == 8_000
    assert not any(maps.queries.unknown)


def test_both_ends_of_a_text() -> None:
    maps = attention(ModelOptions(max_tokens=4, keep="head-tail"))
    assert maps.queries.pieces == ("the", "film", "the", "film")
    assert maps.queries.offsets[2:] == ((43, 46), (47, 51))
    settings = dict(maps.provenance.settings)
    assert (settings["keep"], settings["tokens_in_text"]) == ("head-tail", 11)


@pytest.mark.parametrize("model", ["multi:4", "multi:8"])
def test_ids_of_a_text_are_attended_to_as_the_text_is(model: str) -> None:
    """Of random weights, and of those that came with attnviz."""
    spec = ModelOptions(model=model, max_tokens=99, d_model=64 if model == "multi:4" else None)
    reader = load_encoder(spec, [TEXT])
    ids = [number for number in reader.encode(TEXT).ids if number in reader.list_ids()]
    maps = reader.attention_of_ids(ids, "by number")
    assert np.array_equal(maps.weights, reader.attention(TEXT).weights)
    assert (maps.queries.pieces, maps.queries.special) == (tuple(TEXT.split()), (False,) * 11)
    assert (maps.provenance.text_name, maps.queries.offsets[:2]) == ("by number", ((0, 3), (4, 8)))
    assert (reader.find_max_ids(), len(reader.list_ids())) == (99, len(reader.tokenizer) - 3)  # padding, unknown, [CLS]
    assert replace(reader, spec=replace(spec, max_tokens=None)).find_max_ids() is None
    with pytest.raises(TooLarge, match="--max-memory"):
        replace(reader, spec=replace(spec, max_memory=0.01)).attention_of_ids(ids * 99)


def test_what_is_made_to_be_measured_is_the_record_without_its_norms() -> None:
    model = load_encoder(ModelOptions(model="multi"), [TEXT])
    record, found = model.attention(TEXT, "name"), model.attention(TEXT, "name", MEASURED)
    np.testing.assert_array_equal(found.weights, record.weights)
    assert (found.queries, found.provenance) == (record.queries, record.provenance)
    assert (found.value_norms is None, record.value_norms is None) == (True, False)


# --- What a model gives, worked out again from its parameters without torch ---


SENTENCE = "the film was not good but the acting saved it"
MODELS = {
    "one trained head": ModelOptions(model="single"),
    "eight trained heads": ModelOptions(),
    "random": ModelOptions(model="random:2", seed=3),
    "narrow": ModelOptions(model="multi:4", d_model=4),
    "dot": ModelOptions(model="dot"),
    "layers": ModelOptions(model="multi:4", d_model=16, layers=3),
    "one wide head in layers": ModelOptions(model="single", d_model=8, layers=2),
}


def worked(ready: EncoderModel, layer: int = 0, query: int = 3) -> VerifiedTrace:
    return ready.trace(SENTENCE, "text", layer, query)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_the_arithmetic_gives_what_the_model_gives(model: ModelOptions, causal: bool) -> None:
    """The weights of the record that `heatmap` saves, of every layer and of the first and last query."""
    ready = load_encoder(replace(model, causal=causal), [SENTENCE])
    maps = ready.attention(SENTENCE)
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
def test_of_every_checkpoint(norm: NormKind, pool: PoolKind, n_heads: int, max_distance: int, tmp_path: Path) -> None:
    save_classifier(
        tmp_path / "saved",
        SENTENCE,
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


@pytest.mark.parametrize("broken", ["scaling", "bias", "nan"])
def test_arithmetic_that_gives_something_else_is_refused(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ready = load_encoder(ModelOptions(model="random:2"), [SENTENCE])
    assert worked(ready)
    (attention,) = ready.attentions
    if broken == "scaling":
        honest = worked_module.trace_head
        name = "attnviz.models.attention.trace_head"
        monkeypatch.setattr(name, lambda q, *rest: honest(q * np.sqrt(len(q)), *rest))
    elif broken == "bias":
        monkeypatch.setattr(
            "attnviz.models.attention.projection",
            lambda of: replace(projection(of), bias=projection(of).bias + (of is attention.output)),
        )
    else:
        torch.nn.init.constant_(attention.output.bias, torch.nan)  # type: ignore[union-attr,arg-type]
    with pytest.raises(ExecutionError, match="the output is off by"):
        worked(ready)


# --- The models that recall: checkpoints of the ordinary kind, trained by docs/studies/capacity.py ---


RECALLED = "5 a3 b7 12 c0 d15 h1 9 e4 g2 f11 8"


@pytest.mark.parametrize("name", RECALL)
def test_the_query_attends_to_items_and_never_to_itself(name: str) -> None:
    model, n_heads = opened(name, Classifies), int(name.removeprefix("recall:"))
    maps = model.attention(RECALLED)
    assert (maps.n_heads, maps.keys.pieces) == (n_heads, ("[CLS]", *RECALLED.split()))
    query = maps.weights[0, :, 0]
    assert (query[:, 0] == 0.0).all()
    assert query[:, [piece[0].isalpha() for piece in maps.keys.pieces]].sum() > 0.95 * n_heads


def test_eight_heads_recall_every_value() -> None:
    model = opened("recall", Classifies)
    ids, real = torch.tensor([model.encode(RECALLED).ids]), torch.ones(1, 13, dtype=torch.bool)
    with torch.inference_mode():
        logits = model.saved.classifier(ids, real)
    best = logits.view(8, 16).argmax(dim=-1).tolist()
    assert {f"{role}{value}" for role, value in zip("abcdefgh", best, strict=True)} < set(RECALLED.split())
