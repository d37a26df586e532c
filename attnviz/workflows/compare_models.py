"""The models of a comparison, and what each of them answers."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from attnviz.models.loading import ModelReference
from attnviz.models.protocols import AttentionModel, Classifies
from attnviz.specs.model import ModelOptions
from attnviz.text.document import Document
from attnviz.training_metrics import Prediction, TestMetrics
from attnviz.workflows.metrics import metrics_of

ROUNDS = 15  # of timing, the models in turn


def open_models(references: Sequence[ModelReference], texts: Iterable[str]) -> list[AttentionModel]:
    """In their order, each under a name of its own: two checkpoint folders may be called alike."""
    names = [reference.name for reference in references]
    models = []
    for place, (reference, name) in enumerate(zip(references, names, strict=True)):
        same = names[: place + 1].count(name) if names.count(name) > 1 else 0
        models.append(reference.open(texts, f"{name} ({same})" if same else name))
    return models


def predictions(model: AttentionModel, documents: Sequence[Document], spec: ModelOptions) -> tuple[Prediction, ...]:
    """None where the model does not classify."""
    if not isinstance(model, Classifies):
        return ()
    limit = min(spec.max_tokens or model.max_tokens, model.max_tokens)
    return tuple(model.limit_tokens(limit, spec.keep).classify(documents))


def labels_of(model: AttentionModel) -> tuple[str, ...]:
    """None where the model does not classify."""
    return model.labels if isinstance(model, Classifies) else ()


def tested(model: AttentionModel) -> TestMetrics | None:
    """What its card says of it."""
    metrics = metrics_of(model)
    return None if metrics is None else metrics.tested


def seconds(models: Sequence[AttentionModel], documents: Sequence[Document]) -> list[float]:
    """The median of several passes over the text of middle length, the models in turn; the first round is to warm up.

    Of all numbers of a comparison only these are not the same each time.
    """
    text = sorted((document.text for document in documents), key=len)[len(documents) // 2]
    rounds = [[model.seconds(text) for model in models] for _ in range(ROUNDS + 1)][1:]
    return [statistics.median(of_model) for of_model in zip(*rounds, strict=True)]
