"""What `attnviz predict` reads and writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from attnviz.commands.train.spec import PredictSpec
from attnviz.errors import InvalidOption
from attnviz.inputs import Inputs, read_inputs
from attnviz.models.loading import find_model
from attnviz.models.protocols import WINDOW, Classifies
from attnviz.renderers import PAGE_FORMAT, choose_renderers
from attnviz.running.executors import check_workers
from attnviz.text import Document

MAX_DRAWN = 100  # texts with --heatmap: eight pictures each


def predict_inputs(spec: PredictSpec) -> Inputs:
    """Find one classifier and every chosen text.

    Raises InvalidOption, InvalidModel, InvalidSource or InvalidSelection.
    """
    check_workers(spec.workers)
    reference = find_model(spec.model).answering(Classifies)
    reference.check(Classifies)
    if spec.max_tokens is not None and spec.max_tokens < 2:
        raise InvalidOption(f"--max-tokens {spec.max_tokens} is too small", hint="It is at least 2.")
    draws = spec.heatmap or spec.attribute
    inputs = read_inputs([reference], spec.text, every=True, out=spec.figure.out if draws_pictures(spec) else None)
    if draws and len(inputs.documents) > MAX_DRAWN:
        raise InvalidOption(
            f"--{'heatmap' if spec.heatmap else 'attribute'} would draw {len(inputs.documents):,} texts",
            hint=f"At most {MAX_DRAWN}: choose them with --index.",
        )
    return replace(inputs, n_workers=min(spec.workers or 1, len(split_windows(inputs.documents))))


def draws_pictures(spec: PredictSpec) -> bool:
    """Return whether pictures of each text are asked for, or a page of all answers.

    Raises InvalidOption where a format is unknown.
    """
    formats = [plugin.name for plugin in choose_renderers(spec.figure.format, spec.figure.open)]
    return spec.heatmap or spec.attribute or PAGE_FORMAT in formats


def split_windows(documents: Sequence[Document]) -> list[Sequence[Document]]:
    """Split the texts into what one process reads at a time, in order."""
    return [documents[start : start + WINDOW] for start in range(0, len(documents), WINDOW)]
