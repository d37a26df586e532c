"""`attnviz train`."""

from __future__ import annotations

from attnviz.cli import show_training
from attnviz.specs.train import TrainSpec


def train(spec: TrainSpec) -> None:
    """Train a transformer encoder to classify texts, and save it as a folder that --model takes.

    Example: attnviz train --dataset imdb --heads 8 --out model
    """
    from attnviz.workflows.train import train as learn

    show_training.trained(learn(spec), spec)
