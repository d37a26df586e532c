"""Texts shared out to be classified. Shards are what one process reads at a time: the same answers, to the bit."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING

from attnviz.models.loading import ModelReference
from attnviz.models.protocols import Classifies
from attnviz.specs import KeepKind
from attnviz.text import Document
from attnviz.workflows.executors import results_in_order, telling_deaths
from attnviz.workflows.open_model import open_model

if TYPE_CHECKING:
    from attnviz.training_metrics import Prediction


def n_shards(n_texts: int) -> int:
    """How many there are of so many texts."""
    from attnviz.models.predicting import WINDOW

    return -(-n_texts // WINDOW)


def classify_on(
    executor: Executor,
    n_tasks: int,
    reference: ModelReference,
    limit: tuple[int, KeepKind],
    documents: Sequence[Document],
) -> Generator[Prediction]:
    """One prediction per text, in order. Raises as `classify` does, ExecutionError where processes die."""
    from attnviz.models.predicting import WINDOW

    shards = (documents[start : start + WINDOW] for start in range(0, len(documents), WINDOW))
    calls = ((reference, limit, shard) for shard in shards)
    with telling_deaths("texts", hint="Fewer --max-tokens take less memory."):
        for predictions in results_in_order(executor, n_tasks, classify_shard, calls):
            yield from predictions


def classify_shard(
    reference: ModelReference, limit: tuple[int, KeepKind], documents: Sequence[Document]
) -> list[Prediction]:
    """What a worker does: one shard. Raises what reading the model and its texts raises."""
    model = open_model(reference, keep_memory=False)
    assert isinstance(model, Classifies)
    return list(model.limit_tokens(*limit).classify(documents))
