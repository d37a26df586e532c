"""Encoders and decoders taken apart: parts sum to their own numbers, knock-outs are by hand, or it is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from attnviz.errors import InvalidModel, InvalidText
from attnviz.models.checkpoint import load_checkpoint
from attnviz.models.decomposition import Decomposable
from attnviz.models.decomposition.stream import WEIGHT_TOLERANCE, Stream, soften
from attnviz.models.loading import find_model
from attnviz.records.attribution import HeadName, Question, Writer
from attnviz.specs import ModelOptions, PoolKind
from tests import pretrained
from tests.made import load_encoder, save_classifier
from tests.models.captures import replaced
from tests.pretrained import FAMILIES, built, minilm, saved, tokenizer

TEXT = "the film was not good but the acting saved it"
MASKED = "the acting saved the [MASK] but it was not good"
LABELS, MASK, CAUSAL = "AutoModelForSequenceClassification", "AutoModelForMaskedLM", "AutoModelForCausalLM"
# Layers, pooling, where norms stand, distances that are told apart.
OURS: dict[str, tuple[int, PoolKind, Any, int]] = {
    "one layer": (1, "mean", "pre", 3),
    "two layers": (2, "mean", "pre", 3),
    "one layer, sinusoids": (1, "mean", "pre", 0),
    "two layers, the first token, norms behind": (2, "cls", "post", 3),
}


def make_ours(folder: Path, form: str, n_labels: int = 2) -> Path:
    n_layers, pool, norm, max_distance = OURS[form]
    of_all = {"labels": ("bad", "good", "neither")[:n_labels], "pool": pool}
    sizes: dict[str, Any] = {"n_layers": n_layers, "norm": norm, "max_distance": max_distance}
    return save_classifier(folder / "ours", TEXT, std=0.5, classifier=of_all, **sizes)


def make_theirs(folder: Path, kind: str, auto: str, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> Path:
    """A folder of a small model of a kind for a task, with some of its settings changed."""

    def with_mask() -> Any:
        found = tokenizer()
        found.add_special_tokens({"mask_token": "[MASK]"})
        return found

    monkeypatch.setattr(pretrained, "tokenizer", with_mask)
    monkeypatch.setitem(FAMILIES, kind, {**FAMILIES.get(kind, {}), **settings})
    return saved(folder / "theirs", kind, auto=auto)


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Makes such a folder, of a decoder unless told."""
    return lambda kind, auto=CAUSAL, **settings: make_theirs(tmp_path, kind, auto, monkeypatch, **settings)


def take_apart(folder: Path, text: str = TEXT, question: Question | None = Question()) -> Any:  # noqa: B008
    model: Any = find_model(ModelOptions(model=str(folder), device="cpu")).answering(Decomposable).open(())
    return model.take_apart(text, "text", question)


def check_sums(stream: Stream, logits: np.ndarray, weights: list[Tensor]) -> None:
    """Held against a pass of the model that nobody watches."""
    assert np.abs(stream.logits - logits).max() < 1e-5
    answer, against = map(int, np.argsort(-logits)[:2])
    assert stream.subject.answer == answer
    assert stream.subject.against in (None, against)  # a decoder's answer stands against none unless asked
    parts = stream.split_logit(answer, against)
    wanted = logits[answer] - logits[against]
    assert parts.totals.sum() == pytest.approx(wanted, abs=1e-5)
    assert abs(parts.by_kind["heads"]) > 1e-3
    assert len(weights) == len(stream.blocks)
    for layer, of_layer in enumerate(weights):
        for head in range(len(of_layer)):
            given = stream.split_sources(HeadName(layer, head), parts)
            assert given.sum(axis=1) == pytest.approx(parts.heads[layer, head], abs=1e-5)
            for query in range(len(stream.subject.ids) - 1, -1, -4):
                scores = stream.split_scores(HeadName(layer, head), query).totals
                own = of_layer[head, query].double().numpy()
                attendable = stream.blocks[layer].attention.attendable[query].numpy()
                assert np.abs(soften(scores, attendable) - own).max() <= WEIGHT_TOLERANCE


@pytest.mark.parametrize("form", OURS)
def test_parts_of_our_encoders_sum_to_what_they_answer(form: str, tmp_path: Path) -> None:
    folder = make_ours(tmp_path, form)
    stream, classifier = take_apart(folder), load_checkpoint(folder).classifier.eval()
    ids = torch.tensor([stream.subject.ids])
    with torch.no_grad():
        logits = classifier(ids, torch.ones_like(ids, dtype=torch.bool))[0].double().numpy()
    maps = load_encoder(ModelOptions(model=str(folder)), []).attention(TEXT)
    check_sums(stream, logits, list(torch.from_numpy(maps.weights.copy())))
    parts = stream.split_logit(1, 0)
    n_read = int(parts.gradients[-1].any(dim=1).sum())
    assert n_read == (1 if "first token" in form else len(stream.subject.ids))


@pytest.mark.parametrize("form", ["two layers", "two layers, the first token, norms behind"])
def test_knock_outs_of_ours_are_those_of_a_model_hooked_by_hand(form: str, tmp_path: Path) -> None:
    folder = make_ours(tmp_path, form)
    stream, classifier = take_apart(folder), load_checkpoint(folder).classifier.eval()
    ids = torch.tensor([stream.subject.ids])
    blocks: Any = classifier.encoder.blocks
    first, second = blocks

    with torch.no_grad():
        whole = classifier(ids, torch.ones_like(ids, dtype=torch.bool))[0].double().numpy()
        state = classifier.encoder.embedding(ids)
        given = first.attention_residual.before(state)
        between = first.attention_residual.after(state, first.attention(given, given).output)
        thought = first.feed_forward(first.feed_forward_residual.before(between))
        with replaced(first.attention.output, 1):
            logits = classifier(ids, torch.ones_like(ids, dtype=torch.bool))[0].double().numpy()
            fewer = first.attention_residual.after(state, first.attention(given, given).output)
        found = stream.answer_without(HeadName(0, 1))
        assert np.abs(found - logits).max() < 1e-6
        assert np.abs(found - whole).max() > 1e-3

        # Of what a head read, a writer is taken out and norms are anew; what the MLP wrote stays.
        states = {
            Writer("head", 0, 1): first.feed_forward_residual.after(fewer, thought),
            Writer("mlp", 0): first.feed_forward_residual.after(between, torch.zeros_like(thought)),
            Writer("word", 1): first.feed_forward_residual.after(  # and what the first MLP makes of it
                first.attention_residual.after(torch.zeros_like(state), first.attention(given, given).output),
                torch.zeros_like(thought),
            ),
        }
        of_head = second.attention.position(len(ids[0]), len(ids[0]))[2].unfold(0, len(ids[0]), 1).flip(0)
        for writer, read in states.items():
            key = second.attention.key(second.attention_residual.before(read))[0, :, 8:12]
            scores = key @ stream.blocks[1].attention.query.detach()[0, 2, 5] / 2
            wanted = (scores + of_head[5]).softmax(dim=0).double().numpy()
            (weights,) = stream.attend_without(HeadName(1, 2), 5, [writer])
            assert np.abs(weights - wanted).max() < 1e-6
            assert np.abs(weights - stream.weights_of(HeadName(1, 2), 5)).max() > 1e-3


@pytest.mark.parametrize(("kind", "auto"), [("bert", LABELS), ("distilbert", MASK)])
def test_parts_of_encoders_with_norms_behind_sum(kind: str, auto: str, theirs: Callable[..., Path]) -> None:
    stream, model = take_apart(theirs(kind, auto), MASKED), built(kind, "eager", auto)
    ids = torch.tensor([stream.subject.ids])
    place = stream.subject.tokens.pieces.index("[MASK]")
    given = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    with torch.no_grad():
        own = model(**given, output_attentions=True)
        logits = (own.logits[0] if auto == LABELS else own.logits[0, place]).double().numpy()
    check_sums(stream, logits, [each[0] for each in own.attentions])
    assert all(block.norms for block in stream.blocks)
    read = stream.split_logit(stream.subject.answer, stream.subject.against).gradients[-1].any(dim=1).tolist()
    assert read == [each == (0 if auto == LABELS else place) for each in range(len(read))]

    layer = model.base_model.transformer.layer[0] if kind == "distilbert" else model.base_model.encoder.layer[0]
    projection = layer.attention.out_lin if kind == "distilbert" else layer.attention.output.dense
    with torch.no_grad(), replaced(projection, 1):
        found = model(**given).logits[0]
        without = (found if auto == LABELS else found[place]).double().numpy()
    assert np.abs(stream.answer_without(HeadName(0, 1)) - without).max() < 2e-6
    assert np.abs(stream.answer_without(HeadName(0, 1)) - logits).max() > 1e-3


@pytest.mark.parametrize(("text", "said"), [(TEXT, r"no \[MASK\]"), (f"{MASKED} {MASKED}", r"2 \[MASK\]")])
def test_one_mask_is_filled_in(text: str, said: str, theirs: Callable[..., Path]) -> None:
    folder = theirs("bert", MASK)
    with pytest.raises(InvalidText, match=said):
        take_apart(folder, text)
    take_apart(folder, text, None).split_scores(HeadName(1, 0), 3)


def test_looks_of_a_real_encoder_without_an_answer() -> None:
    stream = take_apart(minilm(), "Mary gave the book to John because she liked him", None)
    assert len(stream.blocks) == 6
    for layer in range(6):
        for head in range(12):
            stream.split_scores(HeadName(layer, head), 9)  # refused where weights are missed


# --- Decoders and other encoders: parts sum to their own numbers, are what the formula says, or it is refused ---


FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", {}),
    "qwen2, biases": ("qwen2", {}),
    "qwen3, norms of q and k": ("qwen3", {}),
    "mistral, a window": ("mistral", {}),
    "mixtral, experts": ("mixtral", {}),
    "gpt2, biases": ("gpt2", {}),
    "gpt_neox, parallel": ("gpt_neox", {}),
    "gpt_neox, one behind the other": ("gpt_neox", {"use_parallel_residual": False}),
    "modernbert": ("modernbert", {"auto": LABELS}),
    "xlm-roberta, norms behind": ("xlm-roberta", {"auto": LABELS}),
}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "gemma2": ({}, "scaled_dot_product_attention"),  # soft-caps
    "olmo2": ({}, "norms in the middle"),
    "granite": ({"residual_multiplier": 0.5}, "something else than its heads and its MLP"),
    "bloom": ({}, "scaled_dot_product_attention"),
    "albert": ({"auto": LABELS}, "share one module"),
    "deberta-v2": ({"auto": LABELS}, "does not attend by scaled_dot_product_attention"),
    "t5": ({"auto": "AutoModel"}, "is an encoder-decoder"),
}


@pytest.mark.parametrize("form", FORMS)
def test_parts_sum_to_what_transformers_computes(form: str, theirs: Callable[..., Path]) -> None:
    kind, settings = FORMS[form]
    stream, is_encoder = take_apart(theirs(kind, **settings)), "auto" in settings
    ids = torch.tensor([stream.subject.ids])
    with torch.no_grad():
        own = built(kind, "eager", settings.get("auto", CAUSAL))(input_ids=ids, output_attentions=True)
    logits = own.logits[0] if is_encoder else own.logits[0, -1]
    check_sums(stream, logits.double().numpy(), [each[0] for each in own.attentions])
    assert {block.norms is not None for block in stream.blocks} == {"norms behind" in form}
    if not is_encoder:  # only what stands at the last token is read
        assert not stream.split_logit(7, 9).totals[:-1].any()


def test_a_part_of_a_score_is_the_formula_with_the_norm_held(theirs: Callable[..., Path]) -> None:
    """In GPT-2, without rotations: q · W_K (γ (w - mean w) / σ(x)), for what a head wrote and for the embedding."""
    stream = take_apart(theirs("gpt2"))
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


def test_what_a_place_gives_is_the_mean_key_turned_to_it(theirs: Callable[..., Path]) -> None:
    stream = take_apart(theirs("llama"))
    model, block, n_tokens = built("llama", "sdpa", CAUSAL).model, stream.blocks[1], len(stream.subject.ids)
    layer: Any = model.layers[1]
    with torch.no_grad():
        keys = layer.self_attn.k_proj(layer.input_layernorm(block.state))[0].unflatten(-1, (2, 4))[:, 1]
        cos, sin = (each[0] for each in model.rotary_emb(keys, torch.arange(n_tokens)[None]))
        mean = keys[[1, 2, 5]].mean(dim=0).expand(n_tokens, -1)
        turned = mean * cos + torch.cat([-mean[:, 2:], mean[:, :2]], dim=1) * sin
        expected = (turned @ block.attention.query[0, 3, 8] / 2).double().numpy()
    assert np.abs(stream.score_places(HeadName(1, 3), 8, [1, 2, 5]) - expected).max() < 1e-5
    assert np.ptp(expected) > 0.05


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_sum_is_refused(kind: str, theirs: Callable[..., Path]) -> None:
    settings, said = REFUSED[kind]
    with pytest.raises(InvalidModel, match=said) as refused:
        take_apart(theirs(kind, **settings), question=None)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("part", ["heads", "mlps"])
def test_parts_that_miss_their_sum_are_refused(part: str, theirs: Callable[..., Path]) -> None:
    stream = take_apart(theirs("llama"))
    block = stream.blocks[0]
    wrong = block.attention.mixed if part == "heads" else block.mlp
    wrong *= 1.001
    with pytest.raises(InvalidModel, match="its parts miss the logit by"):
        stream.split_logit(7, None)
    wrong *= 1.5
    with pytest.raises(InvalidModel, match=r"its parts miss the weights of head 1\.0 by"):
        stream.split_scores(HeadName(1, 0), 8)
