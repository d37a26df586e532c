"""The recall networks that ship, as models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from attnviz.errors import AttnvizError, InvalidModel, InvalidOption, InvalidText
from attnviz.models.loading import find_model, with_example
from attnviz.models.protocols import AttentionModel, Classifies, Traceable
from attnviz.models.recall_reference import TRIALS, RecallReference
from attnviz.models.recall_text import EXAMPLE, read_recall
from attnviz.specs import ModelOptions, TextOptions

TEXT = "a1 b2 c3 d4 e5 f6 g7 h8"


def opened(name: str) -> AttentionModel:
    reference = find_model(ModelOptions(model=name))
    reference.check()
    return reference.open(())


def test_a_text_is_read_token_by_token() -> None:
    read = read_recall(" 5 a3\nb15", 2)
    assert (read.roles, read.values) == ((0, 1, 2), (5, 3, 15))
    assert (read.tokens.pieces, read.tokens.offsets) == (("5", "a3", "b15"), ((1, 2), (3, 5), (6, 9)))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (" ", "no tokens in the text"),
        ("a1 b2 the", "'the' is no token of the recall task"),
        ("a1 b16", "'b16' is no token"),
        ("a1 b2 c3", "'c3' is no token"),
        ("a1 b²", "'b²' is no token"),
        ("a1 3", "the text has no b, to be recalled once"),
        ("a1 b2 a3", "the text has a 2 times"),
        ("x" * 500, f"'{'x' * 20}' is no token"),
    ],
)
def test_what_is_no_sequence_is_refused_with_one_that_is(text: str, problem: str) -> None:
    with pytest.raises(InvalidText) as refused:
        read_recall(text, 2)
    assert str(refused.value).startswith(problem)
    assert EXAMPLE in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("heads", TRIALS)
def test_what_ships_attends_with_its_heads(heads: int) -> None:
    model = opened(f"recall:{heads}")
    maps = model.attention(EXAMPLE)
    assert (model.n_heads, model.n_parameters, model.n_attention_parameters) == (heads, 13_600, 4_224)
    assert maps.weights.shape == (1, heads, 1, len(EXAMPLE.split()))
    assert (maps.queries.pieces, maps.keys.pieces) == (("?",), tuple(EXAMPLE.split()))
    is_item = np.array([token[0].isalpha() for token in maps.keys.pieces])
    assert maps.weights[..., is_item].sum() > 0.95 * heads  # tokens without a role are left alone


def test_eight_heads_report_every_value() -> None:
    settings = dict(opened("recall").attention(TEXT).provenance.settings)
    assert settings["reported"] == TEXT


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (ModelOptions(model="recall:3"), "no model 'recall:3'"),
        (ModelOptions(model="recall:8", d_model=64), "--d-model cannot be chosen for a recall model"),
        (ModelOptions(model="recall:8", causal=True), "--causal is not for recall:8"),
        (ModelOptions(model="recall:8", max_tokens=7), "8 tokens, --max-tokens is 7"),
    ],
)
def test_what_it_cannot_do_is_refused(options: ModelOptions, problem: str) -> None:
    def attend() -> None:
        reference = find_model(options)
        reference.check()
        reference.open(()).attention(TEXT)

    with pytest.raises(AttnvizError, match=problem):
        attend()


@pytest.mark.parametrize("needs", [Classifies, Traceable])
def test_it_only_attends(needs: type[object]) -> None:
    with pytest.raises(InvalidModel, match="recall:8 recalls values and cannot"):
        find_model(ModelOptions(model="recall")).check(needs)


def test_damaged_weights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damaged = tmp_path / "weights"
    damaged.write_bytes(b"\x08" + bytes(15))
    monkeypatch.setattr(RecallReference, "file", damaged)
    with pytest.raises(InvalidModel, match="weights is damaged"):
        opened("recall")


def test_without_a_text_it_reads_an_example() -> None:
    models = [find_model(ModelOptions(model=name)) for name in ("recall:1", "single")]
    assert with_example(TextOptions(), models).text == (EXAMPLE,)
    assert with_example(TextOptions(), models[1:]) == TextOptions()
    assert with_example(TextOptions(dataset="sample"), models) == TextOptions(dataset="sample")


def test_sizes_are_its_own() -> None:
    with pytest.raises(InvalidOption, match="--heads cannot be chosen"):
        find_model(ModelOptions(model="recall", heads=2))
