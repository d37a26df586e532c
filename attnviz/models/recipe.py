"""From labelled texts and a spec to a training run: vocabulary, examples, a model with its first weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import nn

from attnviz.errors import InvalidSource, InvalidText
from attnviz.models import tokenizer
from attnviz.models.checkpoint import Checkpoint
from attnviz.models.classifier import Classifier, ClassifierConfig
from attnviz.models.device import enough_memory, pick
from attnviz.models.encoder import EncoderConfig
from attnviz.models.examples import Examples, held_out, informative_bigrams
from attnviz.models.masking import Windows
from attnviz.models.pretraining import Pretraining
from attnviz.models.random_models import seeded
from attnviz.models.tokenizer import TextTokenizer
from attnviz.models.training import Training
from attnviz.specs.train import TrainSpec

MIN_TEXTS = 5  # that hold a pair of words, for it to get a vector
SENTIMENT = ("negative", "positive")  # what 0 and 1 mean in every source


@dataclass(frozen=True, eq=False)
class Run:
    """Everything that training needs, before its first step."""

    tokenizer: TextTokenizer
    training: Training

    @property
    def checkpoint(self) -> Checkpoint:
        """The model as it is now."""
        spec = self.training.spec
        assert spec.max_tokens is not None
        return Checkpoint(self.training.classifier, self.tokenizer, spec.max_tokens, spec.keep)

    @property
    def n_parameters(self) -> int:
        """How many numbers the model learns."""
        return sum(parameter.numel() for parameter in self.training.classifier.parameters())


def begin(texts: Sequence[str], labels: Sequence[int], spec: TrainSpec, names: Sequence[str] = ()) -> Run:
    """The same texts, labels and spec make the same run; errors call a text by its name, if there are names.

    Raises InvalidSource where labels cannot be told apart or held out, InvalidText where a text has no tokens.
    """
    kinds = _kinds(labels)
    vocabulary = tokenizer.train(texts, spec.vocabulary, classify=spec.pool == "cls")
    found = np.asarray(labels, dtype=np.int64)
    held = held_out(found, spec.validation)
    kept = np.setdiff1d(np.arange(len(found)), held)
    examples = Examples(list(vocabulary.ids(texts)), found)
    for place, ids in enumerate(examples.texts):
        if len(ids) == vocabulary.classify:
            name = names[place] if names else f"text {place}"
            raise InvalidText(f"{name} has no tokens", hint="Leave it out of the data.")
    training_texts = examples.some(kept)
    pairs = informative_bigrams(training_texts, len(vocabulary), spec.bigrams, MIN_TEXTS)
    device = pick(spec.device)
    with enough_memory(), seeded(spec.seed):
        config = _config(spec, len(vocabulary), len(pairs), kinds)
        # After pretraining, masked words are to be found out: training hides them, not the embedding.
        dropped = 0.0 if spec.pretrain else spec.word_dropout
        classifier = Classifier(config, spec.dropout, dropped, reach=spec.max_tokens or 0)
        if classifier.encoder.embedding.bigrams is not None:
            classifier.encoder.embedding.bigrams.pairs.copy_(pairs)
        for module in classifier.modules():
            if isinstance(module, nn.Embedding):
                module.sparse = device.type != "mps"  # which knows no sparse gradients
        classifier.to(device)
        pretraining = None
        if spec.pretrain:
            classifier.encoder.embedding.words.sparse = False  # words are the output layer too: each has a gradient
            pretraining = Pretraining(classifier.encoder, Windows(training_texts.texts), spec.pretrain, spec.seed)
        training = Training(classifier, training_texts, examples.some(held), spec, pretraining)
    return Run(vocabulary, training)


def _config(spec: TrainSpec, n_words: int, n_bigrams: int, labels: tuple[str, ...]) -> ClassifierConfig:
    assert spec.d_model is not None
    assert spec.heads is not None
    assert spec.layers is not None
    encoder = EncoderConfig(
        n_words=n_words,
        d_model=spec.d_model,
        n_heads=spec.heads,
        n_layers=spec.layers,
        d_feed_forward=4 * spec.d_model,
        n_bigrams=n_bigrams,
        norm=spec.norm,
        max_distance=spec.max_distance,
    )
    return ClassifierConfig(encoder, labels, spec.pool)


def _kinds(labels: Sequence[int]) -> tuple[str, ...]:
    """What the labels are called. Raises InvalidSource unless they are 0 to n - 1 with two texts each."""
    kinds = sorted(set(labels))
    if len(kinds) < 2:
        found = f"every text has the label {kinds[0]}" if kinds else "there are none"
        raise InvalidSource(
            f"a classifier needs texts of at least two labels, and {found}", hint="Choose another --split."
        )
    if kinds != list(range(len(kinds))):
        raise InvalidSource(
            f"the labels are {', '.join(map(str, kinds[:8]))}", hint="They have to be 0, 1, 2 and so on."
        )
    few = [label for label in kinds if sum(other == label for other in labels) < 2]
    if few:
        raise InvalidSource(
            f"only one text has the label {few[0]}", hint="Each label needs two texts: one is held out."
        )
    return SENTIMENT if len(kinds) == 2 else tuple(map(str, kinds))
