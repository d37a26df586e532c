"""A checkpoint as a model, which attends and, if it was trained, classifies; and models with random weights.

These are the same for the same seed and vocabulary on every device.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from attnviz.bounded import expand_path
from attnviz.document import Document
from attnviz.errors import InvalidModel
from attnviz.models import tokenizer
from attnviz.models.ablation import answers_with_heads, answers_without_heads, average_heads
from attnviz.models.attribution.subject import Answering, Subject, make_labelled_subject
from attnviz.models.checkpoint import Checkpoint
from attnviz.models.device import enough_memory, pick, seeded
from attnviz.models.encoder import DotEncoder, Encoder, EncoderConfig
from attnviz.models.encoder_model import EncoderModel, size_of
from attnviz.models.predicting import answer_texts, classify
from attnviz.models.protocols import MEASURED
from attnviz.models.tokenizer import Encoding
from attnviz.records.answers import AnswerInfo, Prediction
from attnviz.records.attribution import Question
from attnviz.specs import KeepKind, ModelOptions, VocabularyOptions

if TYPE_CHECKING:
    from attnviz.models.decomposition.stream import Stream


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassifierModel(EncoderModel):
    """A trained classifier, whose encoder attends."""

    saved: Checkpoint
    folder: Path

    @property
    def n_parameters(self) -> int:
        """Count the learned numbers of the model, its classification head included."""
        return size_of(self.saved.classifier)

    @property
    def answers(self) -> AnswerInfo:
        """Return the labels that the model tells apart."""
        return AnswerInfo.from_training(self.saved.classifier.config.labels)

    @property
    def max_tokens(self) -> int:
        """Return the length of the longest text that the model reads, in tokens."""
        return self.saved.max_tokens

    @property
    def keep(self) -> KeepKind:
        """Return which part of a longer text the model reads."""
        return self.saved.keep

    def limit_tokens(self, max_tokens: int | None, keep: KeepKind) -> "ClassifierModel":
        """Return the same model with another limit, for its attention and its answers alike."""
        return replace(self, spec=replace(self.spec, max_tokens=max_tokens, keep=keep))

    def subject(self, text: str, text_name: str, question: Question) -> Subject:
        """Choose an answer of a text to explain. Raises as `encode` does, InvalidOption for an unknown label."""
        encoding, classifier = self.encode(text), self.saved.classifier
        words, temperature = classifier.encoder.embedding.words.weight, float(classifier.temperature)
        answering = Answering(classifier, words, self._logits, temperature=temperature)
        given = encoding.ids, encoding.tokens, self.provenance(text, text_name, encoding.n_tokens)
        return make_labelled_subject(answering, given, self.answers, question)

    def take_apart(self, text: str, text_name: str, question: Question | None) -> "Stream":
        """Take one answer of one text apart. Raises as `subject` does."""
        from attnviz.models.decomposition.stream import take_apart

        subject = self.subject(text, text_name, question or Question())
        answering = replace(subject.answering, logits=partial(self._logits, need_weights=False))
        return take_apart(replace(subject, answering=answering))

    def _logits(self, ids: Tensor, *, need_weights: bool | None = None) -> Tensor:
        """Return the logits of ids. A pass that is watched gives its weights, in the order of the queries."""
        real, is_watched = torch.ones_like(ids, dtype=torch.bool), torch.is_grad_enabled()
        need_weights = is_watched if need_weights is None else need_weights
        return self.saved.classifier.classify(self.saved.classifier.states(ids, real, need_weights=need_weights), real)

    def mean_outputs(self, texts: Iterable[str]) -> np.ndarray:
        """Return [layer, d_model]: what heads give on average over these, of those that have tokens. See `ablate`."""
        passes = (partial(self.attention, text, choice=MEASURED) for text in texts)
        found = average_heads([each.module for each in self.list_projections()], passes)
        return np.stack([of_layer.cpu().numpy() for of_layer in found])

    def ablate(
        self, text: str, other: str, kinds: Sequence[str], means: np.ndarray | None = None
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return the probability of each label, by kind [head, label] without each head. Raises as `encode` does."""
        ids, theirs = (np.array(self.encode(each).ids) for each in (text, other))
        (whole,), without = answers_without_heads(self.saved.classifier, self.attentions, ids, theirs, kinds, means)
        return whole, without

    def answer_with_heads(self, text: str, layer: int, kept: np.ndarray) -> np.ndarray:
        """Return [answer, label]: probabilities with these heads of one layer only. Raises as `encode` does."""
        ids = np.array(self.encode(text).ids)
        return answers_with_heads(self.saved.classifier, self.attentions[layer], ids, kept)

    def classify(self, documents: Sequence[Document]) -> Iterator[Prediction]:
        """Return one prediction per text, in order. Raises TooLarge, InvalidText for one without tokens, by name."""
        max_tokens = self.spec.max_tokens or self.max_tokens
        read = partial(self.tokenizer.encode, max_tokens=max_tokens, keep=self.spec.keep)
        return classify(documents, read, self._answer)

    def _answer(self, encodings: Sequence[Encoding]) -> np.ndarray:
        ids = [np.array(each.ids) for each in encodings]
        return answer_texts(self.saved.classifier, ids, self.spec.max_memory)


def checkpoint_model(
    saved: Checkpoint, folder: Path, name: str, spec: ModelOptions, device: torch.device
) -> EncoderModel:
    """Return the encoder of a checkpoint, as a classifier if it was trained to be one."""
    classifier = saved.classifier.eval().to(device)
    config = classifier.config.encoder
    parts: dict[str, Any] = {
        "name": name,
        "revision": saved.revision,
        "trained": saved.trained,
        "tokenizer": saved.tokenizer,
        "spec": spec,
        "settings": (*asdict(config).items(), ("made_for_tokens", saved.max_tokens)),
        "made_for_tokens": saved.max_tokens,
        "encoder": classifier.encoder,
        "device": device,
    }
    return ClassifierModel(**parts, saved=saved, folder=folder) if saved.trained else EncoderModel(**parts)


def random_model(
    name: str, spec: ModelOptions, sizes: tuple[int, int, int], texts: Iterable[str], *, projected: bool
) -> EncoderModel:
    """Make a model of so many layers, heads and numbers, its vocabulary of `texts` or of the file that `spec` names.

    Without being `projected` its q, k and v are the embeddings themselves.
    """
    (n_layers, n_heads, d_model), device = sizes, pick(spec.device)
    with enough_memory():
        if spec.vocab is None:
            vocabulary = tokenizer.train(texts, VocabularyOptions(tokenizer=spec.tokenizer, min_frequency=1))
        else:
            vocabulary = tokenizer.load(expand_path(spec.vocab, InvalidModel))
        with seeded(spec.seed):
            config = EncoderConfig(len(vocabulary), d_model, n_heads, n_layers, 4 * d_model)
            encoder = Encoder(config) if projected else DotEncoder(len(vocabulary), d_model)
    settings = asdict(config) if projected else {"n_words": len(vocabulary), "d_model": d_model}
    return EncoderModel(
        name=name,
        revision=f"random, seed {spec.seed}",
        trained=False,
        tokenizer=vocabulary,
        spec=spec,
        settings=(*settings.items(), ("seed", spec.seed)),
        encoder=encoder.eval().to(device),
        device=device,
    )
