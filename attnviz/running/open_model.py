"""The model of a process that is given one piece of work after the other: read once."""

from __future__ import annotations

from typing import Any

from attnviz.models.loading import ModelReference
from attnviz.models.protocols import AttentionModel


def open_model(
    reference: ModelReference, vocabulary: tuple[str, ...] = (), *, keep_memory: bool = True
) -> AttentionModel:
    """The model, which a process reads once, and what it computes with. `keep_memory`: sizes of blocks recur."""
    # Torch comes with it, and is imported by workers alone.
    from attnviz.models.device import keep_freed_memory, return_freed_memory, use_one_thread

    key = (reference, vocabulary)
    if _opened.get("key") != key:
        use_one_thread()  # with more of them, and on a cluster nobody knows how many, sums have other bits
        if keep_memory:
            keep_freed_memory()
        else:
            return_freed_memory()
        _opened.clear()
        _opened.update(key=key, model=reference.open(vocabulary))
    model: AttentionModel = _opened["model"]
    return model


_opened: dict[str, Any] = {}
