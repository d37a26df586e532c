"""Third-party models that answer: labels, several labels or numbers, as transformers itself computes them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attnviz.errors import InvalidModel, InvalidOption, TooLarge
from attnviz.models.attribution import METHODS
from attnviz.models.attribution.subject import attribute
from attnviz.models.loading import find_model
from attnviz.models.protocols import Ablatable, Classifies
from attnviz.records.answers import AnswerInfo, Prediction, number_labels
from attnviz.records.attribution import Question
from attnviz.specs import ModelOptions
from attnviz.text import Document
from tests import pretrained
from tests.pretrained import built, saved, tokenizer

LABELS = "AutoModelForSequenceClassification"
TEXT = "the acting saved the film but it was not good"
TEXTS = (TEXT, "a cat sat", "the film was good", "a mat was", "it was not unable and the cat sat on a mat")


def opened(folder: Path, **options: Any) -> Any:
    """A classifier that cuts texts to what it reads."""
    model = pretrained.opened(folder, Classifies, **options)
    return model.limit_tokens(model.max_tokens, model.keep)


def classify(model: Classifies, *texts: str, gold: int | None = None) -> list[Prediction]:
    return list(model.classify([Document(text, f"text {i}", f"text-{i}", gold) for i, text in enumerate(texts)]))


def own_logits(kind: str, text: str, **settings: Any) -> torch.Tensor:
    """As transformers has them, of one text alone."""
    ids = tokenizer()(text, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        return torch.as_tensor(built(kind, "eager", LABELS, **settings)(input_ids=ids).logits[0].double())


@pytest.mark.parametrize(
    ("names", "numbers"),
    [
        (("negative", "positive"), (0, 1)),
        ((" Positive", "neg"), (1, 0)),
        (("LABEL_0", "LABEL_1", "LABEL_2"), (0, 1, 2)),
        (("LABEL_1", "LABEL_2"), None),
        (("negative", "neutral", "positive"), None),  # positive is 1 of two, and 2 of three
        (("NEG", "negative"), None),
        (("joy", "anger"), None),
    ],
)
def test_numbers_are_read_off_the_names_of_labels(names: tuple[str, ...], numbers: tuple[int, ...] | None) -> None:
    assert number_labels(names) == numbers
    answers = AnswerInfo.from_names(names, "label")
    assert answers.find_labels([*(numbers or ()), -1, None]) == [*range(len(numbers or ())), None, None]
    assert answers.find_labels([0, None, 7]) == [None] * 3
    assert answers.list_lacking([7, 0, None, 7, -1]) == ([] if numbers is None else [7])


def test_names_that_are_alike_are_told_apart_by_their_places() -> None:
    assert AnswerInfo.from_names(("a", "a"), "label").labels == ("a (0)", "a (1)")


@pytest.mark.parametrize("kind", ["bert", "gpt2", "bart"])
def test_answers_are_those_of_transformers_in_any_company(kind: str, tmp_path: Path) -> None:
    """GPT-2 without a padding token refuses several texts at a time; and nothing is padded."""
    model = opened(saved(tmp_path, kind, auto=LABELS))
    found = classify(model, *TEXTS, gold=1)
    assert [each.text_name for each in found] == [f"text {i}" for i in range(len(TEXTS))]
    assert len({each.n_read for each in found}) == len(TEXTS) - 1  # two are of one length
    for text, each in zip(TEXTS, found, strict=True):
        expected = own_logits(kind, text).softmax(dim=-1).tolist()
        assert each.probabilities == pytest.approx(expected, abs=1e-6)
        assert (each.gold, each.scores, each.n_unknown) == (1, (), 0)
        assert each.n_tokens == each.n_read == len(tokenizer()(text)["input_ids"]) - 2


def test_each_of_several_labels_has_a_probability_of_its_own(tmp_path: Path) -> None:
    settings = {"problem_type": "multi_label_classification", "num_labels": 3}
    model = opened(saved(tmp_path, "bert", auto=LABELS, **settings))
    assert model.answers.kind == "labels"
    (found,) = classify(model, TEXT)
    expected = own_logits("bert", TEXT, num_labels=3).sigmoid()
    assert found.probabilities == pytest.approx(expected.tolist(), abs=1e-6)
    chosen = model.answers.choose_labels(found)
    assert chosen == tuple(torch.nonzero(expected >= 0.5).flatten().tolist())
    subject = model.subject(TEXT, "text", Question())
    assert subject.target.value == pytest.approx(float(expected.max()), abs=1e-6)
    assert subject.target.against == ""


@pytest.mark.parametrize("kind", ["bert", "deberta-v2", "gpt2"])
def test_the_number_of_a_regressor_is_explained_by_every_method(kind: str, tmp_path: Path) -> None:
    model = opened(saved(tmp_path, kind, auto=LABELS, num_labels=1))
    assert model.answers == AnswerInfo(("score",), "score", None, third_party=True)
    expected = float(own_logits(kind, TEXT, num_labels=1)[0])
    (found,) = classify(model, TEXT)
    assert found.probabilities == ()
    assert found.scores == pytest.approx((expected,), abs=1e-5)
    subject = model.subject(TEXT, "text", Question())
    assert (subject.target.name, subject.target.probability) == ("score", None)
    assert subject.target.score == pytest.approx(expected, abs=1e-5)
    for method in (method.name for method in METHODS):
        scores = attribute(subject, method)
        assert np.abs(scores.scores).max() > 0
        if method == "relevance":
            assert scores.total == pytest.approx(expected, abs=1e-5)
    words = TEXT.split()
    without = [float(own_logits(kind, " ".join(words[:i] + words[i + 1 :]), num_labels=1)[0]) for i in range(4)]
    lost = attribute(subject, "leave-one-out").scores[1:5]
    assert lost.tolist() == pytest.approx([expected - each for each in without], abs=1e-5)


def test_of_several_numbers_one_is_to_be_named(tmp_path: Path) -> None:
    names = {0: "valence", 1: "arousal"}
    model = opened(saved(tmp_path, "bert", auto=LABELS, id2label=names, problem_type="regression"))
    with pytest.raises(InvalidOption, match="answers with 2 numbers") as refused:
        model.subject(TEXT, "text", Question())
    assert "valence, arousal" in refused.value.hint
    subject = model.subject(TEXT, "text", Question("arousal"))
    assert subject.target.score == pytest.approx(classify(model, TEXT)[0].scores[1], abs=1e-6)
    with pytest.raises(InvalidOption, match="'joy' is not a number"):
        model.subject(TEXT, "text", Question("joy"))
    with pytest.raises(InvalidOption, match="--against 'valence' is for labels"):
        model.subject(TEXT, "text", Question("arousal", against="valence"))


def test_a_long_text_is_cut_to_what_the_model_reads(tmp_path: Path) -> None:
    model = opened(saved(tmp_path, "bert", auto=LABELS))
    (found,) = classify(model, "film " * 60)
    assert (found.n_tokens, found.n_read) == (60, 38)
    assert len(model.subject("film " * 60, "text", Question()).ids) == 40
    with pytest.raises(TooLarge, match=r"62 tokens, and .* reads at most 40"):
        classify(model.limit_tokens(None, "head"), "film " * 60)


def test_texts_without_room_are_refused_and_words_that_are_not_known_are_counted(tmp_path: Path) -> None:
    model = opened(saved(tmp_path, "bert", auto=LABELS))
    with pytest.raises(TooLarge, match="texts of 12 tokens, 1 at a time, need"):
        classify(opened(tmp_path, max_memory=0.5), TEXT)
    (unknown,) = classify(model, "xyzzy plugh film")
    assert (unknown.n_unknown, unknown.n_read, unknown.is_judged) == (2, 3, False)


def test_what_classifies_nothing_is_opened_without_a_head_and_refused_where_one_is_needed(tmp_path: Path) -> None:
    for kind, auto in (("bert", "AutoModel"), ("gpt2", "AutoModelForCausalLM")):
        reference = find_model(ModelOptions(model=str(saved(tmp_path / kind, kind, auto=auto)), device="cpu"))
        assert not isinstance(reference.answering(Classifies).open(()), Classifies)
        with pytest.raises(InvalidModel, match="which classifies no texts"):
            reference.check(Classifies)
    reference = find_model(ModelOptions(model=str(saved(tmp_path / "labels", "bert", auto=LABELS))))
    with pytest.raises(InvalidModel, match="not a built-in classifier"):
        reference.check(Ablatable)


def test_metrics_that_others_wrote_beside_their_model_are_not_taken_for_ours(tmp_path: Path) -> None:
    from attnviz.running.metrics import load_model_metrics

    folder = saved(tmp_path, "bert", auto=LABELS)
    (folder / "metrics.json").write_text('{"eval_accuracy": 0.9}')
    assert load_model_metrics(opened(folder)) is None
