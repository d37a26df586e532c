"""Encoders explained as a command: the class, the token that is filled in, one look, and how bad requests end."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from attnviz.commands.explain.answer.why import explain_answer, find_reason
from attnviz.commands.explain.answer.words import describe_look
from attnviz.records.attribution import HeadName, Question
from attnviz.views.answers import describe_target
from tests.attacks.endings import RunHere, refused, worked
from tests.models.test_decomposition import LABELS, MASK, MASKED, make_ours, make_theirs, take_apart
from tests.pretrained import configured

pytestmark = pytest.mark.usefixtures("undrawn")
TEXT = "the film was not good but the acting saved it"


def read_json(run_here: RunHere, *asked: str | Path) -> Any:
    return json.loads(worked(run_here("explain", *asked, "--json")).out)["texts"][0]


def test_a_class_is_explained(run_here: RunHere, tmp_path: Path) -> None:
    shown = worked(run_here("explain", TEXT, "--format", "png,html"))
    said = " ".join(shown.stdout.split())
    found = read_json(run_here, TEXT)
    answer, rival = found["answer"], found["against"]
    assert {answer, rival} == {"negative", "positive"}
    chances = (f"{found[name]:.0%}".replace("%", " %") for name in ("probability", "rival_probability"))
    assert said.startswith(f"multi:8 has no clear answer: ‘{answer}’ ({next(chances)}) or ‘{rival}’ ({next(chances)}) ")
    assert worked(run_here("attribute", TEXT)).stdout.splitlines()[0] == shown.stdout.splitlines()[0]
    details = " ".join(worked(run_here("explain", TEXT, "--table", "full")).stdout.split())
    assert f"for ‘{answer}’ over ‘{rival}’ (" in details
    assert "The answer is read at every token" in details
    assert "next token" not in said
    assert {path.name for path in (tmp_path / "explanation").iterdir()} >= {"explanation.png", "attention.html"}
    assert found["sum_of_parts"] == pytest.approx(found["logit_difference"], abs=1e-5)
    assert list(found["by_kind"])[:4] == ["heads", "MLPs", "embedding", "biases"]
    assert sum(found["by_kind"].values()) == pytest.approx(found["sum_of_parts"])
    other = read_json(run_here, TEXT, "--answer", rival, "--against", answer)
    assert other["logit_difference"] == pytest.approx(-found["logit_difference"])
    assert [each["head"] for each in other["heads"]] == [each["head"] for each in found["heads"]]
    assert [each["written"] for each in other["heads"]] == pytest.approx([-each["written"] for each in found["heads"]])


@pytest.mark.parametrize("one_look", [(), ("--head", "0.1", "--query", "猫")])
def test_words_that_the_vocabulary_does_not_hold_are_said(one_look: tuple[str, ...], run_here: RunHere) -> None:
    said = " ".join(worked(run_here("explain", "good 猫 坐 上", *one_look)).stdout.split())
    assert "The vocabulary lacks 3 of 4 tokens (read as [UNK]): 1 猫, 2 坐, 3 上." in said
    assert "--model multi-zh and single-zh read Chinese" in said


def test_a_text_that_is_longer_than_the_model_was_made_for_is_said_to_be(run_here: RunHere) -> None:
    assert "at most 512 tokens and has 600 here" in worked(run_here("explain", "good " * 600)).stdout


def test_what_a_head_reads_is_summed_over_the_tokens_that_look(tmp_path: Path) -> None:
    stream = take_apart(make_ours(tmp_path, "two layers"), TEXT)
    found = explain_answer(stream)
    parts = stream.split_logit(stream.subject.answer, stream.subject.against)
    assert found.n_queries == len(found.tokens)
    for look, *_ in found.heads:
        head = HeadName(*map(int, look["head"].split(".")))
        given = stream.split_sources(head, parts) * np.sign(look["written"])
        assert look["written"] == pytest.approx(parts.heads[head].sum())
        assert look["key"] == given.sum(axis=0).argmax()
        assert abs(look["from_source"]) == pytest.approx(given.sum(axis=0).max())
        assert given[look["query"], look["key"]] == given[:, look["key"]].max()
    assert any(look["query"] != len(found.tokens) - 1 for look, *_ in found.heads)


def test_a_head_may_look_because_of_the_place() -> None:
    stream = take_apart(Path("multi:8"), TEXT)
    named = []
    for head, query in np.ndindex(8, len(stream.subject.ids)):
        weights, bias = stream.weights_of(HeadName(1, head), query), stream.bias_of(HeadName(1, head), query)
        assert np.ndim(bias) == 1
        places = stream.score_places(HeadName(1, head), query, range(len(weights)))
        assert places - bias == pytest.approx((places - bias).mean())  # nothing else here tells places apart
        look = find_reason(stream, HeadName(1, head), query, int(weights.argmax()))
        if look["named"] == "the place":
            without = weights / np.exp(bias)
            assert look["weight_without"] >= (without / without.sum())[look["key"]] - 1e-6
            assert look["weight_without"] <= look["weight"] / 2
            named.append(describe_look(stream.subject.tokens, look))
    assert named
    assert all("because of its place: without that ." in each for each in named)


def test_a_class_of_several_is_explained_against_the_next(tmp_path: Path) -> None:
    folder = make_ours(tmp_path, "one layer", n_labels=3)
    stream = take_apart(folder, TEXT)
    labels, order = ("bad", "good", "neither"), np.argsort(-stream.logits)
    assert (stream.subject.target.name, stream.subject.target.against) == (labels[order[0]], labels[order[1]])
    last = take_apart(folder, TEXT, Question(labels[order[2]]))
    assert last.subject.target.against == labels[order[0]]


def test_a_number_is_explained_against_nothing(
    run_here: RunHere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_theirs(tmp_path, "bert", LABELS, monkeypatch, num_labels=1)
    configured(folder, problem_type="regression")
    found = read_json(run_here, "--model", folder, TEXT)
    assert (found["answer"], found["against"]) == ("score", "")
    assert found["score"] == pytest.approx(found["sum_of_parts"], abs=1e-5)
    asked = ("explain", "--model", folder, TEXT, "--table", "full")
    said = " ".join(worked(run_here(*asked)).stdout.split())
    assert said.startswith(f"theirs gives ‘score’ ({found['score']:.2f}) ")
    assert "for ‘score’; without the head the logit changes by" in said or "against ‘score’; without" in said
    assert "‘’" not in said
    assert "what the logit is made of" in said


def test_answers_that_are_not_numbers_are_refused(
    run_here: RunHere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_theirs(tmp_path, "bert", LABELS, monkeypatch)
    tensors = load_file(folder / "model.safetensors")
    tensors["classifier.weight"] = torch.full_like(tensors["classifier.weight"], 3e38)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    for command in ("explain", "attribute"):
        refused(run_here(command, "--model", folder, TEXT, "--json"), "the model's answers are not numbers")


def test_what_is_filled_in_is_explained(run_here: RunHere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_theirs(tmp_path, "bert", MASK, monkeypatch)
    found = explain_answer(take_apart(folder, MASKED))
    assert (found.target.form, found.n_queries) == ("masked token", 1)
    assert describe_target("x", replace(found.target, rival=None)).startswith("x fills in ‘")
    assert all(look["query"] == found.tokens.pieces.index("[MASK]") for look, *_ in found.heads)
    asked = read_json(run_here, "--model", folder, MASKED, "--answer", "film", "--against", "cat")
    assert (asked["answer"].strip(), asked["against"].strip()) == ("film", "cat")
    refused(run_here("explain", "--model", folder, TEXT), "no [MASK] in the text")


def test_one_look_of_an_encoder(run_here: RunHere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_theirs(tmp_path, "bert", "AutoModel", monkeypatch)
    for asked in (("--model", folder), ("--model", make_ours(tmp_path, "two layers"))):
        look = read_json(run_here, *asked, TEXT, "--head", "1.2", "--query", "good")["looks"][0]
        stream = take_apart(Path(asked[1]), TEXT, None)
        query = stream.subject.tokens.pieces.index("good")
        weights = stream.weights_of(HeadName(1, 2), query)
        assert (look["head"], look["query"], look["key"]) == ("1.2", query, int(weights.argmax()))
        assert look["weight"] == pytest.approx(weights.max())
        refused(run_here("explain", *asked, TEXT, "--head", "1.2"), "Say from which with --query WORD.")
        assert (tmp_path / "explanation" / "explanation.png").is_file()


def test_a_model_that_was_not_trained_to_answer_works_by_hand_only(run_here: RunHere, tmp_path: Path) -> None:
    folder = make_ours(tmp_path, "one layer")
    configured(folder, trained=False)
    said = "was not trained to answer. --by-hand works one query of it out."
    refused(run_here("explain", "--model", folder, TEXT), said)
    assert worked(run_here("explain", "--model", folder, TEXT, "--by-hand")).stdout.startswith("Attention from token ")


def test_heads_left_out_are_left_out_of_the_explanation(run_here: RunHere) -> None:
    whole = read_json(run_here, TEXT)
    first = whole["heads"][0]
    found = read_json(run_here, TEXT, "--without", first["head"])
    answer = 1 if found["answer"] == whole["answer"] else -1
    assert found["logit_difference"] * answer == pytest.approx(whole["logit_difference"] + first["removal"], abs=1e-5)
    assert abs(first["removal"]) > 0.01
