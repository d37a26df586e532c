"""`attnviz explain`."""

from __future__ import annotations

from attnviz.cli import show
from attnviz.specs.explain import ExplainSpec


def explain(spec: ExplainSpec) -> None:
    """Work out what one token attends to, step by step: from q, k and v to the output, held against the model's own.

    Example: attnviz explain --text "the film was not good" --query good --head 1
    """
    from attnviz.workflows.explain import explain as work_out

    show.explained(work_out(spec), spec)
