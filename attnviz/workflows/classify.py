"""Texts shared out to be classified. A window is what one process reads at a time: the same answers, to the bit."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from concurrent.futures import Executor
from itertools import repeat
from typing import TYPE_CHECKING

from attnviz.models.loading import ModelReference
from attnviz.models.protocols import Classifies
from attnviz.specs import KeepKind
from attnviz.text import Document
from attnviz.workflows.executors import telling_deaths
from attnviz.workflows.open_model import open_model

if TYPE_CHECKING:
    from attnviz.training_metrics import Prediction


def n_windows(n_texts: int) -> int:
    """How many there are of so many texts."""
    from attnviz.models.predicting import WINDOW

    return -(-n_texts // WINDOW)


def classify_on(
    executor: Executor,
    reference: ModelReference,
    limit: tuple[int, KeepKind],
    documents: Sequence[Document],
) -> Generator[Prediction]:
    """One prediction per text, in order. Raises as `classify` does, ExecutionError where processes die."""
    from attnviz.models.predicting import WINDOW

    windows = (documents[start : start + WINDOW] for start in range(0, len(documents), WINDOW))
    with telling_deaths("texts", hint="Fewer --max-tokens take less memory."):
        for predictions in executor.map(classify_window, repeat(reference), repeat(limit), windows):
            yield from predictions


def classify_window(
    reference: ModelReference, limit: tuple[int, KeepKind], documents: Sequence[Document]
) -> list[Prediction]:
    """What a worker does: one window. Raises what reading the model and its texts raises."""
    model = open_model(reference, keep_memory=False)
    assert isinstance(model, Classifies)
    return list(model.limit_tokens(*limit).classify(documents))
