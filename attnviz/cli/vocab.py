"""`attnviz vocab`."""

from __future__ import annotations

from attnviz.cli import show
from attnviz.specs.train import VocabSpec


def vocab(spec: VocabSpec) -> None:
    """Build a vocabulary from texts and save it as a tokenizer.json that other tools load.

    Example: attnviz vocab --dataset sample --size 2000 --min-frequency 2 --out vocabulary
    """
    from attnviz.workflows.vocab import vocab as build

    show.built(build(spec), spec)
