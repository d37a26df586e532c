"""The models of a comparison, ready for everything that is compared."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from attnviz.models.attender import Attender
from attnviz.models.device import pick
from attnviz.models.names import ModelName
from attnviz.models.opening import attending, called
from attnviz.models.predicting import Predictor
from attnviz.models.pretrained_attender import PretrainedAttender
from attnviz.outcomes import Prediction, Tested
from attnviz.specs.model import ModelOptions
from attnviz.text.document import Corpus, Document
from attnviz.workflows.keeping import attender_of, checkpoint_of, pretrained_of
from attnviz.workflows.metrics import NAME as METRICS
from attnviz.workflows.metrics import load_metrics

ROUNDS = 15  # of timing, the models in turn


@dataclass(frozen=True, eq=False)
class Opened:
    """A model that attends, and classifies if it was trained to."""

    attender: Attender | PretrainedAttender
    predictor: Predictor | None = None
    tested: Tested | None = None  # what its card says

    @property
    def labels(self) -> tuple[str, ...]:
        return self.predictor.classifier.config.labels if self.predictor else ()


def open_models(specs: Sequence[ModelOptions], names: Sequence[ModelName], corpus: Corpus) -> list[Opened]:
    """In their order, each under a name of its own: two checkpoint folders may be called alike."""
    models = [_opened(spec, name, corpus) for spec, name in zip(specs, names, strict=True)]
    found = [model.attender.name for model in models]
    told = [f"{name} ({found[: i + 1].count(name)})" if found.count(name) > 1 else name for i, name in enumerate(found)]
    return [
        replace(model, attender=replace(model.attender, name=name)) for model, name in zip(models, told, strict=True)
    ]


def predictions(model: Opened, documents: Sequence[Document]) -> tuple[Prediction, ...]:
    """None where the model does not classify."""
    if model.predictor is None:
        return ()
    names = [document.name for document in documents]
    answers = model.predictor.answers((document.text for document in documents), names)
    return tuple(
        Prediction(document.name, tuple(answer.probabilities.tolist()), document.label, answer.n_tokens, answer.n_read)
        for document, answer in zip(documents, answers, strict=True)
    )


def seconds(models: Sequence[Opened], documents: Sequence[Document]) -> list[float]:
    """The median of several passes over the text of middle length, the models in turn; the first round is to warm up.

    Of all numbers of a comparison only these are not the same each time.
    """
    text = sorted((document.text for document in documents), key=len)[len(documents) // 2]
    rounds = [[model.attender.seconds(text) for model in models] for _ in range(ROUNDS + 1)][1:]
    return [statistics.median(of_model) for of_model in zip(*rounds, strict=True)]


def _opened(spec: ModelOptions, name: ModelName, corpus: Corpus) -> Opened:
    if name.kind == "pretrained":
        return Opened(pretrained_of(name, spec))
    if name.folder is None:
        return Opened(attender_of(spec, corpus))
    saved, device = checkpoint_of(name.folder), pick(spec.device)
    attender = attending(saved, called(name), spec, device)
    if not saved.trained:
        return Opened(attender)
    read = min(spec.max_tokens or saved.max_tokens, saved.max_tokens)
    tested = load_metrics(name.folder).tested if (name.folder / METRICS).is_file() else None
    return Opened(attender, Predictor(saved.classifier.to(device), saved.tokenizer, read, spec.keep), tested)
