"""`attnviz batch`."""

from __future__ import annotations

from attnviz.cli import show_batch
from attnviz.specs.batch import BatchSpec


def batch(spec: BatchSpec) -> None:
    """Make all that configs ask for, several at a time, and a manifest of it. What did not change is not made again.

    Example: attnviz batch sample_configs/heatmap.yaml --out figures
    """
    from attnviz.workflows.batch import batch as make

    show_batch.made(make(spec), spec)
