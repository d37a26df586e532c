"""A decoder taken apart: parts sum to its own numbers, are what the formula says, or the model is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attnviz.errors import InvalidModel
from attnviz.models.decomposition.stream import Stream, soften
from attnviz.records.attribution import Question
from attnviz.records.explanation import HeadName, Writer
from tests.models.captures import replaced
from tests.models.test_decomposed_encoders import check_sums
from tests.pretrained import FAMILIES, NEEDS, built, opened, saved, stories

CAUSAL = "AutoModelForCausalLM"
TEXT = "the acting saved the film but it was not good"
FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", {}),
    "qwen2, biases": ("qwen2", {}),
    "qwen3, norms of q and k": ("qwen3", {}),
    "mistral, a window": ("mistral", {}),
    "mixtral, experts": ("mixtral", {}),
    "gpt2, biases": ("gpt2", {}),
    "gpt_neox, parallel": ("gpt_neox", {}),
    "gpt_neox, one behind the other": ("gpt_neox", {"use_parallel_residual": False}),
}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "gemma2": ({}, "scaled_dot_product_attention"),  # soft-caps
    "olmo2": ({}, "norms in the middle"),
    "granite": ({"residual_multiplier": 0.5}, "something else than its heads and its MLP"),
    "bloom": ({}, "scaled_dot_product_attention"),
}


@pytest.fixture(autouse=True)
def _needs_transformers() -> None:
    pytest.importorskip("transformers", reason=NEEDS)


def take_apart(folder: Path | str, text: str = TEXT) -> Stream:
    return Stream(opened(folder).subject(text, "text", Question()))


def made(folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> Path:
    monkeypatch.setitem(FAMILIES, kind, {**FAMILIES.get(kind, {}), **settings})
    return saved(folder, kind, auto=CAUSAL)


@pytest.mark.parametrize("form", FORMS)
def test_parts_sum_to_what_transformers_computes(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, settings = FORMS[form]
    stream = take_apart(made(tmp_path, kind, monkeypatch, **settings))
    ids = torch.tensor([stream.subject.ids])
    with torch.no_grad():
        own = built(kind, "eager", CAUSAL)(input_ids=ids, output_attentions=True)
    check_sums(stream, own.logits[0, -1].double().numpy(), [each[0] for each in own.attentions])
    assert not stream.split_logit(7, 9).totals[:-1].any()  # only what stands at the last token is read


def test_a_part_of_a_score_is_the_formula_with_the_norm_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In GPT-2, without rotations: q · W_K (γ (w - mean w) / σ(x)), for what a head wrote and for the embedding."""
    stream = take_apart(made(tmp_path, "gpt2", monkeypatch))
    layer, head, query = 1, 2, 8
    block: Any = stream.blocks[layer].module
    parts = stream.split_scores(HeadName(layer, head), query)
    state = stream.blocks[layer].state.detach()[0].double()
    deviation = (state.var(dim=1, unbiased=False, keepdim=True) + block.ln_1.eps).sqrt()
    width = 4
    of_keys = block.attn.c_attn.weight.detach().double()[:, 16 + head * width : 16 + (head + 1) * width]
    of_query = stream.blocks[layer].attention.query.detach()[0, head, query].double()
    written = stream.blocks[0].write(3).detach().double()
    embedding = stream.blocks[0].state.detach()[0].double()
    for vectors, found in ((written, parts.heads[0, 3]), (embedding, parts.embedding)):
        centred = vectors - vectors.mean(dim=1, keepdim=True)
        keys = (centred / deviation * block.ln_1.weight.detach().double()) @ of_keys
        expected = (keys @ of_query / width**0.5).numpy()
        assert np.abs(found[: query + 1] - expected[: query + 1]).max() < 1e-5
        assert np.abs(expected).max() > 0.01
        assert not found[query + 1 :].any()  # keys that may not be attended to


def test_knock_outs_are_those_of_a_model_hooked_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = made(tmp_path, "gpt2", monkeypatch)
    stream = take_apart(folder)
    model = built("gpt2", "sdpa", CAUSAL)
    ids = torch.tensor([stream.subject.ids])

    with torch.no_grad(), replaced(model.transformer.h[0].attn.c_proj, 1):
        own = model(input_ids=ids).logits[0, -1].double().numpy()
    assert np.abs(stream.answer_without(HeadName(0, 1)) - own).max() < 1e-6
    assert np.abs(stream.answer_without(HeadName(0, 1)) - stream.logits).max() > 0.01

    head, query = HeadName(1, 2), 8
    block, writers = model.transformer.h[1], (Writer("head", 0, 1), Writer("mlp", 0), Writer("word", 1))
    vectors = {
        writers[0]: stream.blocks[0].write(1),
        writers[1]: stream.blocks[0].mlp,
        writers[2]: stream.blocks[0].state.detach()[0] + stream.blocks[0].mlp,
    }
    for writer, written in vectors.items():
        with torch.no_grad():
            keys = block.attn.c_attn(block.ln_1(stream.blocks[1].state - written))[0, :, 16 + 8 : 16 + 12].double()
            scores = keys @ stream.blocks[1].attention.query[0, 2, query].double() / 2
        expected = soften(scores.numpy(), np.arange(len(keys)) <= query)
        assert np.abs(stream.attend_without(head, query, [writer])[0] - expected).max() < 1e-6
        assert np.abs(stream.weights_of(head, query) - expected).max() > 1e-4


def test_what_a_place_gives_is_the_mean_key_turned_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = take_apart(made(tmp_path, "llama", monkeypatch))
    model, block, n_tokens = built("llama", "sdpa", CAUSAL).model, stream.blocks[1], len(stream.subject.ids)
    layer: Any = model.layers[1]
    with torch.no_grad():
        keys = layer.self_attn.k_proj(layer.input_layernorm(block.state))[0].unflatten(-1, (2, 4))[:, 1]
        cos, sin = (each[0] for each in model.rotary_emb(keys, torch.arange(n_tokens)[None]))
        mean = keys[[1, 2, 5]].mean(dim=0).expand(n_tokens, -1)
        turned = mean * cos + torch.cat([-mean[:, 2:], mean[:, :2]], dim=1) * sin
        expected = (turned @ block.attention.query[0, 3, 8] / 2).double().numpy()
    found = stream.score_places(HeadName(1, 3), 8, [1, 2, 5])
    assert np.abs(found - expected).max() < 1e-5
    assert np.ptp(expected) > 0.05


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_sum_is_refused(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, said = REFUSED[kind]
    with pytest.raises(InvalidModel, match=said) as refused:
        take_apart(made(tmp_path, kind, monkeypatch, **settings))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("part", ["heads", "mlps"])
def test_parts_that_miss_their_sum_are_refused(part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = take_apart(made(tmp_path, "llama", monkeypatch))
    block = stream.blocks[0]
    wrong = block.attention.mixed if part == "heads" else block.mlp
    wrong *= 1.001
    with pytest.raises(InvalidModel, match="its parts miss the logit by"):
        stream.split_logit(7, None)
    wrong *= 1.5
    with pytest.raises(InvalidModel, match=r"its parts miss the weights of head 1\.0 by"):
        stream.split_scores(HeadName(1, 0), 8)


def test_a_real_decoder_is_taken_apart() -> None:
    stream = take_apart(stories(), "Once upon a time, Tim and Lily went to the park. Lily gave a ball to")
    answer, against = map(int, np.argsort(-stream.logits)[:2])
    stream.split_logit(answer, against)
    for layer in range(len(stream.blocks)):
        for head in range(stream.blocks[0].n_heads):
            stream.split_scores(HeadName(layer, head), len(stream.subject.ids) - 1)
