"""Models at work: from a text to a record."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from attnviz.errors import InvalidOption, TooLarge
from attnviz.models.built_in import SHIPPED
from attnviz.records import AttentionMaps
from attnviz.specs import ModelOptions
from tests.made import load_encoder

TEXT = "the film was not good but the acting saved the film"
EVERY_MODEL = ["single", "multi", "multi:4", "random:2", "dot"]


def attention(spec: ModelOptions, text: str = TEXT) -> AttentionMaps:
    """Of a width that nobody has trained unless the spec says so: random weights, a vocabulary of the text."""
    return load_encoder(replace(spec, d_model=spec.d_model or 64), [text]).attention(text, "text")


@pytest.mark.parametrize("model", EVERY_MODEL)
@pytest.mark.parametrize("causal", [False, True])
def test_every_model_gives_a_record_that_says_what_it_is(model: str, causal: bool) -> None:
    maps = attention(ModelOptions(model=model, causal=causal, seed=3))
    n_heads = {"single": 1, "multi": 8, "multi:4": 4, "random:2": 2, "dot": 1}[model]
    assert maps.weights.shape == (1, n_heads, 11, 11)
    assert maps.keys is maps.queries
    assert not maps.provenance.trained
    assert maps.provenance.revision == "random, seed 3"
    assert dict(maps.provenance.settings)["tokens_in_text"] == 11
    assert np.array_equal(maps.attendable[0], np.tri(11, dtype=bool) if causal else np.ones((11, 11), dtype=bool))


@pytest.mark.parametrize("model", EVERY_MODEL)
def test_same_seed_same_weights_other_seed_others(model: str) -> None:
    spec = ModelOptions(model=model)
    first, again = attention(spec), attention(spec)
    assert first.weights.tobytes() == again.weights.tobytes()
    assert not np.allclose(first.weights, attention(replace(spec, seed=1)).weights)


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


def test_dot_is_the_formula_over_its_embeddings() -> None:
    torch.manual_seed(0)
    words = torch.nn.Embedding(3 + 8, 64).weight.detach().double()  # 3 special tokens, 8 different words
    vocabulary = load_encoder(ModelOptions(model="dot"), [TEXT]).tokenizer
    embedded = words[list(vocabulary.encode(TEXT).ids)]
    expected = (embedded @ embedded.T / math.sqrt(64)).softmax(-1)
    np.testing.assert_allclose(attention(ModelOptions(model="dot")).weights[0, 0], expected, atol=1e-6)


@pytest.mark.parametrize("model", ["multi", "dot"])
@pytest.mark.parametrize("causal", [False, True])
def test_shown_padding_changes_no_weight(model: str, causal: bool) -> None:
    spec = ModelOptions(model=model, max_tokens=14, causal=causal)
    plain = attention(spec)
    padded = attention(replace(spec, show_padding=True))
    assert padded.queries.pieces[11:] == ("[PAD]",) * 3
    np.testing.assert_allclose(padded.weights[..., :11, :11], plain.weights, atol=1e-6)
    assert not padded.weights[..., 11:].any()
    assert not padded.attendable[0, :, 11:].any()
    assert padded.real_queries.tolist() == [True] * 11 + [False] * 3


def test_a_seed_that_torch_does_not_take_is_refused() -> None:
    with pytest.raises(InvalidOption, match=f"--seed {2**63} is out of range"):
        attention(ModelOptions(seed=2**63))


@pytest.mark.parametrize("model", ["multi:4", "multi:8"])
def test_ids_of_a_text_are_attended_to_as_the_text_is(model: str) -> None:
    """Of random weights, and of those that came with attnviz."""
    spec = ModelOptions(model=model, max_tokens=99, d_model=64 if model == "multi:4" else None)
    reader = load_encoder(spec, [TEXT])
    ids = [number for number in reader.encode(TEXT).ids if number in reader.ordinary_ids]
    maps = reader.attention_of_ids(ids, "by number")
    assert np.array_equal(maps.weights, reader.attention(TEXT).weights)
    assert (maps.queries.pieces, maps.queries.special) == (tuple(TEXT.split()), (False,) * 11)
    assert (maps.provenance.text_name, maps.queries.offsets[:2]) == ("by number", ((0, 3), (4, 8)))
    assert (reader.max_ids, len(reader.ordinary_ids)) == (99, len(reader.tokenizer) - 3)  # padding, unknown, [CLS]
    assert replace(reader, spec=replace(spec, max_tokens=None)).max_ids is None
    with pytest.raises(TooLarge, match="--max-memory"):
        replace(reader, spec=replace(spec, max_memory=0.01)).attention_of_ids(ids * 99)


def test_what_is_made_to_be_measured_is_the_record_without_its_norms() -> None:
    model = load_encoder(ModelOptions(model="multi"), [TEXT])
    record, found = model.attention(TEXT, "name"), model.attention_to_measure(TEXT, "name")
    np.testing.assert_array_equal(found.weights, record.weights)
    assert (found.queries, found.provenance) == (record.queries, record.provenance)
    assert (found.value_norms is None, record.value_norms is None) == (True, False)
