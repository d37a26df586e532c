"""Classifiers: pooling by hand, a temperature that is known beforehand, and each text as if it were alone."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from attnviz.document import Document
from attnviz.errors import InvalidText, TooLarge
from attnviz.models import predicting
from attnviz.models.checkpoint import Checkpoint, Classifier, ClassifierConfig, fit_temperature
from attnviz.models.encoder import EncoderConfig
from attnviz.models.predicting import answer_texts, classify, pad, probabilities
from attnviz.models.tokenizer import Encoding, train
from attnviz.records.answers import Prediction
from attnviz.specs import KeepKind, PoolKind, VocabularyOptions
from tests.models.captures import drawn

N_WORDS = 10
SIZES = EncoderConfig(N_WORDS, d_model=8, n_heads=2, n_layers=2, d_feed_forward=16)
real_tokens = st.lists(st.booleans(), min_size=1, max_size=8).filter(any).map(lambda real: torch.tensor([real]))
seeds = st.integers(0, 2**16)


@cache
def classifier(pool: PoolKind) -> Classifier:
    torch.manual_seed(3)
    made = Classifier(ClassifierConfig(SIZES, pool=pool)).eval()
    with torch.no_grad():
        for parameter in made.parameters():  # norms begin as the identity, biases as zero: nothing would show
            parameter.add_(0.3 * torch.randn_like(parameter))
        made.encoder.embedding.words.weight[0] = 0
    return made


def read(by: Classifier, *texts: list[int]) -> Tensor:
    with torch.no_grad():
        return torch.as_tensor(by(*pad([np.array(text) for text in texts])))


@pytest.mark.parametrize("pool", ["mean", "cls"])
def test_each_word_counts(pool: PoolKind) -> None:
    """Not so where a pool, or what is attendable, leaves out more than padding."""
    text = [3, 5, 7, 9]
    for place in range(4):
        other = [*text[:place], 2, *text[place + 1 :]]
        assert not torch.allclose(read(classifier(pool), text), read(classifier(pool), other), atol=1e-3)


@given(seeds, real_tokens)
def test_pooled_is_the_plain_mean_of_the_text_or_its_first_state(seed: int, real: Tensor) -> None:
    states = drawn(seed, 1, real.shape[1], SIZES.d_model)
    for pool, pooled in (("mean", states[real].mean(dim=0)), ("cls", states[0, 0])):
        made = classifier(pool)
        with torch.no_grad():
            torch.testing.assert_close(made.classify(states, real)[0], made.output(pooled))


def test_the_pooled_encoding_is_dropped() -> None:
    """With all of it dropped, only the bias of the last layer is left."""
    made = Classifier(ClassifierConfig(replace(SIZES, n_layers=0)), dropout=1.0)
    torch.nn.init.ones_(made.output.bias)
    assert read(made, [1, 2, 3]).tolist() == [[1, 1]]
    assert read(made.eval(), [1, 2, 3]).tolist() != [[1, 1]]


@given(seeds, st.floats(0.1, 10))
def test_a_temperature_changes_no_label(seed: int, temperature: float) -> None:
    made = Classifier(ClassifierConfig(replace(SIZES, n_layers=0)))
    made.temperature.fill_(temperature)
    found = drawn(seed, 20, 2)
    calibrated = probabilities(made, found)
    assert calibrated.argmax(axis=-1).tolist() == found.argmax(dim=-1).tolist()
    np.testing.assert_allclose(calibrated.sum(axis=-1), 1)
    odds = np.log(calibrated[:, 1] / calibrated[:, 0])
    np.testing.assert_allclose(odds, (found[:, 1] - found[:, 0]).numpy() / temperature, atol=1e-4)


@pytest.mark.parametrize("temperature", [0.15, 1.0, 8.0])
def test_a_known_temperature_is_found(temperature: float) -> None:
    """Odds of 4 to 1 for label 1 that hold for eight of ten, and odds of 3 to 2 for label 0 that hold for six."""
    logits = torch.tensor([[0.0, 4.0]] * 10 + [[1.5, 0.0]] * 10)
    logits[logits != 0] = logits[logits != 0].log()
    labels = torch.tensor([1] * 8 + [0] * 2 + [0] * 6 + [1] * 4)
    assert fit_temperature(temperature * logits, labels) == pytest.approx(temperature, rel=1e-3)


@pytest.mark.parametrize("size", [0.1, 1.0, 10.0, 1000.0])
def test_a_temperature_is_bounded(size: float) -> None:
    """Logits that are never wrong could be as large as one likes, those that are always wrong as small."""
    logits = size * torch.tensor([[0.0, 1.0], [1.0, 0.0], [3.0, 1.0]])
    right = logits.argmax(dim=-1)
    assert 0.1 <= fit_temperature(logits, right) <= 1
    assert fit_temperature(logits, 1 - right) == pytest.approx(10)
    assert fit_temperature(logits[:2], right[:2]) >= 0.1


def test_logits_that_say_nothing_keep_their_temperature() -> None:
    assert fit_temperature(torch.zeros(4, 2), torch.tensor([0, 1, 1, 1])) == 1


# --- Answers in the order of the texts, each as if its text were alone, however many are read at a time ---


WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


def predictor(pool: PoolKind = "mean", max_tokens: int = 99, keep: KeepKind = "head") -> Checkpoint:
    vocabulary = train([" ".join(WORDS)], VocabularyOptions(min_frequency=1), classify=pool == "cls")
    torch.manual_seed(1)
    sizes = EncoderConfig(len(vocabulary), d_model=8, n_heads=2, d_feed_forward=16)
    classifier = Classifier(ClassifierConfig(sizes, ("a", "b", "c"), pool))
    with torch.no_grad():
        classifier.encoder.embedding.words.weight[1:] *= 10  # else each text looks like the others
        classifier.temperature.fill_(0.5)
    return Checkpoint(classifier, vocabulary, max_tokens, keep)


READERS: dict[PoolKind, Checkpoint] = {pool: predictor(pool) for pool in ("mean", "cls")}


def text(*numbers: int) -> str:
    return " ".join(WORDS[number] for number in numbers)


def alone(by: Checkpoint, written: str) -> np.ndarray:
    """The formula: softmax(logits / temperature)."""
    by.classifier.eval()
    ids = torch.tensor([by.tokenizer.encode(written, by.max_tokens, by.keep).ids])
    with torch.no_grad():
        found = by.classifier(ids, torch.ones_like(ids, dtype=torch.bool))
    softmax: np.ndarray = (found[0] / by.classifier.temperature).softmax(dim=-1).numpy()
    return softmax


@pytest.mark.parametrize("pool", ["mean", "cls"])
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
        answers = list(predict(reader, texts))
    assert len(answers) == len(texts)
    for answer, written in zip(answers, texts, strict=True):
        np.testing.assert_allclose(answer.probabilities, alone(reader, written), atol=1e-5)
        assert sum(answer.probabilities) == pytest.approx(1)
        assert answer.n_tokens == answer.n_read == len(written.split())


def predict(by: Checkpoint, texts: Sequence[str], max_memory: float = math.inf) -> Iterator[Prediction]:
    documents = [Document(each, f"text {place}", "") for place, each in enumerate(texts)]

    def answer(encodings: Sequence[Encoding]) -> np.ndarray:
        return answer_texts(by.classifier, [np.array(each.ids) for each in encodings], max_memory)

    return classify(documents, partial(by.tokenizer.encode, max_tokens=by.max_tokens, keep=by.keep), answer)


@pytest.mark.parametrize(("pool", "n_read"), [("mean", 4), ("cls", 3)])
@pytest.mark.parametrize("keep", ["head", "head-tail"])
def test_tokens_are_counted_without_markers(pool: PoolKind, n_read: int, keep: KeepKind) -> None:
    """Of four tokens that are read, one is a [CLS] where there is one."""
    answers = predict(predictor(pool, 4, keep), [text(1, 2, 3, 4, 5, 6), text(1)])
    assert [(answer.n_tokens, answer.n_read) for answer in answers] == [(6, n_read), (1, 1)]


@pytest.mark.parametrize("pool", ["mean", "cls"])
@pytest.mark.parametrize("window", [1, 2, 99])
def test_a_text_without_tokens_is_named(pool: PoolKind, window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predicting, "WINDOW", window)
    with pytest.raises(InvalidText, match="text 3: no tokens in the text"):
        list(predict(READERS[pool], ["one", "two", "unheard", "<br />", "three"]))


def test_pairs_of_tokens_count_where_their_distance_does() -> None:
    """Of a batch its mask, twice while it is made; of one text, which has no padding, nothing."""
    reader = predictor(max_tokens=500)
    texts = [text(*range(10)) + " zero" * 500] * predicting.BATCH
    assert len(list(predict(reader, texts, max_memory=0.46))) == len(texts)
    config = replace(reader.classifier.config.encoder, max_distance=3)
    biased = Classifier(replace(reader.classifier.config, encoder=config))
    with pytest.raises(TooLarge, match=r"texts of 500 tokens, 8 at a time, need 0\.48 GiB, allowed are 0\.46"):
        next(predict(replace(reader, classifier=biased), texts, max_memory=0.46))
    assert len(list(predict(replace(reader, classifier=biased), texts[:1], max_memory=0.46))) == 1
