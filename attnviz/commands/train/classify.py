"""Texts shared out to be classified: in windows, what one process reads at a time. The same answers, to the bit."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from itertools import repeat

from attnviz.models.loading import ModelReference
from attnviz.models.protocols import Classifies
from attnviz.records.training_metrics import Prediction
from attnviz.running.executors import open_executor, report_worker_death
from attnviz.running.open_model import open_model
from attnviz.specs import KeepKind
from attnviz.text import Document


def classify_on(
    n_workers: int, reference: ModelReference, limit: tuple[int | None, KeepKind], windows: Sequence[Sequence[Document]]
) -> Generator[Prediction]:
    """Yield one prediction per text, in order. Raises as `classify` does, ExecutionError where processes die."""
    died = report_worker_death("texts", hint="Fewer --max-tokens take less memory.")
    with died, open_executor(n_workers) as (executor, _):
        for predictions in executor.map(_classify_window, repeat(reference), repeat(limit), windows):
            yield from predictions


def _classify_window(
    reference: ModelReference, limit: tuple[int | None, KeepKind], documents: Sequence[Document]
) -> list[Prediction]:
    """Classify one window, in a worker. Raises what reading the model and its texts raises."""
    model = open_model(reference, keep_memory=False)
    assert isinstance(model, Classifies)
    return list(model.limit_tokens(*limit).classify(documents))
