"""Answers in the order of the texts, each as if its text were alone, however many are read at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnviz.errors import InvalidText, TooLarge
from attnviz.models import predicting
from attnviz.models.classifier import Classifier, ClassifierConfig
from attnviz.models.encoder import EncoderConfig
from attnviz.models.predicting import Predictor
from attnviz.models.tokenizer import train
from attnviz.records.training_metrics import Prediction
from attnviz.specs import KeepKind, PoolKind, VocabularyOptions

WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


def predictor(pool: PoolKind = "mean", max_tokens: int = 99, keep: KeepKind = "head") -> Predictor:
    vocabulary = train([" ".join(WORDS)], VocabularyOptions(min_frequency=1), classify=pool == "cls")
    torch.manual_seed(1)
    sizes = EncoderConfig(len(vocabulary), d_model=8, n_heads=2, d_feed_forward=16)
    classifier = Classifier(ClassifierConfig(sizes, ("a", "b", "c"), pool))
    with torch.no_grad():
        classifier.encoder.embedding.words.weight[1:] *= 10  # else each text looks like the others
        classifier.temperature.fill_(0.5)
    return Predictor(classifier, vocabulary, max_tokens, keep)


READERS: dict[PoolKind, Predictor] = {pool: predictor(pool) for pool in ("mean", "cls", "attention")}


def text(*numbers: int) -> str:
    return " ".join(WORDS[number] for number in numbers)


def alone(by: Predictor, written: str) -> np.ndarray:
    """The formula: softmax(logits / temperature)."""
    by.classifier.eval()
    ids = torch.tensor([by.tokenizer.encode(written, by.max_tokens, by.keep).ids])
    with torch.no_grad():
        found = by.classifier(ids, torch.ones_like(ids, dtype=torch.bool))
    softmax: np.ndarray = (found[0] / by.classifier.temperature).softmax(dim=-1).numpy()
    return softmax


@pytest.mark.parametrize("pool", ["mean", "cls", "attention"])
@settings(max_examples=15)
@given(
    texts=st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=9).map(lambda ids: text(*ids)), max_size=12),
    window=st.integers(1, 7),
    batch=st.integers(1, 5),
)
def test_each_answer_is_that_of_its_text_alone(pool: PoolKind, texts: list[str], window: int, batch: int) -> None:
    reader = READERS[pool]
    reader.classifier.train()  # dropout must not be at work
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(predicting, "WINDOW", window)
        patch.setattr(predicting, "BATCH", batch)
        answers = list(reader.answers(texts))
    assert len(answers) == len(texts)
    for answer, written in zip(answers, texts, strict=True):
        np.testing.assert_allclose(answer.probabilities, alone(reader, written), atol=1e-5)
        assert sum(answer.probabilities) == pytest.approx(1)
        assert answer.n_tokens == answer.n_read == len(written.split())


def test_texts_are_read_a_window_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of them, and the vocabulary takes three at a time."""
    monkeypatch.setattr(predicting, "WINDOW", 2)
    monkeypatch.setattr("attnviz.models.tokenizer.BATCH", 3)
    given: list[str] = []

    def texts() -> Iterator[str]:
        for word in WORDS:
            given.append(word)
            yield word

    n_given = [len(given) for _ in READERS["mean"].answers(texts())]
    assert n_given == [3, 3, 6, 6, 6, 6, 9, 9, 10, 10]


def n_tokens(answers: Sequence[Prediction]) -> list[tuple[int, int]]:
    return [(answer.n_tokens, answer.n_read) for answer in answers]


@pytest.mark.parametrize(("pool", "n_read"), [("mean", 4), ("attention", 4), ("cls", 3)])
@pytest.mark.parametrize("keep", ["head", "head-tail"])
def test_tokens_are_counted_without_markers(pool: PoolKind, n_read: int, keep: KeepKind) -> None:
    """Of four tokens that are read, one is a [CLS] where there is one."""
    reader = predictor(pool, 4, keep)
    assert n_tokens(list(reader.answers([text(1, 2, 3, 4, 5, 6), text(1)]))) == [(6, n_read), (1, 1)]


@pytest.mark.parametrize(
    ("keep", "same"), [("head", (1, 2, 3, 4, 9, 9)), ("head-tail", (1, 2, 9, 9, 9, 5, 6)), ("head", (1, 2, 3, 4))]
)
def test_only_what_is_kept_is_read(keep: KeepKind, same: tuple[int, ...]) -> None:
    reader = predictor("mean", 4, keep)
    one, other = reader.answers([text(1, 2, 3, 4, 5, 6), text(*same)])
    np.testing.assert_allclose(one.probabilities, other.probabilities, atol=1e-6)


@pytest.mark.parametrize("pool", ["mean", "cls"])
@pytest.mark.parametrize("window", [1, 2, 99])
def test_a_text_without_tokens_is_named(pool: PoolKind, window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predicting, "WINDOW", window)
    with pytest.raises(InvalidText, match="no tokens in text 3"):
        list(READERS[pool].answers(["one", "two", "unheard", "<br />", "three"]))


def test_pairs_of_tokens_count_where_their_distance_does() -> None:
    """Of a batch its mask of 2²¹ numbers, twice while it is made; of one text, which has no padding, nothing."""
    reader = replace(predictor(max_tokens=500), max_memory=0.46)
    texts = [text(*range(10)) + " zero" * 500] * predicting.BATCH
    assert len(list(reader.answers(texts))) == len(texts)
    config = replace(reader.classifier.config.encoder, max_distance=3)
    biased = Classifier(replace(reader.classifier.config, encoder=config))
    with pytest.raises(TooLarge, match=r"texts of 500 tokens, 8 at a time, need 0\.47 GiB, allowed are 0\.46"):
        next(replace(reader, classifier=biased).answers(texts))
    assert len(list(replace(reader, classifier=biased).answers(texts[:1]))) == 1
