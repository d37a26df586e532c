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


def predict_inputs(spec: PredictSpec) -> Inputs:
    """Find one classifier and every chosen text.

    Raises InvalidOption, InvalidModel, InvalidSource or InvalidSelection.
    """
    check_workers(spec.workers)
    reference = find_model(spec.model).answering(Classifies)
    reference.check(Classifies)
    if spec.max_tokens is not None and spec.max_tokens < 2:
        raise InvalidOption(f"--max-tokens {spec.max_tokens} is too small", hint="It is at least 2.")
    formats = [plugin.name for plugin in choose_renderers(spec.figure.format, spec.figure.open)]
    if drawn := [name for name in formats if name != PAGE_FORMAT]:
        raise InvalidOption(f"predict draws no {drawn[0]}", hint="--format html is a page; heatmap and attribute draw.")
    inputs = read_inputs([reference], spec.text, every=True, out=spec.figure.out if formats else None)
    return replace(inputs, n_workers=min(spec.workers or 1, len(split_windows(inputs.documents))))


def split_windows(documents: Sequence[Document]) -> list[Sequence[Document]]:
    """Split the texts into what one process reads at a time, in order."""
    return [documents[start : start + WINDOW] for start in range(0, len(documents), WINDOW)]
